package expression

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
)

// nodeOp is what a node of a template or an expectation does.
type nodeOp uint8

const (
	evalConstant nodeOp = iota
	evalIteration
	evalUser
	evalUUID
	evalRandom
	evalMoment // a name that Scope.Lookup knows
	evalAtCall // a value of a root that only the call knows
	evalNumber // a number of the answer
	evalAnswer // another name of the answer
	evalItem   // the element that a predicate looks at
	evalIndex  // and its index
	evalMember
	evalElement
	evalNegate
	evalAdd
	evalSubtract
	evalMultiply
	evalDivide
	evalRemainder
	evalLess
	evalLessEqual
	evalGreater
	evalGreaterEqual
	evalEqual
	evalUnequal
	evalIn
	evalBetween // in a..b
	evalContains
	evalStartsWith
	evalEndsWith
	evalMatches
	evalNot
	evalAnd
	evalOr
	evalCoalesce
	evalChoose
	evalList
	evalMapping
	evalCall
	evalEach // a function that takes a predicate
)

// node is a part of a template or an expectation, checked and with constants folded.
type node struct {
	op      nodeOp
	kids    []*node
	value   value // of a constant
	name    string
	names   []string // keys of a mapping
	call    *function
	pattern *regexp.Regexp
	moment  Moment
	source  *source
	at      span

	kind    kind // static type
	size    bool // a number of bytes
	unit    bool // text that was written as a number with a unit
	literal bool // a number as written
	named   bool // a constant that comes of a root: its text does not say its value

	// fault says why a constant is nothing, where nobody wrote nil. absent tells that it was expected to be something.
	fault  *Error
	absent bool
}

func (n *node) isConstant() bool { return n.op == evalConstant }

func (n *node) text() string { return n.source.textOf(n.at) }

// frame is what one evaluation depends on. It stays on the stack.
type frame struct {
	in     *drivers.Input
	answer drivers.Answer
	scope  *Scope
	item   value
	index  int64
}

// evalError is why a part of an expression has no value.
type evalError struct {
	node    *node
	message string
}

func (e *evalError) Error() string { return e.message }

func (n *node) errorf(format string, args ...any) error {
	return &evalError{n, fmt.Sprintf(format, args...)}
}

