package verdict

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// View turns what was measured into what is judged.
type View func(*record.Stats) *record.Stats

// AsMeasured leaves everything as it is.
func AsMeasured(s *record.Stats) *record.Stats { return s }

func withoutLag(s *record.Stats) *record.Stats   { return s.WithoutLag() }
func withoutLocal(s *record.Stats) *record.Stats { return s.WithoutFailures(drivers.Local) }

// withoutHoldUps takes away hold-ups down to those of the calm part of the time, and where there were many all of them.
func withoutHoldUps(calm float64) View {
	return func(s *record.Stats) *record.Stats {
		level := calm
		if held, _ := s.HeldUp(); held > crowded {
			level = min(calm, 1-held)
		}
		return s.WithoutHoldUps(level)
	}
}

const (
	// tolerated is the share of arrivals that the generator may be too late to send before a verdict is not trusted.
	tolerated = 0.01
	// saturation is the share of the generator's processors, over a round of at least shortest, above which what it
	// measured may be its own slowness; pausing is that of the time which its garbage collection stopped everything.
	saturation = 0.9
	pausing    = 0.01
	shortest   = time.Second
	// Up to crowded, a share of the time, hold-ups come one by one, and each costs the calls that it hits no more than it
	// lasts. Beyond that what one held up is still waiting when the next comes, and costs add up without a known bound.
	// Beyond starved hardly a call escapes them, and only what two targets did under the same can be compared.
	crowded = 0.1
	starved = 0.5
)

// calms are the shares of the time that are tried as calm: a small one sets many calls aside and takes little from the
// others, a great one the reverse. Those that settle most verdicts come first.
var calms = [...]float64{0.99, 0.95, 0.9, 0.995, 0.98, 0.998, 0.999, 1, 0.75, 0.6, 0.5}

// Reading is what an assertion reads and how it is judged, so that its judgement can be doubted.
type Reading struct {
	Addresses []*expression.Address
	Stats     []*record.Stats // of all the addresses, and of what they are compared with
	Compares  bool            // several cells or stages, or an earlier run
	Judge     func(View) expression.Judgement
}

// Doubt says why a judgement is not trusted, "" if it is: it turns when what the generator did itself is taken away, which
// is its lateness, its hold-ups, and the failures for which this machine had no descriptors or ports left.
//
// A slow generator makes times longer, rates lower and time-outs more, never the other way. So it fails most assertions on one
// cell rather than passing them, and one that is true however slow it was stays so. But it can also pass those that want a
// time long, or a time short beside another one, and a comparison it can turn either way.
func (r *Reading) Doubt(measured expression.Judgement) string {
	if without := r.Judge(withoutLag); without.Truth != measured.Truth {
		return "the generator's own lateness decides it: without it " + figures(without)
	}
	if without := r.Judge(withoutLocal); without.Truth != measured.Truth {
		return "failures of this machine itself decide it, which had no descriptors, ports or memory left: without them " + figures(without)
	}
	if !slices.ContainsFunc(r.Addresses, slowed(r.Stats)) {
		return ""
	}
	share, text := heldUp(r.Stats)
	switch {
	case share == 0:
		return ""
	case share > starved && !r.Compares && measured.Truth != expression.True:
		return text + ": what was measured may be its own slowness"
	}
	without := r.Judge(withoutHoldUps(1 - share))
	if without.Truth == measured.Truth {
		return ""
	}
	for _, calm := range calms {
		if r.Judge(withoutHoldUps(calm)).Truth == measured.Truth {
			return ""
		}
	}
	return text + ", and that may decide it: without it, at best, " + figures(without)
}

func figures(j expression.Judgement) string {
	return fmt.Sprintf("the value is %s, the limit %s", or(j.Value, "no data"), or(j.Limit, "no data"))
}

// heldUp is the greatest share of the time that the generator was held up while any of some samples were taken, in words.
func heldUp(stats []*record.Stats) (greatest float64, text string) {
	for _, s := range stats {
		if held, longest := s.HeldUp(); held > greatest {
			greatest = held
			text = fmt.Sprintf("the generator was held up for %s of the time, by up to %s", quantity.Value{F: math.Round(1000*held) / 1000, Dim: quantity.Share}, span(float64(longest)))
		}
	}
	return greatest, text
}

// slowed tells whether a slow generator changes what an address reads: times, rates, and what comes of a time-out. Answers,
// other failures and what was planned it leaves as they are.
func slowed(stats []*record.Stats) func(*expression.Address) bool {
	var dropped, timedOut int64
	for _, s := range stats {
		dropped += s.Dropped
		timedOut += s.Failures[drivers.Timeout]
	}
	return func(a *expression.Address) bool {
		switch a.Metric.Name {
		case "offered_rps", "bytes_in", "bytes_out", "status":
			return false
		case "count", "dropped":
			return dropped > 0
		case "ok":
			return dropped+timedOut > 0
		case "failed", "error_rate", "failures":
			return timedOut > 0
		}
		return a.Metric.Group != "lag"
	}
}

func tooLate(s *record.Stats) string {
	return fmt.Sprintf("the generator was too late to send %d of %d arrivals, %s; no more than 1%% is tolerated",
		s.DroppedByLag, s.Due(), share(s.DroppedByLag, s.Due()))
}

// taint says why what a row reads can't be trusted whatever it says, "" if it can: the generator missed too many arrivals,
// samples were lost, a search found the generator's limit, or the generator had no processor time left and could have
// turned the verdict by that.
func (b *bench) taint(r *Reading, bound binding, truth expression.Truth) string {
	turns := (r.Compares || truth != expression.True) && slices.ContainsFunc(r.Addresses, slowed(r.Stats))
	for _, a := range r.Addresses {
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
		if reason := busy(c); reason != "" && turns {
			return reason
		}
	}
	return ""
}

// reading is what a row reads: stats are those of its addresses in their order, which a window has of its own.
func (b *bench) reading(addresses []*expression.Address, bound binding, stats func(from *bench, a *expression.Address) *record.Stats, judge func(View) expression.Judgement) *Reading {
	r := &Reading{Addresses: addresses, Judge: judge}
	add := func(from *bench, a *expression.Address) {
		if s := stats(from, a); s != nil {
			r.Stats = append(r.Stats, s)
		}
	}
	first := addresses[0]
	for _, a := range addresses {
		add(b, a)
		switch {
		case a.Metric.Previous:
			add(b.previous, a)
		case a.Metric.Diff != "":
			reference := *a
			reference.Target = b.targets[b.run.Reference]
			add(b, &reference)
		}
		r.Compares = r.Compares || a.Metric.Diff != "" || a.Metric.Previous ||
			either(a.Target, bound.target) != either(first.Target, bound.target) ||
			either(a.Phase, bound.phase) != either(first.Phase, bound.phase) ||
			either(a.Scenario, bound.scenario) != either(first.Scenario, bound.scenario) ||
			a.Stage != first.Stage || a.Ramp != first.Ramp
	}
	return r
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
