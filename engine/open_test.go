package engine

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

func TestArrivalsReachTheServerAsScheduled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(30*time.Millisecond), []string{"a"}, &plan.Phase{
			Kind: plan.RampAndHold, Open: true,
			Stages: []plan.Stage{
				{Name: "ramp", Ramp: true, To: 100, Length: 10 * time.Second},
				{From: 100, To: 100, Length: 10 * time.Second, Judged: true},
			},
		})
		report := runFake(t, f, p)
		at := f.arrivals("a")
		if len(at) != 1500 {
			t.Fatalf("%d arrivals, want 1500", len(at))
		}
		s := judged(t, report, "a")
		if s.Count() != 1000 || s.Dropped != 0 {
			t.Errorf("the hold has %d samples and %d drops, want 1000 and none", s.Count(), s.Dropped)
		}
		ramp := report.Run.Find("scenario", "phase", "a").Stats(result.Pooled, result.Ramps, record.Whole)
		if ramp.Count() != 500 {
			t.Errorf("the ramp has %d samples, want 500", ramp.Count())
		}
		// No second holds more than its share: n arrivals in the n-th tenth of the ramp, 100 in each second of the hold.
		var second [20]int
		release := at[0] - time.Duration(math.Sqrt(0.1)*float64(time.Second)) // 10 t^2 / 2 = 1/2
		for _, x := range at {
			second[int((x-release)/time.Second)]++
		}
		for i, n := range second {
			if want := min(100, 10*i+5); n != want {
				t.Errorf("%d arrivals in second %d, want %d", n, i, want)
			}
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i] - at[i-1]; gap < 9*time.Millisecond {
				t.Fatalf("arrivals %d and %d are only %v apart: a burst", i-1, i, gap)
			}
		}
	})
}

func TestFractionalRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(time.Millisecond), []string{"a"}, hold(1.5, 10*time.Second))
		report := runFake(t, f, p)
		if n := judged(t, report, "a").Count(); n != 15 {
			t.Errorf("%d samples, want 15", n)
		}
	})
}

// A server that stops answering for a second must be seen in the latencies of all that were due meanwhile, not only of the
// few that were in flight: that is what counting from due is for.
func TestStallIsSeenByEveryArrivalThatWasDue(t *testing.T) {
	for _, limit := range []int{50, 1100} {
		synctest.Test(t, func(t *testing.T) {
			// Stalls from 2 s to 3 s, 7 s to 8 s, ...: a call that comes then is answered at its end.
			var began time.Duration
			serve := func(c fakeCall) (time.Duration, error) {
				into := (c.At - began) % (5 * time.Second)
				if into >= 2*time.Second && into < 3*time.Second {
					return 3*time.Second - into + 5*time.Millisecond, nil
				}
				return 5 * time.Millisecond, nil
			}
			ph := hold(1000, 20*time.Second)
			ph.MaxInFlight = limit
			f, p := newFake(serve, []string{"a"}, ph)
			report := runFake(t, f, p)
			s := judged(t, report, "a")
			if s.Count() != 20_000 || s.Dropped != 0 {
				t.Fatalf("%d samples, %d drops", s.Count(), s.Dropped)
			}
			ideal := idealOpenModel(1000, 20*time.Second, limit, func(at time.Duration) time.Duration {
				took, _ := serve(fakeCall{At: began + at})
				return took
			})
			for _, p := range []float64{90, 99, 99.9} {
				want, _ := ideal.Percentile(p)
				got, _ := s.Latency().Percentile(p)
				if tolerance := max(0.01*float64(want), float64(5*time.Millisecond)); math.Abs(float64(got-want)) > tolerance {
					t.Errorf("%d in flight: p%v is %v, want %v", limit, p, time.Duration(got), time.Duration(want))
				}
			}
			// With all in flight that the stall piles up, the arrivals of each stall wait 1 s to 0 s, evenly: 1 in 5 arrivals, so
			// p90 is 500 ms and p99 950 ms. With 50, those that are due meanwhile wait for one of the 50 besides, and their backlog
			// of a second is worked off at 10 000/s, another 0.1 s.
			if p90, _ := s.Latency().Percentile(90); limit > 1000 && time.Duration(p90).Round(10*time.Millisecond) != 500*time.Millisecond {
				t.Errorf("p90 is %v", time.Duration(p90))
			}
			service, _ := s.Service().Percentile(90)
			if limit == 50 && time.Duration(service) > 100*time.Millisecond {
				t.Errorf("p90 of the service time is %v: the stall should show in the latency only", time.Duration(service))
			}
		})
	}
}

