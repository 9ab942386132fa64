package engine

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// aroundPlan is a plan with steps before and after, of the plan and of its scenario, against two targets.
func aroundPlan(serve func(fakeCall) (time.Duration, error)) (*fake, *plan.Plan) {
	f, p := newFake(serve, []string{"a", "b"}, &plan.Phase{Kind: plan.Sequential, Users: 1, Count: 2})
	steps := func(name string) *plan.Scenario {
		st := &plan.Step{Name: name}
		for _, t := range p.Targets {
			st.Actions = append(st.Actions, plan.Action{Driver: "fake", Call: fakeTarget(name + "." + t.Name)})
		}
		return &plan.Scenario{Name: name, Steps: []*plan.Step{st}}
	}
	p.Before, p.After = steps("first"), steps("last")
	p.Scenarios[0].Before, p.Scenarios[0].After = steps("before"), steps("after")
	return f, p
}

func TestStepsAroundALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := aroundPlan(constant(time.Millisecond))
		report := runFake(t, f, p)
		if report.Err != nil || report.Exit != 0 {
			t.Fatal(report.Exit, report.Err)
		}
		if want := "first.a first.b before.a before.b a a b b after.a after.b last.a last.b"; f.ran() != want {
			t.Errorf("ran %s, want %s", f.ran(), want)
		}
		if n := judged(t, report, "a").Count(); n != 2 {
			t.Errorf("%d samples: what is around the load is not measured", n)
		}
	})
}

func TestFailureBeforeALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := aroundPlan(func(c fakeCall) (time.Duration, error) {
			if c.Target == "before.b" {
				return 0, drivers.Fail(drivers.Reset, errors.New("no such table"))
			}
			return time.Millisecond, nil
		})
		report := runFake(t, f, p)
		if report.Exit != 3 || report.Err == nil || !strings.Contains(report.Err.Error(), "before, target b: before: no such table") {
			t.Errorf("exit %d, %v", report.Exit, report.Err)
		}
		if want := "first.a first.b before.a before.b after.a after.b last.a last.b"; f.ran() != want {
			t.Errorf("ran %s, want %s", f.ran(), want)
		}
	})
}

// What was measured is judged even if what comes behind the load fails, but the run has not gone well.
func TestFailureAfterALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := aroundPlan(func(c fakeCall) (time.Duration, error) {
			if c.Target == "last.a" {
				return 0, drivers.Fail(drivers.Reset, errors.New("still in use"))
			}
			return time.Millisecond, nil
		})
		report := runFake(t, f, p)
		if report.Exit != 3 || report.Err == nil || !strings.Contains(report.Err.Error(), "still in use") {
			t.Errorf("exit %d, %v", report.Exit, report.Err)
		}
		if len(report.Run.Verdicts) == 0 {
			t.Error("nothing was judged")
		}
	})
}

func TestAfterIsRunWhenInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := aroundPlan(constant(100 * time.Millisecond))
		p.Scenarios[0].Phases[0].Count = 1000
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		report := runFake(t, f, p, func(o *Options) { o.Stop = stop })
		if report.Exit != 130 || !strings.HasSuffix(f.ran(), "after.a after.b last.a last.b") {
			t.Errorf("exit %d, ran %s", report.Exit, f.ran()[max(0, len(f.ran())-60):])
		}
	})
}

func TestBackgroundRunsAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := func(c fakeCall) (time.Duration, error) {
			if strings.HasPrefix(c.Target, "bulk") {
				return 400 * time.Millisecond, nil
			}
			return 10 * time.Millisecond, nil
		}
		f, p := newFake(serve, []string{"a", "b"}, &plan.Phase{Kind: plan.Sequential, Users: 1, Duration: time.Second, Rounds: 2})
		bulk := &plan.Scenario{Name: "bulk", Timeout: time.Minute, IsBackground: true, Steps: []*plan.Step{{}}}
		for _, target := range p.Targets {
			bulk.Steps[0].Actions = append(bulk.Steps[0].Actions, plan.Action{Driver: "fake", Call: fakeTarget("bulk." + target.Name)})
		}
		p.Scenarios = append(p.Scenarios, bulk)
		p.Scenarios[0].Phases[0].Background = &plan.Background{Scenario: bulk, Users: 2}
		report := runFake(t, f, p)
		if report.Err != nil || report.Exit != 0 {
			t.Fatal(report.Exit, report.Err)
		}
		if len(report.Run.Cells) != 4 {
			t.Fatalf("%d cells", len(report.Run.Cells))
		}
		for _, target := range []string{"a", "b"} {
			c := report.Run.Find("bulk", "phase", target)
			if c == nil || c.Kind != "background" {
				t.Fatalf("no cell of what runs along on %s", target)
			}
			// Two users, three calls of 400 ms in each second, two rounds; the third ends behind the phase and counts.
			if s := c.Stats(result.Pooled, result.Judged, record.Whole); s.OK != 12 {
				t.Errorf("%d calls ran along on %s, want 12", s.OK, target)
			}
		}
		if got := judged(t, report, "a").OK; got != 200 {
			t.Errorf("%d calls of the phase itself, want 200", got)
		}
	})
}

func TestRowsThatAreUsedUpEndThePhase(t *testing.T) {
	for name, ph := range map[string]*plan.Phase{
		"closed":   {Kind: plan.Parallel, Users: 3, Duration: time.Minute},
		"open":     hold(100, time.Minute),
		"by users": {Kind: plan.RampAndHold, Stages: []plan.Stage{{From: 3, To: 3, Length: time.Minute, Judged: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, p := newFake(constant(10*time.Millisecond), []string{"a"}, ph)
				p.Scenarios[0].Most, p.Scenarios[0].MostBy = 20, "users"
				report := runFake(t, f, p)
				if n := judged(t, report, "a").Count(); n != 20 {
					t.Errorf("%d iterations with 20 rows", n)
				}
				notes := report.Run.Cells[0].Rounds[0].End.Notes
				if len(notes) != 1 || notes[0] != "the phase ended early: the 20 rows of users, which are used once, were used up" {
					t.Errorf("notes %q", notes)
				}
			})
		})
	}
}

func TestTransactionIsTakenBack(t *testing.T) {
	for name, test := range map[string]struct {
		fails string
		goOn  bool
		want  string
	}{
		"committed":    {"", false, "begin one two commit next"},
		"step fails":   {"one", false, "begin one rollback"},
		"step goes on": {"one", true, "begin one two rollback next"},
		"begin fails":  {"begin", false, "begin rollback"},
		"commit fails": {"commit", false, "begin one two commit"},
		"behind it":    {"next", false, "begin one two commit next"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				serve := func(c fakeCall) (time.Duration, error) {
					if c.Target == test.fails {
						return time.Millisecond, drivers.Fail(drivers.Status, errors.New("refused"))
					}
					return time.Millisecond, nil
				}
				group := groupOf(plan.NoCall, 1, callOf(0), callOf(1))
				group.Transaction = &plan.Transaction{Begin: 3, Commit: 4, Rollback: 5}
				f, p := flowPlan(serve, once(), []string{"one", "two", "next", "begin", "commit"}, group, callOf(2))
				s := p.Scenarios[0]
				s.Steps[0].Continue = test.goOn
				s.Unseen = []*plan.Step{{Actions: []plan.Action{{Driver: "fake", Call: fakeTarget("rollback")}}}}
				report := runFake(t, f, p)
				if f.ran() != test.want {
					t.Errorf("ran %s, want %s", f.ran(), test.want)
				}
				if failed := judged(t, report, "a").Failed; (failed == 1) != (test.fails != "") {
					t.Errorf("%d failed", failed)
				}
			})
		})
	}
}
