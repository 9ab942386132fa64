package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
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

// Arrivals are as far apart as the rate says, also when as many as may be are in flight: nine of ten answers are still out
// when the next call is due, and calls leave one by one all the same.
func TestArrivalsLeaveOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ph := hold(10, 5*time.Second)
		ph.MaxInFlight = 10
		f, p := newFake(constant(900*time.Millisecond), []string{"a"}, ph)
		runFake(t, f, p)
		at := f.arrivals("a")
		if len(at) != 50 {
			t.Fatalf("%d arrivals, want 50", len(at))
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i] - at[i-1]; gap != 100*time.Millisecond {
				t.Errorf("arrival %d comes %v after the one before, want 100ms", i, gap)
			}
		}
	})
}

// A load that the target does not carry shows what was asked for, what was sent and what was not, and fails: by itself, and
// by whatever a plan says of it.
func TestShortfallIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ph := hold(100, 10*time.Second)
		ph.MaxInFlight, ph.Timeout, ph.Patience = 1, time.Second, time.Second
		f, p := newFake(constant(100*time.Millisecond), []string{"a"}, ph)
		assert(t, p, "rps >= 0.99 * offered_rps")
		assert(t, p, "dropped < 100")
		report := runFake(t, f, p)
		for i, v := range report.Run.Verdicts[:2] {
			if v.Outcome != result.Failed {
				t.Errorf("assertion %d, %s, is %s with %s", i, v.Assertion, v.Outcome, v.Value)
			}
		}
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
		if wall := time.Since(began); length > wall || length < wall*95/100 {
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

// A relay that dies once fifty calls are under way, and stays dead, is seen at its moment, whichever target comes first and
// however often they take turns; the other target keeps all of its answers.
func TestARelayThatDiesIsSeenInTime(t *testing.T) {
	for _, test := range []struct {
		name    string
		targets []string
		rounds  int
	}{
		{"relay last", []string{"direct", "relay"}, 1},
		{"relay first", []string{"relay", "direct"}, 1},
		{"in turns", []string{"direct", "relay"}, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// With answers that take a second, from 0/s to 100/s in 10 s, t^2 * 5 - (t-1)^2 * 5 = 10 t - 5 are under way at
				// t: fifty at 5.5 s.
				f, p := newFake(nil, test.targets, &plan.Phase{Kind: plan.RampAndHold, Open: true, Rounds: test.rounds, Stages: []plan.Stage{
					{Name: "ramp", Ramp: true, To: 100, Length: 10 * time.Second},
					{From: 100, To: 100, Length: 5 * time.Second, Judged: true},
				}})
				var mu sync.Mutex
				var ends []time.Duration // of what is under way at the relay
				dead := false
				f.serve = func(c fakeCall) (time.Duration, error) {
					if c.Target != "relay" {
						return time.Second, nil
					}
					mu.Lock()
					defer mu.Unlock()
					ends = slices.DeleteFunc(ends, func(end time.Duration) bool { return end <= c.At })
					ends = append(ends, c.At+time.Second)
					if dead = dead || len(ends) > 50; dead {
						return time.Millisecond, drivers.Fail(drivers.Status, errors.New("status was 502"))
					}
					return time.Second, nil
				}
				report := runFake(t, f, p)
				if report.Err != nil || report.Exit != 1 {
					t.Errorf("exit %d, %v", report.Exit, report.Err)
				}
				relay, direct := report.Run.Find("scenario", "phase", "relay"), report.Run.Find("scenario", "phase", "direct")
				if s := direct.Stats(result.Pooled, result.Every, record.Whole); s.Failed != 0 || s.OK != int64(test.rounds)*1000 {
					t.Errorf("of the direct ones %d failed and %d did not", s.Failed, s.OK)
				}
				for _, v := range relay.Intervals {
					switch failed := v.Failed > 0; {
					case v.Round == 0 && failed != (v.Second >= 5):
						t.Errorf("second %d has %d failures", v.Second, v.Failed)
					case (v.Round > 0 || v.Second > 6) && v.OK > 0:
						t.Errorf("in second %d of round %d the dead relay answers %d calls", v.Second, v.Round+1, v.OK)
					}
				}
			})
		})
	}
}

