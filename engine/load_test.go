package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

func TestPlannedArrivals(t *testing.T) {
	for _, test := range []struct {
		from, to float64
		length   time.Duration
		want     int64
	}{
		{100, 1, 10 * time.Second, 505}, // a ramp that goes down
		{1.5, 1.5, 10 * time.Second, 15},
		{0.2, 0.2, 10 * time.Second, 2},
		{0.1, 0.1, 10 * time.Second, 1}, // 6/min
		{0, 100, 10 * time.Second, 500},
	} {
		synctest.Test(t, func(t *testing.T) {
			ph := &plan.Phase{Kind: plan.RampAndHold, Open: true, Stages: []plan.Stage{{From: test.from, To: test.to, Length: test.length, Judged: true}}}
			f, p := newFake(constant(time.Millisecond), []string{"a"}, ph)
			if n := judged(t, runFake(t, f, p), "a").Count(); n != test.want {
				t.Errorf("%v/s to %v/s in %v: %d arrivals, want %d", test.from, test.to, test.length, n, test.want)
			}
		})
	}
}

// However many may be in flight, the first second holds no more than its share.
func TestNoBurstAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ph := hold(100, 5*time.Second)
		ph.MaxInFlight = 500
		f, p := newFake(constant(20*time.Millisecond), []string{"a"}, ph)
		runFake(t, f, p)
		var seconds [6]int
		for _, at := range f.arrivals("a") {
			seconds[at/time.Second]++
		}
		for i, n := range seconds[:5] {
			if n < 99 || n > 101 {
				t.Errorf("%d arrivals in second %d, want 100", n, i)
			}
		}
	})
}

// A load that the target does not carry shows what was asked for, what was sent and what was not, and fails.
func TestShortfallIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ph := hold(100, 10*time.Second)
		ph.MaxInFlight, ph.Timeout, ph.Patience = 1, time.Second, time.Second
		f, p := newFake(constant(100*time.Millisecond), []string{"a"}, ph)
		report := runFake(t, f, p)
		s := judged(t, report, "a")
		if s.Due() != 1000 || s.Count() < 100 || s.Count() > 115 || s.Dropped != 1000-s.Count() || s.DroppedByLag != 0 {
			t.Errorf("%d due, %d sent, %d dropped, %d of them through lag", s.Due(), s.Count(), s.Dropped, s.DroppedByLag)
		}
		offered, _ := metric.Value(s, metric.Metric{Name: "offered_rps"})
		rps, _ := metric.Value(s, metric.Metric{Name: "rps"})
		if offered != 100 || rps > 12 || report.Exit != 1 {
			t.Errorf("%v/s offered, %v/s achieved, exit %d", offered, rps, report.Exit)
		}
	})
}

// After a freeze the arrivals that waited go as fast as all that may be in flight let them, each of them once; those that
// wait longer than patience are dropped and not made up for.
func TestCatchingUpIsBoundByWhatMayBeInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := func(c fakeCall) (time.Duration, error) {
			if c.At >= 3*time.Second && c.At < 5*time.Second {
				return 5*time.Second - c.At + 5*time.Millisecond, nil
			}
			return 5 * time.Millisecond, nil
		}
		ph := hold(100, 10*time.Second)
		ph.MaxInFlight, ph.Patience = 10, 500*time.Millisecond
		f, p := newFake(serve, []string{"a"}, ph)
		report := runFake(t, f, p)
		s := judged(t, report, "a")
		seen := map[int64]bool{}
		for _, c := range f.calls {
			if seen[c.Iteration] {
				t.Fatalf("arrival %d was sent twice", c.Iteration)
			}
			seen[c.Iteration] = true
		}
		// Of the 200 arrivals of the freeze 10 are in flight, 50 are not too late when it ends, and the others are dropped.
		if s.Due() != 1000 || s.Dropped < 135 || s.Dropped > 145 {
			t.Errorf("%d due, %d dropped", s.Due(), s.Dropped)
		}
		perSecond := map[time.Duration]int{}
		for _, at := range f.arrivals("a") {
			perSecond[at/time.Second]++
		}
		if n := perSecond[5]; n > 155 {
			t.Errorf("%d arrivals in the second after the freeze: more than its own and those that waited", n)
		}
	})
}

