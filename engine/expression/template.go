package expression

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/planrun/planrun/drivers"
)

// Template is a string of a plan with the values of its ${...}. It is safe for concurrent use.
//
// $${ stands for ${ itself. A string that is one ${...} alone keeps the type of its expression; otherwise its parts are
// joined as text. What depends neither on the iteration and the user nor on a name of Scope.Moment is computed when the
// template is parsed, uuid() and random(a, b) excepted: they draw from the iteration's own sequence.
type Template struct {
	scope    *Scope
	parts    []templatePart
	constant bool
	value    value // if constant
	alone    bool  // one ${...} and nothing else
}

// templatePart is a piece of text, or else a node.
type templatePart struct {
	text   string
	node   *node
	offset int // of the expression, in runes
}

// fault places an error of a node within the string.
func (p templatePart) fault(message, hint string) *Error {
	return &Error{p.offset + p.node.at.from, p.node.at.to - p.node.at.from, message, hint}
}

// missing says that a node is nothing where something is needed.
func (p templatePart) missing() *Error {
	if f := p.node.fault; f != nil {
		return &Error{p.offset + f.Offset, f.Length, f.Message, f.Hint}
	}
	return p.fault(p.node.text()+" is nothing, and text is needed", "")
}

// Templates are what drivers take.
var _ drivers.Segmented = (*Template)(nil)

// ParseTemplate reads a string that may hold ${...}.
func ParseTemplate(src string, scope *Scope) (*Template, []*Error) {
	t := &Template{scope: scope, alone: true}
	var errs []*Error
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t.parts = append(t.parts, templatePart{text: literal.String()})
			literal.Reset()
		}
	}
	for rest := src; rest != ""; {
		i := strings.Index(rest, "${")
		if i < 0 {
			literal.WriteString(rest)
			break
		}
		if i > 0 && rest[i-1] == '$' { // $${
			literal.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		literal.WriteString(rest[:i])
		offset := utf8.RuneCountInString(src[:len(src)-len(rest)+i])
		body, ok := closing(rest[i+2:])
		if !ok {
			errs = append(errs, &Error{Offset: offset, Length: 2, Message: "${ has no closing }", Hint: "write $${ for the characters themselves"})
			break
		}
		flush()
		n, faults := parsePart(body, scope)
		for _, e := range faults {
			e.Offset += offset + 2
		}
		errs = append(errs, faults...)
		t.parts = append(t.parts, templatePart{node: n, offset: offset + 2})
		rest = rest[i+2+len(body)+1:]
	}
	flush()
	if len(errs) > 0 {
		return nil, errs
	}
	return t.finish()
}

// closing cuts s before the } that ends an expression: braces and text in quotes within it are left alone.
func closing(s string) (body string, ok bool) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\'', '"', '`':
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' && c != '`' {
					i++
				}
			}
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return s[:i], true
			}
			depth--
		}
	}
	return "", false
}

var (
	shellDefault = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*):?-(.*)$`)
	doubleBraces = regexp.MustCompile(`^\{([^{}]*)\}$`)
)

// parsePart reads what stands between ${ and }.
func parsePart(body string, scope *Scope) (*node, []*Error) {
	all := span{0, utf8.RuneCountInString(body)}
	foreign := func(message, hint string) (*node, []*Error) {
		return nil, []*Error{{Offset: 0, Length: all.to, Message: message, Hint: hint}}
	}
	if strings.TrimSpace(body) == "" {
		return foreign("${} is empty", "write $${} for the characters themselves")
	}
	if m := doubleBraces.FindStringSubmatch(body); m != nil && !strings.Contains(m[1], ":") {
		return foreign("braces are written once", "write ${"+strings.TrimSpace(m[1])+"}")
	}
	s, tree := parse(body)
	b := newBuilder(s, scope)
	var n *node
	if tree != nil {
		n = b.build(tree)
	}
	if len(s.errs) == 0 && n != nil {
		return n, nil
	}
	if m := shellDefault.FindStringSubmatch(body); m != nil && scope != nil && scope.Roots["env"] != nil && !knows(scope, m[1]) {
		return foreign("the shell's form of a default is not known here", "write ${env."+m[1]+" ?? "+strconv.Quote(m[2])+"}")
	}
	return nil, s.errs
}

