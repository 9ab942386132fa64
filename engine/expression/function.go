package expression

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/planrun/planrun/drivers"
)

// takes is a set of kinds that an argument may have.
type takes uint16

const (
	takesTruth   takes = 1 << truth
	takesNumber  takes = 1<<whole | 1<<decimal
	takesText    takes = 1 << text
	takesList    takes = 1 << list
	takesMapping takes = 1 << mapping
	takesAny     takes = takesTruth | takesNumber | takesText | takesList | takesMapping
	takesNothing takes = 1 << nothing
)

func (t takes) has(k kind) bool { return k == dynamic || t&(1<<k) != 0 }

func (t takes) String() string {
	var names []string
	for _, n := range []struct {
		set  takes
		name string
	}{{takesText, "text"}, {takesNumber, "a number"}, {takesTruth, "a truth value"}, {takesList, "a list"}, {takesMapping, "a mapping"}} {
		if t&n.set != 0 {
			names = append(names, n.name)
		}
	}
	if len(names) > 1 {
		return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
	}
	return strings.Join(names, "")
}

// function is one that templates and expectations may call. All of them depend on their arguments alone.
type function struct {
	form     string // as it is written
	doc      string // one sentence in Markdown
	args     []takes
	optional int  // how many of args may be left out
	more     bool // the last of args may be repeated
	result   kind
	// apply gets as many arguments as allowed, of the right kinds. A message says why there is no result.
	apply func(args []value) (v value, message string)
}

func textFunction(form, doc string, apply func(s string) string) *function {
	return &function{form: form, doc: doc, args: []takes{takesText}, result: text, apply: func(a []value) (value, string) {
		return textOf(apply(a[0].s)), ""
	}}
}

func textPair(form, doc string, result kind, apply func(s, t string) value) *function {
	return &function{form: form, doc: doc, args: []takes{takesText, takesText}, result: result, apply: func(a []value) (value, string) {
		return apply(a[0].s, a[1].s), ""
	}}
}

// rounding makes a whole number of a decimal one.
func rounding(form, doc string, apply func(float64) float64) *function {
	return &function{form: form, doc: doc, args: []takes{takesNumber}, result: whole, apply: func(a []value) (value, string) {
		return toWhole(a[0], apply)
	}}
}

func toWhole(v value, round func(float64) float64) (value, string) {
	if v.kind == whole {
		return v, ""
	}
	r := round(v.f)
	if math.Abs(r) >= 1<<63 {
		return value{}, "is too large for a whole number"
	}
	return wholeOf(int64(r)), ""
}

// extreme is min or max.
func extreme(form, doc string, better func(a, b float64) bool) *function {
	return &function{form: form, doc: doc, args: []takes{takesNumber}, more: true, result: decimal, apply: func(a []value) (value, string) {
		best := a[0]
		for _, v := range a[1:] {
			if better(v.number(), best.number()) {
				best = v
			}
		}
		return best, ""
	}}
}

