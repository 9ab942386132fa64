package record

import (
	"iter"
	"math"
	"time"

	"github.com/planrun/planrun/drivers"
)

// While a round runs, the generator's own probe waits for moments a short time apart. By how much it misses them is what it
// cost to be woken up at the time: nothing on a machine with a processor to spare, and much on one where others hold the
// processors. A call pays that several times, to be sent, to connect, to take in its answer, and none of it is the target's.

const (
	// wakeUps is how many times a call is taken to wait for the generator. Where the target is on the same machine it waits
	// for that as well.
	wakeUps = 4
	// The generator is held up while its probe is late by more than heldFloor and more than heldShare of the quickest
	// answer: less than that turns no verdict that is worth having.
	heldFloor = 2 * time.Millisecond
	heldShare = 0.05
	// fewest is how many moments of the probe it takes to speak of a share of the time.
	fewest = 20
)

// HeldUp is the share of the time during which the generator was held up, and the longest time of it; 0 if it never was, if
// nobody probed, or too short to tell.
func (s *Stats) HeldUp() (share float64, longest time.Duration) {
	n := s.Probe.Count()
	if n < fewest {
		return 0, 0
	}
	limit := int64(heldFloor)
	if quickest, ok := s.latency.Min(); ok {
		limit = max(limit, int64(heldShare*float64(quickest)))
	}
	held := n - s.Probe.CountAtMost(limit)
	if held == 0 {
		return 0, 0
	}
	most, _ := s.Probe.Max()
	return float64(held) / float64(n), time.Duration(most)
}

// WithoutHoldUps returns the same samples as well as they could have come out with a generator that is never held up. It sets
// aside the times at which the probe was later than in calm, a share of the time between 0 and 1: as a call is hit if it was
// held up at any of its wake-ups, up to 1 - calm^4 of what was due may have been. Those may have been any, so they are taken
// to be what did worst, arrivals dropped first, then time-outs, then the slowest answers, and count as having been as quick
// as the quickest. From the others is taken what the wake-ups of a call can have cost at most at calm times, but none becomes
// quicker than the quickest that was measured, unless all may have been hit. Lag is taken away as by WithoutLag. Time that
// was lost is taken from the length, so that rates are greater.
//
// No metric of the target's is worse in it than it was without hold-ups, so an assertion that is false of it as well is false
// whatever the generator did. The result shares memory with s and must only be read.
func (s *Stats) WithoutHoldUps(calm float64) *Stats {
	if s.Probe.Count() == 0 {
		return s
	}
	hit := 1 - math.Pow(calm, wakeUps)
	late, _ := s.Probe.Quantile(calm)
	// Half of the time it is as late as it always is, on this machine and with this load.
	usual, _ := s.Probe.Quantile(min(calm, 0.5))
	held, _ := s.HeldUp()
	r := relief{hit: hit, less: wakeUps * (late - usual), ever: 1 - math.Pow(1-held, wakeUps), values: s.ascending}

	x := s.WithoutLag().view()
	left := int64(math.Round(hit * float64(x.Due())))
	spare := func(n *int64) int64 {
		k := min(left, *n)
		*n -= k
		left -= k
		x.OK += k
		return k
	}
	spared := spare(&x.Dropped)
	timedOut := spare(&x.Failures[drivers.Timeout])
	x.Failed -= timedOut
	x.latency = r.series(x.latency, spared+timedOut)
	x.service = r.series(x.service, 0)
	x.failed = r.series(x.failed, 0)
	x.latencyNoLag, x.failedNoLag = x.latency, x.failed
	for _, p := range []**Series{&x.DNS, &x.Connect, &x.TLS, &x.Wait, &x.TTFB, &x.Transfer} {
		*p = r.series(*p, 0)
	}
	kept := 1 - max(hit, held)
	x.Length = time.Duration(kept * float64(x.Length))
	x.spans = nil
	for _, span := range s.spans {
		span.Last = span.First + int64(kept*float64(span.Last-span.First))
		x.spans = append(x.spans, span)
	}
	return x
}

// fine is up to how many values those of a series are taken one by one. Only above that is a histogram worth its memory: there
// are few series of so many, but one for each part of the time in each window of an hour.
const fine = 4096

// ascending yields the values of a series of s in ascending order. The histogram of a long one is made once for all the views
// that ask.
func (s *Stats) ascending(x *Series) iter.Seq2[int64, int64] {
	if x.Count() <= fine {
		return x.Values()
	}
	s.derive.Lock()
	defer s.derive.Unlock()
	h := s.coarse[x]
	if h == nil {
		h = x.Histogram()
		if s.coarse == nil {
			s.coarse = map[*Series]*Histogram{}
		}
		s.coarse[x] = h
	}
	return h.Values()
}

// relief is by how much times get better.
type relief struct {
	hit  float64 // share of the slowest, which become as quick as the quickest
	less int64   // what is taken from each
	ever float64 // share of those that may have been hit at all

	values func(*Series) iter.Seq2[int64, int64]
}

// allHit is the probability of all values having been hit, above which the quickest is no proof of what is possible.
const allHit = 0.05

// series returns s with the relief, and more values as quick as its quickest. It is a histogram.
func (r relief) series(s *Series, more int64) *Series {
	quickest, ok := s.Min()
	if !ok && more == 0 {
		return s
	}
	h := new(Histogram)
	hit := int64(math.Round(r.hit * float64(s.Count())))
	if math.Pow(r.ever, float64(s.Count())) > allHit {
		quickest = max(quickest-r.less, 0)
	}
	h.RecordN(quickest, hit+more)
	left := s.Count() - hit
	for v, n := range r.values(s) {
		n = min(n, left)
		h.RecordN(max(v-r.less, quickest), n)
		if left -= n; left == 0 {
			break
		}
	}
	mean, _ := h.Mean()
	squares := 0.0
	for v, n := range h.Values() {
		squares += float64(n) * (float64(v) - mean) * (float64(v) - mean)
	}
	return SeriesOf(h, squares)
}