func knows(scope *Scope, name string) bool {
	_, ok := scope.Roots[name]
	return ok || name == "iteration" || name == "user"
}

// finish folds what is constant.
func (t *Template) finish() (*Template, []*Error) {
	t.alone = len(t.parts) == 1 && t.parts[0].node != nil
	if t.alone {
		n := t.parts[0].node
		if !n.isConstant() {
			return t, nil
		}
		if n.kind == nothing && n.absent {
			return nil, []*Error{t.parts[0].missing()}
		}
		t.constant, t.value = true, n.value
		return t, nil
	}
	var errs []*Error
	var folded []templatePart
	for _, p := range t.parts {
		if n := p.node; n != nil && n.isConstant() {
			switch n.kind {
			case nothing:
				errs = append(errs, p.missing())
			case list, mapping:
				errs = append(errs, p.fault(n.text()+" is "+n.kind.String()+", not text", "write toJSON("+n.text()+")"))
			}
			p = templatePart{text: string(n.value.appendText(nil))}
		}
		if last := len(folded) - 1; p.node == nil && last >= 0 && folded[last].node == nil {
			folded[last].text += p.text
		} else {
			folded = append(folded, p)
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	t.parts = folded
	if len(folded) == 0 {
		t.constant, t.value = true, textOf("")
	} else if len(folded) == 1 && folded[0].node == nil {
		t.constant, t.value = true, textOf(folded[0].text)
	}
	return t, nil
}

// String is the template as it is written, with what is known before the load put in.
func (t *Template) String() string {
	if t.constant {
		return string(t.value.appendText(nil))
	}
	var b strings.Builder
	for _, p := range t.parts {
		if p.node == nil {
			b.WriteString(p.text)
		} else {
			b.WriteString("${" + p.node.text() + "}")
		}
	}
	return b.String()
}

// Constant returns the value when it is the same for every call: a string, int64, float64, bool or nil, or what a Root
// gave for a list or a mapping.
func (t *Template) Constant() (any, bool) {
	if !t.constant {
		return nil, false
	}
	return t.value.any(), true
}

// Eval returns the value for one call.
func (t *Template) Eval(in *drivers.Input) (any, error) {
	if t.constant {
		return t.value.any(), nil
	}
	if t.alone {
		v, err := t.parts[0].node.eval(&frame{in: in, scope: t.scope})
		if err != nil {
			return nil, t.parts[0].failed(err)
		}
		return v.any(), nil
	}
	b, err := t.AppendText(nil, in)
	if err != nil {
		return nil, err
	}
	return string(b), nil
}

// Segments returns the text and the ${...} of the template, in order. What was known before the load is text.
func (t *Template) Segments() []drivers.Template {
	if t.constant || t.alone {
		return []drivers.Template{t}
	}
	segments := make([]drivers.Template, len(t.parts))
	for i, p := range t.parts {
		if p.node == nil {
			segments[i] = drivers.Constant(p.text)
		} else {
			segments[i] = &Template{scope: t.scope, parts: []templatePart{p}, alone: true}
		}
	}
	return segments
}

// AppendText appends the value as text. For constants, numbers and text it allocates nothing but what dst needs.
func (t *Template) AppendText(dst []byte, in *drivers.Input) ([]byte, error) {
	if t.constant && t.value.kind != list && t.value.kind != mapping {
		return t.value.appendText(dst), nil
	}
	f := frame{in: in, scope: t.scope}
	for i := range t.parts {
		p := &t.parts[i]
		if p.node == nil {
			dst = append(dst, p.text...)
			continue
		}
		v, err := p.node.eval(&f)
		if err != nil {
			return dst, p.failed(err)
		}
		switch v.kind {
		case nothing:
			return dst, fmt.Errorf("${%s} has no value", p.node.text())
		case list, mapping:
			return dst, fmt.Errorf("${%s} is %s, not text", p.node.text(), v.kind)
		}
		dst = v.appendText(dst)
	}
	return dst, nil
}

func (p *templatePart) failed(err error) error {
	return fmt.Errorf("${%s}: %w", p.node.text(), err)
}