// The rate is over the time in which calls were due, however long the last ones take.
func TestRateDoesNotDecayWithSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(2*time.Second), []string{"a"}, hold(10, 2500*time.Millisecond))
		s := judged(t, runFake(t, f, p), "a")
		for _, name := range []string{"offered_rps", "rps"} {
			if v, _ := metric.Value(s, metric.Metric{Name: name}); v != 10 || s.Count() != 25 {
				t.Errorf("%s of %d calls is %v, want 10/s of 25", name, s.Count(), v)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		// The last ones time out after the planned end.
		ph := hold(10, time.Second)
		ph.Timeout = 5 * time.Second
		f, p := newFake(func(c fakeCall) (time.Duration, error) {
			if c.Iteration >= 5 {
				return time.Hour, nil
			}
			return time.Millisecond, nil
		}, []string{"a"}, ph)
		began := time.Now()
		report := runFake(t, f, p)
		s := judged(t, report, "a")
		if v, _ := metric.Value(s, metric.Metric{Name: "rps"}); v != 5 || s.Failures[drivers.Timeout] != 5 {
			t.Errorf("%v/s, %d timed out", v, s.Failures[drivers.Timeout])
		}
		length := report.Run.Cells[0].Rounds[0].End.Length
		if wall := time.Since(began); length > wall || length < wall*9/10 {
			t.Errorf("the round took %v of %v", length, wall)
		}
	})
}

// Phases one after the other have figures of their own, and a percentile is of all of a phase, not of its end.
func TestPhasesAndPercentilesAreWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var phases []*plan.Phase
		for _, name := range []string{"one", "two", "three"} {
			phases = append(phases, &plan.Phase{Name: name, Kind: plan.Sequential, Users: 1, Count: 100})
		}
		phases = append(phases, hold(10, 30*time.Second))
		f, p := newFake(nil, []string{"a"}, phases...)
		f.serve = func(c fakeCall) (time.Duration, error) {
			if c.Iteration < 200 {
				return 200 * time.Millisecond, nil
			}
			return 10 * time.Millisecond, nil
		}
		report := runFake(t, f, p)
		for _, name := range []string{"one", "two", "three"} {
			if n := report.Run.Find("scenario", name, "a").Stats(result.Pooled, result.Judged, record.Whole).Count(); n != 100 {
				t.Errorf("phase %s has %d samples, want 100 of its own", name, n)
			}
		}
		if p50, _ := judged(t, report, "a").Latency().Percentile(50); time.Duration(p50) != 200*time.Millisecond {
			t.Errorf("p50 of 20 s at 200 ms and 10 s at 10 ms is %v", time.Duration(p50))
		}
	})
}

// A relay that dies under load is seen at its moment, by whichever target comes first, and nobody is faster for it.
func TestARelayThatDiesIsSeenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(nil, []string{"direct", "relay"}, hold(20, 10*time.Second))
		relayed := 0
		f.serve = func(c fakeCall) (time.Duration, error) {
			if c.Target == "relay" {
				if relayed++; relayed > 50 {
					return time.Millisecond, drivers.Fail(drivers.Status, errors.New("status was 502"))
				}
			}
			return 30 * time.Millisecond, nil
		}
		report := runFake(t, f, p)
		c := report.Run.Find("scenario", "phase", "relay")
		for _, v := range c.Intervals {
			// 20 a second: the first 50 end in the third second.
			if ok := v.Failed == 0; ok != (v.Second < 2) {
				t.Errorf("second %d has %d failures", v.Second, v.Failed)
			}
		}
		if report.Exit != 1 {
			t.Errorf("exit %d", report.Exit)
		}
	})
}
