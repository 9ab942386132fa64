package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// flowPlan makes a plan of steps, each with an endpoint of its own name, against one target.
func flowPlan(serve func(fakeCall) (time.Duration, error), ph *plan.Phase, steps []string, flow ...*plan.Part) (*fake, *plan.Plan) {
	f, p := newFake(serve, []string{"a"}, ph)
	s := p.Scenarios[0]
	s.Steps, s.Flow = nil, flow
	for _, name := range steps {
		s.Steps = append(s.Steps, &plan.Step{Name: name, Actions: []plan.Action{{Driver: "fake", Call: fakeTarget(name)}}})
	}
	return f, p
}

func callOf(i int) *plan.Part {
	return &plan.Part{Call: i, Sample: plan.NoCall, Repeat: 1}
}

func pauseOf(d time.Duration) *plan.Part {
	return &plan.Part{Call: plan.NoCall, Sample: plan.NoCall, Repeat: 1, Pause: plan.Span{Min: d, Max: d}}
}

func groupOf(sample, repeat int, parts ...*plan.Part) *plan.Part {
	return &plan.Part{Call: plan.NoCall, Sample: sample, Repeat: repeat, Parts: parts}
}

func once() *plan.Phase { return &plan.Phase{Kind: plan.Single, Users: 1, Count: 1} }

// ran lists the endpoints that were called, in order.
func (f *fake) ran() string {
	var names []string
	for _, c := range f.calls {
		names = append(names, c.Target)
	}
	return strings.Join(names, " ")
}

func stepStats(t *testing.T, r Report, step string) *record.Stats {
	t.Helper()
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	c := r.Run.Cells[0]
	i := slices.IndexFunc(c.Steps, func(s result.Step) bool { return s.Name == step })
	if i < 0 {
		t.Fatalf("no step %s in %v", step, c.Steps)
	}
	return c.Stats(result.Pooled, result.Judged, i)
}

func mean(t *testing.T, s *record.Stats) time.Duration {
	t.Helper()
	v, ok := s.Latency().Mean()
	if !ok {
		t.Fatal("no data")
	}
	return time.Duration(v)
}

func TestPausesAreNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := flowPlan(constant(100*time.Millisecond), once(), []string{"login", "buy"},
			callOf(0), pauseOf(2*time.Second), groupOf(2, 2, callOf(1), pauseOf(time.Second)))
		p.Scenarios[0].Groups = []string{"basket"}
		report := runFake(t, f, p)
		if f.ran() != "login buy buy" {
			t.Errorf("ran %s", f.ran())
		}
		if got := mean(t, judged(t, report, "a")); got != 300*time.Millisecond {
			t.Errorf("the iteration took %v, want the three calls", got)
		}
		if got := mean(t, stepStats(t, report, "basket")); got != 100*time.Millisecond || stepStats(t, report, "basket").OK != 2 {
			t.Errorf("the group took %v, want its one call, twice", got)
		}
		if got := mean(t, stepStats(t, report, "login")); got != 100*time.Millisecond {
			t.Errorf("login took %v", got)
		}
		if got := report.Run.Cells[0].Rounds[0].End.Length; got != 4300*time.Millisecond {
			t.Errorf("the round took %v, want the pauses too", got)
		}
	})
}

func TestFailedStepEndsTheIteration(t *testing.T) {
	for name, test := range map[string]struct {
		goesOn bool
		want   string
	}{"end": {false, "first"}, "continue": {true, "first second"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				serve := func(c fakeCall) (time.Duration, error) {
					if c.Target == "first" {
						return time.Millisecond, drivers.Fail(drivers.Reset, errors.New("cut"))
					}
					return time.Millisecond, nil
				}
				f, p := flowPlan(serve, once(), []string{"first", "second"}, callOf(0), callOf(1))
				p.Scenarios[0].Steps[0].Continue = test.goesOn
				report := runFake(t, f, p)
				if f.ran() != test.want {
					t.Errorf("ran %s, want %s", f.ran(), test.want)
				}
				if s := judged(t, report, "a"); s.Failed != 1 || s.OK != 0 {
					t.Errorf("%d ok, %d failed: the iteration has failed", s.OK, s.Failed)
				}
				if s := stepStats(t, report, "second"); test.goesOn != (s != nil && s.OK == 1) {
					t.Errorf("second step: %+v", s)
				}
			})
		})
	}
}

func TestMixGivesEveryTargetTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(time.Millisecond), []string{"a", "b"}, &plan.Phase{Kind: plan.Parallel, Users: 4, Count: 40})
		s := p.Scenarios[0]
		s.Steps = nil
		for _, name := range []string{"x", "y"} {
			st := &plan.Step{Name: name}
			for _, target := range []string{"a", "b"} {
				st.Actions = append(st.Actions, plan.Action{Driver: "fake", Call: fakeTarget(target + name)})
			}
			s.Steps = append(s.Steps, st)
		}
		mix := plan.NewMix([]*plan.Part{callOf(0), callOf(1)}, []int{7, 3})
		s.Flow = []*plan.Part{{Call: plan.NoCall, Sample: plan.NoCall, Repeat: 1, Mix: mix}}
		if r := runFake(t, f, p); r.Err != nil {
			t.Fatal(r.Err)
		}
		by := map[string][]int64{}
		for _, c := range f.calls {
			by[c.Target] = append(by[c.Target], c.Iteration)
		}
		for k := range by {
			slices.Sort(by[k])
		}
		if len(by["ax"]) != 28 || len(by["ay"]) != 12 {
			t.Errorf("%d and %d of 40, want 28 and 12", len(by["ax"]), len(by["ay"]))
		}
		if !slices.Equal(by["ax"], by["bx"]) || !slices.Equal(by["ay"], by["by"]) {
			t.Error("the targets were given different branches")
		}
	})
}

