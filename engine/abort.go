package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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

// watch looks at what was measured so far of a cell, over its rounds, for the assertions that end the run. Those with a window
// look at each whole window of a round once, and forget it then, as an hour has many. They wait until all that was due in it has
// ended: before that only what was quick is there, to answer or to fail.
type watch struct {
	cell       *result.Cell
	assertions []*plan.Assertion
	whole      sums
	lengths    []time.Duration         // of windows
	windows    map[watchedWindow]*sums // that nobody has looked at
	looked     time.Duration           // since the release of the round
	settled    time.Duration           // windows that end up to here were looked at
}

// sums are what was measured in some time.
type sums struct {
	stats map[statsKey]*record.Stats
	probe record.Histogram // how late the generator's own probe was
}

// add takes in a sample. Percentiles are looked at every second, so they are kept as histograms, which need no sorting.
func (x *sums) add(round int, s *record.Sample) {
	key := statsKey{int(s.Stage), int(s.Step)}
	st := x.stats[key]
	if st == nil {
		st = record.NewStats(record.NewBudget(0))
		if x.stats == nil {
			x.stats = map[statsKey]*record.Stats{}
		}
		x.stats[key] = st
	}
	st.Add(round, s)
}

// watchedWindow is a window of a stage, counted from the stage's begin.
type watchedWindow struct {
	length        time.Duration
	stage, number int
}

// end is when the window is over, since the release; ok is false of one that the stage does not have to its end.
func (p watchedWindow) end(c *result.Cell) (d time.Duration, ok bool) {
	into := time.Duration(p.number+1) * p.length
	return c.Stages[p.stage].Start + into, into <= c.Stages[p.stage].Length
}

// newWatch returns nil if no assertion of the plan watches the cell.
func newWatch(p *plan.Plan, c *result.Cell) *watch {
	w := &watch{cell: c}
	w.begin()
	fits := func(written, is string) bool { return written == "" || written == is }
	for _, a := range p.Assertions {
		if !a.Abort || !fits(a.Scenario, c.Scenario) || !fits(a.Phase, c.Phase) {
			continue
		}
		one := a.Addresses()[0] // the others name the same cell
		if fits(one.Scenario, c.Scenario) && fits(one.Phase, c.Phase) && fits(one.Target, c.Target) {
			w.assertions = append(w.assertions, a)
			if a.Window > 0 && !slices.Contains(w.lengths, a.Window) {
				w.lengths = append(w.lengths, a.Window)
			}
		}
	}
	if len(w.assertions) == 0 {
		return nil
	}
	return w
}

// begin readies for another round.
func (w *watch) begin() {
	w.looked, w.settled = 0, 0
	w.windows = map[watchedWindow]*sums{}
}

// add takes in a sample.
func (w *watch) add(round int, s *record.Sample) {
	w.whole.add(round, s)
	w.eachWindow(int(s.Stage), time.Duration(s.Due), func(x *sums) { x.add(round, s) })
}

// probed takes in how late the probe was at a time since the release, in a stage.
func (w *watch) probed(at, late time.Duration, stage int) {
	w.whole.probe.Record(int64(late))
	w.eachWindow(stage, at, func(x *sums) { x.probe.Record(int64(late)) })
}

// eachWindow yields the windows of a stage in which a time is and that will be looked at, one of each length.
func (w *watch) eachWindow(stage int, t time.Duration, yield func(*sums)) {
	if stage < 0 || stage >= len(w.cell.Stages) {
		return
	}
	for _, length := range w.lengths {
		at := watchedWindow{length, stage, int((t - w.cell.Stages[stage].Start) / length)}
		if end, whole := at.end(w.cell); !whole || end <= w.settled {
			continue
		}
		if w.windows[at] == nil {
			w.windows[at] = new(sums)
		}
		yield(w.windows[at])
	}
}

// look judges what was measured until now. All that was due before settled has ended and was taken in. Both are since the release.
// It returns the assertion that is false, with the reason; nil if there is none. An assertion that the generator itself may have
// made false ends nothing.
func (w *watch) look(now, settled time.Duration) (*plan.Assertion, string) {
	if now-w.looked < watchInterval {
		return nil, ""
	}
	w.looked = now
	over := w.over(settled)
	for _, a := range w.assertions {
		if now < a.After {
			continue
		}
		if a.Window == 0 {
			if why := w.broken(a, &w.whole, -1); why != "" {
				return a, fmt.Sprintf("aborted the run %s into the round: %s", now.Round(time.Second/10), why)
			}
			continue
		}
		for _, at := range over {
			end, _ := at.end(w.cell)
			if at.length != a.Window || end < a.After {
				continue
			}
			if why := w.broken(a, at.sums, at.stage); why != "" {
				return a, fmt.Sprintf("aborted the run %s into the round: from %s to %s %s", now.Round(time.Second/10), end-at.length, end, why)
			}
		}
	}
	return nil, ""
}

// overWindow is a window of which all is known.
type overWindow struct {
	watchedWindow
	sums *sums
}

// over takes out the windows that end up to settled, in the order of time.
func (w *watch) over(settled time.Duration) []overWindow {
	var list []overWindow
	for at, x := range w.windows {
		if end, _ := at.end(w.cell); end <= settled {
			list = append(list, overWindow{at, x})
			delete(w.windows, at)
		}
	}
	w.settled = settled
	slices.SortFunc(list, func(a, b overWindow) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.number, b.number))
	})
	return list
}

// broken tells why an assertion is false of what was measured: of all stages that it reads, or of one of them if stage is not
// negative. It is "" if the assertion is not false.
func (w *watch) broken(a *plan.Assertion, x *sums, stage int) string {
	addresses := a.Addresses()
	parts := make([]*record.Stats, len(addresses))
	for i, ad := range addresses {
		if parts[i] = w.part(x, ad, stage); parts[i].Due() == 0 {
			return ""
		}
		if stage >= 0 {
			parts[i].Length = a.Window
		}
	}
	r := verdict.Reading{Addresses: addresses, Stats: parts, Judge: func(v verdict.View) expression.Judgement {
		return a.Judge(func(i int) (float64, bool) { return metric.Value(v(parts[i]), verdict.MetricOf(addresses[i].Metric)) })
	}}
	measured := r.Judge(verdict.AsMeasured)
	if measured.Truth == expression.False && r.Doubt(measured) == "" {
		return strings.Join(measured.Why, "; ")
	}
	return ""
}

// part is what an address reads of what was measured: the judged stages, a stage of its own, or the ramps, or only one stage
// of those if only is not negative.
func (w *watch) part(x *sums, ad *expression.Address, only int) *record.Stats {
	c := w.cell
	all := record.NewStats(record.NewBudget(0))
	all.Probe = &x.probe
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
		if only >= 0 && i != only {
			continue
		}
		// Trials are judged by the search; what ends a run looks at all of them.
		reads := g.Reads(ad.Stage, ad.Ramp) || g.Kind == "trial" && ad.Stage == "" && !ad.Ramp
		if st := x.stats[statsKey{i, step}]; reads && st != nil {
			all.Merge(st)
		}
	}
	return all
}

// watched looks at the assertions that may end the run, and ends it if one is false. All that was due before settled was taken in.
func (rd *round) watched(settled time.Duration) {
	if rd.watch == nil || rd.aborted.assertion != nil {
		return
	}
	if a, reason := rd.watch.look(rd.now(), settled); a != nil {
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
