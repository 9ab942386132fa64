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
	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

func TestInterruptDrainsAndKeepsWhatWasMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(700*time.Millisecond), []string{"a", "b"}, hold(10, 10*time.Second))
		stop := make(chan struct{})
		time.AfterFunc(3*time.Second, func() { close(stop) })
		report := runFake(t, f, p, func(o *Options) { o.Stop = stop })
		if report.Exit != 130 {
			t.Errorf("exit %d, want 130", report.Exit)
		}
		s := report.Run.Find("scenario", "phase", "a").Stats(result.Pooled, result.Judged, record.Whole)
		if s.OK != 30 || s.Failed != 0 {
			t.Errorf("%d ok and %d failed, want the 30 that were due in 3 s", s.OK, s.Failed)
		}
		// The time in which it only waited for answers is no time of the load.
		if stopped := report.Run.Cells[0].Rounds[0].End.Stopped; stopped != s.Length || stopped < 3*time.Second || stopped > 3200*time.Millisecond {
			t.Errorf("it was stopped after %v, and rates are over %v, want 3s to the poll", stopped, s.Length)
		}
		if len(f.arrivals("b")) != 0 {
			t.Error("the next cell was still begun")
		}
		if !report.Run.End.Interrupted || !report.Run.Cells[0].Rounds[0].End.Interrupted {
			t.Error("the stream does not say that it was interrupted")
		}
	})
}

func TestUnreachableTargetIsSaidBeforeTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(time.Millisecond), []string{"a", "b"}, hold(10, time.Second))
		f.probe = func(endpoint string) error {
			if endpoint == "b" {
				return drivers.Fail(drivers.Refused, errors.New("connection refused"))
			}
			return nil
		}
		report := runFake(t, f, p)
		if report.Exit != 3 || len(f.calls) != 0 {
			t.Errorf("exit %d after %d calls, want 3 and none", report.Exit, len(f.calls))
		}
		if report.Err == nil || !strings.Contains(report.Err.Error(), "target b: can't reach b: connection refused") {
			t.Errorf("got %v", report.Err)
		}
	})
}

func TestSummariesGiveTheSameFiguresAsSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := func(c fakeCall) (time.Duration, error) {
			return time.Duration(c.Iteration%7+1) * time.Millisecond, nil
		}
		f, p := newFake(serve, []string{"a"}, hold(100, 3*time.Second))
		with := judged(t, runFake(t, f, p), "a")
		p.Results.Samples = false
		without := judged(t, runFake(t, f, p), "a")
		if with.Count() != without.Count() || with.BytesIn != without.BytesIn {
			t.Errorf("%d samples and %d bytes, but %d and %d from summaries", with.Count(), with.BytesIn, without.Count(), without.BytesIn)
		}
		a, _ := with.Latency().Percentile(50)
		b, _ := without.Latency().Percentile(50)
		if diff := float64(b-a) / float64(a); diff < 0 || diff > 0.008 {
			t.Errorf("p50 is %v, from summaries %v", time.Duration(a), time.Duration(b))
		}
	})
}

func TestIntervalsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(250*time.Millisecond), []string{"a"}, hold(20, 3*time.Second))
		report := runFake(t, f, p)
		s := judged(t, report, "a")
		var ok, bytes int64
		for i, v := range report.Run.Cells[0].Intervals {
			if v.Second != i {
				t.Errorf("interval %d is second %d", i, v.Second)
			}
			ok += v.OK
			bytes += v.BytesIn
		}
		if ok != s.OK || bytes != s.BytesIn {
			t.Errorf("intervals have %d ok and %d bytes, the cell %d and %d", ok, bytes, s.OK, s.BytesIn)
		}
	})
}

// A long transfer that begins slowly is seen to, second by second, while it runs.
func TestSlowStartIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(500*time.Millisecond), []string{"a"}, &plan.Phase{Kind: plan.Single, Users: 1, Count: 1})
		f.drip = []int64{10, 100, 1000, 1000}
		report := runFake(t, f, p)
		var seen []int64
		for _, v := range report.Run.Cells[0].Intervals {
			seen = append(seen, v.BytesIn)
		}
		if want := []int64{10, 100, 1000, 1000, 0}; !slices.Equal(seen, want) {
			t.Errorf("the seconds have %v bytes, want %v", seen, want)
		}
	})
}

