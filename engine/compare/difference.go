// Package compare says by how much one set of measurements differs from another, and how sure that is.
//
// Rounds of two targets, measured in turn, form pairs: what disturbed both cancels out. From six pairs on a difference
// comes with an interval that holds the true one in at least 95 of 100 cases, whatever the shape of the noise, as long as
// the pairs' differences scatter symmetrically. With fewer pairs no such interval exists, and none is made up.
package compare

import "math"

// MinPairs is the smallest number of pairs that has a 95 % interval: the signed ranks of five pairs all have the same
// sign by chance once in 16 times, those of six once in 32.
const MinPairs = 6

// Value is a measured value, or no data.
type Value struct {
	Value float64
	Known bool
}

// Side is one side of a comparison: the value over all rounds together, and that of each round.
type Side struct {
	Pooled Value
	Rounds []Value
}

// Measure makes a Side of what value returns for each round from 0, and for round -1, which stands for all of them.
func Measure(rounds int, value func(round int) (float64, bool)) Side {
	var s Side
	s.Pooled.Value, s.Pooled.Known = value(-1)
	for r := range rounds {
		v, ok := value(r)
		s.Rounds = append(s.Rounds, Value{v, ok})
	}
	return s
}

// Difference is by how much Other differs from Reference.
type Difference struct {
	Reference, Other float64 // pooled values
	Absolute         Change  // other - reference, in their unit
	Relative         Change  // other / reference - 1, a fraction; not Known if the reference is not above 0
	Pairs            int     // rounds that have data on both sides
}

// Change is an estimate with its 95 % interval. Low and High are 0 where there is no Interval.
type Change struct {
	Value     float64
	Known     bool
	Low, High float64
	Interval  bool
}

// Of compares two sides; false is no data on one of them.
//
// With MinPairs pairs or more, Absolute is the Hodges-Lehmann estimate of the pairs' differences, and Relative that of
// the logarithms of their quotients, taken back. Else both are of the pooled values, and have no interval.
func Of(reference, other Side) (Difference, bool) {
	if !reference.Pooled.Known || !other.Pooled.Known {
		return Difference{}, false
	}
	d := Difference{Reference: reference.Pooled.Value, Other: other.Pooled.Value}
	d.Absolute = Change{Value: d.Other - d.Reference, Known: true}
	if d.Reference > 0 {
		d.Relative = Change{Value: d.Other/d.Reference - 1, Known: true}
	}
	var differences, quotients []float64
	for i := range min(len(reference.Rounds), len(other.Rounds)) {
		r, o := reference.Rounds[i], other.Rounds[i]
		if !r.Known || !o.Known {
			continue
		}
		d.Pairs++
		differences = append(differences, o.Value-r.Value)
		if r.Value > 0 && o.Value > 0 {
			quotients = append(quotients, math.Log(o.Value/r.Value))
		}
	}
	if d.Pairs < MinPairs {
		return d, true
	}
	d.Absolute = paired(differences)
	if len(quotients) == d.Pairs {
		c := paired(quotients)
		c.Value, c.Low, c.High = math.Expm1(c.Value), math.Expm1(c.Low), math.Expm1(c.High)
		d.Relative = c
	}
	return d, true
}

func paired(differences []float64) Change {
	c := Change{Known: true}
	c.Value, c.Low, c.High, c.Interval = SignedRank(differences)
	return c
}

// Better says which way a metric improves.
type Better uint8

const (
	Neither Better = iota
	Less           // as latency does
	More           // as throughput does
)

// Finding is what a difference means.
type Finding uint8

const (
	Unknown Finding = iota // there is no data, or no better and worse
	Same                   // no difference that the interval, or the values as such, could show
	Improved
	Worsened
)

// Finding says whether other is better than the reference. With an interval that takes both signs, or none at all and
// equal values, it is Same. Without an interval the sign alone decides: it may well be noise.
func (d Difference) Finding(b Better) Finding {
	c := d.Absolute
	sign := 0
	switch {
	case !c.Known || b == Neither:
		return Unknown
	case c.Interval && c.Low > 0, !c.Interval && c.Value > 0:
		sign = 1
	case c.Interval && c.High < 0, !c.Interval && c.Value < 0:
		sign = -1
	default:
		return Same
	}
	if (sign > 0) == (b == More) {
		return Improved
	}
	return Worsened
}
