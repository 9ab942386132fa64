package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/quantity"
)

// section is a mapping of known keys, decoded as far as a key's own field goes: numbers, quantities, choices, fixed text.
// Keys with more structure are left as nodes to whoever asks for the section.
type section struct {
	b      *binder
	n      *node // the mapping, its keys indented as they were meant
	title  *node // where to say what is missing: the key the section stands behind
	values map[string]bound
	// unknown are the keys that no field has.
	unknown []string
}

// bound is the decoded value of one key.
type bound struct {
	node     *node
	text     string
	b        bool
	i        int64 // a whole number, a size in bytes
	f        float64
	d        time.Duration
	span     Span
	warmup   Warmup
	isNumber bool // of a Rate: a number of users
}

// section decodes a mapping. scope has the roots that its text may use. n is nil, or any node.
func (b *binder) section(n, title *node, fields []Field, scope *expression.Scope) *section {
	s := &section{b: b, n: &node{}, title: title, values: map[string]bound{}}
	if title == nil {
		s.title = n
	}
	if n == nil || n.shape == null || n.shape == empty {
		return s
	}
	if n.shape != mapping {
		hint := ""
		if f := fieldFor(n, fields); f != nil {
			hint = "write {" + f.Key + ": " + n.text + "}"
		} else if n.shape == sequence && find(fields, "rows") != nil {
			hint = "write rows: above the list"
		} else if k := keysOf(fields); len(k) > 0 {
			hint = "write " + strings.Join(k[:min(len(k), 3)], ", ") + " ... as keys"
			if len(k) <= 3 {
				hint = "write " + strings.Join(k, ", ") + " as keys"
			}
		}
		b.on(n, hint, "expected a mapping, not %s", n.describe())
		return s
	}
	s.n = b.asMeant(b.indented(n, fields), fields)
	near := map[string]bool{} // what unknown keys may have been meant as
	for _, p := range s.n.pairs {
		f := find(fields, p.key.text)
		if b.strayKey(s.n, p) {
			continue
		}
		if f == nil {
			b.unknownField(p.key, fields)
			near[diag.Suggest(p.key.text, keysOf(fields))], near[otherWord(p.key.text, fields)] = true, true
			s.unknown = append(s.unknown, p.key.text)
			continue
		}
		if p.value.shape == empty {
			b.noValue(p.key)
			continue
		}
		if v, ok := b.simple(p.value, f, scope); ok {
			s.values[f.Key] = v
		}
	}
	for _, f := range fields {
		if f.Required && !n.torn && !near[f.Key] && s.n.value(f.Key) == nil && s.title != nil {
			b.on(s.title, "", "%s is missing", f.Key)
		}
	}
	return s
}

// fieldFor is the field that a text alone was most likely meant for, where a mapping belongs; nil if there is no telling.
func fieldFor(n *node, fields []Field) *Field {
	if !n.isPlain() || len(fields) == 0 || strings.ContainsAny(n.text, " ,{}[]$") {
		return nil
	}
	if i := slices.IndexFunc(fields, func(f Field) bool { return f.Kind == drivers.File && strings.HasSuffix(n.text, "."+f.Key) }); i >= 0 {
		return &fields[i]
	}
	if fields[0].Key == "path" {
		return &fields[0]
	}
	return nil
}

// node returns what stands behind a key, nil if there is nothing or null.
func (s *section) node(key string) *node {
	if n := s.n.value(key); n != nil && n.shape != null && n.shape != empty {
		return n
	}
	return nil
}

func (s *section) has(key string) bool { _, ok := s.values[key]; return ok }

func (s *section) text(key string) string { return s.values[key].text }

func (s *section) whole(key string, otherwise int64) int64 {
	if v, ok := s.values[key]; ok {
		return v.i
	}
	return otherwise
}

func (s *section) duration(key string, otherwise time.Duration) time.Duration {
	if v, ok := s.values[key]; ok {
		return v.d
	}
	return otherwise
}

func (s *section) boolean(key string, otherwise bool) bool {
	if v, ok := s.values[key]; ok {
		return v.b
	}
	return otherwise
}

func (b *binder) noValue(key *node) {
	b.on(key, "remove the key, or write null to remove a default", "%s has no value", key.text)
}

// unknownField says that a key is unknown, with the one that was most likely meant, or where it belongs.
func (b *binder) unknownField(key *node, fields []Field) {
	keys := keysOf(fields)
	hint := ""
	near, other, where := diag.Suggest(key.text, keys), otherWord(key.text, fields), b.elsewhere(key.text, fields)
	switch {
	case near != "":
		hint = "did you mean " + near + "?"
	case other != "":
		hint = "did you mean " + other + "?"
	case where != "":
		hint = where
	case len(keys) > 0 && len(keys) <= 24:
		hint = "keys here are " + strings.Join(keys, ", ")
	}
	b.on(key, hint, "unknown key %q", key.text)
}

