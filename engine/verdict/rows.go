package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/quantity"
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
		row := b.judge(p, addresses, bound)
		row.Assertion, row.Place, row.Severity = written.Text, written.Place, written.Severity
		rows = append(rows, row)
	}
	return rows
}

// judge judges one row.
func (b *bench) judge(p *expression.Assertion, addresses []*expression.Address, bound binding) result.Verdict {
	row := result.Verdict{N: math.MaxInt64}
	for _, a := range addresses {
		row.N = min(row.N, samplesBehind(b.stats(a, bound), a.Metric))
	}
	row.Scenario, row.Phase, row.Stage, row.Step, row.Target = common(addresses, bound)

	measured := p.Judge(func(i int) (float64, bool) { return b.value(addresses[i], bound, asMeasured) })
	row.Value, row.Limit = measured.Value, measured.Limit
	row.Detail = append(row.Detail, measured.Values...)
	switch measured.Truth {
	case expression.True:
		row.Outcome = result.Passed
	case expression.False:
		row.Outcome = result.Failed
	default:
		row.Outcome = result.NoData
	}
	if reason := b.taint(p, addresses, bound, measured.Truth); reason != "" {
		row.Outcome = result.Inconclusive
		row.Detail = append(row.Detail, reason)
	}
	return row
}

// view turns what was measured into what is judged.
type view func(*record.Stats) *record.Stats

func asMeasured(s *record.Stats) *record.Stats { return s }
func withoutLag(s *record.Stats) *record.Stats { return s.WithoutLag() }

// tolerated is the share of arrivals that the generator may be too late to send before a verdict is not trusted.
const tolerated = 0.01

// taint says why the generator may have decided a row, "" if it did not: the verdict turns when its own lateness is taken
// away, it missed too many arrivals, or samples were lost.
func (b *bench) taint(p *expression.Assertion, addresses []*expression.Address, bound binding, truth expression.Truth) string {
	without := p.Judge(func(i int) (float64, bool) { return b.value(addresses[i], bound, withoutLag) })
	if without.Truth != truth {
		return latenessDecides(without)
	}
	for _, a := range addresses {
		s := b.stats(a, bound)
		if missed := float64(s.DroppedByLag) / float64(max(1, s.Due())); missed > tolerated {
			return tooLate(s)
		}
		for _, r := range b.cell(a, bound).Rounds {
			if r.End != nil && r.End.Lost > 0 {
				return fmt.Sprintf("%d samples were lost", r.End.Lost)
			}
		}
	}
	return ""
}

func latenessDecides(without expression.Judgement) string {
	return fmt.Sprintf("the generator's own lateness decides it: without it the value is %s, the limit %s",
		or(without.Value, "no data"), or(without.Limit, "no data"))
}

func tooLate(s *record.Stats) string {
	share := quantity.Value{F: float64(s.DroppedByLag) / float64(max(1, s.Due())), Dim: quantity.Share}
	return fmt.Sprintf("the generator was too late to send %d of %d arrivals, %s; no more than 1%% is tolerated", s.DroppedByLag, s.Due(), share)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// value reads an address in a row.
func (b *bench) value(a *expression.Address, bound binding, v view) (float64, bool) {
	s := b.stats(a, bound)
	m := metricOf(a.Metric)
	x, ok := metric.Value(v(s), m)
	if !ok || a.Metric.Diff == "" {
		return x, ok
	}
	if a.Metric.Bound != "" {
		return 0, false
	}
	reference := *a
	reference.Target = b.targets[b.run.Reference]
	rs := b.stats(&reference, bound)
	if rs == nil {
		return 0, false
	}
	r, ok := metric.Value(v(rs), m)
	if !ok {
		return 0, false
	}
	if a.Metric.Diff == "delta" {
		return x - r, true
	}
	if r == 0 {
		return 0, false
	}
	return (x - r) / r, true
}

func metricOf(m expression.Metric) metric.Metric {
	return metric.Metric{Name: m.Name, Group: m.Group, Percentile: m.Percentile, Within: m.Within, Status: m.Status, Failure: m.Failure}
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

// implied are the assertions that every judged cell has without being asked: something succeeded, nothing was dropped,
// and nothing failed unless the plan takes a stand on failures itself.
func (b *bench) implied(parsed []*expression.Assertion, written []result.Assertion) []result.Verdict {
	covered := map[*result.CellResult]bool{}
	for i, p := range parsed {
		addresses := p.Addresses()
		if written[i].Severity == "warn" || !slices.ContainsFunc(addresses, readsFailures) {
			continue
		}
		for _, bound := range b.bindings(addresses, written[i]) {
			for _, a := range addresses {
				if readsFailures(a) && !a.Ramp {
					covered[b.cell(a, bound)] = true
				}
			}
		}
	}
	var rows []result.Verdict
	for _, c := range b.run.Cells {
		if !slices.ContainsFunc(c.Stages, func(s result.Stage) bool { return s.Judged }) {
			continue
		}
		texts := []string{"ok > 0", "dropped == 0"}
		if !covered[c] {
			texts = append(texts, "error_rate == 0%")
		}
		for _, text := range texts {
			p, errs := expression.ParseAssertion(text, b)
			if len(errs) > 0 {
				panic("implied assertion " + text + ": " + errs[0].Message)
			}
			row := b.judge(p, p.Addresses(), binding{c.Scenario, c.Phase, c.Target})
			row.Assertion, row.Implied = text, true
			if row.Outcome == result.Failed && text != "dropped == 0" {
				row.Detail = append(row.Detail, failures(c)...)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// readsFailures tells whether an address says something about failures, so that the plan has taken a stand on them.
func readsFailures(a *expression.Address) bool {
	switch a.Metric.Name {
	case "error_rate", "ok", "failed", "within", "status", "failures":
		return true
	}
	return false
}

// failures says what failed in a cell, by kind.
func failures(c *result.CellResult) []string {
	var texts []string
	s := statsOf(c, &expression.Address{})
	for _, kind := range drivers.Failures {
		if n := s.Failures[kind]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d of %d failed: %s", n, s.Count(), kind))
		}
	}
	return texts
}
