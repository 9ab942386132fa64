package verdict

import (
	"fmt"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// view turns what was measured into what is judged.
type view func(*record.Stats) *record.Stats

func asMeasured(s *record.Stats) *record.Stats   { return s }
func withoutLag(s *record.Stats) *record.Stats   { return s.WithoutLag() }
func withoutLocal(s *record.Stats) *record.Stats { return s.WithoutFailures(drivers.Local) }

const (
	// tolerated is the share of arrivals that the generator may be too late to send before a verdict is not trusted.
	tolerated = 0.01
	// saturation is the share of the generator's processors, over a round of at least shortest, above which what it
	// measured may be its own slowness; pausing is that of the time which its garbage collection stopped everything.
	saturation = 0.9
	pausing    = 0.01
	shortest   = time.Second
)

// counterfactual says whether a verdict turns when what the generator did itself is taken away: its lateness, and the
// failures for which this machine had no descriptors or ports left. "" if it does not.
func counterfactual(measured expression.Judgement, at func(view) expression.Judgement) string {
	if without := at(withoutLag); without.Truth != measured.Truth {
		return latenessDecides(without)
	}
	if without := at(withoutLocal); without.Truth != measured.Truth {
		return fmt.Sprintf("failures of this machine itself decide it, which had no descriptors, ports or memory left: without them the value is %s, the limit %s",
			or(without.Value, "no data"), or(without.Limit, "no data"))
	}
	return ""
}

func latenessDecides(without expression.Judgement) string {
	return fmt.Sprintf("the generator's own lateness decides it: without it the value is %s, the limit %s",
		or(without.Value, "no data"), or(without.Limit, "no data"))
}

func tooLate(s *record.Stats) string {
	return fmt.Sprintf("the generator was too late to send %d of %d arrivals, %s; no more than 1%% is tolerated",
		s.DroppedByLag, s.Due(), share(s.DroppedByLag, s.Due()))
}

// taint says why what a row reads can't be trusted, "" if it can: the generator missed too many arrivals, samples were
// lost, a search found the generator's limit, or the generator had no processor time left and could have turned the
// verdict by that.
func (b *bench) taint(addresses []*expression.Address, bound binding, truth expression.Truth) string {
	for _, a := range addresses {
		c, s := b.cell(a, bound), b.stats(a, bound, result.Pooled)
		if float64(s.DroppedByLag) > tolerated*float64(s.Due()) {
			return tooLate(s)
		}
		for _, r := range c.Rounds {
			if r.End != nil && r.End.Lost > 0 {
				return fmt.Sprintf("%d samples of %s were lost", r.End.Lost, place(c))
			}
			if r.Capacity != nil && r.Capacity.Outcome == result.Inconclusive {
				return r.Capacity.Reason
			}
		}
		if reason := busy(c); reason != "" && couldTurn(addresses, a, s, bound, truth) {
			return reason
		}
	}
	return ""
}

// busy says that the generator itself was at its limit in a round of a cell, "" if it was not.
func busy(c *result.CellResult) string {
	for i, r := range c.Rounds {
		e := r.End
		if e == nil || e.Length < shortest || e.Cores == 0 {
			continue
		}
		if used := e.CPU.Seconds() / (e.Length.Seconds() * float64(e.Cores)); used >= saturation {
			return fmt.Sprintf("the generator used %s of its %s in round %d of %s: what was measured may be its own slowness",
				quantity.Value{F: min(used, 1), Dim: quantity.Share}.Text(2), plural(e.Cores, "processor"), i+1, place(c))
		}
		if paused := e.GC.Seconds() / e.Length.Seconds(); paused >= pausing {
			return fmt.Sprintf("the generator's garbage collection stopped it for %s of round %d of %s: what was measured may be its own slowness",
				quantity.Value{F: paused, Dim: quantity.Share}.Text(2), i+1, place(c))
		}
	}
	return ""
}

// couldTurn tells whether a slow generator could have turned a verdict. It makes times longer, rates lower and time-outs
// more, never the other way: so it can fail an assertion on one cell, and not pass it. A comparison it can turn either way.
// Counts of answers, statuses and other failures it does not change.
func couldTurn(addresses []*expression.Address, a *expression.Address, s *record.Stats, bound binding, truth expression.Truth) bool {
	switch a.Metric.Name {
	case "count", "dropped", "offered_rps", "bytes_in", "bytes_out", "status":
		return false
	case "ok", "failed", "error_rate", "failures":
		if s.Failures[drivers.Timeout] == 0 {
			return false
		}
	}
	compares := a.Metric.Diff != ""
	for _, x := range addresses {
		compares = compares || x.Metric.Previous ||
			either(x.Target, bound.target) != either(a.Target, bound.target) ||
			either(x.Phase, bound.phase) != either(a.Phase, bound.phase) ||
			either(x.Scenario, bound.scenario) != either(a.Scenario, bound.scenario)
	}
	return compares || truth != expression.True
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func share(part, whole int64) string {
	return quantity.Value{F: float64(part) / float64(max(whole, 1)), Dim: quantity.Share}.String()
}

func rate(perSecond float64) string { return quantity.Value{F: perSecond, Dim: quantity.Rate}.String() }

func span(ns float64) string { return quantity.Value{F: ns, Dim: quantity.Time}.String() }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
