package engine

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

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
			// Of each 5 s, 1 s of arrivals wait 0 to 1 s, evenly: the ideal p90 is 500 ms, p99 950 ms.
			for _, want := range []struct {
				p       float64
				latency time.Duration
			}{{90, 505 * time.Millisecond}, {99, 955 * time.Millisecond}, {99.9, 1000 * time.Millisecond}} {
				got, _ := s.Latency().Percentile(want.p)
				tolerance := max(0.01*float64(want.latency), float64(10*time.Millisecond))
				if limit < 1000 {
					// With 50 workers the backlog of a second drains at 10 000/s, another 100 ms.
					tolerance += float64(110 * time.Millisecond)
				}
				if math.Abs(float64(got)-float64(want.latency)) > tolerance {
					t.Errorf("%d in flight: p%v is %v, want about %v", limit, want.p, time.Duration(got), want.latency)
				}
			}
			service, _ := s.Service().Percentile(90)
			if limit == 50 && time.Duration(service) > 100*time.Millisecond {
				t.Errorf("p90 of the service time is %v: the stall should show in the latency only", time.Duration(service))
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
