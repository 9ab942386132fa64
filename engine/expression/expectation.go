package expression

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
)

// Expectation is a condition on an answer. It is safe for concurrent use.
//
// What is not there, such as a missing member of a JSON body or a NULL, is nothing. Equal to nothing is only nothing
// (nil); whether nothing is less than something, or contains it, is neither true nor false, and an expectation that
// comes to that is not met.
type Expectation struct {
	scope *Scope
	root  *node
	reads []string
}

// ParseExpectation reads a condition on the names of an answer.
func ParseExpectation(src string, names []drivers.Name, scope *Scope) (*Expectation, []*Error) {
	s, tree := parse(src)
	if tree == nil {
		return nil, s.errs
	}
	b := newBuilder(s, scope)
	b.answer = make(map[string]drivers.Name, len(names))
	for _, n := range names {
		b.answer[n.Name] = n
	}
	root := b.build(tree)
	if root != nil && b.condition(root) && len(b.reads) == 0 && len(s.errs) == 0 {
		b.fail(root.at, root.text()+" does not look at the answer", "")
	}
	if len(s.errs) > 0 {
		return nil, s.errs
	}
	return &Expectation{scope: b.scope, root: root, reads: b.reads}, nil
}

// Reads lists the names of the answer that the expectation looks at, in order of appearance.
func (e *Expectation) Reads() []string { return e.reads }

// String is the expectation as written, on one line.
func (e *Expectation) String() string {
	return e.root.source.textOf(span{0, len(e.root.source.runes)})
}

// Check tells whether the answer meets the expectation. An error says why that could not be decided. For numbers, text
// and truth values of the answer it allocates nothing of its own.
func (e *Expectation) Check(a drivers.Answer, in *drivers.Input) (bool, error) {
	v, err := e.root.eval(&frame{in: in, answer: a, scope: e.scope})
	if err != nil {
		return false, err
	}
	if v.kind != truth && v.kind != nothing {
		return false, e.root.wants("a condition", e.root, v)
	}
	return v.isTrue(), nil
}

// Explain says why the answer does not meet the expectation: its comparisons that are not true, each with the values
// in it, as in "status == 200: status was 503". It is "" if the answer does meet it.
func (e *Expectation) Explain(a drivers.Answer, in *drivers.Input) string {
	x := &explanation{frame: frame{in: in, answer: a, scope: e.scope}}
	x.add(e.root, true)
	return strings.Join(x.lines, "; ")
}

type explanation struct {
	frame frame
	lines []string
}

// add explains why a condition does not have the value that is wanted of it.
func (x *explanation) add(n *node, want bool) {
	v, err := n.eval(&x.frame)
	if err == nil && v.kind == truth && (v.n != 0) == want {
		return
	}
	switch n.op {
	case evalAnd, evalOr:
		for _, k := range n.kids {
			before := len(x.lines)
			x.add(k, want)
			if n.op == evalAnd && want && len(x.lines) > before {
				break // what stands behind may only make sense if this holds
			}
		}
		return
	case evalNot:
		x.add(n.kids[0], !want)
		return
	}
	line := n.text()
	if !want {
		line = "not (" + line + ")"
	}
	if err != nil {
		x.lines = append(x.lines, line+": "+err.Error())
		return
	}
	var values []string
	for _, k := range x.operands(n) {
		v, err := k.eval(&x.frame)
		if err != nil {
			continue
		}
		if s := fmt.Sprintf("%s was %s", k.text(), v.describe()); !slices.Contains(values, s) {
			values = append(values, s)
		}
	}
	x.lines = append(x.lines, line+": "+strings.Join(values, ", "))
}

// operands are the parts of a condition whose values explain it.
func (x *explanation) operands(n *node) []*node {
	switch n.op {
	case evalLess, evalLessEqual, evalGreater, evalGreaterEqual, evalEqual, evalUnequal, evalIn, evalBetween,
		evalContains, evalStartsWith, evalEndsWith, evalMatches:
		return slices.DeleteFunc(slices.Clone(n.kids), func(k *node) bool { return k.isConstant() && !k.named })
	case evalEach:
		return n.kids[:1]
	}
	return []*node{n}
}
