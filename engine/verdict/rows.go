package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// rows judges one written assertion. One that names nothing in this run fails: a gate that reads nothing is not passed.
func (b *bench) rows(p *expression.Assertion, written result.Assertion) []result.Verdict {
	addresses := p.Addresses()
	bindings := b.bindings(addresses, written)
	if len(bindings) == 0 {
		return []result.Verdict{{
			Assertion: written.Text, Place: written.Place, Severity: written.Severity,
			Scenario: written.Scenario, Phase: written.Phase,
			Outcome: result.NoData,
			Detail:  []string{"no cell of this run has all the names in it"},
		}}
	}
	var rows []result.Verdict
	for _, bound := range bindings {
		var row result.Verdict
		if written.Window > 0 {
			row = b.judgeWindows(p, bound, written.Window)
		} else {
			row = b.judge(p, bound)
		}
		b.aborted(&row, addresses, bound, written)
		row.Assertion, row.Place, row.Severity = written.Text, written.Place, written.Severity
		rows = append(rows, row)
	}
	return rows
}

// judge judges one row by what its cells came to as a whole.
func (b *bench) judge(p *expression.Assertion, bound binding) result.Verdict {
	addresses := p.Addresses()
	r := b.reading(addresses, bound, func(from *bench, a *expression.Address) *record.Stats {
		return from.stats(a, bound, result.Pooled)
	}, func(v View) expression.Judgement {
		return p.Judge(func(i int) (float64, bool) { return b.value(addresses[i], bound, v) })
	})
	row := b.row(addresses, bound)
	row.N = math.MaxInt64
	for _, a := range addresses {
		row.N = min(row.N, samplesBehind(b.stats(a, bound, result.Pooled), a.Metric))
	}
	measured := r.Judge(AsMeasured)
	fill(&row, measured)
	if row.Outcome == result.NoData {
		row.Detail = append(row.Detail, b.missing(addresses, bound)...)
	}
	if i := measured.Address; i >= 0 {
		row.Interval = b.interval(addresses[i], bound)
	}
	reason := r.Doubt(measured)
	if reason == "" {
		reason = b.taint(r, bound, measured.Truth)
	}
	if reason == "" {
		reason = b.tooFew(&row, addresses, bound)
	}
	if reason != "" {
		row.Outcome = result.Inconclusive
		row.Detail = append(row.Detail, reason)
	}
	return row
}

// row is an empty row with the place of what it judges.
func (b *bench) row(addresses []*expression.Address, bound binding) result.Verdict {
	var row result.Verdict
	row.Scenario, row.Phase, row.Stage, row.Step, row.Target = common(addresses, bound)
	return row
}

// missing says why there is nothing to judge, for each of the cells and steps that are read: nothing was called, or all of
// it failed. None means that the samples don't tell.
func (b *bench) missing(addresses []*expression.Address, bound binding) []string {
	var texts []string
	add := func(c *result.CellResult, a *expression.Address, text string) {
		place := c.Target
		if a.Step != "" {
			place += "." + a.Step
		}
		if text = place + ": " + text; !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	for _, a := range addresses {
		c := b.cell(a, bound)
		if c == nil || c.IsCapacity() || a.Metric.Previous {
			continue
		}
		s := statsOf(c, a, result.Pooled)
		switch {
		case s == nil || s.Due() == 0:
			add(c, a, "nothing was called")
		case s.Count() == 0:
			add(c, a, fmt.Sprintf("all %d were dropped", s.Dropped))
		case s.OK == 0:
			for _, kind := range drivers.Failures {
				if n := s.Failures[kind]; n > 0 {
					add(c, a, fmt.Sprintf("%d of %d failed: %s", n, s.Count(), kind))
				}
			}
		}
	}
	return texts
}

// fill enters a judgement into a row.
func fill(row *result.Verdict, j expression.Judgement) {
	row.Value, row.Limit = j.Value, j.Limit
	switch j.Truth {
	case expression.True:
		row.Outcome = result.Passed
		row.Detail = append(row.Detail, j.Values...)
		return
	case expression.False:
		row.Outcome = result.Failed
	default:
		row.Outcome = result.NoData
	}
	row.Detail = append(row.Detail, j.Tree...)
}

// aborted fails a row whose assertion ended the run, whatever came of the figures after that moment.
func (b *bench) aborted(row *result.Verdict, addresses []*expression.Address, bound binding, written result.Assertion) {
	if !written.Abort || written.Place == "" {
		return
	}
	for _, a := range addresses {
		for _, r := range b.cell(a, bound).Rounds {
			if r.End != nil && r.End.Aborted == written.Place {
				row.Outcome = result.Failed
				row.Detail = append(row.Detail, r.End.Notes...)
				return
			}
		}
	}
}

// samplesBehind is how many samples a value was made from.
func samplesBehind(s *record.Stats, m expression.Metric) int64 {
	if m.Group != "" {
		return metric.Times(s, m.Group).Count()
	}
	switch m.Name {
	case "mean", "min", "max", "stddev", "throughput":
		return s.OK
	case "offered_rps", "within", "dropped":
		return s.Due()
	}
	if strings.HasPrefix(m.Name, "p") {
		return s.OK
	}
	return s.Count()
}

// common is the place of a row: what its addresses have in common.
func common(addresses []*expression.Address, bound binding) (scenario, phase, stage, step, target string) {
	same := func(of func(*expression.Address) string) string {
		first := of(addresses[0])
		if slices.ContainsFunc(addresses, func(a *expression.Address) bool { return of(a) != first }) {
			return ""
		}
		return first
	}
	scenario = same(func(a *expression.Address) string { return either(a.Scenario, bound.scenario) })
	phase = same(func(a *expression.Address) string { return either(a.Phase, bound.phase) })
	stage = same(func(a *expression.Address) string {
		if a.Ramp {
			return "ramp"
		}
		return a.Stage
	})
	step = same(func(a *expression.Address) string { return a.Step })
	target = same(func(a *expression.Address) string { return either(a.Target, bound.target) })
	return
}

func place(c *result.CellResult) string {
	return fmt.Sprintf("%s.%s.%s", c.Scenario, c.Phase, c.Target)
}
