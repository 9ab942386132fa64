package plan

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/quantity"
)

// stepScope is what the text of a step may use, for one target.
type stepScope struct {
	*expression.Scope
	// url is what a URL that begins with / is resolved against. It is noted at the URL or the target when there is none.
	url func(at *node) (string, bool)
}

// fields decodes the mapping of a step. faulty has the keys that have findings.
func (b *binder) fields(n *node, table []Field, scope *stepScope) (values map[string]drivers.Value, faulty map[string]bool) {
	values, faulty = map[string]drivers.Value{}, map[string]bool{}
	for _, e := range b.group(n, table, scope, faulty) {
		values[e.Key] = e.Value
	}
	return values, faulty
}

// group decodes a mapping of fields.
func (b *binder) group(n *node, table []Field, scope *stepScope, faulty map[string]bool) []drivers.Entry {
	if n.shape != mapping {
		b.wrongShape(n, "a mapping")
		return nil
	}
	n = b.asMeant(b.indented(n, table), table)
	var out []drivers.Entry
	for _, p := range n.pairs {
		before := b.faults()
		f := find(table, p.key.text)
		switch {
		case b.strayKey(n, p):
		case f == nil:
			b.unknownField(p.key, table)
		case p.value.shape == empty:
			b.noValue(p.key)
		default:
			if v, ok := b.value(p.value, f, scope); ok {
				out = append(out, drivers.Entry{Key: f.Key, Value: v})
			}
		}
		if b.faults() > before || p.value.torn {
			faulty[p.key.text] = true
		}
	}
	return out
}

// value decodes the value of a driver's field. ok is false for null where it means nothing, and for findings.
func (b *binder) value(n *node, f *Field, scope *stepScope) (v drivers.Value, ok bool) {
	v.Kind = f.Kind
	if n.shape == null && f.Kind != drivers.Scalar && f.Kind != drivers.Tree {
		return v, false
	}
	switch f.Kind {
	case drivers.Text:
		v.Template, ok = b.template(n, scope.Scope)
	case drivers.URL:
		v.Template, ok = b.url(n, scope)
	case drivers.Scalar:
		v.Template, ok = b.scalar(n, scope.Scope)
	case drivers.Texts:
		v.IsMap = true
		v.Map, ok = b.entries(n, func(n *node) (drivers.Value, bool) {
			t, ok := b.template(n, scope.Scope)
			return drivers.Value{Kind: drivers.Text, Template: t}, ok && t != nil
		})
	case drivers.List:
		v.List, ok = b.list(n, func(n *node) (drivers.Value, bool) {
			t, ok := b.scalar(n, scope.Scope)
			return drivers.Value{Kind: drivers.Scalar, Template: t}, ok
		})
	case drivers.Args:
		argument := func(n *node) (drivers.Value, bool) {
			if len(f.Keys) > 0 && n.shape == mapping {
				return drivers.Value{Kind: drivers.Group, IsMap: true, Map: b.group(n, f.Keys, scope, map[string]bool{})}, true
			}
			t, ok := b.scalar(n, scope.Scope)
			if !ok {
				t = drivers.Constant(nil) // it is there, so nothing else has to be wrong for want of it
			}
			return drivers.Value{Kind: drivers.Scalar, Template: t}, true
		}
		if n.shape == mapping {
			v.IsMap = true
			v.Map, ok = b.entries(n, argument)
			break
		}
		v.List, ok = b.list(n, argument)
	case drivers.Tree:
		b.treeInText(n, f.Key)
		v, ok = b.tree(n, scope.Scope)
	case drivers.Group:
		v.IsMap, ok = true, true
		v.Map = b.group(n, f.Keys, scope, map[string]bool{})
	case drivers.Groups:
		v.IsMap = true
		v.Map, ok = b.entries(n, func(n *node) (drivers.Value, bool) { return b.oneOfGroups(n, f, scope) })
	case drivers.TextOrBool:
		if n.isPlain() && (n.text == "true" || n.text == "false") {
			v.Kind, v.Bool, ok = drivers.Bool, n.text == "true", true
			break
		}
		v.Kind = drivers.Text
		v.Template, ok = b.template(n, scope.Scope)
	case drivers.File:
		v.String, ok = b.file(n, scope.Scope)
	case drivers.FileList:
		ok = true
		items := n.items
		if n.shape != sequence {
			items = []*node{n}
		}
		for _, it := range items {
			path, fine := b.file(it, scope.Scope)
			ok = ok && fine
			v.List = append(v.List, drivers.Value{Kind: drivers.File, String: path})
		}
	default:
		var s bound
		if s, ok = b.simple(n, f, scope.Scope); ok {
			v.Bool, v.Int, v.String = s.b, s.i, s.text
			if f.Kind == drivers.Duration {
				v.Int = int64(s.d)
			}
			if f.Kind != drivers.Choice {
				v.String = ""
			}
		}
	}
	return v, ok
}

