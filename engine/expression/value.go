package expression

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planrun/planrun/drivers"
)

// kind is the type of a value. As the static type of a node, dynamic says that only the call will tell.
type kind uint8

const (
	nothing kind = iota // nil, null, a member that is not there
	truth
	whole
	decimal
	text
	list
	mapping
	dynamic
)

var kindText = [...]string{"nothing", "a truth value", "a number", "a number", "text", "a list", "a mapping", "anything"}

func (k kind) String() string { return kindText[k] }

func (k kind) isNumber() bool { return k == whole || k == decimal }

// value is what a node evaluates to. Numbers, text and truth values are held without allocating.
type value struct {
	kind kind
	n    int64 // whole; truth as 0 or 1
	f    float64
	s    string
	ref  any // list: []any; mapping: map[string]any or map[string]string
}

func truthOf(b bool) value {
	if b {
		return value{kind: truth, n: 1}
	}
	return value{kind: truth}
}

func wholeOf(n int64) value { return value{kind: whole, n: n} }

func decimalOf(f float64) value { return value{kind: decimal, f: f} }

func textOf(s string) value { return value{kind: text, s: s} }

func listOf(items []any) value { return value{kind: list, ref: items} }

// valueOf takes over what a Root, a Lookup or an answer holds.
func valueOf(v any) value {
	switch v := v.(type) {
	case nil:
		return value{}
	case bool:
		return truthOf(v)
	case int64:
		return wholeOf(v)
	case float64:
		return decimalOf(v)
	case string:
		return textOf(v)
	case []any:
		return listOf(v)
	case map[string]any, map[string]string:
		return value{kind: mapping, ref: v}
	case int:
		return wholeOf(int64(v))
	case int32:
		return wholeOf(int64(v))
	case uint32:
		return wholeOf(int64(v))
	case float32:
		return decimalOf(float64(v))
	case []byte:
		return textOf(string(v))
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return wholeOf(n)
		}
		if f, err := v.Float64(); err == nil {
			return decimalOf(f)
		}
		return textOf(v.String())
	case []string:
		items := make([]any, len(v))
		for i, s := range v {
			items[i] = s
		}
		return listOf(items)
	case []map[string]any:
		items := make([]any, len(v))
		for i, m := range v {
			items[i] = m
		}
		return listOf(items)
	}
	return textOf(fmt.Sprint(v))
}

// any is the inverse of valueOf.
func (v value) any() any {
	switch v.kind {
	case truth:
		return v.n != 0
	case whole:
		return v.n
	case decimal:
		return v.f
	case text:
		return v.s
	case list, mapping:
		return v.ref
	}
	return nil
}

func (v value) number() float64 {
	if v.kind == whole {
		return float64(v.n)
	}
	return v.f
}

// isTrue is false of nothing as well.
func (v value) isTrue() bool { return v.kind == truth && v.n != 0 }

func (v value) items() []any { items, _ := v.ref.([]any); return items }

func (v value) length() int {
	switch ref := v.ref.(type) {
	case []any:
		return len(ref)
	case map[string]any:
		return len(ref)
	case map[string]string:
		return len(ref)
	}
	return 0
}

// member is nothing when there is none.
func (v value) member(name string) value {
	switch m := v.ref.(type) {
	case map[string]any:
		return valueOf(m[name])
	case map[string]string:
		if s, ok := m[name]; ok {
			return textOf(s)
		}
	}
	return value{}
}

// item counts from 0, or from -1 backwards. It is nothing when there is none.
func (v value) item(i int64) value {
	items := v.items()
	if i < 0 {
		i += int64(len(items))
	}
	if i < 0 || i >= int64(len(items)) {
		return value{}
	}
	return valueOf(items[i])
}

func (v value) equal(o value) bool {
	switch {
	case v.kind.isNumber() && o.kind.isNumber():
		if v.kind == whole && o.kind == whole {
			return v.n == o.n
		}
		return v.number() == o.number()
	case v.kind != o.kind:
		return false
	}
	switch v.kind {
	case truth:
		return v.n == o.n
	case text:
		return v.s == o.s
	case list:
		return slices.EqualFunc(v.items(), o.items(), func(a, b any) bool { return valueOf(a).equal(valueOf(b)) })
	case mapping:
		if v.length() != o.length() {
			return false
		}
		for _, k := range v.keys() {
			if a, b := v.member(k), o.member(k); !a.equal(b) || b.kind == nothing && !slices.Contains(o.keys(), k) {
				return false
			}
		}
	}
	return true
}

// keys of a mapping, sorted.
func (v value) keys() []string {
	var keys []string
	switch m := v.ref.(type) {
	case map[string]any:
		for k := range m {
			keys = append(keys, k)
		}
	case map[string]string:
		for k := range m {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// appendText appends the value as it stands in a text. Lists and mappings are JSON.
func (v value) appendText(dst []byte) []byte {
	switch v.kind {
	case text:
		return append(dst, v.s...)
	case whole:
		return strconv.AppendInt(dst, v.n, 10)
	case list, mapping:
		if b, err := json.Marshal(v.ref); err == nil {
			return append(dst, b...)
		}
		return fmt.Append(dst, v.ref)
	}
	return drivers.AppendText(dst, v.any())
}

// describe prints the value for people: text in quotes, everything on one line and of bounded length.
func (v value) describe() string {
	switch v.kind {
	case nothing:
		return "nothing"
	case text:
		return strconv.Quote(shorten(v.s, 200))
	}
	return shorten(strings.Join(strings.Fields(string(v.appendText(nil))), " "), 200)
}
