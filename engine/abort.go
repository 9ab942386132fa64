package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/engine/verdict"
)

// errAborted ends a measurement because an assertion with abort: true was false.
var errAborted = errors.New("aborted")

const (
	// watchInterval is how often assertions that may end the run are looked at.
	watchInterval = time.Second
	// abortGrace is how long what is in flight may go on once the run was aborted.
	abortGrace = time.Second
)

// watch looks at what was measured so far of a cell, over its rounds, for the assertions that end the run.
type watch struct {
	assertions []*plan.Assertion
	stats      map[statsKey]*record.Stats
	probe      record.Histogram // how late the generator's own probe was
	looked     time.Duration    // since the release of the round
}

// newWatch returns nil if no assertion of the plan watches the cell.
func newWatch(p *plan.Plan, c *result.Cell) *watch {
	w := &watch{stats: map[statsKey]*record.Stats{}}
	fits := func(written, is string) bool { return written == "" || written == is }
	for _, a := range p.Assertions {
		if !a.Abort || !fits(a.Scenario, c.Scenario) || !fits(a.Phase, c.Phase) {
			continue
		}
		one := a.Addresses()[0] // the others name the same cell
		if fits(one.Scenario, c.Scenario) && fits(one.Phase, c.Phase) && fits(one.Target, c.Target) {
			w.assertions = append(w.assertions, a)
		}
	}
	if len(w.assertions) == 0 {
		return nil
	}
	return w
}

// add takes in a sample. Percentiles are looked at every second, so they are kept as histograms, which need no sorting.
func (w *watch) add(round int, s *record.Sample) {
	key := statsKey{int(s.Stage), int(s.Step)}
	st := w.stats[key]
	if st == nil {
		st = record.NewStats(record.NewBudget(0))
		w.stats[key] = st
	}
	st.Add(round, s)
}

// look judges what was measured until now, the time since the release. It returns the assertion that is false of it, with
// the reason; nil if there is none. An assertion that the generator itself may have made false ends nothing.
func (w *watch) look(c *result.Cell, now time.Duration) (*plan.Assertion, string) {
	if now-w.looked < watchInterval {
		return nil, ""
	}
	w.looked = now
	for _, a := range w.assertions {
		if now < a.After {
			continue
		}
		addresses := a.Addresses()
		parts := make([]*record.Stats, len(addresses))
		sampled := true
		for i, ad := range addresses {
			parts[i] = w.part(c, ad)
			sampled = sampled && parts[i].Due() > 0
		}
		if !sampled {
			continue
		}
		r := verdict.Reading{Addresses: addresses, Stats: parts, Judge: func(v verdict.View) expression.Judgement {
			return a.Judge(func(i int) (float64, bool) { return metric.Value(v(parts[i]), verdict.MetricOf(addresses[i].Metric)) })
		}}
		measured := r.Judge(verdict.AsMeasured)
		if measured.Truth == expression.False && r.Doubt(measured) == "" {
			return a, fmt.Sprintf("aborted the run %s into the round: %s", now.Round(time.Second/10), strings.Join(measured.Why, "; "))
		}
	}
	return nil, ""
}

// part is what an address reads: the judged stages, a stage of its own, or the ramps.
func (w *watch) part(c *result.Cell, ad *expression.Address) *record.Stats {
	all := record.NewStats(record.NewBudget(0))
	all.Probe = &w.probe
	step := record.Whole
	if ad.Step != "" {
		i, known := c.Step(ad.Step, ad.Around)
		if !known {
			return all // it is a step of another scenario
		}
		if len(c.Steps) > 1 {
			step = i
		}
	}
	for i, g := range c.Stages {
		reads := g.Judged || g.Kind == "trial"
		switch {
		case ad.Ramp:
			reads = g.Kind == "ramp"
		case ad.Stage != "":
			reads = g.Name == ad.Stage
		}
		if st := w.stats[statsKey{i, step}]; reads && st != nil {
			all.Merge(st)
		}
	}
	return all
}

// watched looks at the assertions that may end the run, and ends it if one is false.
func (rd *round) watched() {
	if rd.watch == nil || rd.aborted.assertion != nil {
		return
	}
	if a, reason := rd.watch.look(&rd.Cell, rd.now()); a != nil {
		rd.aborted = abort{a, reason}
		rd.halt()
		time.AfterFunc(abortGrace, rd.cancel)
	}
}

// abort is the assertion that ended the run, and why.
type abort struct {
	assertion *plan.Assertion
	reason    string
}

// stopper returns a channel that closes when stop does, or when halt is called. release ends the watching of stop.
func stopper(stop <-chan struct{}) (merged <-chan struct{}, halt, release func()) {
	c := make(chan struct{})
	halt = sync.OnceFunc(func() { close(c) })
	done := make(chan struct{})
	go func() {
		select {
		case <-stop:
			halt()
		case <-done:
		}
	}()
	return c, halt, sync.OnceFunc(func() { close(done) })
}
