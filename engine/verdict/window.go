package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// windowKey is one window of one stage and step of a round. Windows of a stage are counted from its begin.
type windowKey struct {
	length                   time.Duration
	cell, round, stage, step int
	number                   int
}

// readWindows reads the samples once more and sorts them into the windows that assertions ask for.
func (b *bench) readWindows(written []result.Assertion) error {
	var lengths []time.Duration
	for _, a := range written {
		if a.Window > 0 && !slices.Contains(lengths, a.Window) {
			lengths = append(lengths, a.Window)
		}
	}
	if len(lengths) == 0 || !b.run.Samples {
		return nil
	}
	b.windows = map[windowKey]*record.Stats{}
	budget := record.NewBudget(result.ExactValues)
	err := b.run.Each(func(block *result.Block) error {
		c := b.run.Cells[block.Cell]
		for i := range block.Samples {
			s := &block.Samples[i]
			stage := int(s.Stage)
			if stage < 0 || stage >= len(c.Stages) {
				continue
			}
			into := time.Duration(s.Due) - c.Stages[stage].Start
			for _, length := range lengths {
				key := windowKey{length, block.Cell, block.Round, stage, int(s.Step), int(into / length)}
				stats := b.windows[key]
				if stats == nil {
					stats = record.NewStats(budget)
					stats.Length = length
					b.windows[key] = stats
				}
				stats.Add(block.Round, s)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("can't read the samples for windows: %w", err)
	}
	probes := map[windowKey]*record.Histogram{} // the steps of a window share one
	for key, stats := range b.windows {
		at := key
		at.step = record.Whole
		if _, known := probes[at]; !known {
			c := b.run.Cells[key.cell]
			from := c.Stages[key.stage].Start + time.Duration(key.number)*key.length
			probes[at] = c.Probe(key.round, from, from+key.length)
		}
		stats.Probe = probes[at]
	}
	return nil
}

// window is a place in time that all addresses of a row are read at.
type window struct {
	round, stage, number int
	start                time.Duration // since the release
}

// judgeWindows judges a row by each whole window of the judged stages. It holds if it holds in all of them; the row shows
// the one that is worst.
func (b *bench) judgeWindows(p *expression.Assertion, bound binding, length time.Duration) result.Verdict {
	addresses := p.Addresses()
	row := b.row(addresses, bound)
	row.Outcome = result.NoData
	list := b.windowsOf(addresses[0], bound, length)
	switch {
	case !b.run.Samples:
		row.Detail = []string{"windows are judged by samples, and this run kept none"}
		return row
	case len(list) == 0:
		row.Detail = []string{fmt.Sprintf("no judged stage has a whole window of %s", length)}
		return row
	}
	var worst expression.Judgement
	var reading *Reading
	var reason string
	found := false
	for _, w := range list {
		r := b.reading(addresses, bound, func(from *bench, a *expression.Address) *record.Stats {
			return from.windowStats(a, bound, length, w)
		}, func(v View) expression.Judgement {
			return p.Judge(func(i int) (float64, bool) { return b.windowValue(addresses[i], bound, length, w, v) })
		})
		j := r.Judge(AsMeasured)
		doubt := r.Doubt(j)
		if found && !worse(j, doubt, worst, reason) {
			continue
		}
		found, worst, reading, reason = true, j, r, doubt
		row.Window = fmt.Sprintf("%s to %s", span(float64(w.start)), span(float64(w.start+length)))
		if b.cell(addresses[0], bound).Cell.Rounds > 1 {
			row.Window += fmt.Sprintf(" of round %d", w.round+1)
		}
		row.N = 0
		if s := b.windowStats(addresses[0], bound, length, w); s != nil {
			row.N = samplesBehind(s, addresses[0].Metric)
		}
	}
	fill(&row, worst)
	row.Detail = append(row.Detail, fmt.Sprintf("judged by %s of %s", plural(len(list), "window"), length))
	if reason == "" {
		reason = b.taint(reading, bound, worst.Truth)
	}
	if reason != "" {
		row.Outcome = result.Inconclusive
		row.Detail = append(row.Detail, reason)
	}
	return row
}

// worse orders judgements of windows: false, no data, doubtful, true; and among equals by how far off the limit they are.
func worse(a expression.Judgement, doubtA string, b expression.Judgement, doubtB string) bool {
	weight := func(j expression.Judgement, doubt string) int {
		switch {
		case doubt != "":
			return 1
		case j.Truth == expression.False:
			return 3
		case j.Truth == expression.Unknown:
			return 2
		}
		return 0
	}
	if x, y := weight(a, doubtA), weight(b, doubtB); x != y {
		return x > y
	}
	return a.Excess > b.Excess
}

// mostWindows of a stage are judged, so that a results file that asks for windows of a nanosecond does no harm.
const mostWindows = 1_000_000

// windowsOf lists the whole windows of the stages that an address reads, in every round.
func (b *bench) windowsOf(a *expression.Address, bound binding, length time.Duration) []window {
	c := b.cell(a, bound)
	var list []window
	for r, round := range c.Rounds {
		for g, stage := range c.Stages {
			if !stage.Reads(a.Stage, a.Ramp) || !c.Ran(r, g) {
				continue
			}
			end := stage.Length
			if round.End == nil || round.End.Interrupted {
				// What was not measured to its end has no last window.
				end = c.Stats(r, g, record.Whole).Length
			}
			for n := range min(int(end/length), mostWindows) {
				list = append(list, window{r, g, n, stage.Start + time.Duration(n)*length})
			}
		}
	}
	return list
}

func (b *bench) windowStats(a *expression.Address, bound binding, length time.Duration, w window) *record.Stats {
	c := b.cell(a, bound)
	if c == nil { // an earlier run, or a reference target, that has no such cell
		return nil
	}
	step := record.Whole
	if a.Step != "" && len(c.Steps) > 1 {
		step, _ = c.Step(a.Step, a.Around)
	}
	return b.windows[windowKey{length, c.Index, w.round, w.stage, step, w.number}]
}

// windowValue reads an address in a window. Differences are of the two values in the window.
func (b *bench) windowValue(a *expression.Address, bound binding, length time.Duration, w window, v View) (float64, bool) {
	read := func(a *expression.Address) (float64, bool) {
		s := b.windowStats(a, bound, length, w)
		if s == nil {
			return 0, false
		}
		return metric.Value(v(s), MetricOf(a.Metric))
	}
	switch {
	case a.Metric.Previous || a.Metric.Bound != "":
		return 0, false
	case a.Metric.Diff == "":
		return read(a)
	}
	reference := *a
	reference.Target = b.targets[b.run.Reference]
	x, known := read(a)
	y, referenceKnown := read(&reference)
	switch {
	case !known || !referenceKnown:
		return 0, false
	case a.Metric.Diff == "delta":
		return x - y, true
	case y == 0:
		return 0, false
	}
	return (x - y) / y, true
}