// treeInText warns of JSON that is written as text: it would be one string.
func (b *binder) treeInText(n *node, key string) {
	if n.shape != scalar || n.style == plain || !strings.ContainsAny(strings.TrimSpace(n.text)[:min(1, len(strings.TrimSpace(n.text)))], "{[") {
		return
	}
	f := diag.Finding{
		Place: b.place(n), Severity: diag.Warning, Message: key + " is text here, and is sent as one string",
		Hint: "remove the quotes: YAML reads JSON as it is, if ${...} stands in quotes",
	}
	_, f.Column, f.EndColumn = b.span(n)
	if n.style == literal || n.style == folded {
		f.Hint = "remove the | behind " + key + ": YAML reads JSON as it is, if ${...} stands in quotes"
	}
	b.of(n).add(f)
}

// oneOfGroups decodes a value of Groups: a mapping, or text for its main field.
func (b *binder) oneOfGroups(n *node, f *Field, scope *stepScope) (v drivers.Value, ok bool) {
	v.Kind, v.IsMap = drivers.Group, true
	if main := mainOf(f.Keys); main != nil && n.shape != mapping && n.shape != sequence {
		one, ok := b.value(n, main, scope)
		v.Map = []drivers.Entry{{Key: main.Key, Value: one}}
		return v, ok
	}
	v.Map = b.group(n, f.Keys, scope, map[string]bool{})
	return v, true
}

// template decodes text that may hold ${...}. Numbers and truth values are taken as they are written.
func (b *binder) template(n *node, scope *expression.Scope) (drivers.Template, bool) {
	switch {
	case n.shape == null:
		return nil, true
	case n.shape != scalar:
		b.wrongShape(n, "text")
		return nil, false
	case b.cutByComment(n):
		return nil, false
	case b.now != nil:
		b.foreign(n, doubleBraces)
	}
	if !strings.Contains(n.text, "$") {
		return drivers.Constant(n.text), true
	}
	read := 0
	if b.now != nil {
		read = len(b.now.reads)
	}
	t, errs := expression.ParseTemplate(n.text, scope)
	if len(errs) > 0 {
		b.explain(n, errs)
		return nil, false
	}
	if b.now != nil && len(b.now.reads) > read {
		b.now.originates(n, b.now.reads[read])
	}
	return t, true
}

// scalar decodes a value that keeps its type.
func (b *binder) scalar(n *node, scope *expression.Scope) (drivers.Template, bool) {
	switch n.shape {
	case null:
		return drivers.Constant(nil), true
	case empty:
		b.on(n, "write null if that is meant", "a value is missing")
		return nil, false
	case mapping, sequence:
		b.wrongShape(n, "a value")
		return nil, false
	}
	if strings.Contains(n.text, "$") {
		return b.template(n, scope)
	}
	if b.cutByComment(n) {
		return nil, false
	}
	if b.now != nil {
		b.foreign(n, doubleBraces)
	}
	v, ok := b.typed(n)
	return drivers.Constant(v), ok
}

func (b *binder) list(n *node, decode func(*node) (drivers.Value, bool)) ([]drivers.Value, bool) {
	if n.shape != sequence {
		b.on(n, "write - before each value", "expected a list, not %s", n.describe())
		return nil, false
	}
	out, all := make([]drivers.Value, 0, len(n.items)), true
	for _, it := range n.items {
		v, ok := decode(it)
		all = all && ok
		out = append(out, v)
	}
	return out, all
}

