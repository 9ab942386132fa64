package record

import (
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// ExactLimit is the number of values up to which a Series keeps them all.
const ExactLimit = 1_000_000

// Budget limits how many exact values several Series keep together, so that a long run or a large file does not fill the
// memory. It is safe for concurrent use.
type Budget struct{ left atomic.Int64 }

// NewBudget makes a budget of so many values, 8 bytes each. With 0, every Series is a histogram from its second
// different value on.
func NewBudget(values int64) *Budget {
	b := new(Budget)
	b.left.Store(values)
	return b
}

func (b *Budget) take(n int64) bool {
	if b == nil {
		return true
	}
	if b.left.Add(-n) < 0 {
		b.left.Add(n)
		return false
	}
	return true
}

func (b *Budget) give(n int64) {
	if b != nil {
		b.left.Add(n)
	}
}

// Series is a set of values, nanoseconds as a rule. It keeps them all up to ExactLimit and as far as its budget reaches,
// and turns into a Histogram beyond that. Count, Min, Max, Mean and Stddev are exact in both states. Equal values cost
// nothing: a series of a million zeros is as small as an empty one. Values below 0 count as 0.
//
// The zero value is an empty series without a budget. A Series is not safe for concurrent use, but any number may read it
// while nobody writes. It must not be copied.
type Series struct {
	count    int64
	min, max int64
	sum      wide
	mean, m2 float64 // running mean and sum of squared deviations from it

	values []int64    // nil while all values are equal, and of a histogram
	hist   *Histogram // nil while exact
	budget *Budget

	sorted  atomic.Bool // values are in order; reset by writers
	sorting sync.Mutex  // readers sort under it
}

// NewSeries makes an empty series that draws on a budget; nil is none.
func NewSeries(b *Budget) *Series { return &Series{budget: b} }

// SeriesOf makes a series of what a histogram knows and the sum of squared deviations from the mean, which it does not.
// The series owns h from then on.
func SeriesOf(h *Histogram, squares float64) *Series {
	s := new(Series)
	if h == nil || h.count == 0 {
		return s
	}
	s.count, s.min, s.max, s.sum = h.count, h.min, h.max, h.sum
	s.mean = h.sum.float() / float64(h.count)
	if squares > 0 && !math.IsInf(squares, 0) {
		s.m2 = squares
	}
	if s.min != s.max {
		s.hist = h
	}
	return s
}

// Add adds a value. Mean and deviation are carried along as in Welford, "Note on a method for calculating corrected sums
// of squares and products", Technometrics 4 (1962).
func (s *Series) Add(v int64) {
	v = max(v, 0)
	s.keep(v)
	if s.count == 0 {
		s.min, s.max = v, v
	} else {
		s.min, s.max = min(s.min, v), max(s.max, v)
	}
	s.count++
	s.sum.add(uint64(v))
	d := float64(v) - s.mean
	s.mean += d / float64(s.count)
	s.m2 += d * (float64(v) - s.mean)
}

// keep stores v, which is not counted yet.
func (s *Series) keep(v int64) {
	switch {
	case s.hist != nil:
		s.hist.Record(v)
	case s.constant() && (s.count == 0 || v == s.min):
	case s.reserve(s.count + 1):
		s.values = append(s.values, v)
		s.sorted.Store(false)
	default:
		s.spill()
		s.hist.Record(v)
	}
}

// constant says that all values are equal to min, and none is stored.
func (s *Series) constant() bool { return s.values == nil && s.hist == nil }

// reserve makes room for n exact values in all and stores those of a constant series. It returns false when there may
// not be so many.
func (s *Series) reserve(n int64) bool {
	if n > ExactLimit || n < 0 {
		return false
	}
	if n > int64(cap(s.values)) {
		room := min(max(n, 2*int64(cap(s.values)), 16), ExactLimit)
		if !s.budget.take(room - int64(cap(s.values))) {
			return false
		}
		grown := make([]int64, len(s.values), room)
		copy(grown, s.values)
		if s.values == nil {
			for range s.count {
				grown = append(grown, s.min)
			}
		}
		s.values = grown
	}
	return true
}

// spill turns s into a histogram.
func (s *Series) spill() {
	s.hist = new(Histogram)
	if s.values == nil {
		s.hist.RecordN(s.min, s.count)
	}
	for _, v := range s.values {
		s.hist.Record(v)
	}
	s.budget.give(int64(cap(s.values)))
	s.values = nil
}

// Merge adds all of o's values; o stays as it is. Deviations are combined as in Chan, Golub and LeVeque, "Updating
// formulae and a pairwise algorithm for computing sample variances" (1979).
func (s *Series) Merge(o *Series) {
	if o == nil || o.count == 0 {
		return
	}
	s.keepAll(o)
	n, m := float64(s.count), float64(o.count)
	d := o.mean - s.mean
	s.m2 += o.m2 + d*d*n*m/(n+m)
	s.mean += d * m / (n + m)
	if s.count == 0 {
		s.min, s.max = o.min, o.max
	} else {
		s.min, s.max = min(s.min, o.min), max(s.max, o.max)
	}
	s.count += o.count
	s.sum.addWide(o.sum)
}

func (s *Series) keepAll(o *Series) {
	if s.hist == nil && o.hist == nil {
		if s.constant() && o.constant() && (s.count == 0 || s.min == o.min) {
			return
		}
		if s.reserve(s.count + o.count) {
			if o.constant() {
				for range o.count {
					s.values = append(s.values, o.min)
				}
			}
			s.values = append(s.values, o.values...)
			s.sorted.Store(false)
			return
		}
	}
	if s.hist == nil {
		s.spill()
	}
	switch {
	case o.hist != nil:
		s.hist.Merge(o.hist)
	case o.constant():
		s.hist.RecordN(o.min, o.count)
	default:
		for _, v := range o.values {
			s.hist.Record(v)
		}
	}
}

// Clone returns a copy that draws on the same budget.
func (s *Series) Clone() *Series {
	c := NewSeries(s.budget)
	c.Merge(s)
	return c
}

// Release empties s and returns what it held to its budget.
func (s *Series) Release() {
	s.budget.give(int64(cap(s.values)))
	s.count, s.min, s.max, s.sum, s.mean, s.m2 = 0, 0, 0, wide{}, 0, 0
	s.values, s.hist = nil, nil
}

// Exact says that every value is known; otherwise percentiles have a histogram's error.
func (s *Series) Exact() bool { return s.hist == nil }

// Count is the number of values.
func (s *Series) Count() int64 { return s.count }

// Sum is the sum of the values; 0 if there are none.
func (s *Series) Sum() float64 { return s.sum.float() }

// Mean is the arithmetic mean; false is no data.
func (s *Series) Mean() (float64, bool) {
	if s.count == 0 {
		return 0, false
	}
	return s.sum.float() / float64(s.count), true
}

// Min is the smallest value; false is no data.
func (s *Series) Min() (int64, bool) { return s.min, s.count > 0 }

// Max is the greatest value; false is no data.
func (s *Series) Max() (int64, bool) { return s.max, s.count > 0 }

// Stddev is the sample standard deviation, sqrt(sum (x - mean)^2 / (n - 1)). One value has none: false is no data.
func (s *Series) Stddev() (float64, bool) {
	if s.count < 2 {
		return 0, false
	}
	return math.Sqrt(max(s.m2, 0) / float64(s.count-1)), true
}

// Squares is the sum of the squared deviations from the mean, for SeriesOf.
func (s *Series) Squares() float64 { return s.m2 }

// Percentile returns the value of rank ceil(p/100 n) in ascending order, p in per cent and clamped to 0..100: an exact
// one if s is Exact, else as Histogram.Quantile. false is no data.
func (s *Series) Percentile(p float64) (int64, bool) {
	if s.count == 0 || math.IsNaN(p) {
		return 0, false
	}
	switch {
	case s.hist != nil:
		return s.hist.Quantile(p / 100)
	case s.constant():
		return s.min, true
	}
	return s.ordered()[rank(p/100, s.count)-1], true
}

// CountAtMost returns how many values are at most v; of a histogram as Histogram.CountAtMost, so never too many.
func (s *Series) CountAtMost(v int64) int64 {
	switch {
	case s.count == 0 || v < s.min:
		return 0
	case v >= s.max:
		return s.count
	case s.hist != nil:
		return s.hist.CountAtMost(v)
	}
	// The first position with a greater value. v < max <= the greatest int64, so v+1 does not run over.
	i, _ := slices.BinarySearch(s.ordered(), v+1)
	return int64(i)
}

// Values yields the values in ascending order and how many there are of each; of a histogram as Histogram.Values.
func (s *Series) Values() iter.Seq2[int64, int64] {
	if s.hist != nil {
		return s.hist.Values()
	}
	return func(yield func(int64, int64) bool) {
		if s.constant() {
			if s.count > 0 {
				yield(s.min, s.count)
			}
			return
		}
		for v := s.ordered(); len(v) > 0; {
			n := 1
			for n < len(v) && v[n] == v[0] {
				n++
			}
			if !yield(v[0], int64(n)) {
				return
			}
			v = v[n:]
		}
	}
}

// Histogram returns the values as a histogram of its own.
func (s *Series) Histogram() *Histogram {
	h := new(Histogram)
	switch {
	case s.hist != nil:
		h.Merge(s.hist)
	case s.constant():
		h.RecordN(s.min, s.count)
	default:
		for _, v := range s.values {
			h.Record(v)
		}
	}
	return h
}

// ordered sorts the values when the first reader needs them in order.
func (s *Series) ordered() []int64 {
	if !s.sorted.Load() {
		s.sorting.Lock()
		defer s.sorting.Unlock()
		if !s.sorted.Load() {
			slices.Sort(s.values)
			s.sorted.Store(true)
		}
	}
	return s.values
}
