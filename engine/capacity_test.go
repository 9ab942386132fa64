package engine

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/result"
)

// steps are the names of a plan that conditions need, if any.
type steps []string

func (s steps) Kind(name string) (expression.Kind, bool) {
	return expression.Step, slices.Contains(s, name)
}
func (s steps) Within(string, string) bool  { return false }
func (s steps) All() []string               { return s }
func (s steps) Root(string) expression.Root { return nil }

func capacity(t *testing.T, from, to float64, hold time.Duration, while string) *plan.Phase {
	t.Helper()
	w, errs := expression.ParseAssertion(while, steps{})
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	return &plan.Phase{Kind: plan.CapacitySearch, Open: true, Timeout: 5 * time.Second, Capacity: &plan.Capacity{
		From: from, To: to, Hold: hold, While: w, Precision: 0.05,
	}}
}

// slots is a server that works on so many calls at a time, in the order in which they come, each for the same time.
func slots(n int, work time.Duration) func(fakeCall) (time.Duration, error) {
	var mu sync.Mutex
	free := make([]time.Duration, n)
	return func(c fakeCall) (time.Duration, error) {
		mu.Lock()
		defer mu.Unlock()
		first := 0
		for i := range free {
			if free[i] < free[first] {
				first = i
			}
		}
		done := max(free[first], c.At) + work
		free[first] = done
		return done - c.At, nil
	}
}

func TestCapacityFindsTheLimitOfAService(t *testing.T) {
	for _, poisson := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ph := capacity(t, 100, 2000, 10*time.Second, "within(1s) >= 99%")
			ph.Poisson = poisson
			f, p := newFake(slots(60, 110*time.Millisecond), []string{"a"}, ph)
			report := runFake(t, f, p)
			if report.Err != nil {
				t.Fatal(report.Err)
			}
			c := report.Run.Cells[0]
			limit := 60 / 0.110
			held, ok := c.RateHeld(result.Pooled)
			if !ok || math.Abs(held-limit) > 0.05*limit {
				t.Errorf("poisson %v: rate held is %v, want %v within 5 %%", poisson, held, limit)
			}
			answer := c.Rounds[0].Capacity
			if answer.Failed <= held || answer.Failed > 1.06*held || !strings.Contains(answer.Reason, "backlog grew") {
				t.Errorf("the rate above is %v, because %q", answer.Failed, answer.Reason)
			}
			if want := held * 0.110; answer.InFlight < 0.95*want || answer.InFlight > 1.5*want {
				t.Errorf("%v in flight, want about %v", answer.InFlight, want)
			}
			confirmed := judged(t, report, "a")
			if want := int64(held * 10); confirmed.Count() < want-2 || confirmed.Count() > want+2 {
				if !poisson {
					t.Errorf("the confirming hold has %d samples, want about %d", confirmed.Count(), want)
				}
			}
			if report.Exit != 0 {
				t.Errorf("exit %d", report.Exit)
			}
		})
	}
}

// A phase whose lowest rate fails has no rate, and its run fails: nothing was held.
func TestCapacityWithoutARateThatHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(slots(1, 100*time.Millisecond), []string{"a"}, capacity(t, 20, 200, 5*time.Second, "p95 < 500ms"))
		report := runFake(t, f, p)
		c := report.Run.Cells[0]
		if held, ok := c.RateHeld(result.Pooled); ok || report.Exit != 1 {
			t.Errorf("held %v, exit %d", held, report.Exit)
		}
		a := c.Rounds[0].Capacity
		if a.Outcome != result.Failed || a.Failed != 20 || len(c.Trials) != 2 || !strings.Contains(a.Reason, "p95 < 500ms: p95 was") {
			t.Errorf("%+v after %d trials", a, len(c.Trials))
		}
	})
}

