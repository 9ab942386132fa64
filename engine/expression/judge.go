package expression

import (
	"math"
	"slices"

	"github.com/planrun/planrun/engine/quantity"
)

// Truth is the outcome of an assertion.
type Truth uint8

const (
	False Truth = iota
	True
	Unknown // not decided by the data there is
)

var truthNames = [...]string{"false", "true", "unknown"}

func (t Truth) String() string { return truthNames[min(int(t), len(truthNames)-1)] }

// Judgement is how an assertion came out.
type Judgement struct {
	Truth Truth
	// Value and Limit are the two sides of the comparison that decided, or of the first one; the measured side is Value.
	Value, Limit string
	// Address is the index of the address that Value is of; -1 where Value is computed from several, or from none.
	Address int
	// Missing are the indexes of the addresses that were needed and have no data.
	Missing []int
	// Values has every address of the assertion, as in "direct.p50 = 13.1ms".
	Values []string
	// Why has the comparisons that kept the assertion from being true, with their values.
	Why []string
	// Tree has a line for the assertion and for each part of it that has a value of its own, parts indented by two below
	// what they are part of.
	Tree []string
	// Excess is by how much the value of the comparison behind Value and Limit is on the wrong side of the limit, as a
	// fraction of it where it is not 0; negative on the right side. It orders judgements of one assertion by how bad they
	// are, and is 0 without data.
	Excess float64
}

// Judge evaluates the assertion. get returns the value of an address, in base units of its dimension, and whether there
// is one; what is not finite is none. It is called once per address.
//
// The logic is Kleene's, with three values: what has no data, or divides by zero, is unknown, and an assertion is only
// true or false if that follows whatever the unknown might be. So `count == 0 or p50 < 3ms` is true of a cell without
// samples, and `not (p50 > 30ms)` is not.
func (a *Assertion) Judge(get func(i int) (float64, bool)) Judgement {
	j := &judge{assertion: a, values: make([]float64, len(a.addresses)), known: make([]bool, len(a.addresses)), needed: make([]bool, len(a.addresses))}
	for i := range a.addresses {
		j.values[i], j.known[i] = get(i)
		if math.IsNaN(j.values[i]) || math.IsInf(j.values[i], 0) {
			j.known[i] = false
		}
	}
	out := Judgement{Truth: j.truth(a.root, true), Address: -1}
	for i, address := range a.addresses {
		text := "no data"
		if j.known[i] {
			text = quantity.Value{F: j.values[i], Dim: address.Metric.Dim}.String()
		} else if j.needed[i] {
			out.Missing = append(out.Missing, i)
		}
		if s := address.Text + " = " + text; !slices.Contains(out.Values, s) {
			out.Values = append(out.Values, s)
		}
	}
	decided := false
	for i, c := range j.compared {
		mattered := c.truth == out.Truth
		if mattered && out.Truth != True {
			out.Why = append(out.Why, c.why)
		}
		if i == 0 || mattered && !decided {
			out.Value, out.Limit, out.Excess, out.Address = c.value, c.limit, c.excess, c.address
			decided = decided || mattered
		}
	}
	out.Tree = j.tree(nil, a.root, "")
	return out
}

// tree appends the lines of a term that is not a constant as written.
func (j *judge) tree(lines []string, t *term, indent string) []string {
	text := j.assertion.source.textOf(t.at)
	switch {
	case t.truth && t.constant, t.constant && !t.root:
		return lines
	case t.truth:
		scratch := &judge{assertion: j.assertion, values: j.values, known: j.known, needed: make([]bool, len(j.needed))}
		truth := scratch.truth(t, true).String()
		if truth == Unknown.String() {
			truth = "no data"
		}
		lines = append(lines, indent+text+": "+truth)
	default:
		scratch := &judge{assertion: j.assertion, values: j.values, known: j.known, needed: make([]bool, len(j.needed))}
		n := scratch.number(t)
		value := n.describe(t.dim)
		if n.zero {
			value = "no data: it divides by zero"
		}
		lines = append(lines, indent+text+" = "+value)
	}
	for _, part := range []*term{t.left, t.right} {
		if part != nil && t.op != opConstant {
			lines = j.tree(lines, part, indent+"  ")
		}
	}
	return lines
}

// judge is one evaluation.
type judge struct {
	assertion *Assertion
	values    []float64
	known     []bool
	needed    []bool
	compared  []compared
}

// compared is a comparison that was evaluated.
type compared struct {
	truth        Truth // as the assertion wants it: negated under a not
	value, limit string
	why          string
	excess       float64
	address      int // that value is of; -1 if none
}