// calls are the functions by name. Whatever is missing here can't be called.
var calls = map[string]*function{
	"len": {form: "len(x)", doc: "Characters of a text, elements of a list, or members of a mapping.", args: []takes{takesText | takesList | takesMapping}, result: whole, apply: func(a []value) (value, string) {
		if a[0].kind == text {
			return wholeOf(int64(len([]rune(a[0].s)))), ""
		}
		return wholeOf(int64(a[0].length())), ""
	}},
	"int": {form: "int(x)", doc: "A whole number: of text, or of a decimal number without what is behind its point.", args: []takes{takesNumber | takesText}, result: whole, apply: func(a []value) (value, string) {
		if a[0].kind == text {
			n, err := strconv.ParseInt(strings.TrimSpace(a[0].s), 10, 64)
			if err != nil {
				return value{}, "is not a whole number"
			}
			return wholeOf(n), ""
		}
		return toWhole(a[0], math.Trunc)
	}},
	"float": {form: "float(x)", doc: "A number, of text.", args: []takes{takesNumber | takesText}, result: decimal, apply: func(a []value) (value, string) {
		if a[0].kind == text {
			f, err := strconv.ParseFloat(strings.TrimSpace(a[0].s), 64)
			if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
				return value{}, "is not a number"
			}
			return decimalOf(f), ""
		}
		return decimalOf(a[0].number()), ""
	}},
	"string": {form: "string(x)", doc: "Text.", args: []takes{takesAny}, result: text, apply: func(a []value) (value, string) {
		return textOf(string(a[0].appendText(nil))), ""
	}},
	"abs": {form: "abs(x)", doc: "The number without its sign.", args: []takes{takesNumber}, result: decimal, apply: func(a []value) (value, string) {
		if a[0].kind == whole {
			return wholeOf(max(a[0].n, -a[0].n)), ""
		}
		return decimalOf(math.Abs(a[0].f)), ""
	}},
	"round": rounding("round(x)", "The nearest whole number, halves away from zero.", math.Round),
	"floor": rounding("floor(x)", "The greatest whole number not above.", math.Floor),
	"ceil":  rounding("ceil(x)", "The smallest whole number not below.", math.Ceil),
	"min":   extreme("min(a, b)", "The smallest of any number of numbers.", func(a, b float64) bool { return a < b }),
	"max":   extreme("max(a, b)", "The greatest of them.", func(a, b float64) bool { return a > b }),

	"upper": textFunction("upper(s)", "In capitals.", strings.ToUpper),
	"lower": textFunction("lower(s)", "In small letters.", strings.ToLower),
	"trim":  textFunction("trim(s)", "Without white space at both ends.", strings.TrimSpace),
	"trimPrefix": textPair("trimPrefix(s, prefix)", "Without that beginning.", text, func(s, t string) value {
		return textOf(strings.TrimPrefix(s, t))
	}),
	"trimSuffix": textPair("trimSuffix(s, suffix)", "Without that end.", text, func(s, t string) value {
		return textOf(strings.TrimSuffix(s, t))
	}),
	"indexOf": textPair("indexOf(s, part)", "Characters before the first occurrence; -1 if there is none.", whole, func(s, t string) value {
		i := strings.Index(s, t)
		if i > 0 {
			i = len([]rune(s[:i]))
		}
		return wholeOf(int64(i))
	}),
	"replace": {form: "replace(s, old, new)", doc: "With every occurrence replaced.", args: []takes{takesText, takesText, takesText}, result: text, apply: func(a []value) (value, string) {
		if n := strings.Count(a[0].s, a[1].s); len(a[0].s)+n*len(a[2].s) > maxText {
			return value{}, "would become too long"
		}
		return textOf(strings.ReplaceAll(a[0].s, a[1].s, a[2].s)), ""
	}},
	"split": textPair("split(s, separator)", "The parts between separators, a list.", list, func(s, t string) value {
		return valueOf(strings.Split(s, t))
	}),
	"join": {form: "join(list, separator)", doc: "The elements as one text; without a separator, next to each other.", args: []takes{takesList, takesText}, optional: 1, result: text, apply: func(a []value) (value, string) {
		var b []byte
		for i, item := range a[0].items() {
			if i > 0 && len(a) > 1 {
				b = append(b, a[1].s...)
			}
			if b = valueOf(item).appendText(b); len(b) > maxText {
				return value{}, "would become too long"
			}
		}
		return textOf(string(b)), ""
	}},

	"toBase64": textFunction("toBase64(s)", "In base64 (RFC 4648, section 4).", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
	"fromBase64": {form: "fromBase64(s)", doc: "What base64 stands for.", args: []takes{takesText}, result: text, apply: func(a []value) (value, string) {
		b, err := base64.StdEncoding.DecodeString(a[0].s)
		if err != nil {
			return value{}, "is not base64"
		}
		return textOf(string(b)), ""
	}},
	"toJSON": {form: "toJSON(x)", doc: "Any value as JSON.", args: []takes{takesAny | takesNothing}, result: text, apply: func(a []value) (value, string) {
		b, err := json.Marshal(a[0].any())
		if err != nil {
			return value{}, "can't be written as JSON"
		}
		return textOf(string(b)), ""
	}},
	"fromJSON": {form: "fromJSON(s)", doc: "The value of a text that is JSON.", args: []takes{takesText}, result: dynamic, apply: func(a []value) (value, string) {
		d := json.NewDecoder(strings.NewReader(a[0].s))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil || d.More() {
			return value{}, "is not JSON"
		}
		return valueOf(v), ""
	}},

	"keys": {form: "keys(mapping)", doc: "The names of its members, a list.", args: []takes{takesMapping}, result: list, apply: func(a []value) (value, string) {
		return valueOf(a[0].keys()), ""
	}},
	"first": {form: "first(list)", doc: "The first element; nothing of an empty list.", args: []takes{takesList}, result: dynamic, apply: func(a []value) (value, string) {
		return a[0].item(0), ""
	}},
	"last": {form: "last(list)", doc: "The last element; nothing of an empty list.", args: []takes{takesList}, result: dynamic, apply: func(a []value) (value, string) {
		return a[0].item(-1), ""
	}},
}

// each are the functions that look at every element of a list. In their predicate .name is a member of the element, #
// the element itself and #index its index.
var each = map[string]struct {
	form, doc string
	optional  bool // the predicate may be left out
	result    kind
}{
	"all":    {"all(list, .member > 0)", "Whether it is true of every element; of none it is.", false, truth},
	"any":    {"any(list, .member > 0)", "Whether it is true of an element.", false, truth},
	"none":   {"none(list, .member > 0)", "Whether it is true of no element.", false, truth},
	"one":    {"one(list, .member > 0)", "Whether it is true of exactly one element.", false, truth},
	"filter": {"filter(list, .member > 0)", "The elements of which it is true.", false, list},
	"map":    {"map(list, .member)", "What it comes to for each element.", false, list},
	"find":   {"find(list, .member > 0)", "The first element of which it is true.", false, dynamic},
	"count":  {"count(list, .member > 0)", "How many elements it is true of.", true, whole},
	"sum":    {"sum(list, .member)", "What it comes to for all elements together.", true, decimal},
}