// eval evaluates the node. It allocates nothing for numbers, truth values, text and their comparison.
func (n *node) eval(f *frame) (value, error) {
	switch n.op {
	case evalConstant:
		return n.value, nil
	case evalIteration:
		return wholeOf(f.in.Iteration), nil
	case evalUser:
		return wholeOf(int64(f.in.User)), nil
	case evalUUID:
		return textOf(uuid(f.in)), nil
	case evalMoment:
		v, err := f.scope.Lookup(n.name, f.in)
		if err != nil {
			return value{}, &evalError{n, err.Error()}
		}
		return valueOf(v), nil
	case evalAtCall:
		v, err := n.moment.Eval(f.in)
		if err != nil {
			return value{}, &evalError{n, err.Error()}
		}
		return valueOf(v), nil
	case evalNumber:
		v, ok := f.answer.Number(n.name)
		switch {
		case !ok:
			return value{}, nil
		case v == math.Trunc(v) && math.Abs(v) < 1<<62:
			return wholeOf(int64(v)), nil
		}
		return decimalOf(v), nil
	case evalAnswer:
		v, err := f.answer.Value(n.name)
		if err != nil {
			return value{}, &evalError{n, err.Error()}
		}
		return valueOf(v), nil
	case evalItem:
		return f.item, nil
	case evalIndex:
		return wholeOf(f.index), nil
	case evalList:
		items := make([]any, len(n.kids))
		for i, k := range n.kids {
			v, err := k.eval(f)
			if err != nil {
				return value{}, err
			}
			items[i] = v.any()
		}
		return listOf(items), nil
	case evalMapping:
		m := make(map[string]any, len(n.kids))
		for i, k := range n.kids {
			v, err := k.eval(f)
			if err != nil {
				return value{}, err
			}
			m[n.names[i]] = v.any()
		}
		return value{kind: mapping, ref: m}, nil
	case evalCall:
		return n.evalCall(f)
	case evalEach:
		return n.evalEach(f)
	case evalAnd, evalOr:
		return n.evalLogic(f)
	}

	// What is left evaluates its first operand in any case.
	a, err := n.kids[0].eval(f)
	if err != nil {
		return value{}, err
	}
	switch n.op {
	case evalMember:
		if a.kind == mapping {
			return a.member(n.name), nil
		}
		return value{}, nil
	case evalNegate:
		switch a.kind {
		case whole:
			if a.n == math.MinInt64 {
				return value{}, n.errorf("%s is too large", n.text())
			}
			return wholeOf(-a.n), nil
		case decimal:
			return decimalOf(-a.f), nil
		}
		return value{}, n.wants("a number", n.kids[0], a)
	case evalNot:
		switch a.kind {
		case truth:
			return truthOf(a.n == 0), nil
		case nothing:
			return value{}, nil
		}
		return value{}, n.wants("a condition", n.kids[0], a)
	case evalCoalesce:
		if a.kind != nothing {
			return a, nil
		}
		return n.kids[1].eval(f)
	case evalChoose:
		switch {
		case a.isTrue():
			return n.kids[1].eval(f)
		case a.kind == truth || a.kind == nothing:
			return n.kids[2].eval(f)
		}
		return value{}, n.wants("a condition", n.kids[0], a)
	case evalMatches:
		if a.kind == nothing {
			return value{}, nil
		}
		if a.kind != text {
			return value{}, n.wants("text", n.kids[0], a)
		}
		return truthOf(n.pattern.MatchString(a.s)), nil
	}

	b, err := n.kids[1].eval(f)
	if err != nil {
		return value{}, err
	}
	switch n.op {
	case evalElement:
		switch {
		case a.kind == list && b.kind == whole:
			return a.item(b.n), nil
		case a.kind == mapping && b.kind == text:
			return a.member(b.s), nil
		case a.kind == nothing || b.kind == nothing:
			return value{}, nil
		case a.kind == list:
			return value{}, n.wants("a whole number", n.kids[1], b)
		case a.kind == mapping:
			return value{}, n.wants("text", n.kids[1], b)
		}
		return value{}, n.wants("a list or a mapping", n.kids[0], a)
	case evalEqual:
		return truthOf(a.equal(b)), nil
	case evalUnequal:
		return truthOf(!a.equal(b)), nil
	case evalLess, evalLessEqual, evalGreater, evalGreaterEqual:
		return n.evalOrder(a, b)
	case evalBetween:
		c, err := n.kids[2].eval(f)
		if err != nil {
			return value{}, err
		}
		if a.kind == nothing || b.kind == nothing || c.kind == nothing {
			return value{}, nil
		}
		for i, v := range [...]value{a, b, c} {
			if !v.kind.isNumber() {
				return value{}, n.wants("a number", n.kids[i], v)
			}
		}
		// As in a list of whole numbers: 200.5 is not in 200..299.
		return truthOf(a.number() >= b.number() && a.number() <= c.number() && a.number() == math.Trunc(a.number())), nil
	case evalIn:
		switch b.kind {
		case nothing:
			return value{}, nil
		case list:
			for _, item := range b.items() {
				if valueOf(item).equal(a) {
					return truthOf(true), nil
				}
			}
			return truthOf(false), nil
		case mapping:
			return truthOf(a.kind == text && slices.Contains(b.keys(), a.s)), nil
		}
		return value{}, n.wants("a list or a mapping", n.kids[1], b)
	case evalContains, evalStartsWith, evalEndsWith:
		switch {
		case a.kind == nothing || b.kind == nothing:
			return value{}, nil
		case a.kind != text:
			return value{}, n.wants("text", n.kids[0], a)
		case b.kind != text:
			return value{}, n.wants("text", n.kids[1], b)
		case n.op == evalContains:
			return truthOf(strings.Contains(a.s, b.s)), nil
		case n.op == evalStartsWith:
			return truthOf(strings.HasPrefix(a.s, b.s)), nil
		}
		return truthOf(strings.HasSuffix(a.s, b.s)), nil
	case evalRandom:
		return n.evalRandom(f.in, a, b)
	}
	return n.evalArithmetic(a, b)
}