// An iteration allocates nothing once its user is warm: neither in the schedule, nor in the record, nor in judging.
func TestIterationDoesNotAllocate(t *testing.T) {
	f, p := newFake(constant(0), []string{"a"}, &plan.Phase{Kind: plan.Sequential, Users: 1, Count: 1})
	f.calls = make([]fakeCall, 0, 1<<20)
	opt := Options{Drivers: map[string]drivers.Driver{"fake": f}}
	rd := newTestRound(t, p, opt)
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
	if n := testing.AllocsPerRun(100, iterate) / 100; n > 0.01 {
		t.Errorf("%v allocations an iteration, want none", n)
	}
}

func newTestRound(t *testing.T, p *plan.Plan, opt Options) *round {
	r := &run{plan: p, Options: opt, clock: clock.New()}
	rd := r.newRound(t.Context(), cellsOf(p)[0], 0)
	if err := rd.connect(1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rd.close() })
	return rd
}

func TestInterruptEndsThePreflight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(time.Millisecond), []string{"a"}, hold(10, time.Second))
		stop := make(chan struct{})
		f.probe = func(string) error {
			close(stop)
			synctest.Wait()
			return drivers.Fail(drivers.Timeout, errors.New("timed out"))
		}
		report := runFake(t, f, p, func(o *Options) { o.Stop = stop })
		if report.Exit != 130 || report.Err != nil || len(f.calls) != 0 {
			t.Errorf("exit %d, %v, %d calls; want 130 and no more", report.Exit, report.Err, len(f.calls))
		}
	})
}

// What only a server can tell of a plan is still a fault of the plan, at the place of its step.
func TestFaultFoundByTheServerIsThePlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(time.Millisecond), []string{"a"}, hold(10, time.Second))
		p.Scenarios[0].Steps[0].Place = diag.Place{File: "plan.yaml", Line: 4, Column: 7}
		f.probe = func(string) error {
			return drivers.Fail(drivers.Protocol, drivers.FieldErrors{{Path: []string{"call"}, Message: "the service has no method Wrok"}})
		}
		report := runFake(t, f, p)
		if report.Exit != 2 || report.Err == nil || !strings.HasPrefix(report.Err.Error(), "plan.yaml:4:7: scenario scenario, target a: a: call: the service has no method Wrok") {
			t.Errorf("exit %d, %v", report.Exit, report.Err)
		}
	})
}

// Each cell has the addresses that its own clients connected to, the most used first, and no more than a reader can take in.
func TestAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := newFake(constant(time.Millisecond), []string{"few", "many"}, &plan.Phase{Kind: plan.Sequential, Users: 1, Count: 1, Rounds: 2})
		f.reached = func(target string) (list []drivers.Address) {
			if target == "few" {
				return []drivers.Address{{Addr: "10.0.0.2:80", Opened: 1}, {Addr: "10.0.0.1:80", Opened: 1, Failed: 1}}
			}
			for i := range 20 {
				list = append(list, drivers.Address{Addr: fmt.Sprintf("10.0.1.%d:80", i), Opened: int64(i)})
			}
			return list
		}
		r := runFake(t, f, p)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		for _, round := range r.Run.Find("scenario", "phase", "few").Rounds {
			want := []drivers.Address{{Addr: "10.0.0.1:80", Opened: 1, Failed: 1}, {Addr: "10.0.0.2:80", Opened: 1}}
			if e := round.End; !slices.Equal(e.Addresses, want) || e.MoreAddresses != 0 {
				t.Errorf("got %v and %d more, want %v", e.Addresses, e.MoreAddresses, want)
			}
		}
		for _, round := range r.Run.Find("scenario", "phase", "many").Rounds {
			if e := round.End; len(e.Addresses) != 16 || e.MoreAddresses != 4 || e.Addresses[0].Addr != "10.0.1.19:80" || e.Addresses[15].Addr != "10.0.1.4:80" {
				t.Errorf("got %v and %d more", e.Addresses, e.MoreAddresses)
			}
		}
	})
}