// Every call that reaches the server is in the record once, whatever became of it, and the gate judges the share that is
// shown: one of a thousand is never answered.
func TestEveryCallHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(func(c fakeCall) (time.Duration, error) {
			if c.Iteration == 500 {
				return time.Hour, nil
			}
			return time.Millisecond, nil
		}, []string{"a"}, &plan.Phase{Kind: plan.Parallel, Users: 10, Count: 1000, Timeout: 2 * time.Second})
		assert(t, p, "error_rate < 0.1%")
		assert(t, p, "error_rate <= 0.1%")
		report := runFake(t, f, p)
		s := judged(t, report, "a")
		if len(f.calls) != 1000 || s.Count() != 1000 || s.OK != 999 || s.Failures[drivers.Timeout] != 1 {
			t.Errorf("of %d calls %d are recorded: %d ok, %d timed out", len(f.calls), s.Count(), s.OK, s.Failures[drivers.Timeout])
		}
		v := report.Run.Verdicts
		if v[0].Outcome != result.Failed || v[1].Outcome != result.Passed || v[0].Value != "0.1%" || v[1].Value != "0.1%" || v[0].N != 1000 {
			t.Errorf("%s with %s, and %s with %s, of %d", v[0].Outcome, v[0].Value, v[1].Outcome, v[1].Value, v[0].N)
		}
		if report.Exit != 1 {
			t.Errorf("exit %d", report.Exit)
		}
	})
}

// While a run lasts its memory does not grow: samples go to the file. Of the ten minutes' 60 000 iterations, each of which
// has two samples, keeping them would take some 15 MB.
func TestMemoryOfALongRunIsFlat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, length = 100, 10 * time.Minute
		serve := func(c fakeCall) (time.Duration, error) { return time.Duration(c.Draw%20+1) * time.Millisecond, nil }
		f, p := newFake(serve, []string{"a"}, hold(rate, length))
		f.calls = make([]fakeCall, 0, rate*int(length/time.Second)) // so that the server does not grow either
		heap := map[int]int64{}                                     // by second
		report := runFake(t, f, p, func(o *Options) {
			o.Watch = func(frame result.Frame) {
				if v, ok := frame.(*result.Interval); ok && (v.Second == 60 || v.Second == 300 || v.Second == 590) {
					var m runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&m)
					heap[v.Second] = int64(m.HeapAlloc)
				}
			}
		})
		if n := judged(t, report, "a").Count(); n != 60_000 || len(heap) != 3 {
			t.Fatalf("%d samples, and the heap at %d moments", n, len(heap))
		}
		for _, second := range []int{300, 590} {
			if grown := heap[second] - heap[60]; grown > 1<<20 {
				t.Errorf("after %d s the heap is %d bytes larger than after a minute", second, grown)
			}
		}
	})
}

// Two targets that are the same server are not called different, and one that is a fifth slower is found in every run: by
// intervals over rounds in which the targets take turns, each in the machine's mood of the moment. By theory one run in 20
// claims a difference where there is none, and as many intervals miss the true one.
func TestNoiseIsNoDifference(t *testing.T) {
	for _, test := range []struct {
		name   string
		slower float64
		runs   int
		rounds int
		claims [2]int // at least and at most
		holds  int    // how many intervals hold the true difference, at least
	}{
		{"the same server", 1, 20, 10, [2]int{0, 3}, 17},
		{"the same server for longer", 1, 1, 20, [2]int{0, 0}, 1},
		{"a fifth slower", 1.2, 20, 10, [2]int{20, 20}, 17},
	} {
		claims, holds := 0, 0
		for seed := range uint64(test.runs) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, uint64(test.rounds)))
				mood, calls := 1.0, 0
				f, p := newFake(func(c fakeCall) (time.Duration, error) {
					if calls++; calls%40 == 1 { // two targets, 20 calls each
						mood = 1 + random.Float64()/2
					}
					took := 10 * mood * (1 + random.ExpFloat64()/10)
					if c.Target == "b" {
						took *= test.slower
					}
					return time.Duration(took * float64(time.Millisecond)), nil
				}, []string{"a", "b"}, &plan.Phase{Kind: plan.Sequential, Users: 1, Count: 20, Rounds: test.rounds})
				assert(t, p, "change(mean).low > 0% or change(mean).high < 0%")
				assert(t, p, fmt.Sprintf("change(mean).low <= %v%% and change(mean).high >= %v%%", 100*(test.slower-1), 100*(test.slower-1)))
				assert(t, p, "change(mean) < 1000%")
				v := runFake(t, f, p).Run.Verdicts
				if v[0].Outcome == result.Passed {
					claims++
				}
				if v[1].Outcome == result.Passed {
					holds++
				}
				if v[2].Target != "b" || v[2].N != int64(20*test.rounds) || v[2].Interval == "" || v[2].Limit != "1000%" {
					t.Errorf("the row of %q has n %d, the interval %q, the limit %q", v[2].Target, v[2].N, v[2].Interval, v[2].Limit)
				}
			})
		}
		if claims < test.claims[0] || claims > test.claims[1] || holds < test.holds {
			t.Errorf("%s: %d of %d runs claim a difference, and %d intervals hold the true one", test.name, claims, test.runs, holds)
		}
	}
}