func (b *binder) entries(n *node, decode func(*node) (drivers.Value, bool)) ([]drivers.Entry, bool) {
	if n.shape != mapping {
		b.on(n, "write name: value", "expected a mapping of names to values, not %s", n.describe())
		return nil, false
	}
	out, all := make([]drivers.Entry, 0, len(n.pairs)), true
	for _, p := range n.pairs {
		if b.strayKey(n, p) {
			all = false
			continue
		}
		if p.value.shape == empty {
			b.noValue(p.key)
			all = false
			continue
		}
		if v, ok := decode(p.value); ok {
			out = append(out, drivers.Entry{Key: p.key.text, Value: v})
		} else if p.value.shape != null {
			all = false
		}
	}
	return out, all
}

// tree decodes any YAML.
func (b *binder) tree(n *node, scope *expression.Scope) (v drivers.Value, ok bool) {
	v.Kind, ok = drivers.Tree, true
	switch n.shape {
	case mapping:
		v.IsMap = true
		v.Map, ok = b.entries(n, func(n *node) (drivers.Value, bool) { return b.tree(n, scope) })
	case sequence:
		v.List = make([]drivers.Value, 0, len(n.items))
		for _, it := range n.items {
			item, fine := b.tree(it, scope)
			ok = ok && fine
			v.List = append(v.List, item)
		}
	default:
		v.Template, ok = b.scalar(n, scope)
	}
	return v, ok
}

var (
	// doubleBraces are how many template languages mark a value, and pathBraces how descriptions of APIs do in a path.
	doubleBraces = regexp.MustCompile(`(?:^|[^$])(\{\{[^{}]+\}\})`)
	pathBraces   = regexp.MustCompile(`(?:^|[^${])(\{[A-Za-z_][A-Za-z0-9_.-]*\})(?:[^}]|$)`)
)

// foreign warns of what was most likely meant to be replaced by a value, and is only text: the marks of another language, and
// names without ${}.
func (b *binder) foreign(n *node, marks *regexp.Regexp) {
	if n.shape == scalar && n.isPlain() && rootAlone.MatchString(n.text) {
		f := diag.Finding{Place: b.place(n), Severity: diag.Warning, Message: n.text + " is text here", Hint: `write "${` + n.text + `}" for the value`}
		_, f.Column, f.EndColumn = b.span(n)
		b.of(n).add(f)
		return
	}
	m := marks.FindStringSubmatchIndex(n.text)
	if m == nil || n.shape != scalar {
		return
	}
	found := n.text[m[2]:m[3]]
	f := diag.Finding{Place: b.place(n), Severity: diag.Warning, Message: found + " is sent as it is written", Hint: "write ${...} for a value"}
	if name := strings.Trim(found, "{}.$ "); identifier.MatchString(name) {
		f.Hint = "write ${vars." + name + "} or another ${...} for a value"
	}
	if line, col, end, ok := b.stretch(n, utf8.RuneCountInString(n.text[:m[2]]), utf8.RuneCountInString(found)); ok {
		f.Line, f.Column, f.EndColumn = line, col, end
	}
	b.of(n).add(f)
}

// rooted matches a URL that has no origin, and what may stand in front of it: a method.
var rooted = regexp.MustCompile(`^([A-Za-z]+[ \t]+)?/`)

// url decodes a URL. One that begins with / is resolved against target.url.
func (b *binder) url(n *node, scope *stepScope) (drivers.Template, bool) {
	t, ok := b.template(n, scope.Scope)
	if !ok || t == nil {
		return t, ok
	}
	b.foreign(n, pathBraces)
	text := n.text
	if c, constant := t.Constant(); constant { // it may be all from a variable
		text = string(drivers.AppendText(nil, c))
		t = drivers.Constant(text)
	}
	m := rooted.FindStringSubmatch(text)
	if m == nil {
		return t, true
	}
	base, ok := scope.url(n)
	if !ok {
		return nil, false
	}
	if b.now != nil {
		b.now.origin(n, originOf{key: "url", leads: true, method: m[1]})
	}
	rest := t
	if _, constant := t.Constant(); constant {
		rest = drivers.Constant(text[len(m[1]):])
	} else if m[1] != "" {
		part, errs := expression.ParseTemplate(text[len(m[1]):], scope.Scope)
		if len(errs) > 0 { // the whole had none
			return nil, false
		}
		rest = part
	}
	return based{rest, m[1] + strings.TrimSuffix(base, "/")}, true
}

// based is a template behind a text that is known before the load.
type based struct {
	drivers.Template
	base string
}

