package engine

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// assert adds an assertion to a plan as if it were written in its file.
func assert(t *testing.T, p *plan.Plan, text string, change ...func(*plan.Assertion)) {
	t.Helper()
	a, errs := expression.ParseAssertion(text, steps{"login"})
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	w := &plan.Assertion{Assertion: a, Text: text, Place: diag.Place{File: "plan.yaml", Line: 10 + len(p.Assertions), Column: 5}}
	for _, c := range change {
		c(w)
	}
	p.Assertions = append(p.Assertions, w)
}

func abortAfter(d time.Duration) func(*plan.Assertion) {
	return func(a *plan.Assertion) { a.Abort, a.After = true, d }
}

// failing fails every call from a moment on, for a while.
func failing(from, length time.Duration) func(fakeCall) (time.Duration, error) {
	return func(c fakeCall) (time.Duration, error) {
		if c.At >= from && c.At < from+length {
			return time.Millisecond, drivers.Fail(drivers.Refused, errors.New("connection refused"))
		}
		return time.Millisecond, nil
	}
}

func TestAbortEndsTheRunWithinTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(failing(5*time.Second, time.Hour), []string{"a", "b"}, hold(100, time.Minute))
		assert(t, p, "error_rate <= 50%", abortAfter(3*time.Second))
		began := time.Now()
		report := runFake(t, f, p)
		// From 5 s on all fail: at 10 s half of them have.
		if took := time.Since(began); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("the run took %v, want to be ended at about 10s", took)
		}
		if report.Exit != 1 || report.Err != nil || report.Run.End.Interrupted {
			t.Errorf("exit %d, %v, interrupted %v; want 1, and not interrupted", report.Exit, report.Err, report.Run.End.Interrupted)
		}
		if len(f.arrivals("b")) != 0 {
			t.Error("the next target was still measured")
		}
		v := report.Run.Verdicts[0]
		if v.Outcome != result.Failed || !strings.Contains(strings.Join(v.Detail, "\n"), "aborted the run 1") {
			t.Errorf("%s %q", v.Outcome, v.Detail)
		}
	})
}

// What is false only for a while and not any more when it is looked at for the first time ends nothing, and the final
// figures decide. Before there is a sample nothing is looked at.
func TestAbortWaitsForItsGraceAndTheFirstSample(t *testing.T) {
	for _, test := range []struct {
		name, text string
		after      time.Duration
		serve      func(fakeCall) (time.Duration, error)
		exit       int
	}{
		{"recovers within the grace time", "error_rate < 10%", 19 * time.Second, failing(0, time.Second), 0},
		{"the first answer comes after 3 s", "error_rate < 10%", 0, constant(3 * time.Second), 0},
		{"no grace", "error_rate < 10%", 0, failing(0, time.Second), 1},
		{"a count that is small at first", "failed < 150", 0, failing(0, time.Second), 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, p := newFake(test.serve, []string{"a"}, hold(100, 20*time.Second))
			assert(t, p, test.text, abortAfter(test.after))
			report := runFake(t, f, p)
			if report.Exit != test.exit {
				t.Errorf("%s: exit %d, want %d", test.name, report.Exit, test.exit)
			}
			if test.exit == 0 && judged(t, report, "a").Count() != 2000 {
				t.Errorf("%s: the run was cut short", test.name)
			}
		})
	}
}

// Calls that hang do not hold up an abort: they are cut off after a second.
func TestAbortDoesNotWaitForCallsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := func(c fakeCall) (time.Duration, error) {
			if c.Iteration%2 == 0 {
				return time.Hour, nil
			}
			return time.Millisecond, drivers.Fail(drivers.Reset, errors.New("connection reset"))
		}
		f, p := newFake(serve, []string{"a"}, hold(10, time.Minute))
		f.aborts = true
		assert(t, p, "failed < 10", abortAfter(0))
		began := time.Now()
		report := runFake(t, f, p)
		if took := time.Since(began); took > 5*time.Second || report.Exit != 1 {
			t.Errorf("took %v, exit %d", took, report.Exit)
		}
	})
}

// An assertion on a step says nothing of the scenarios that have no such step.
func TestAbortOfAStepLeavesOtherScenarios(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := func(c fakeCall) (time.Duration, error) {
			if c.Target == "login" {
				return 10 * time.Millisecond, nil
			}
			return 500 * time.Millisecond, nil
		}
		f, p := flowPlan(serve, hold(10, 5*time.Second), []string{"login", "slow"}, callOf(0), callOf(1))
		_, other := flowPlan(serve, hold(10, 5*time.Second), []string{"walk", "rest"}, callOf(0), callOf(1))
		other.Scenarios[0].Name = "other"
		p.Scenarios = append(p.Scenarios, other.Scenarios[0])
		assert(t, p, "login.p95 < 100ms", abortAfter(0))
		report := runFake(t, f, p)
		if n := len(f.calls); n != 4*50 || report.Exit != 0 {
			t.Errorf("%d calls of 200, exit %d", n, report.Exit)
		}
	})
}

