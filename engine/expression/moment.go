package expression

import "github.com/planrun/planrun/drivers"

// Moment is a value of a Root that is known only when the call is made, such as a column of a data set. It is safe for
// concurrent use.
type Moment struct {
	// Text says that the value is text whenever there is one.
	Text bool
	Eval func(in *drivers.Input) (any, error)
}

// Value is an expression that is evaluated for its value: what a step captures of an answer, or a condition on what is
// known before a call. It is safe for concurrent use.
type Value struct {
	scope *Scope
	root  *node
	reads []string
}

// ParseCapture reads an expression on the names of an answer. Other names are those of the scope. It may draw from the
// iteration's own sequence, so that steps can share what was drawn.
func ParseCapture(src string, names []drivers.Name, scope *Scope) (*Value, []*Error) {
	v, b := parseValue(src, names, scope)
	if v != nil && len(b.reads) == 0 && !b.drawn && len(b.errs) == 0 {
		b.fail(v.root.at, v.root.text()+" does not look at the answer", "")
	}
	if len(b.errs) > 0 {
		return nil, b.errs
	}
	return v, nil
}

// ParseCondition reads a condition on what is known before a call: the names of the scope, iteration and user.
func ParseCondition(src string, scope *Scope) (*Value, []*Error) {
	v, b := parseValue(src, nil, scope)
	if v != nil {
		b.condition(v.root)
	}
	if len(b.errs) > 0 {
		return nil, b.errs
	}
	return v, nil
}

func parseValue(src string, names []drivers.Name, scope *Scope) (*Value, *builder) {
	s, tree := parse(src)
	b := newBuilder(s, scope)
	if names != nil {
		b.capture = true
		b.answer = make(map[string]drivers.Name, len(names))
		for _, n := range names {
			b.answer[n.Name] = n
		}
	}
	if tree == nil {
		return nil, b
	}
	root := b.build(tree)
	if root == nil {
		return nil, b
	}
	return &Value{scope: b.scope, root: root, reads: b.reads}, b
}

// Reads lists the names of the answer that the expression looks at, in order of appearance.
func (v *Value) Reads() []string { return v.reads }

// String is the expression as written, on one line.
func (v *Value) String() string {
	return v.root.source.textOf(span{0, len(v.root.source.runes)})
}

// Constant tells whether the value is the same at every call, and returns it then.
func (v *Value) Constant() (any, bool) {
	if !v.root.isConstant() {
		return nil, false
	}
	return v.root.value.any(), true
}

// Eval returns the value: a string, int64, float64, bool, nil, a list or a mapping. a is nil where there is no answer. What
// it returns of an answer is valid as long as the answer.
func (v *Value) Eval(a drivers.Answer, in *drivers.Input) (any, error) {
	r, err := v.root.eval(&frame{in: in, answer: a, scope: v.scope})
	if err != nil {
		return nil, err
	}
	return r.any(), nil
}

// Holds tells whether a condition is true. Nothing is not.
func (v *Value) Holds(in *drivers.Input) (bool, error) {
	r, err := v.root.eval(&frame{in: in, scope: v.scope})
	if err != nil {
		return false, err
	}
	if r.kind != truth && r.kind != nothing {
		return false, v.root.wants("a condition", v.root, r)
	}
	return r.isTrue(), nil
}