// truth evaluates a condition. want is false under an odd number of nots.
func (j *judge) truth(t *term, want bool) Truth {
	switch t.op {
	case opConstant:
		if t.value != 0 {
			return True
		}
		return False
	case opNot:
		return negate(j.truth(t.left, !want))
	case opAnd:
		l := j.truth(t.left, want)
		if l == False {
			return False
		}
		if r := j.truth(t.right, want); r != True {
			return r
		}
		return l
	case opOr:
		l := j.truth(t.left, want)
		if l == True {
			return True
		}
		if r := j.truth(t.right, want); r != False {
			return r
		}
		return l
	}
	return j.compare(t, want)
}

func negate(t Truth) Truth {
	switch t {
	case True:
		return False
	case False:
		return True
	}
	return Unknown
}

func (j *judge) compare(t *term, want bool) Truth {
	l, r := j.number(t.left), j.number(t.right)
	result := Unknown
	if l.known && r.known {
		result = False
		if holds(t.op, order(l.f, r.f)) {
			result = True
		}
	}
	c := compared{truth: result, address: -1}
	if !want {
		c.truth = negate(result)
	}
	left, right := l.describe(t.left.dim), r.describe(t.right.dim)
	// Values that differ must not look alike.
	for digits := 4; left == right && l.known && r.known && order(l.f, r.f) != 0 && digits <= 17; digits++ {
		left = quantity.Value{F: l.f, Dim: t.left.dim}.Text(digits)
		right = quantity.Value{F: r.f, Dim: t.right.dim}.Text(digits)
	}
	c.value, c.limit = left, right
	if t.left.constant && !t.right.constant {
		c.value, c.limit = right, left
	}
	measured := t.left
	if t.left.constant && !t.right.constant {
		measured = t.right
	}
	if measured.op == opAddress {
		c.address = measured.index
	}
	s := j.assertion.source
	c.why = s.textOf(t.at) + ": "
	if !want {
		c.why = "not (" + s.textOf(t.at) + "): "
	}
	separator := ""
	if !t.left.constant || t.left.root {
		c.why += l.sentence(s.textOf(t.left.at), left)
		separator = ", "
	}
	if !t.right.constant || t.right.root {
		c.why += separator + r.sentence(s.textOf(t.right.at), right)
	}
	if l.known && r.known {
		c.excess = excess(t.op, l.f, r.f)
		if !want {
			c.excess = -c.excess
		}
	}
	j.compared = append(j.compared, c)
	return result
}

// number is a value that may be unknown.
type number struct {
	f     float64
	known bool
	zero  bool // unknown because of a division by zero
}

func (n number) describe(dim quantity.Dim) string {
	if n.known {
		return quantity.Value{F: n.f, Dim: dim}.String()
	}
	return "no data"
}

// sentence says of what text has as value, which describe or a finer print has made.
func (n number) sentence(text, value string) string {
	switch {
	case n.known:
		return text + " was " + value
	case n.zero:
		return text + " divides by zero"
	}
	return text + " has no data"
}

func (j *judge) number(t *term) number {
	switch t.op {
	case opConstant:
		return number{f: t.value, known: true}
	case opAddress:
		j.needed[t.index] = true
		return number{f: j.values[t.index], known: j.known[t.index]}
	case opNegate:
		n := j.number(t.left)
		n.f = -n.f
		return n
	}
	l, r := j.number(t.left), j.number(t.right)
	switch {
	case !l.known:
		return l
	case !r.known:
		return r
	}
	n := number{f: t.calculate(l.f, r.f), known: true}
	if math.IsNaN(n.f) || math.IsInf(n.f, 0) {
		return number{zero: t.op == opDivide && r.f == 0}
	}
	return n
}

// order compares two results. Whole numbers compare exactly; for others a difference in the thirteenth digit is the
// arithmetic's own, so that 1 - 7/7 is 0 and 3/1000 is 0.3 %.
func order(a, b float64) int {
	d := a - b
	if d == 0 || (a != math.Trunc(a) || b != math.Trunc(b)) && math.Abs(d) <= 1e-12*max(math.Abs(a), math.Abs(b)) {
		return 0
	}
	if d < 0 {
		return -1
	}
	return 1
}

// excess is how far a comparison is from holding.
func excess(op operator, l, r float64) float64 {
	by := l - r
	switch op {
	case opGreater, opGreaterEqual:
		by = r - l
	case opEqual:
		by = math.Abs(l - r)
	case opUnequal:
		by = -math.Abs(l - r)
	}
	if r != 0 {
		by /= math.Abs(r)
	}
	return by
}

func holds(op operator, order int) bool {
	switch op {
	case opLess:
		return order < 0
	case opLessEqual:
		return order <= 0
	case opGreater:
		return order > 0
	case opGreaterEqual:
		return order >= 0
	case opEqual:
		return order == 0
	case opUnequal:
		return order != 0
	}
	return false
}
