package expression

import (
	"fmt"
	"math"
	"strconv"

	"github.com/expr-lang/expr/ast"

	"github.com/planrun/planrun/engine/quantity"
)

// operator is what a term of an assertion does.
type operator uint8

const (
	opConstant operator = iota
	opAddress
	opNegate
	opAdd
	opSubtract
	opMultiply
	opDivide
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opEqual
	opUnequal
	opNot
	opAnd
	opOr
)

var arithmetic = map[string]operator{"+": opAdd, "-": opSubtract, "*": opMultiply, "/": opDivide}

var comparisons = map[string]operator{
	"<": opLess, "<=": opLessEqual, ">": opGreater, ">=": opGreaterEqual, "==": opEqual, "!=": opUnequal,
}

var logic = map[string]operator{"and": opAnd, "&&": opAnd, "or": opOr, "||": opOr}

// term is a node of an assertion whose dimensions are right.
type term struct {
	op          operator
	left, right *term // the only operand is left
	value       float64
	scale       float64 // of a product or ratio in which nanoseconds meet seconds; 0 is 1
	index       int     // of an address
	at          span

	dim      quantity.Dim
	truth    bool // a truth value; dim means nothing
	constant bool // reads no metric
	literal  bool // a number as written
	root     bool // reads vars or another root
	// quotient is a plain number that came of dividing like by like. It compares with shares.
	quotient bool
}

// checker turns the tree of an assertion into terms.
type checker struct {
	*source
	names     Names
	addresses []*Address
}

// build returns nil when it has reported why it can't.
func (c *checker) build(n ast.Node) *term {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return &term{op: opConstant, at: c.span(n), value: float64(n.Value), constant: true, literal: true}
	case *ast.FloatNode:
		return &term{op: opConstant, at: c.span(n), value: n.Value, constant: true, literal: true}
	case *ast.IdentifierNode:
		if v, ok := c.quantityOf(n.Value); ok {
			if v.faulty {
				return nil
			}
			return &term{op: opConstant, at: c.span(n), value: v.F, dim: v.Dim, constant: true, literal: true}
		}
	case *ast.BoolNode:
		c.fail(c.span(n), fmt.Sprintf("%t does not depend on anything measured", n.Value), "leave it out")
		return nil
	case *ast.NilNode:
		c.fail(c.span(n), "a metric without data can't be compared with nil", "an assertion that reads one does not pass")
		return nil
	case *ast.StringNode:
		hint := ""
		if _, err := quantity.Parse(n.Value); err == nil {
			hint = "write " + n.Value + " without quotes"
		}
		c.fail(c.span(n), "text can't be compared with anything measured", hint)
		return nil
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	}
	path := c.parts(n)
	if path == nil {
		c.refuse(n)
		return nil
	}
	if _, named := c.names.Kind(path[0].name); !named && !path[0].call {
		if root := c.names.Root(path[0].name); root != nil {
			return c.constant(n, root, path)
		}
	}
	a := c.address(n, path)
	if a == nil {
		return nil
	}
	c.addresses = append(c.addresses, a)
	return &term{op: opAddress, at: span{a.Offset, a.Offset + a.Length}, index: len(c.addresses) - 1, dim: a.Metric.Dim}
}

// refuse says that a construct of the language is not available in assertions.
func (c *checker) refuse(n ast.Node) {
	what, hint := c.text(n), ""
	switch n := n.(type) {
	case *ast.ConditionalNode:
		what = "a choice with ? and :"
	case *ast.MemberNode:
		what = "an index"
		if p, ok := n.Property.(*ast.StringNode); ok && !n.Optional {
			hint = "write ." + p.Value
		} else if n.Optional {
			what, hint = "?.", "write a dot alone"
		}
	case *ast.ChainNode:
		what, hint = "?.", "write a dot alone"
	case *ast.SliceNode:
		what = "a part of a list"
	case *ast.ArrayNode:
		what = "a list"
	case *ast.MapNode:
		what = "a mapping"
	case *ast.SequenceNode:
		what, hint = "a sequence with ;", "write and"
	case *ast.VariableDeclaratorNode:
		what = "let"
	}
	c.fail(c.span(n), what+" is not available in assertions", hint)
}

