package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/quantity"
)

// Smells are what is allowed and most likely not meant: percentiles of too few samples, comparisons of unequal loads, payloads
// and iterations, and differences that no interval can be given for.
func (p *Plan) Smells() diag.Findings {
	out := p.unequalTargets()
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
					note(ad, "phase %s has %s, and an upper bound for %s needs %d", ph.Name, counted(n, "iteration"), ad.Metric, Needed(ad.Metric.Percentile))
				}
			}
			if ad.Metric.Diff != "" && !ad.Metric.Previous && ad.Metric.Bound != "" {
				if ph, _ := p.fewestRounds(ad, a.Scenario, a.Phase); ph != nil && ph.Rounds < 6 {
					note(ad, "phase %s has %s, and a difference has an interval from 6 rounds up: .%s is no data", ph.Name, counted(ph.Rounds, "round"), ad.Metric.Bound)
				}
			}
		}
		for _, compared := range a.Compared() {
			p.unequalRates(a, compared, note)
			p.unequalScenarios(compared, note)
		}
	}
	out.Mask(p.Secrets.Clean)
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

// counted is a number of things: "1 round", "2 rounds".
func counted[T int | int64](n T, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
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

// unequalRates finds times that are compared although they were measured under different loads.
func (p *Plan) unequalRates(a *Assertion, compared []*expression.Address, note func(*expression.Address, string, ...any)) {
	var first *Phase
	for _, ad := range compared {
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

// unequalScenarios finds times of combinations of one matrix that are compared although their iterations make different
// numbers of calls.
func (p *Plan) unequalScenarios(compared []*expression.Address, note func(*expression.Address, string, ...any)) {
	var first *Scenario
	for _, ad := range compared {
		i := slices.IndexFunc(p.Scenarios, func(s *Scenario) bool { return s.Name == ad.Scenario })
		if i < 0 || ad.Metric.Dim != quantity.Time || ad.Step != "" || p.Scenarios[i].matrix == "" {
			continue
		}
		s := p.Scenarios[i]
		switch {
		case first == nil:
			first = s
		case first.matrix == s.matrix && first.calls(0) != s.calls(0):
			note(ad, "this compares unequal iterations: one of %s has %s, one of %s has %s", first.Name, callsOf(first.calls(0)), s.Name, callsOf(s.calls(0)))
			return
		}
	}
}

func callsOf(n float64) string {
	if n == math.Trunc(n) {
		return counted(int64(n), "call")
	}
	return fmt.Sprintf("%.3g calls on average", n)
}

// calls is how many calls an iteration makes for a target, on average over a mix. A condition that only the run decides
// counts as true.
func (s *Scenario) calls(target int) float64 {
	if s.Flow == nil {
		return float64(len(s.Steps))
	}
	return callsIn(s.Flow, target)
}

func callsIn(parts []*Part, target int) float64 {
	sum := 0.0
	for _, p := range parts {
		n := 0.0
		switch {
		case p.never(target):
		case p.Call != NoCall:
			n = 1
		case p.Mix != nil:
			for i, branch := range p.Mix.Branches {
				n += p.Mix.Share(i) * callsIn([]*Part{branch}, target)
			}
		default:
			n = callsIn(p.Parts, target)
		}
		sum += n * float64(p.Repeat)
	}
	return sum
}

// never tells whether the condition of a part is false for a target, whatever the call.
func (p *Part) never(target int) bool {
	if p.When == nil {
		return false
	}
	v, constant := p.When[target].Constant()
	return constant && (v == nil || v == false)
}

// unequalTargets finds steps that do not ask the same of every target, or that some targets are not asked for: what the
// results show side by side are times of different work.
func (p *Plan) unequalTargets() diag.Findings {
	var out diag.Findings
	warn := func(at diag.Place, end int, format string, args ...any) {
		f := diag.Finding{Place: at, EndColumn: end, Severity: diag.Warning, Message: fmt.Sprintf(format, args...)}
		if !slices.ContainsFunc(out, func(g diag.Finding) bool { return g.Place == f.Place }) { // of another combination of a matrix
			out = append(out, f)
		}
	}
	for _, s := range p.Scenarios {
		for i := range p.Targets {
			if i == p.Reference {
				continue
			}
			for _, step := range s.Steps {
				if said, at := p.unlike(step, p.Reference, i); len(said) > 0 {
					if more := len(said) - 3; more > 0 {
						said = append(said[:3], fmt.Sprintf("and %d more", more))
					}
					warn(at.place, at.end, "this compares unequal payloads: %s", strings.Join(said, "; "))
				}
			}
			if n, m := s.calls(p.Reference), s.calls(i); n != m {
				at := s.Place
				if part := firstUnlike(s.Flow, p.Reference, i); part != nil {
					at = part.Place
				}
				warn(at, 0, "this compares unequal iterations: one of %s has %s for %s, and %s for %s", s.Name, callsOf(n), p.Targets[p.Reference].Name, callsOf(m), p.Targets[i].Name)
			}
		}
	}
	return out
}

// firstUnlike is the innermost part that is run for one target and not for the other; nil if there is none.
func firstUnlike(parts []*Part, i, j int) *Part {
	for _, p := range parts {
		if p.never(i) != p.never(j) {
			return p
		}
		inner := p.Parts
		if p.Mix != nil {
			inner = p.Mix.Branches
		}
		if found := firstUnlike(inner, i, j); found != nil {
			return found
		}
	}
	return nil
}