// A condition that has to be broken for some seconds looks at each whole window: what is over before the first one is full
// ends nothing, and what lasts ends the run once a whole window of it has passed.
func TestAbortByWindow(t *testing.T) {
	slow := func(from, length time.Duration) func(fakeCall) (time.Duration, error) {
		return func(c fakeCall) (time.Duration, error) {
			if c.At >= from && c.At < from+length {
				return 300 * time.Millisecond, nil
			}
			return 10 * time.Millisecond, nil
		}
	}
	for _, test := range []struct {
		name  string
		serve func(fakeCall) (time.Duration, error)
		after time.Duration
		ends  time.Duration // 0: not before its end
		says  string
	}{
		{"for one second", slow(21*time.Second, time.Second), 0, 0, ""},
		{"for good", slow(21*time.Second, time.Hour), 0, 28 * time.Second, "from 21s to 28s"},
		{"after good seconds that the mean of all hides", slow(49*time.Second, time.Hour), 0, 56 * time.Second, "from 49s to 56s"},
		{"within the grace time, and not any more", slow(0, 14*time.Second), 20 * time.Second, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, p := newFake(test.serve, []string{"a"}, hold(20, time.Minute))
			assert(t, p, "mean < 150ms", abortAfter(test.after), func(a *plan.Assertion) { a.Window = 7 * time.Second })
			assert(t, p, "max < 150ms", func(a *plan.Assertion) { a.Warn, a.Window = true, 7*time.Second })
			assert(t, p, "offered_rps > 19/s")
			began := time.Now()
			report := runFake(t, f, p)
			took := time.Since(began)
			v := report.Run.Verdicts
			if test.ends == 0 {
				if took < 59*time.Second || strings.Contains(strings.Join(v[0].Detail, "\n"), "aborted") {
					t.Errorf("%s: ended after %v: %q", test.name, took, v[0].Detail)
				}
				return
			}
			if took < test.ends || took > test.ends+3*time.Second || report.Exit != 1 || v[0].Outcome != result.Failed {
				t.Errorf("%s: ended after %v with exit %d, %s", test.name, took, report.Exit, v[0].Outcome)
			}
			if !strings.Contains(strings.Join(v[0].Detail, "\n"), test.says) || v[0].Value != "300ms" {
				t.Errorf("%s: %s, %q", test.name, v[0].Value, v[0].Detail)
			}
			// Windows that were not measured are judged by nobody.
			if v[1].Outcome != result.Failed || !strings.HasPrefix(v[1].Window, strings.TrimPrefix(test.says, "from ")) {
				t.Errorf("%s: another window has %s in %q", test.name, v[1].Outcome, v[1].Window)
			}
			if v[2].Outcome != result.Passed {
				t.Errorf("%s: the rate until the end is %s", test.name, v[2].Value)
			}
		})
	}
}

// What is still under way when a window ends belongs to it: of calls that take two seconds a third would be missing, and of slow
// ones that succeed only the quick failures would be there.
func TestAbortWaitsForWhatWasDueInTheWindow(t *testing.T) {
	piledUp := hold(10, 30*time.Second)
	piledUp.MaxInFlight, piledUp.Patience = 17, 20*time.Second
	users := &plan.Phase{Kind: plan.Parallel, Users: 20, Duration: 30 * time.Second}
	for _, phase := range []*plan.Phase{hold(10, 30*time.Second), piledUp, users} {
		synctest.Test(t, func(t *testing.T) {
			serve := func(c fakeCall) (time.Duration, error) {
				if c.Iteration%10 == 9 {
					return time.Millisecond, drivers.Fail(drivers.Refused, errors.New("connection refused"))
				}
				return 2 * time.Second, nil
			}
			f, p := newFake(serve, []string{"a"}, phase)
			for _, text := range []string{"offered_rps >= 6/s", "error_rate < 20%"} {
				assert(t, p, text, abortAfter(0), func(a *plan.Assertion) { a.Window = 3 * time.Second })
			}
			report := runFake(t, f, p)
			if n := len(f.arrivals("a")); n < 290 || report.Exit != 0 {
				t.Errorf("%d calls, exit %d: %+v", n, report.Exit, report.Run.Verdicts)
			}
		})
	}
}

// Windows that were looked at are forgotten, and those that no assertion will look at are not kept at all.
func TestWatchForgetsWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := newFake(constant(0), []string{"a"}, hold(10, time.Hour))
		assert(t, p, "mean < 1s", abortAfter(0), func(a *plan.Assertion) { a.Window = time.Second })
		w := newWatch(p, &cellsOf(p)[0].Cell)
		s := &record.Sample{Step: record.Whole, DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1}
		for at := time.Duration(0); at < time.Hour+time.Second; at += 100 * time.Millisecond {
			s.Due, s.Start, s.End = int64(at), int64(at), int64(at+time.Millisecond)
			w.add(0, s)
			w.probed(at, 0, 0)
			w.probed(at-2*time.Second, time.Second, 0) // as the probe was held up
			if a, why := w.look(at, at); a != nil {
				t.Fatal(why)
			}
			if n := len(w.windows); n > 12 {
				t.Fatalf("%d windows are kept after %v", n, at)
			}
		}
	})
}

func TestWindowsFindTheDipThatTheWholeHides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := func(c fakeCall) (time.Duration, error) {
			if c.At > 21*time.Second && c.At < 22*time.Second {
				return 300 * time.Millisecond, nil
			}
			return 10 * time.Millisecond, nil
		}
		f, p := newFake(serve, []string{"a"}, hold(10, 40*time.Second))
		assert(t, p, "p95 < 100ms")
		assert(t, p, "p90 <= 300ms", func(a *plan.Assertion) { a.Window = 10 * time.Second })
		assert(t, p, "p95 < 100ms", func(a *plan.Assertion) { a.Window = 10 * time.Second })
		report := runFake(t, f, p)
		v := report.Run.Verdicts
		if v[0].Outcome != result.Passed || v[1].Outcome != result.Passed || v[2].Outcome != result.Failed {
			t.Errorf("%s, %s, %s", v[0].Outcome, v[1].Outcome, v[2].Outcome)
		}
		if v[2].Window != "20s to 30s" || v[2].Value != "300ms" || v[2].N != 100 {
			t.Errorf("the worst window is %s with %s, n %d", v[2].Window, v[2].Value, v[2].N)
		}
	})
}