func (c *checker) unary(n *ast.UnaryNode) *term {
	t := c.build(n.Node)
	if t == nil {
		return nil
	}
	switch n.Operator {
	case "not", "!":
		if !t.truth {
			c.notTruth(t)
			return nil
		}
		return &term{op: opNot, left: t, at: c.span(n), truth: true, constant: t.constant, root: t.root}
	case "-", "+":
		if t.truth {
			c.fail(t.at, c.textOf(t.at)+" is a comparison, not a value", "")
			return nil
		}
		if n.Operator == "+" {
			return t
		}
		r := *t
		r.at = c.span(n)
		if t.constant {
			r.value = -t.value
		} else {
			r.op, r.left, r.right = opNegate, t, nil
		}
		return &r
	}
	c.fail(c.span(n), n.Operator+" is not available in assertions", "")
	return nil
}

func (c *checker) notTruth(t *term) {
	hint := ""
	if t.op == opAddress {
		hint = "compare it with a limit"
	}
	c.fail(t.at, c.textOf(t.at)+" is "+t.dim.String()+", not a comparison", hint)
}

func (c *checker) binary(n *ast.BinaryNode) *term {
	op := span{n.Location().From, n.Location().To}
	if a, ok := n.Left.(*ast.BinaryNode); ok && n.Operator == "&&" {
		// Expr reads a < b < c as a < b && b < c, with the very same b.
		if b, ok := n.Right.(*ast.BinaryNode); ok && a.Right == b.Left {
			c.fail(op, "comparisons can't be chained", fmt.Sprintf("write %s and %s %s %s",
				c.text(a), c.text(b.Left), b.Operator, c.text(b.Right)))
			return nil
		}
	}
	kind, known := arithmetic[n.Operator]
	if !known {
		kind, known = comparisons[n.Operator]
	}
	if !known {
		kind, known = logic[n.Operator]
	}
	if !known {
		hint := ""
		switch n.Operator {
		case "%":
			hint = "a percentage has no space before its %"
		case "in":
			hint = "write two comparisons"
		}
		c.fail(op, n.Operator+" is not available in assertions", hint)
		return nil
	}
	l, r := c.build(n.Left), c.build(n.Right)
	if l == nil || r == nil {
		return nil
	}
	t := &term{op: kind, left: l, right: r, at: c.span(n), constant: l.constant && r.constant, root: l.root || r.root}
	if kind == opAnd || kind == opOr {
		t.truth = true
		for _, o := range []*term{l, r} {
			if !o.truth {
				c.notTruth(o)
				t.truth = false
			}
		}
		if !t.truth {
			return nil
		}
		return t
	}
	for _, o := range []*term{l, r} {
		if o.truth {
			c.fail(o.at, c.textOf(o.at)+" is a truth value, not something measured", "")
			return nil
		}
	}
	switch kind {
	case opMultiply:
		if !c.product(t, op) {
			return nil
		}
	case opDivide:
		if !c.ratio(t, op) {
			return nil
		}
	case opAdd, opSubtract:
		if !c.alike(t) {
			return nil
		}
	default:
		if !c.alike(t) {
			return nil
		}
		t.truth = true
		if t.constant && !t.root {
			c.fail(t.at, c.textOf(t.at)+" reads no metric", "")
			return nil
		}
		return t
	}
	if t.constant {
		t.value = t.calculate(l.value, r.value)
		t.op, t.left, t.right = opConstant, nil, nil
		if math.IsNaN(t.value) || math.IsInf(t.value, 0) {
			c.fail(t.at, c.textOf(t.at)+" is not a number", "")
			return nil
		}
	}
	return t
}

// alike wants both sides of a sum or a comparison to measure the same.
func (c *checker) alike(t *term) bool {
	l, r := t.left, t.right
	zero := func(o *term) bool { return o.literal && o.dim == quantity.Number && o.value == 0 }
	switch {
	case l.dim == r.dim:
		t.quotient = l.dim == quantity.Number && (l.quotient && (r.quotient || r.constant) || r.quotient && l.constant)
	case zero(l):
		l.dim = r.dim
	case zero(r):
		r.dim = l.dim
	case l.quotient && r.dim == quantity.Share:
		l.dim = r.dim
	case r.quotient && l.dim == quantity.Share:
		r.dim = l.dim
	default:
		c.unlike(l, r)
		return false
	}
	t.dim = l.dim
	return true
}