// A target that holds the highest rate of the plan has that one, and no rate above it.
func TestCapacityUpToTheHighestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(5*time.Millisecond), []string{"a", "b"}, capacity(t, 10, 100, 5*time.Second, "p95 < 500ms"))
		report := runFake(t, f, p)
		for _, c := range report.Run.Cells {
			held, ok := c.RateHeld(result.Pooled)
			if !ok || held != 100 || c.Rounds[0].Capacity.Failed != 0 || report.Exit != 0 {
				t.Errorf("%s: held %v, exit %d, %+v", c.Target, held, report.Exit, c.Rounds[0].Capacity)
			}
		}
	})
}

// A hold that fails by chance once does not decide the answer: it is tried again, and a third time when that contradicts.
func TestCapacityIsNotDecidedByOneBadHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steady := slots(60, 110*time.Millisecond)
		f, p := newFake(nil, []string{"a"}, capacity(t, 100, 2000, 10*time.Second, "within(1s) >= 99%"))
		f.serve = func(c fakeCall) (time.Duration, error) {
			// In the second hold, at 200/s, everything takes long.
			if c.At > 11*time.Second && c.At < 21*time.Second {
				return 2 * time.Second, nil
			}
			return steady(c)
		}
		report := runFake(t, f, p)
		held, _ := report.Run.Cells[0].RateHeld(result.Pooled)
		if limit := 60 / 0.110; math.Abs(held-limit) > 0.05*limit {
			t.Errorf("rate held is %v, want %v within 5 %%", held, limit)
		}
	})
}

// A generator that is too late to send ends the search, and nobody blames the target.
func TestCapacityOfTheGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(5*time.Millisecond), []string{"a"}, capacity(t, 100, 2000, 5*time.Second, "p95 < 20ms"))
		report := runFake(t, f, p, func(o *Options) {
			o.Clock = clock.Late(func(at time.Duration) time.Duration {
				if at > 12*time.Second { // from the third hold on
					return 40 * time.Millisecond
				}
				return 0
			})
		})
		a := report.Run.Cells[0].Rounds[0].Capacity
		if a.Outcome != result.Inconclusive || !strings.Contains(a.Reason, "the generator is the limit") || report.Exit != 3 {
			t.Errorf("exit %d, %+v", report.Exit, a)
		}
	})
}

// Answers that come late because the generator is held up are no limit of the target's.
func TestCapacityOfAGeneratorThatIsHeldUp(t *testing.T) {
	late := func(at time.Duration) time.Duration {
		if into := at % (100 * time.Millisecond); at > 12*time.Second && into < 30*time.Millisecond {
			return 30*time.Millisecond - into
		}
		return 0
	}
	for _, held := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			serve := func(c fakeCall) (time.Duration, error) {
				return 5*time.Millisecond + late(c.At+5*time.Millisecond), nil
			}
			f, p := newFake(serve, []string{"a"}, capacity(t, 100, 2000, 5*time.Second, "p95 < 20ms"))
			report := runFake(t, f, p, func(o *Options) {
				if held {
					o.Clock = clock.Late(late)
				}
			})
			a := report.Run.Cells[0].Rounds[0].Capacity
			if inconclusive := a.Outcome == result.Inconclusive; inconclusive != held {
				t.Errorf("held up %v: exit %d, %+v", held, report.Exit, a)
			}
		})
	}
}

func TestShapeOfASearch(t *testing.T) {
	if got := Shape(capacity(t, 100, 2000, 10*time.Second, "within(1s) >= 99%")); got != "100/s to 2000/s, holds of 10s, while within(1s) >= 99%" {
		t.Error(got)
	}
}

func TestSearchSettlesBothEnds(t *testing.T) {
	s := &search{from: 10, to: 1000, precision: 0.05}
	limit := 333.0
	tried := map[float64]int{}
	for n := 0; ; n++ {
		rate, more := s.next()
		if !more {
			break
		}
		if n > 40 {
			t.Fatal("the search does not end")
		}
		tried[rate]++
		s.note(rate, rate <= limit)
	}
	low, high := s.bracket()
	if low.rate > limit || high.rate <= limit || high.rate > 1.05*low.rate || tried[low.rate] != 2 || tried[high.rate] != 2 {
		t.Errorf("%+v and %+v", low, high)
	}
}
