package html

import (
	"math"
	"strings"

	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/sinks/digest"
)

// axis places values between two ends of a picture.
type axis struct {
	low, high float64 // values at the ends
	from, to  float64 // pixels
	log       bool
	dim       quantity.Dim
	scale     digest.Scale
}

// steps is into how many parts a linear axis is divided, or some more.
const steps = 4

// newAxis makes an axis for values of a dimension from 0 to high; over so many powers of ten that the small ones would
// lie on the line, it is logarithmic and begins at low.
func newAxis(dim quantity.Dim, low, high, from, to float64) axis {
	if high <= 0 {
		high = 1
	}
	a := axis{low: 0, high: high, from: from, to: to, dim: dim, scale: scaleOf(dim, high)}
	if low > 0 && high > 25*low {
		a.log = true
		a.low = low
	}
	if !a.log {
		step := niceAbove(high / steps)
		a.high = step * math.Ceil(high/step*0.9999)
	}
	return a
}

// scaleOf is the unit of an axis; numbers have none.
func scaleOf(dim quantity.Dim, high float64) digest.Scale {
	if dim == quantity.Number {
		dim = quantity.Rate // whose only unit has a factor of 1
	}
	return digest.ScaleOf(dim, high)
}

func (a axis) at(v float64) float64 {
	if a.log {
		v = max(v, a.low)
		return a.from + (a.to-a.from)*math.Log(v/a.low)/math.Log(a.high/a.low)
	}
	return a.from + (a.to-a.from)*(v-a.low)/(a.high-a.low)
}

// ticks are at most about n round values.
func (a axis) ticks(n int) []float64 {
	var list []float64
	if !a.log {
		step := niceAbove((a.high - a.low) / float64(n))
		for k := math.Ceil(a.low / step); k*step <= a.high*1.0001; k++ {
			list = append(list, k*step)
		}
		return list
	}
	for _, digits := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		list = list[:0]
		for e := math.Floor(math.Log10(a.low)); e <= math.Ceil(math.Log10(a.high)); e++ {
			for _, d := range digits {
				if v := d * math.Pow(10, e); v >= a.low*0.999 && v <= a.high*1.001 {
					list = append(list, v)
				}
			}
		}
		if len(list) <= n {
			break
		}
	}
	for len(list) > n {
		thin := list[:0]
		for i := 0; i < len(list); i += 2 {
			thin = append(thin, list[i])
		}
		list = thin
	}
	return list
}

// niceAbove is the smallest of 1, 2, 2.5, 5 times a power of ten that is at least v.
func niceAbove(v float64) float64 {
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, d := range []float64{1, 2, 2.5, 5, 10} {
		if d*p >= v*0.9999 {
			return d * p
		}
	}
	return 10 * p
}

// text prints a tick without digits that say nothing.
func (a axis) text(v float64) string {
	s := a.scale.Text(v)
	if strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// unit is what the axis' numbers are of.
func (a axis) unit(of string) string {
	switch a.dim {
	case quantity.Number:
		return of
	case quantity.Rate:
		return of + " per second"
	}
	return of + ", " + a.scale.Unit
}
