package engine

import (
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/result"
)

// noNames is a plan of which conditions need no names.
type noNames struct{}

func (noNames) Kind(string) (expression.Kind, bool) { return 0, false }
func (noNames) All() []string                       { return nil }
func (noNames) Root(string) expression.Root         { return nil }

func capacity(t *testing.T, from, to float64, hold time.Duration, while string) *plan.Phase {
	t.Helper()
	w, errs := expression.ParseAssertion(while, noNames{})
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
