package record

import (
	"math"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
)

// probed sets what a probe found: so many moments of each lateness, in milliseconds.
func probed(s *Stats, late map[int64]int64) *Stats {
	s.Probe = new(Histogram)
	for v, n := range late {
		s.Probe.RecordN(v*ms, n)
	}
	return s
}

// answers are ok samples with these latencies in milliseconds, one due each millisecond.
func answers(latencies ...int64) *Stats {
	s := NewStats(nil)
	for i, v := range latencies {
		due := int64(i) * ms
		s.Add(0, answered(due, due, due+v*ms))
	}
	return s
}

func TestHeldUp(t *testing.T) {
	for name, test := range map[string]struct {
		s       *Stats
		share   float64
		longest time.Duration
	}{
		"nobody probed":           {answers(10), 0, 0},
		"calm":                    {probed(answers(10), map[int64]int64{0: 90, 1: 9, 2: 1}), 0, 0},
		"one in ten":              {probed(answers(10), map[int64]int64{0: 90, 3: 9, 40: 1}), 0.1, 40 * time.Millisecond},
		"little for slow answers": {probed(answers(1000), map[int64]int64{0: 90, 40: 9, 60: 1}), 0.01, 60 * time.Millisecond},
		"without any answer":      {probed(NewStats(nil), map[int64]int64{0: 5, 3: 15}), 0.75, 3 * time.Millisecond},
		"too short to tell":       {probed(answers(10), map[int64]int64{0: 4, 3: 15}), 0, 0},
	} {
		share, longest := test.s.HeldUp()
		// Lateness is counted in buckets, the longest is exact.
		if share != test.share || longest != test.longest {
			t.Errorf("%s: %v of the time, up to %v; want %v, %v", name, share, longest, test.share, test.longest)
		}
	}
}

func TestWithoutHoldUps(t *testing.T) {
	latencies := make([]int64, 100)
	for i := range latencies {
		latencies[i] = int64(10 + i)
	}
	s := probed(answers(latencies...), map[int64]int64{0: 50, 1: 40, 5: 10})
	s.Length = 10 * time.Second
	at := func(s *Stats, p float64) int64 {
		v, _ := s.Latency().Percentile(p)
		return (v + ms/2) / ms // to the bucket
	}

	// Where all times count as calm nothing is set aside, and four wake-ups can have cost five milliseconds each.
	x := s.WithoutHoldUps(1)
	if x.OK != 100 || at(x, 100) != 89 || at(x, 50) != 39 || at(x, 1) != 10 {
		t.Errorf("all calm: %d answers, %d, %d and %d ms", x.OK, at(x, 1), at(x, 50), at(x, 100))
	}
	// 1 - 0.9^4 = 34 % may have been hit, each of the others cost four times one millisecond.
	x = s.WithoutHoldUps(0.9)
	if x.OK != 100 || at(x, 100) != 10+65-4 || at(x, 34) != 10 {
		t.Errorf("nine in ten calm: %d answers, %d to %d ms", x.OK, at(x, 34), at(x, 100))
	}
	if got := x.Length.Seconds(); math.Abs(got-6.561) > 0.001 {
		t.Errorf("10 s without what was lost are %v s", got)
	}
	if x.Latency().Count() != s.Latency().Count() || at(s, 100) != 109 {
		t.Error("the samples themselves have changed")
	}

	// What was dropped and what timed out did worse than any answer.
	s = probed(answers(latencies...), map[int64]int64{0: 50, 1: 40, 5: 10})
	s.Dropped, s.Failed = 10, 40
	s.Failures[drivers.Timeout], s.Failures[drivers.Reset] = 30, 10
	x = s.WithoutHoldUps(0.9) // 34.4 % of 150 are 52
	if x.Dropped != 0 || x.Failures[drivers.Timeout] != 0 || x.Failures[drivers.Reset] != 10 || x.Failed != 10 || x.OK != 140 {
		t.Errorf("%d dropped, %d failed, %v, %d ok", x.Dropped, x.Failed, x.Failures, x.OK)
	}
	x = s.WithoutHoldUps(0.98) // 7.8 % are 12
	if x.Dropped != 0 || x.Failures[drivers.Timeout] != 28 || x.OK != 112 || x.Latency().Count() != 112 {
		t.Errorf("%d dropped, %d timed out, %d ok with %d times", x.Dropped, x.Failures[drivers.Timeout], x.OK, x.Latency().Count())
	}
}

// A quickest answer that was as likely hit as not proves nothing; one of many does.
func TestWithoutHoldUpsOfOneAnswer(t *testing.T) {
	one := probed(answers(30), map[int64]int64{0: 80, 5: 20}).WithoutHoldUps(1)
	if v, _ := one.Latency().Min(); v != 10*ms {
		t.Errorf("a single answer of 30 ms could have come after %v, not 10 ms", time.Duration(v))
	}
	many := probed(answers(30, 30, 30, 30, 30, 30), map[int64]int64{0: 80, 5: 20}).WithoutHoldUps(1)
	if v, _ := many.Latency().Max(); v != 30*ms {
		t.Errorf("six answers of 30 ms could have come after %v", time.Duration(v))
	}
}

// Windows have few values each, and are many: what is worked out of one is not kept with it. Long series are gone through once.
func TestWithoutHoldUpsKeepsNothingOfShortSeries(t *testing.T) {
	late := map[int64]int64{0: 80, 5: 20}
	for n, kept := range map[int]int{100: 0, fine + 1: 1} {
		latencies := make([]int64, n)
		for i := range latencies {
			latencies[i] = int64(10 + i%20)
		}
		s := probed(answers(latencies...), late)
		s.WithoutHoldUps(0.9)
		if len(s.coarse) != kept {
			t.Errorf("%d values: %d histograms are kept, want %d", n, len(s.coarse), kept)
		}
	}
}