// unlike reports two operands of different dimensions at the one that is probably wrong.
func (c *checker) unlike(l, r *term) {
	right, wrong := l, r
	if l.constant && !r.constant {
		right, wrong = r, l
	}
	hint := ""
	if wrong.constant && wrong.dim == quantity.Number {
		text := c.textOf(wrong.at)
		if !wrong.literal {
			text = strconv.FormatFloat(wrong.value, 'f', -1, 64)
		}
		if !wrong.root {
			hint = "write " + quantity.WithUnit(text, right.dim)
		}
	}
	if wrong.literal && wrong.dim == quantity.Size && right.dim == quantity.Speed {
		hint = "write " + c.textOf(wrong.at) + "/s"
	}
	c.fail(wrong.at, fmt.Sprintf("%s is %s but %s is %s", c.textOf(right.at), right.dim, c.textOf(wrong.at), wrong.dim), hint)
}

// product: a number or a share of something is of its kind; a rate or speed over a time is a count or size.
func (c *checker) product(t *term, op span) bool {
	l, r := t.left, t.right
	switch a, b := min(l.dim, r.dim), max(l.dim, r.dim); {
	case a == quantity.Number && b == quantity.Share:
		// Twice a share is a share; a share of a count is a count.
		n := l
		if r.dim == quantity.Number {
			n = r
		}
		if t.dim = quantity.Share; !n.constant && !n.quotient {
			t.dim = quantity.Number
		}
	case a == quantity.Number:
		t.dim = b
		t.quotient = b == quantity.Number && (l.quotient || r.quotient) && (l.quotient || l.constant) && (r.quotient || r.constant)
	case l.dim == quantity.Share:
		t.dim = r.dim
	case r.dim == quantity.Share:
		t.dim = l.dim
	case a == quantity.Time && b == quantity.Rate:
		t.dim, t.scale = quantity.Number, 1/nanoseconds
	case a == quantity.Time && b == quantity.Speed:
		t.dim, t.scale = quantity.Size, 1/nanoseconds
	default:
		c.fail(op, fmt.Sprintf("%s can't be multiplied by %s", l.dim, r.dim), "")
		return false
	}
	return true
}

// ratio: like by like is a number, a part of something is of its kind, and sizes, times and rates go together.
func (c *checker) ratio(t *term, op span) bool {
	l, r := t.left, t.right
	switch {
	case l.dim == r.dim:
		t.dim, t.quotient = quantity.Number, !r.constant || !l.constant
		if l.dim == quantity.Number && (l.literal || r.literal) {
			t.quotient = l.quotient || r.quotient // half a count is a count, but half a quotient is one too
		}
	case r.dim == quantity.Number || r.dim == quantity.Share:
		t.dim = l.dim
	case l.dim == quantity.Size && r.dim == quantity.Time:
		t.dim, t.scale = quantity.Speed, nanoseconds
	case l.dim == quantity.Size && r.dim == quantity.Speed:
		t.dim, t.scale = quantity.Time, nanoseconds
	case l.dim == quantity.Speed && r.dim == quantity.Size:
		t.dim = quantity.Rate
	case l.dim == quantity.Number && r.dim == quantity.Time:
		t.dim, t.scale = quantity.Rate, nanoseconds
	case l.dim == quantity.Number && r.dim == quantity.Rate:
		t.dim, t.scale = quantity.Time, nanoseconds
	default:
		c.fail(op, fmt.Sprintf("%s can't be divided by %s", l.dim, r.dim), "")
		return false
	}
	return true
}

// nanoseconds of a second: durations are held in the one, rates and byte rates per the other.
const nanoseconds = 1e9

// calculate does one step of arithmetic on numbers of base units.
func (t *term) calculate(l, r float64) float64 {
	switch t.op {
	case opAdd:
		return l + r
	case opSubtract:
		return l - r
	case opMultiply:
		if t.scale != 0 {
			return l * r * t.scale
		}
		return l * r
	case opDivide:
		if t.scale != 0 {
			return l / r * t.scale
		}
		return l / r
	}
	return math.NaN()
}
