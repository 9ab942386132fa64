package engine

import (
	"math"
	"slices"
)

// search chooses the rates that a capacity phase tries. It brackets by doubling, bisects until the bracket is as narrow as
// the precision asks, and settles both ends: an end counts when two trials at its rate agree. One that was contradicted is
// tried a third time, and if that turns it over the search goes on from there.
//
// It takes for granted that a target that fails at some rate fails at every greater one: the answer lies below the least
// rate that failed.
type search struct {
	from, to  float64
	precision float64
	rates     []votes // ascending
}

// votes is how the trials at one rate came out.
type votes struct {
	rate         float64
	held, failed int
}

func (v votes) tied() bool    { return v.held == v.failed }
func (v votes) settled() bool { return max(v.held, v.failed) >= 2 && !v.tied() }

// note takes in how a trial came out.
func (s *search) note(rate float64, held bool) {
	i, found := slices.BinarySearchFunc(s.rates, rate, func(v votes, rate float64) int {
		switch {
		case v.rate < rate:
			return -1
		case v.rate > rate:
			return 1
		}
		return 0
	})
	if !found {
		s.rates = slices.Insert(s.rates, i, votes{rate: rate})
	}
	if held {
		s.rates[i].held++
	} else {
		s.rates[i].failed++
	}
}

// bracket returns the least rate that failed and the greatest one below it that was held; nil where there is none.
func (s *search) bracket() (low, high *votes) {
	for i := range s.rates {
		v := &s.rates[i]
		if v.failed > v.held {
			return low, v
		}
		low = v
	}
	return low, nil
}

// next returns the rate to try next; false when there is an answer, which is bracket's low.
func (s *search) next() (rate float64, more bool) {
	if len(s.rates) == 0 {
		return s.from, true
	}
	if i := slices.IndexFunc(s.rates, votes.tied); i >= 0 {
		return s.rates[i].rate, true
	}
	low, high := s.bracket()
	switch {
	case high == nil && low.rate < s.to:
		return min(2*low.rate, s.to), true
	case low != nil && high != nil && high.rate-low.rate > s.precision*low.rate:
		return middle(low.rate, high.rate), true
	case low != nil && !low.settled():
		return low.rate, true
	case high != nil && !high.settled():
		return high.rate, true
	}
	return 0, false
}

// middle is halfway between two rates, rounded to three digits if that is still between them.
func middle(low, high float64) float64 {
	m := low + (high-low)/2
	unit := math.Pow(10, math.Floor(math.Log10(m))-2)
	if r := math.Round(m/unit) * unit; r > low && r < high {
		return r
	}
	return m
}