// wants is the error of an operand that is of the wrong kind.
func (n *node) wants(what string, operand *node, v value) error {
	if v.kind == nothing {
		if operand.fault != nil {
			return &evalError{operand, operand.fault.Message}
		}
		return &evalError{operand, operand.text() + " has no value"}
	}
	return &evalError{operand, fmt.Sprintf("expected %s, but %s is %s", what, operand.text(), v.kind)}
}

// evalLogic is Kleene's: a condition on nothing is neither true nor false, unless the other side decides.
func (n *node) evalLogic(f *frame) (value, error) {
	decides := int64(0) // false decides an and
	if n.op == evalOr {
		decides = 1
	}
	result := truthOf(decides == 0)
	for _, k := range n.kids {
		v, err := k.eval(f)
		switch {
		case err != nil:
			return value{}, err
		case v.kind == nothing:
			result = v
		case v.kind != truth:
			return value{}, n.wants("a condition", k, v)
		case v.n == decides:
			return v, nil
		}
	}
	return result, nil
}

func (n *node) evalOrder(a, b value) (value, error) {
	order := 0
	switch {
	case a.kind == nothing || b.kind == nothing:
		return value{}, nil
	case a.kind == whole && b.kind == whole:
		order = compare(a.n, b.n)
	case a.kind.isNumber() && b.kind.isNumber():
		order = compare(a.number(), b.number())
	case a.kind == text && b.kind == text:
		order = strings.Compare(a.s, b.s)
	default:
		return value{}, n.errorf("%s is %s but %s is %s", n.kids[0].text(), a.kind, n.kids[1].text(), b.kind)
	}
	switch n.op {
	case evalLess:
		return truthOf(order < 0), nil
	case evalLessEqual:
		return truthOf(order <= 0), nil
	case evalGreater:
		return truthOf(order > 0), nil
	}
	return truthOf(order >= 0), nil
}

func compare[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// evalArithmetic keeps whole numbers whole, except in a division: 7 / 2 is 3.5.
func (n *node) evalArithmetic(a, b value) (value, error) {
	if n.op == evalAdd && a.kind == text && b.kind == text {
		if len(a.s)+len(b.s) > maxText {
			return value{}, n.errorf("%s is longer than %d bytes", n.text(), maxText)
		}
		return textOf(a.s + b.s), nil
	}
	if !a.kind.isNumber() {
		return value{}, n.wants("a number", n.kids[0], a)
	}
	if !b.kind.isNumber() {
		return value{}, n.wants("a number", n.kids[1], b)
	}
	if n.op == evalRemainder && (a.kind != whole || b.kind != whole) {
		k := n.kids[0]
		if a.kind == whole {
			k = n.kids[1]
		}
		return value{}, &evalError{k, "% is for whole numbers, and " + k.text() + " is none"}
	}
	if (n.op == evalDivide || n.op == evalRemainder) && b.number() == 0 {
		return value{}, n.errorf("%s divides by zero", n.text())
	}
	if a.kind == whole && b.kind == whole && n.op != evalDivide {
		r, ok := wholeArithmetic(n.op, a.n, b.n)
		if !ok {
			return value{}, n.errorf("%s is too large", n.text())
		}
		return wholeOf(r), nil
	}
	x, y, r := a.number(), b.number(), 0.0
	switch n.op {
	case evalAdd:
		r = x + y
	case evalSubtract:
		r = x - y
	case evalMultiply:
		r = x * y
	case evalDivide:
		r = x / y
	}
	if math.IsInf(r, 0) || math.IsNaN(r) {
		return value{}, n.errorf("%s is too large", n.text())
	}
	return decimalOf(r), nil
}

// maxText bounds what an expression can put together.
const maxText = 1 << 20

// wholeArithmetic reports whether the result fits.
func wholeArithmetic(op nodeOp, a, b int64) (int64, bool) {
	switch op {
	case evalAdd:
		r := a + b
		return r, (r > a) == (b > 0)
	case evalSubtract:
		r := a - b
		return r, (r < a) == (b > 0)
	case evalMultiply:
		if a == 0 || b == 0 {
			return 0, true
		}
		r := a * b
		return r, r/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
	}
	if b == -1 {
		return 0, true
	}
	return a % b, true
}