func (t based) Constant() (any, bool) {
	v, ok := t.Template.Constant()
	if !ok {
		return nil, false
	}
	return string(drivers.AppendText([]byte(t.base), v)), true
}

func (t based) Eval(in *drivers.Input) (any, error) {
	b, err := t.AppendText(nil, in)
	return string(b), err
}

func (t based) AppendText(dst []byte, in *drivers.Input) ([]byte, error) {
	return t.Template.AppendText(append(dst, t.base...), in)
}

// Segments implements drivers.Segmented.
func (t based) Segments() []drivers.Template {
	return append([]drivers.Template{drivers.Constant(t.base)}, drivers.Segments(t.Template)...)
}

// prepared notes what a driver says of a step for a target, each at the place of its field, or at the target where that
// is what the field begins with. Where some fields are faulty, what it says
// of them or of missing ones may only follow from that, and is left out.
func (b *binder) prepared(n, title *node, faulty map[string]bool, t *target, again func(key, text string) error, err error) {
	all := fieldErrors(err)
	if all == nil {
		if len(faulty) == 0 {
			b.on(title, "", "%s", err)
		}
		return
	}
	for _, e := range all {
		if len(faulty) > 0 && (len(e.Path) == 0 || faulty[e.Path[0]] || n.value(e.Path[0]) == nil) {
			continue
		}
		at, key := n, title
		for _, step := range e.Path {
			next, k := child(at, step)
			if next == nil {
				break
			}
			at, key = next, k
		}
		if at == n || at.shape == mapping && key != nil {
			b.on(key, e.Hint, "%s", e.Message)
			continue
		}
		from, ok := b.now.origins[at]
		switch {
		case !ok:
			b.on(at, e.Hint, "%s", e.Message)
		case b.ofTarget(t, from, e, again):
		case len(b.targets) > 1 && !from.leads: // what stands behind a good beginning is the step's own
			b.on(at, e.Hint, "target %s: %s", t.name, e.Message)
		default:
			b.on(at, e.Hint, "%s", e.Message)
		}
	}
}

// ofTarget notes a fault at the value of a target, if what the field begins with is faulty by itself.
func (b *binder) ofTarget(t *target, from originOf, e *drivers.FieldError, again func(key, text string) error) bool {
	v, ok := t.values[from.key]
	if !ok || !from.leads || len(e.Path) != 1 {
		return false
	}
	if v.text == "" {
		hint := ""
		if from.key == "url" {
			hint = "write what paths are behind, such as https://shop.example"
		}
		b.on(v.node, hint, "%s of target %s is empty", from.key, t.name)
		return true
	}
	for _, own := range fieldErrors(again(e.Path[0], from.method+v.text)) {
		if slices.Equal(own.Path, e.Path) {
			b.on(v.node, own.Hint, "%s", own.Message)
			return true
		}
	}
	return false
}

// fieldErrors are the errors of fields that a driver returns; nil for other errors.
func fieldErrors(err error) drivers.FieldErrors {
	switch e := err.(type) {
	case drivers.FieldErrors:
		return e
	case *drivers.FieldError:
		return drivers.FieldErrors{e}
	}
	return nil
}

// ofKey matches text that begins with the value of a key of the target.
var ofKey = regexp.MustCompile(`^([A-Za-z]+[ \t]+)?\$\{\s*target\.([A-Za-z0-9_]+)\s*\}`)

// originates notes that a text reads a key of the target.
func (u *usage) originates(n *node, key string) {
	from := originOf{key: key}
	if m := ofKey.FindStringSubmatch(n.text); m != nil && m[2] == key {
		from.method, from.leads = m[1], true
	}
	u.origin(n, from)
}

func (u *usage) origin(n *node, from originOf) {
	if u.origins == nil {
		u.origins = map[*node]originOf{}
	}
	u.origins[n] = from
}

// child returns the value of a key or list index, and the node of the key.
func child(n *node, step string) (value, key *node) {
	if n.shape == mapping {
		return n.value(step), n.keyOf(step)
	}
	i, err := quantity.ParseInt(step)
	if err != nil || n.shape != sequence || int(i) >= len(n.items) {
		return nil, nil
	}
	return n.items[i], n.items[i]
}

var _ drivers.Segmented = based{}
