package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// fake is a driver whose server is a function: it is told of each call and says how long it takes and how it fails.
type fake struct {
	serve func(c fakeCall) (time.Duration, error)
	probe func(endpoint string) error
	began time.Time
	// aborts lets calls end when the context does; else they run to their deadline.
	aborts bool

	mu    sync.Mutex
	calls []fakeCall
	open  int // sessions
	conns int // clients

	answers bool // calls are answered with something to capture
	reached func(target string) []drivers.Address
	// protocols are what endpoints speak, by name.
	protocols map[string]string
	// drip is how many bytes arrive in the middle of each second of a call, while it runs.
	drip []int64
}

// fakeCall is one call as the server saw it.
type fakeCall struct {
	At        time.Duration // since the fake was made
	Target    string
	Iteration int64
	User      int
	Draw      uint64
	Value     any // the first captured one
}

func (f *fake) Fields() []drivers.Field { return nil }
func (f *fake) Answer() []drivers.Name  { return nil }

type fakeTarget string

func (t fakeTarget) Endpoint() drivers.Endpoint {
	return drivers.Endpoint{Name: string(t), Key: string(t), Config: string(t)}
}

func (f *fake) Prepare(*drivers.Op) (drivers.Call, error) { return nil, errors.New("not by a plan") }

func (f *fake) Connect(_ context.Context, ep drivers.Endpoint, _ drivers.Pool) (drivers.Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns++
	return &fakeClient{f, ep.Name}, nil
}

type fakeClient struct {
	*fake
	target string
}

func (c *fakeClient) Probe(context.Context) error {
	if c.probe == nil {
		return nil
	}
	return c.probe(c.target)
}

func (c *fakeClient) Addresses() []drivers.Address {
	if c.reached == nil {
		return nil
	}
	return c.reached(c.target)
}

func (c *fakeClient) Open(context.Context) (drivers.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	return &fakeSession{c}, nil
}

func (c *fakeClient) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns--
	return nil
}

type fakeSession struct{ *fakeClient }

func (s *fakeSession) Do(ctx context.Context, _ drivers.Call, in *drivers.Input, out *drivers.Outcome) error {
	call := fakeCall{At: time.Since(s.began), Target: s.target, Iteration: in.Iteration, User: in.User, Draw: in.Random()}
	if len(in.Values) > 0 {
		call.Value = in.Values[0]
	}
	if s.answers {
		out.Answer = answerOf{in.Iteration}
	}
	out.Protocol = s.protocols[s.target]
	s.mu.Lock()
	s.calls = append(s.calls, call)
	s.mu.Unlock()
	for _, n := range s.drip {
		time.Sleep(time.Second / 2)
		in.Received.Add(n)
		out.BytesIn += n
		time.Sleep(time.Second / 2)
	}
	took, err := s.serve(call)
	if left := time.Until(in.Deadline); took > left {
		took, err = left, drivers.Fail(drivers.Timeout, errors.New("the deadline passed"))
	}
	if s.aborts {
		select {
		case <-time.After(took):
		case <-ctx.Done():
		}
	} else {
		time.Sleep(took)
	}
	if ctx.Err() != nil {
		return drivers.Fail(drivers.Aborted, ctx.Err())
	}
	out.TTFB, out.Transfer = took, 0
	out.Success, out.Status = true, 200
	if s.drip == nil {
		out.BytesIn = 100
		in.Received.Add(100)
	}
	return err
}

func (s *fakeSession) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	return nil
}

// arrivals returns when the recorded calls of a target reached the server, in order.
func (f *fake) arrivals(target string) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var times []time.Duration
	for _, c := range f.calls {
		if c.Target == target && c.Iteration < warmupIteration>>1 {
			times = append(times, c.At)
		}
	}
	slices.Sort(times)
	return times
}

// constant answers every call after the same time.
func constant(d time.Duration) func(fakeCall) (time.Duration, error) {
	return func(fakeCall) (time.Duration, error) { return d, nil }
}

// newFake makes the driver, and a plan of one scenario whose phases run against the targets named.
func newFake(serve func(fakeCall) (time.Duration, error), targets []string, phases ...*plan.Phase) (*fake, *plan.Plan) {
	f := &fake{serve: serve, began: time.Now()}
	step := &plan.Step{}
	p := &plan.Plan{Name: "fake", Results: plan.Results{Samples: true}, Preflight: true}
	for _, t := range targets {
		p.Targets = append(p.Targets, plan.Target{Name: t})
		step.Actions = append(step.Actions, plan.Action{Driver: "fake", Call: fakeTarget(t)})
	}
	for _, ph := range phases {
		ph.Rounds = max(1, ph.Rounds)
		if ph.Timeout == 0 {
			ph.Timeout = 30 * time.Second
		}
		if ph.Patience == 0 {
			ph.Patience = ph.Timeout
		}
		if ph.Name == "" {
			ph.Name = "phase"
		}
	}
	p.Scenarios = []*plan.Scenario{{Name: "scenario", Steps: []*plan.Step{step}, Phases: phases}}
	return f, p
}

// runFake runs a plan in a folder of its own; inside a synctest bubble it takes no time.
func runFake(t *testing.T, f *fake, p *plan.Plan, change ...func(*Options)) Report {
	t.Helper()
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p.Results.Path = filepath.Join(dir, "results.msgpack")
	opt := Options{Drivers: map[string]drivers.Driver{"fake": f}, Tool: "test", Seed: 1, Clock: clock.Plain()}
	// What the processors do in real time has no part in virtual time.
	opt.vitals = func() vitals { return vitals{time: time.Now()} }
	for _, c := range change {
		c(&opt)
	}
	report := Run(t.Context(), p, opt)
	if f.open != 0 || f.conns != 0 {
		t.Errorf("%d sessions and %d clients were left open", f.open, f.conns)
	}
	return report
}

// judged is the statistics of the judged stages of a target's only cell.
func judged(t *testing.T, r Report, target string) *record.Stats {
	t.Helper()
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	c := r.Run.Find("scenario", "phase", target)
	if c == nil {
		t.Fatalf("no cell of %s", target)
	}
	return c.Stats(result.Pooled, result.Judged, record.Whole)
}

// hold is a phase of a constant rate.
func hold(rate float64, length time.Duration) *plan.Phase {
	return &plan.Phase{Kind: plan.RampAndHold, Open: true, Stages: []plan.Stage{{From: rate, To: rate, Length: length, Judged: true}}}
}