// idealOpenModel computes the latencies of the open model from its schedule alone, without workers, clocks or timers:
// arrival k is due at (k + 1/2) / rate, and begins then, or when one of limit calls has ended.
func idealOpenModel(rate int, length time.Duration, limit int, serve func(at time.Duration) time.Duration) *record.Series {
	ideal := record.NewSeries(nil)
	free := make([]time.Duration, limit) // when each of them ends; a heap would do, a scan is shorter
	for k := range int64(rate) * int64(length/time.Second) {
		due := time.Duration((float64(k) + 0.5) / float64(rate) * float64(time.Second))
		first := 0
		for i, at := range free {
			if at < free[first] {
				first = i
			}
		}
		start := max(due, free[first])
		free[first] = start + serve(start)
		ideal.Add(int64(free[first] - due))
	}
	return ideal
}

// Others that hold the processors make the generator late for its answers, and no sample shows it: the probe does. Here they
// do for a while out of every second, in which every call takes longer.
func TestAGeneratorThatIsHeldUpIsInconclusive(t *testing.T) {
	const stolen = 60 * time.Millisecond
	late := func(at time.Duration) time.Duration {
		if into := at % time.Second; into < stolen {
			return stolen - into
		}
		return 0
	}
	for _, test := range []struct {
		text   string
		window time.Duration
		work   time.Duration
		held   bool
		exit   int
	}{
		{"p99 < 30ms", 0, 10 * time.Millisecond, true, 3},
		{"p99 < 30ms", 0, 10 * time.Millisecond, false, 1}, // the same answers, and nobody to blame but the target
		{"p99 < 90ms", 0, 10 * time.Millisecond, true, 0},
		{"p50 < 30ms", 0, 10 * time.Millisecond, true, 0},
		{"p99 < 30ms", 0, 40 * time.Millisecond, true, 1}, // too slow by itself
		{"p99 < 30ms", time.Second, 10 * time.Millisecond, true, 3},
		{"p99 < 30ms", time.Second, 40 * time.Millisecond, true, 1},
		{"rps > 42/s", 0, 10 * time.Millisecond, true, 3},
		{"rps > 60/s", 0, 10 * time.Millisecond, true, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			serve := func(c fakeCall) (time.Duration, error) {
				done := c.At + test.work
				return test.work + late(done), nil
			}
			f, p := newFake(serve, []string{"a"}, &plan.Phase{Kind: plan.Parallel, Users: 1, Duration: 10 * time.Second,
				Pause: plan.Span{Min: 13 * time.Millisecond, Max: 13 * time.Millisecond}})
			assert(t, p, test.text, func(a *plan.Assertion) { a.Window = test.window })
			report := runFake(t, f, p, func(o *Options) {
				if test.held {
					o.Clock = clock.Late(late)
				}
			})
			if report.Exit != test.exit {
				t.Errorf("%s of %v, window %v, held up %v: exit %d, want %d: %+v",
					test.text, test.work, test.window, test.held, report.Exit, test.exit, report.Run.Verdicts[0])
			}
		})
	}
}

