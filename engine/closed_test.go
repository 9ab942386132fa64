package engine

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/plan"
)

func TestParallelUsersBeginTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(50*time.Millisecond), []string{"a"}, &plan.Phase{Kind: plan.Parallel, Users: 50, Count: 50})
		report := runFake(t, f, p)
		s := judged(t, report, "a")
		if s.Count() != 50 || s.OK != 50 {
			t.Fatalf("%d samples, %d ok", s.Count(), s.OK)
		}
		users := map[int]int{}
		for _, c := range f.calls {
			users[c.User]++
			if c.At != f.calls[0].At {
				t.Fatalf("user %d began %v after the first", c.User, c.At-f.calls[0].At)
			}
		}
		if len(users) != 50 {
			t.Errorf("%d users did the 50 iterations", len(users))
		}
		if s.Service() != s.Latency() {
			t.Error("in the closed model latency is not service time")
		}
	})
}

func TestSequentialWaitsForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(20*time.Millisecond), []string{"a"},
			&plan.Phase{Kind: plan.Sequential, Users: 1, Count: 10, Pause: plan.Span{Min: 5 * time.Millisecond, Max: 5 * time.Millisecond}})
		s := judged(t, runFake(t, f, p), "a")
		at := f.arrivals("a")
		if s.Count() != 10 {
			t.Fatalf("%d samples", s.Count())
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i] - at[i-1]; gap != 25*time.Millisecond {
				t.Errorf("call %d came %v after the one before, want 25ms", i, gap)
			}
		}
	})
}

func TestDurationEndsAClosedPhaseAndCountsWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(300*time.Millisecond), []string{"a"}, &plan.Phase{Kind: plan.Parallel, Users: 3, Duration: time.Second})
		s := judged(t, runFake(t, f, p), "a")
		if s.Count() != 12 {
			t.Errorf("%d samples, want 4 of each of 3 users", s.Count())
		}
	})
}

func TestUsersRampUpAndDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(100*time.Millisecond), []string{"a"}, &plan.Phase{Kind: plan.RampAndHold, Stages: []plan.Stage{
			{Name: "ramp", Ramp: true, To: 10, Length: 10 * time.Second},
			{From: 10, To: 10, Length: 10 * time.Second, Judged: true},
			{Name: "ramp", Ramp: true, From: 10, Length: 10 * time.Second},
		}})
		report := runFake(t, f, p)
		s := judged(t, report, "a")
		if s.Count() != 1000 {
			t.Errorf("%d samples in the hold, want 10 users x 100", s.Count())
		}
		if n := report.Run.Cells[0].Rounds[0].End.MaxInFlight; n != 10 {
			t.Errorf("%d at most in flight", n)
		}
	})
}

func TestWarmupUsesTheSameUsersAndIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(time.Millisecond), []string{"a"},
			&plan.Phase{Kind: plan.Parallel, Users: 4, Count: 4, Warmup: plan.Warmup{Count: 2}})
		s := judged(t, runFake(t, f, p), "a")
		if s.Count() != 4 || len(f.calls) != 12 {
			t.Errorf("%d recorded of %d calls, want 4 of 12", s.Count(), len(f.calls))
		}
	})
}

func TestRoundsAlternateTargetsAndPairInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(time.Millisecond), []string{"a", "b"}, &plan.Phase{Kind: plan.Sequential, Users: 1, Count: 3, Rounds: 3})
		report := runFake(t, f, p)
		judged(t, report, "a")
		var order []string
		draws := map[string][]uint64{}
		for i, c := range f.calls {
			if i%3 == 0 {
				order = append(order, c.Target)
			}
			if c.Iteration != int64(i%3) {
				t.Errorf("call %d is iteration %d", i, c.Iteration)
			}
			draws[c.Target] = append(draws[c.Target], c.Draw)
		}
		if want := []string{"a", "b", "b", "a", "a", "b"}; !slices.Equal(order, want) {
			t.Errorf("rounds ran in the order %v, want %v", order, want)
		}
		if !slices.Equal(draws["a"], draws["b"]) {
			t.Error("the targets did not get the same inputs")
		}
		if slices.Compact(slices.Sorted(slices.Values(draws["a"])))[0] == 0 || len(slices.Compact(slices.Sorted(slices.Values(draws["a"])))) != 9 {
			t.Error("iterations share inputs")
		}
	})
}

func TestOneSuccessAmongFailuresIsNotGreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(func(c fakeCall) (time.Duration, error) {
			if c.Iteration == 0 {
				return time.Millisecond, nil
			}
			return time.Millisecond, drivers.Fail(drivers.Refused, errors.New("connection refused"))
		}, []string{"a"}, &plan.Phase{Kind: plan.Sequential, Users: 1, Count: 100})
		report := runFake(t, f, p)
		s := judged(t, report, "a")
		if s.OK != 1 || s.Failures[drivers.Refused] != 99 {
			t.Errorf("%d ok, %d refused", s.OK, s.Failures[drivers.Refused])
		}
		if report.Exit != 1 {
			t.Errorf("exit %d, want 1", report.Exit)
		}
		if n := len(report.Run.Cells[0].Examples); n == 0 || n > 3 {
			t.Errorf("%d examples of the failure are kept", n)
		}
	})
}

func TestTimeoutsAreSamplesOfTheirOwnLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ph := &plan.Phase{Kind: plan.Sequential, Users: 1, Count: 20, Timeout: time.Second}
		f, p := newFake(constant(time.Hour), []string{"a"}, ph)
		s := judged(t, runFake(t, f, p), "a")
		least, _ := s.FailedLatency().Min()
		most, _ := s.FailedLatency().Max()
		if s.Failures[drivers.Timeout] != 20 || least != int64(time.Second) || most != int64(time.Second) {
			t.Errorf("%d timeouts of %v to %v", s.Failures[drivers.Timeout], time.Duration(least), time.Duration(most))
		}
		if _, ok := s.Latency().Percentile(50); ok {
			t.Error("p50 has data though nothing succeeded")
		}
	})
}