// answerOf lets the fake answer: token is the number of the iteration.
type answerOf struct{ iteration int64 }

func (a answerOf) Number(string) (float64, bool) { return 0, false }
func (a answerOf) Value(name string) (any, error) {
	if name == "missing" {
		return nil, nil
	}
	return fmt.Sprintf("token-%d", a.iteration), nil
}

func TestCapturedValuesReachLaterSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := flowPlan(constant(time.Millisecond), &plan.Phase{Kind: plan.Parallel, Users: 2, Count: 6}, []string{"login", "use"}, callOf(0), callOf(1))
		f.answers = true
		s := p.Scenarios[0]
		names := []drivers.Name{{Name: "token", Kind: drivers.TextName}, {Name: "missing", Kind: drivers.AnyName}}
		v, errs := expression.ParseCapture("token", names, nil)
		if errs != nil {
			t.Fatal(errs[0])
		}
		s.Captures = []string{"mine"}
		s.Steps[0].Actions[0].Captures = []plan.Capture{{Name: "mine", Value: v}}
		report := runFake(t, f, p)
		if got := judged(t, report, "a").OK; got != 6 {
			t.Fatalf("%d ok", got)
		}
		for _, c := range f.calls {
			want := any(nil)
			if c.Target == "use" {
				want = fmt.Sprintf("token-%d", c.Iteration)
			}
			if c.Value != want {
				t.Errorf("iteration %d: %s was given %v", c.Iteration, c.Target, c.Value)
			}
		}

		// What an answer does not have fails the step that was to capture it.
		v, errs = expression.ParseCapture("missing", names, nil)
		if errs != nil {
			t.Fatal(errs[0])
		}
		s.Steps[0].Actions[0].Captures[0].Value = v
		f.calls = nil
		report = runFake(t, f, p)
		if s := judged(t, report, "a"); s.Failed != 6 || strings.Contains(f.ran(), "use") {
			t.Errorf("%d failed; ran %s", s.Failed, f.ran())
		}
		if x := report.Run.Cells[0].Examples; len(x) == 0 || x[0].Text != "capture mine: missing is not in the answer" {
			t.Errorf("examples %v", x)
		}
	})
}

func TestConditionSkipsAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := flowPlan(constant(time.Millisecond), &plan.Phase{Kind: plan.Sequential, Users: 1, Count: 4}, []string{"always", "even"}, callOf(0), callOf(1))
		v, errs := expression.ParseCondition("iteration % 2 == 0", &expression.Scope{})
		if errs != nil {
			t.Fatal(errs[0])
		}
		p.Scenarios[0].Flow[1].When = []*expression.Value{v}
		report := runFake(t, f, p)
		if f.ran() != "always even always always even always" {
			t.Errorf("ran %s", f.ran())
		}
		if judged(t, report, "a").OK != 4 {
			t.Error("a skipped step fails nothing")
		}
	})
}

func TestFlowDoesNotAllocate(t *testing.T) {
	f, p := flowPlan(constant(0), once(), []string{"x", "y"}, callOf(0), groupOf(2, 2, callOf(1)))
	p.Scenarios[0].Groups = []string{"g"}
	f.calls = make([]fakeCall, 0, 1<<20)
	f.protocols = map[string]string{"x": "HTTP/2", "y": "PostgreSQL"}
	rd := newTestRound(t, p, Options{Drivers: map[string]drivers.Driver{"fake": f}})
	u, err := rd.newUser(0)
	if err != nil {
		t.Fatal(err)
	}
	var buffer []record.Sample
	k := int64(0)
	iterate := func() {
		for range 100 {
			u.iterate(k, rd.now(), 0, true)
			k++
		}
		buffer = u.book.Drain(buffer[:0])
	}
	iterate()
	if n := testing.AllocsPerRun(50, iterate) / 100; n > 0.05 {
		t.Errorf("%v allocations an iteration, want none", n)
	}
	if got := rd.users.protocols(); !slices.Equal(got, []string{"HTTP/2", "PostgreSQL"}) {
		t.Errorf("the steps spoke %v", got)
	}
}

// Every step has all of its samples, and the iteration is as long as its steps together.
func TestStepsAreCountedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := func(c fakeCall) (time.Duration, error) {
			if c.Target == "first" {
				return time.Duration(c.Iteration+1) * time.Millisecond, nil
			}
			return 5 * time.Millisecond, nil
		}
		ph := &plan.Phase{Kind: plan.Sequential, Users: 1, Count: 100}
		f, p := flowPlan(serve, ph, []string{"first", "second"}, callOf(0), callOf(1))
		report := runFake(t, f, p)
		for step, want := range map[string][2]time.Duration{
			"first": {time.Millisecond, 100 * time.Millisecond}, "second": {5 * time.Millisecond, 5 * time.Millisecond},
		} {
			s := stepStats(t, report, step)
			least, _ := s.Latency().Min()
			most, _ := s.Latency().Max()
			if s.Count() != 100 || time.Duration(least) != want[0] || time.Duration(most) != want[1] {
				t.Errorf("%s: %d samples from %v to %v, want 100 from %v to %v", step, s.Count(), time.Duration(least), time.Duration(most), want[0], want[1])
			}
		}
		s := judged(t, report, "a")
		most, _ := s.Latency().Max()
		if s.Count() != 100 || time.Duration(most) != 105*time.Millisecond {
			t.Errorf("%d iterations of at most %v, want 100 of 105ms", s.Count(), time.Duration(most))
		}
	})
}
