package verdict

import (
	"fmt"
	"slices"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/result"
)

// implied are the assertions that every judged cell has without being asked: something succeeded, nothing was dropped,
// and nothing failed unless the plan takes a stand on failures itself. A capacity search has to have found a rate; what
// its holds have to be, it has seen to itself.
func (b *bench) implied(parsed []*expression.Assertion, written []result.Assertion) []result.Verdict {
	covered := b.covered(parsed, written)
	var rows []result.Verdict
	for _, c := range b.run.Cells {
		var texts []string
		switch {
		case c.IsCapacity():
			texts = []string{"rate_held > 0/s"}
		case !slices.ContainsFunc(c.Stages, func(s result.Stage) bool { return s.Judged }):
			continue
		default:
			texts = append([]string{"ok > 0", "dropped == 0"}, withoutStand(c, covered[c])...)
		}
		for _, text := range texts {
			p, errs := expression.ParseAssertion(text, b)
			if len(errs) > 0 {
				panic("implied assertion " + text + ": " + errs[0].Message)
			}
			row := b.judge(p, binding{c.Scenario, c.Phase, c.Target})
			row.Assertion, row.Implied = text, true
			if row.Outcome == result.Failed && text != "dropped == 0" {
				row.Detail = append(row.Detail, failures(c)...)
			}
			if c.IsCapacity() && row.Outcome == result.NoData {
				row.Detail = append(row.Detail, answers(c)...)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// withoutStand are the implied assertions about failures on which the plan takes no stand itself. steps are those on whose
// failures it does, "" being whole iterations. A stand on one step leaves the others as they were.
func withoutStand(c *result.CellResult, steps map[string]bool) (texts []string) {
	switch {
	case len(steps) == 0:
		return []string{"error_rate == 0%"}
	case steps[""]:
		return nil
	}
	for i, s := range c.Steps {
		ran := c.Stats(result.Pooled, result.Judged, i).Count() > 0
		if s.Driver != "" && s.Name != "" && ran && !steps[s.Name] {
			texts = append(texts, s.Name+".error_rate == 0%")
		}
	}
	return texts
}

// covered are the cells on whose failures the plan takes a stand, and the steps that it speaks of. A warning is no stand: it
// would let everything fail.
func (b *bench) covered(parsed []*expression.Assertion, written []result.Assertion) map[*result.CellResult]map[string]bool {
	covered := map[*result.CellResult]map[string]bool{}
	for i, p := range parsed {
		addresses := p.Addresses()
		if written[i].Severity == "warn" || !slices.ContainsFunc(addresses, readsFailures) {
			continue
		}
		for _, bound := range b.bindings(addresses, written[i]) {
			if b.contentWithOne(p, bound) {
				continue
			}
			for _, a := range addresses {
				if readsFailures(a) && !a.Ramp {
					c := b.cell(a, bound)
					if covered[c] == nil {
						covered[c] = map[string]bool{}
					}
					covered[c][a.Step] = true
				}
			}
		}
	}
	return covered
}

// contentWithOne tells whether all that an assertion says about failures is a number of successes that one success
// reaches, as ok > 0 does: that is no stand on the others.
func (b *bench) contentWithOne(p *expression.Assertion, bound binding) bool {
	addresses := p.Addresses()
	for _, a := range addresses {
		if readsFailures(a) && (a.Metric.Name != "ok" || a.Metric.Diff != "") {
			return false
		}
	}
	return p.Judge(func(i int) (float64, bool) {
		if readsFailures(addresses[i]) {
			return 1, true
		}
		return b.value(addresses[i], bound, AsMeasured)
	}).Truth == expression.True
}

// readsFailures tells whether an address says something about failures, so that the plan has taken a stand on them. What
// an earlier run's were says nothing about this one.
func readsFailures(a *expression.Address) bool {
	if a.Metric.Previous && a.Metric.Diff == "" {
		return false
	}
	switch a.Metric.Name {
	case "error_rate", "ok", "failed", "within", "status", "failures":
		return true
	}
	return false
}

// failures says what failed in a cell, by kind.
func failures(c *result.CellResult) []string {
	var texts []string
	s := statsOf(c, &expression.Address{}, result.Pooled)
	for _, kind := range drivers.Failures {
		if n := s.Failures[kind]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d of %d failed: %s", n, s.Count(), kind))
		}
	}
	return texts
}

// answers says what the rounds of a capacity search found, but for rates that were held.
func answers(c *result.CellResult) []string {
	var texts []string
	for _, r := range c.Rounds {
		if a := r.Capacity; a == nil {
			texts = append(texts, "the search did not get to its end")
		} else if a.Outcome == result.Failed {
			texts = append(texts, fmt.Sprintf("even %s, the lowest rate, was not held: %s", rate(a.Failed), a.Reason))
		}
	}
	return texts
}