// FunctionInfo documents a function of templates, expectations, captures and conditions.
type FunctionInfo struct {
	Form string // as it is written
	Doc  string // one sentence in Markdown
}

// Functions is the catalogue of functions by name. uuid() and random(a, b) are of templates alone and not in it.
func Functions() []FunctionInfo {
	var list []FunctionInfo
	for _, f := range calls {
		list = append(list, FunctionInfo{f.form, f.doc})
	}
	for _, f := range each {
		list = append(list, FunctionInfo{f.form, f.doc})
	}
	slices.SortFunc(list, func(a, b FunctionInfo) int { return strings.Compare(a.Form, b.Form) })
	return list
}

func (n *node) evalCall(f *frame) (value, error) {
	var few [4]value
	args := few[:0]
	for i, k := range n.kids {
		v, err := k.eval(f)
		if err != nil {
			return value{}, err
		}
		if want := n.call.args[min(i, len(n.call.args)-1)]; !want.has(v.kind) {
			return value{}, n.wants(want.String(), k, v)
		}
		args = append(args, v)
	}
	v, message := n.call.apply(args)
	if message != "" {
		return value{}, n.errorf("%s %s", n.kids[0].text(), message)
	}
	return v, nil
}

func (n *node) evalEach(f *frame) (value, error) {
	items, err := n.kids[0].eval(f)
	if err != nil {
		return value{}, err
	}
	if items.kind != list {
		return value{}, n.wants("a list", n.kids[0], items)
	}
	item, index := f.item, f.index
	defer func() { f.item, f.index = item, index }()

	hits, kept := int64(0), []any(nil)
	sum := wholeOf(0)
	for i, element := range items.items() {
		f.item, f.index = valueOf(element), int64(i)
		v := f.item
		if len(n.kids) > 1 {
			if v, err = n.kids[1].eval(f); err != nil {
				return value{}, err
			}
		}
		switch n.name {
		case "map":
			kept = append(kept, v.any())
			continue
		case "sum":
			if !v.kind.isNumber() {
				return value{}, n.wants("numbers", n.kids[len(n.kids)-1], v)
			}
			total, fits := wholeArithmetic(evalAdd, sum.n, v.n)
			if sum.kind == whole && v.kind == whole && fits {
				sum = wholeOf(total)
			} else {
				sum = decimalOf(sum.number() + v.number())
			}
			continue
		}
		if v.kind != truth && v.kind != nothing {
			return value{}, n.wants("a condition", n.kids[len(n.kids)-1], v)
		}
		hit := v.isTrue()
		if hit {
			hits++
		}
		switch {
		case n.name == "find" && hit:
			return valueOf(element), nil
		case n.name == "filter" && hit:
			kept = append(kept, element)
		case n.name == "all" && !hit, n.name == "none" && hit:
			return truthOf(false), nil
		case n.name == "any" && hit:
			return truthOf(true), nil
		}
	}
	switch n.name {
	case "map", "filter":
		return listOf(kept), nil
	case "sum":
		return sum, nil
	case "count":
		return wholeOf(hits), nil
	case "all", "none":
		return truthOf(true), nil
	case "one":
		return truthOf(hits == 1), nil
	case "any":
		return truthOf(false), nil
	}
	return value{}, nil // find
}

// uuid is a random one (version 4, RFC 9562 section 5.4) of the iteration's own sequence.
func uuid(in *drivers.Input) string {
	var b [16]byte
	hi, lo := in.Random(), in.Random()
	hi = hi&^0xf000 | 0x4000
	lo = lo&^(0b11<<62) | 0b10<<62
	for i := range 8 {
		b[i], b[8+i] = byte(hi>>(56-8*i)), byte(lo>>(56-8*i))
	}
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// evalRandom is a whole number from a to b, both included, each as likely as the others: multiplication with rejection
// (Lemire, Fast Random Integer Generation in an Interval, 2019).
func (n *node) evalRandom(in *drivers.Input, a, b value) (value, error) {
	for i, v := range [...]value{a, b} {
		if v.kind != whole {
			return value{}, n.wants("a whole number", n.kids[i], v)
		}
	}
	if a.n > b.n {
		return value{}, n.errorf("random goes from the smaller to the greater number, but %d is greater than %d", a.n, b.n)
	}
	size := uint64(b.n) - uint64(a.n) + 1
	if size == 0 { // all of them
		return wholeOf(int64(in.Random())), nil
	}
	hi, lo := bits.Mul64(in.Random(), size)
	for lo < -size%size {
		hi, lo = bits.Mul64(in.Random(), size)
	}
	return wholeOf(a.n + int64(hi)), nil
}
