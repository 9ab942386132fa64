package profile

import (
	"fmt"
	"math"
	"time"
)

// Arrivals is an arrival schedule as a pure function: At says when arrival k is due, and Before is its exact inverse.
// It is immutable and safe for concurrent use, and its methods do not allocate.
//
// The rate r(t) is piecewise linear, and its integral R(t) is how many arrivals are expected by t. Every arrival k has a
// mass m(k), increasing with k, and is due when R reaches it. Even arrivals have m(k) = k + 1/2; Poisson arrivals have
// the points of a Poisson process of rate 1, which makes them one of rate r(t) (time rescaling; Cinlar 1975, section 4.7).
type Arrivals struct {
	pieces []piece
	count  int64
	length time.Duration
	points *points // nil if even
}

// piece is a Segment in its place. Its arrivals are due in [start, end), so that the arrivals of a segment are known by
// its borders alone: Before(start) is first.
type piece struct {
	start, end time.Duration
	rate       float64 // at the start, per second
	slope      float64 // per second squared
	mass       float64 // R(start)
	first      int64   // how many arrivals are due before start
}

// halfTolerance decides whether an arrival is due at a border or before it: masses less than this apart are the same.
// It is far above what floating point loses, and far below what anybody could measure.
const halfTolerance = 1e-6

// Even spreads arrivals evenly: arrival k is due when R(t) = k + 1/2. A hold of 10/s has its first arrival after 50 ms
// and one each 100 ms from there, and no border between segments brings two of them closer than the rates say.
//
// In all there are as many as R(Length) rounded to a whole number, so 1.5/s for 10 s is 15. A half is rounded down, since
// its arrival would be due just when the schedule has ended: 1/s for 2.5 s is 2. Sums that floating point leaves within
// a millionth of a half count as the half, and what should be a whole number is always far from being rounded wrongly.
func Even(segments []Segment) (*Arrivals, error) {
	a, total, err := lay(segments)
	if err != nil {
		return nil, err
	}
	for i := range a.pieces {
		a.pieces[i].first = evenBefore(a.pieces[i].mass)
	}
	a.count = evenBefore(total)
	return a, nil
}

// evenBefore is how many k >= 0 have k + 1/2 < mass.
func evenBefore(mass float64) int64 {
	return int64(max(0, math.Ceil(mass-0.5-halfTolerance)))
}

// Poisson draws arrivals as a Poisson process of the segments' rates: what independent callers are like. The same
// segments and seed always give the same arrivals.
//
// Drawing takes a few nanoseconds per arrival and keeps 8 bytes for each 64 of them, 8 MiB at most. At takes some 100 ns, up to a few
// microseconds in schedules of hundreds of millions.
func Poisson(segments []Segment, seed uint64) (*Arrivals, error) {
	a, total, err := lay(segments)
	if err != nil {
		return nil, err
	}
	a.points = newPoints(seed, total)
	for i := range a.pieces {
		a.pieces[i].first = a.points.before(a.pieces[i].mass)
	}
	a.count = a.points.before(total)
	return a, nil
}

// lay puts the segments one after the other, and returns R(Length) too.
func lay(segments []Segment) (*Arrivals, float64, error) {
	if err := check(segments, "a rate per second", maxRate); err != nil {
		return nil, 0, err
	}
	a := &Arrivals{}
	total := 0.0
	for _, s := range segments {
		if s.Length == 0 {
			continue
		}
		seconds := s.Length.Seconds()
		a.pieces = append(a.pieces, piece{
			start: a.length,
			end:   a.length + s.Length,
			rate:  s.From,
			slope: (s.To - s.From) / seconds,
			mass:  total,
		})
		a.length += s.Length
		total += (s.From + s.To) / 2 * seconds
	}
	if total > maxArrivals {
		return nil, 0, fmt.Errorf("%.0f arrivals: expected no more than %.0f", total, maxArrivals)
	}
	return a, total, nil
}

// Count is how many arrivals there are in all.
func (a *Arrivals) Count() int64 { return a.count }

// Length is the length of all segments. Every arrival is due before it.
func (a *Arrivals) Length() time.Duration { return a.length }

// At returns when arrival k is due. k counts from 0, and At never decreases with it. From Count on it returns Length,
// below 0 it returns 0.
func (a *Arrivals) At(k int64) time.Duration {
	switch {
	case k < 0:
		return 0
	case k >= a.count:
		return a.length
	}
	return a.pieces[a.pieceOf(k)].reach(a.mass(k))
}

// Before returns how many arrivals are due strictly before t: the only n with At(n-1) < t <= At(n).
func (a *Arrivals) Before(t time.Duration) int64 {
	switch {
	case t <= 0:
		return 0
	case t >= a.length:
		return a.count
	}
	// The last piece that starts before t. The search is by hand because it is on the path of every request.
	low, high := 0, len(a.pieces)
	for high-low > 1 {
		if middle := (low + high) / 2; a.pieces[middle].start < t {
			low = middle
		} else {
			high = middle
		}
	}
	first, last := a.pieces[low].first, a.count
	if low+1 < len(a.pieces) {
		last = a.pieces[low+1].first
	}
	// Arithmetic gives k to within one or two; At, which rounds to nanoseconds, decides.
	k := min(max(a.massBefore(a.pieces[low].massAt(t)), first), last)
	for k > first && a.At(k-1) >= t {
		k--
	}
	for k < last && a.At(k) < t {
		k++
	}
	return k
}

// pieceOf returns the index of the piece in which arrival k is due: the last whose first is not above k.
func (a *Arrivals) pieceOf(k int64) int {
	low, high := 0, len(a.pieces)
	for high-low > 1 {
		if middle := (low + high) / 2; a.pieces[middle].first <= k {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// mass returns m(k).
func (a *Arrivals) mass(k int64) float64 {
	if a.points != nil {
		return a.points.at(k)
	}
	return float64(k) + 0.5
}

// massBefore returns how many k have m(k) < mass.
func (a *Arrivals) massBefore(mass float64) int64 {
	if a.points != nil {
		return a.points.before(mass)
	}
	return evenBefore(mass)
}

// massAt returns R(t) for a t within the piece.
func (p *piece) massAt(t time.Duration) float64 {
	s := (t - p.start).Seconds()
	return p.mass + s*(p.rate+p.slope*s/2)
}

// reach returns when R reaches mass within the piece. With n the mass since its start, r the rate there and a the slope,
// n = r s + a s^2 / 2 has the solution
//
//	s = 2n / (r + sqrt(r^2 + 2an))
//
// which holds for a rate that rises, stays or falls, down to 0, and subtracts no like numbers where the usual form does.
func (p *piece) reach(mass float64) time.Duration {
	n := mass - p.mass
	if n <= 0 {
		return p.start
	}
	s := 2 * n / (p.rate + math.Sqrt(max(0, p.rate*p.rate+2*p.slope*n)))
	// Written so that s = +Inf, which an arrival at the very end of a fall to 0 could give, ends at the border too.
	if ns := s*1e9 + 0.5; ns < float64(p.end-p.start) {
		return p.start + time.Duration(ns)
	}
	return p.end - 1
}