// strayKey finds a key without a value in braces: most often the rest of a text that has a comma, as in
// {Accept: a, b}.
func (b *binder) strayKey(n *node, p pair) bool {
	if !n.flow || p.value.shape != empty {
		return false
	}
	hint := "write " + p.key.text + ": and a value, or quote the text that it belongs to"
	for i, q := range n.pairs {
		if q.key == p.key && i > 0 && n.pairs[i-1].value.isPlain() {
			before := n.pairs[i-1]
			hint = fmt.Sprintf("quote the text if the comma belongs to it: %s: %s", before.key.text, quote(b.between(before.value, p.key)))
		}
	}
	b.on(p.key, hint, "%q has no value", p.key.text)
	return true
}

// between is what is written from a plain scalar to another one.
func (b *binder) between(first, last *node) string {
	if first.line != last.line || last.col < first.col {
		return first.text + ", " + last.text
	}
	s := b.of(first)
	return strings.TrimPrefix(s.before(last.line, last.col), s.before(first.line, first.col)) + last.text
}

// indented moves keys below the empty key that they were meant to belong to:
//
//   - sequential:
//     count: 50
//
// They are where YAML puts them beside it, two columns short. The finding shows the line as it should be.
func (b *binder) indented(n *node, fields []Field) *node {
	if n.flow {
		return n
	}
	var owner *Field
	at := -1
	c := *n
	c.pairs = nil
	for _, p := range n.pairs {
		f := find(fields, p.key.text)
		if f == nil && owner != nil && p.key.line > c.pairs[at].key.line &&
			(find(owner.Keys, p.key.text) != nil || owner.holdsAny() && meantNowhere(p.key.text, fields)) {
			key := c.pairs[at].key
			g := b.on(p.key, "indent by two more", "%s belongs to %s above it", p.key.text, key.text)
			g.Notes = append(g.Notes, "  "+strings.TrimRight(b.of(p.key).line(p.key.line), " "))
			v := *c.pairs[at].value
			if v.shape == empty {
				v = node{shape: mapping, src: p.key.src, line: p.key.line, col: p.key.col}
			}
			v.pairs = append(slices.Clone(v.pairs), p)
			c.pairs[at].value = &v
			continue
		}
		owner = nil
		c.pairs = append(c.pairs, p)
		if f != nil && (len(f.Keys) > 0 || f.holdsAny()) && p.value.shape == empty {
			owner, at = f, len(c.pairs)-1
		}
	}
	return &c
}

// meantNowhere tells whether a key is like none of those that a mapping may have.
func meantNowhere(key string, fields []Field) bool {
	return diag.Suggest(key, keysOf(fields)) == "" && otherWord(key, fields) == "" && !strings.HasPrefix(key, "x-")
}

// cutByComment finds text that a # ends, as in SELECT id FROM #tmp: YAML takes the rest of the line for a comment.
func (b *binder) cutByComment(n *node) bool {
	if !n.isPlain() {
		return false
	}
	p := b.places(n)
	if p == nil {
		return false
	}
	end := p[len(p)-1]
	s := b.of(n)
	rest := s.from(end.line, end.col)
	if !strings.HasPrefix(rest, " #") || len(rest) < 3 || rest[2] == ' ' || rest[2] == '#' || rest[2] == '\t' {
		return false
	}
	rest = strings.TrimRight(rest, " \t")
	s.at(end.line, end.col+1, end.col+utf8.RuneCountInString(rest), "the text ends here: YAML takes the # for a comment",
		"quote this text: "+quote(n.text+rest)+"; or write a space behind the # of a comment")
	return true
}

// wrongShape words the finding of a mapping or list where text belongs.
func (b *binder) wrongShape(n *node, want string) {
	hint := ""
	switch {
	case want == "an expression" && n.shape == mapping && len(n.pairs) > 0 && identifier.MatchString(n.pairs[0].key.text) && n.pairs[0].value.shape == scalar:
		hint = "write " + n.pairs[0].key.text + " == " + literalOf(n.pairs[0].value)
		if text := n.pairs[0].value.text; text != "" && strings.ContainsAny(text[:1], "<>=!") {
			hint = "write " + n.pairs[0].key.text + " " + text
		}
	case n.shape == mapping && !n.flow && len(n.pairs) == 1 && n.pairs[0].key.line == n.line:
		hint = "quote this text if the colon belongs to it: " + quote(strings.TrimSpace(cutComment(b.of(n).from(n.line, n.col))))
	case n.flow:
		_, col, end := b.span(n)
		rest := []rune(b.of(n).from(n.line, col))
		hint = "quote this text if the brackets belong to it: " + quote(string(rest[:min(end-col, len(rest))]))
	}
	b.on(n, hint, "expected %s, not %s", want, n.describe())
}

// literalOf writes a scalar as expressions do.
func literalOf(n *node) string {
	if _, err := quantity.Parse(n.text); err == nil || n.text == "true" || n.text == "false" {
		return n.text
	}
	return strconv.Quote(n.text)
}