// A machine that makes the generator late, by more than the limit at every tenth arrival, takes the blame where that turns
// the verdict, and gets a note where it does not.
func TestALateGeneratorIsInconclusive(t *testing.T) {
	for _, test := range []struct {
		text string
		work time.Duration
		exit int
	}{
		{"p95 < 30ms", 10 * time.Millisecond, 3}, // late by 50 ms
		{"p95 < 90ms", 10 * time.Millisecond, 0}, // late, and all the same
		{"p50 < 30ms", 10 * time.Millisecond, 0}, // only one in ten is late
		{"p95 < 30ms", 40 * time.Millisecond, 1}, // too slow by itself
	} {
		synctest.Test(t, func(t *testing.T) {
			f, p := newFake(constant(test.work), []string{"a"}, hold(100, 10*time.Second))
			assert(t, p, test.text)
			report := runFake(t, f, p, func(o *Options) {
				o.Clock = clock.Late(func(at time.Duration) time.Duration {
					if at/(100*time.Millisecond)%10 == 0 {
						return 50 * time.Millisecond
					}
					return 0
				})
			})
			if report.Exit != test.exit {
				t.Errorf("%s of %v: exit %d, want %d: %+v", test.text, test.work, report.Exit, test.exit, report.Run.Verdicts[0])
			}
			if lag, _ := judged(t, report, "a").Lag.Percentile(99); lag < int64(40*time.Millisecond) {
				t.Errorf("the record says that the generator was late by %v", time.Duration(lag))
			}
		})
	}
}

func TestArrivalsThatWaitTooLongAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ph := hold(100, 10*time.Second)
		ph.MaxInFlight, ph.Patience = 1, 200*time.Millisecond
		f, p := newFake(constant(100*time.Millisecond), []string{"a"}, ph)
		report := runFake(t, f, p)
		s := judged(t, report, "a")
		if s.Due() != 1000 {
			t.Errorf("%d sent and %d dropped, want 1000 together", s.Count(), s.Dropped)
		}
		// One at a time of 100 ms each: 100 in the 10 s, and two more from the patience after it.
		if s.Count() < 98 || s.Count() > 104 {
			t.Errorf("%d sent, want about 100", s.Count())
		}
		if late, _ := s.Latency().Max(); time.Duration(late) > 310*time.Millisecond {
			t.Errorf("one took %v from due, more than patience and service", time.Duration(late))
		}
		if lag, _ := s.Lag.Max(); lag != 0 {
			t.Errorf("waiting for the target was counted as lag of %v", time.Duration(lag))
		}
		if s.DroppedByLag != 0 {
			t.Errorf("%d drops are blamed on the generator", s.DroppedByLag)
		}
		end := report.Run.Cells[0].Rounds[0].End
		if end.MaxInFlight != 1 || end.Backlogged == 0 {
			t.Errorf("max in flight %d, backlogged %d", end.MaxInFlight, end.Backlogged)
		}
		if report.Exit != 1 {
			t.Errorf("exit %d for dropped arrivals, want 1", report.Exit)
		}
	})
}

func TestWorkersFollowTheConcurrencyOfTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(95*time.Millisecond), []string{"a"}, hold(100, 5*time.Second))
		report := runFake(t, f, p)
		users := map[int]bool{}
		for _, c := range f.calls {
			users[c.User] = true
		}
		// By Little's law 9.5 are in flight; one more waits for the next arrival.
		if n := len(users); n < 10 || n > 12 {
			t.Errorf("%d workers, want about 11", n)
		}
		if n := report.Run.Cells[0].Rounds[0].End.MaxInFlight; n != 10 {
			t.Errorf("at most %d in flight, want 10", n)
		}
	})
}

func TestOpenWarmupIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ph := hold(10, 2*time.Second)
		ph.Warmup.Duration = 4 * time.Second
		f, p := newFake(constant(time.Millisecond), []string{"a"}, ph)
		s := judged(t, runFake(t, f, p), "a")
		if s.Count() != 20 || len(f.arrivals("a")) != 20 || len(f.calls) != 40 {
			t.Errorf("%d recorded of %d calls, want 20 of 40", s.Count(), len(f.calls))
		}
	})
}
