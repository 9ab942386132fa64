package plan

import (
	"fmt"
	"math"

	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/quantity"
)

// Smells are what is allowed and most likely not meant: percentiles of too few samples, comparisons of unequal loads, and
// differences that no interval can be given for.
func (p *Plan) Smells() diag.Findings {
	var out diag.Findings
	for _, a := range p.Assertions {
		note := func(ad *expression.Address, format string, args ...any) {
			place := a.Place
			if !multiline(a.Text) {
				place.Column += ad.Offset
			}
			f := diag.Finding{Place: place, EndColumn: place.Column + ad.Length, Severity: diag.Warning, Message: fmt.Sprintf(format, args...)}
			for _, known := range out {
				if known.File == f.File && known.Line == f.Line && known.Message == f.Message {
					return
				}
			}
			out = append(out, f)
		}
		for _, ad := range a.Addresses() {
			if ad.Metric.Name == "p" {
				if ph, n := p.fewest(ad, a.Scenario, a.Phase); ph != nil && n < Needed(ad.Metric.Percentile) {
					note(ad, "phase %s has %s, and an upper bound for %s needs %d", ph.Name, iterations(n), ad.Metric, Needed(ad.Metric.Percentile))
				}
			}
			if ad.Metric.Diff != "" && !ad.Metric.Previous && ad.Metric.Bound != "" {
				if ph, _ := p.fewestRounds(ad, a.Scenario, a.Phase); ph != nil && ph.Rounds < 6 {
					note(ad, "phase %s has %s, and a difference has an interval from 6 rounds up: .%s is no data", ph.Name, rounds(ph.Rounds), ad.Metric.Bound)
				}
			}
		}
		p.unequal(a, note)
	}
	return out
}

func multiline(text string) bool {
	for _, r := range text {
		if r == '\n' {
			return true
		}
	}
	return false
}

func rounds(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}

func iterations(n int64) string {
	if n == 1 {
		return "1 iteration"
	}
	return fmt.Sprintf("%d iterations", n)
}

// Needed is how many samples have to be there for the greatest of them to be an upper bound of a percentile with 95 %
// confidence: the least n with q^n <= 0.05 (Hahn and Meeker, Statistical Intervals, 1991).
func Needed(percentile float64) int64 {
	q := percentile / 100
	if q <= 0 || q >= 1 {
		return 1
	}
	return int64(math.Ceil(math.Log(0.05)/math.Log(q) - 1e-9))
}

// each calls visit for the phases that an address reads.
func (p *Plan) each(ad *expression.Address, scenario, phase string, visit func(*Scenario, *Phase)) {
	for _, s := range p.Scenarios {
		if ad.Scenario != "" && ad.Scenario != s.Name || scenario != "" && scenario != s.Name || !s.hasStep(ad.Step, ad.Around) {
			continue
		}
		for _, ph := range s.Phases {
			if (ad.Phase == "" || ad.Phase == ph.Name) && (phase == "" || phase == ph.Name) && ph.hasStage(ad) {
				visit(s, ph)
			}
		}
	}
}

// fewest is the phase with the fewest samples among those that an address reads, nil if their numbers are not known before.
func (p *Plan) fewest(ad *expression.Address, scenario, phase string) (least *Phase, n int64) {
	p.each(ad, scenario, phase, func(s *Scenario, ph *Phase) {
		k := ph.judged() * int64(ph.Rounds)
		if ad.Step != "" {
			return // a step may be repeated, or be left out
		}
		if k > 0 && (least == nil || k < n) {
			least, n = ph, k
		}
	})
	return least, n
}

func (p *Plan) fewestRounds(ad *expression.Address, scenario, phase string) (least *Phase, n int) {
	p.each(ad, scenario, phase, func(_ *Scenario, ph *Phase) {
		if least == nil || ph.Rounds < n {
			least, n = ph, ph.Rounds
		}
	})
	return least, n
}

// judged is how many iterations the judged stages of a phase have for certain; 0 if only the run will tell.
func (ph *Phase) judged() int64 {
	if !ph.Open || ph.Capacity != nil {
		return ph.Count
	}
	var n float64
	for _, st := range ph.Stages {
		if st.Judged {
			n += (st.From + st.To) / 2 * st.Length.Seconds()
		}
	}
	return int64(n + 1e-9)
}

// unequal finds times that are compared although they were measured under different loads.
func (p *Plan) unequal(a *Assertion, note func(*expression.Address, string, ...any)) {
	var first *Phase
	for _, ad := range a.Addresses() {
		if ad.Metric.Dim != quantity.Time || ad.Phase == "" || ad.Metric.Previous {
			continue
		}
		var ph *Phase
		p.each(ad, a.Scenario, a.Phase, func(_ *Scenario, found *Phase) { ph = found })
		switch {
		case ph == nil || !ph.Open || ph.Capacity != nil:
			continue
		case first == nil:
			first = ph
		case first.peak() != ph.peak():
			text := func(v float64) string { return quantity.Value{F: v, Dim: quantity.Rate}.String() }
			note(ad, "this compares unequal loads: phase %s has %s, phase %s has %s", first.Name, text(first.peak()), ph.Name, text(ph.peak()))
			return
		}
	}
}

// peak is the greatest rate of the judged stages.
func (ph *Phase) peak() float64 {
	v := 0.0
	for _, st := range ph.Stages {
		if st.Judged {
			v = max(v, st.To)
		}
	}
	return v
}
