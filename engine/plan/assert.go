package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
)

// writtenAssertion is an assertion as it stands in the file, before there are names to parse it with.
type writtenAssertion struct {
	n               *node
	place           diag.Place
	scenario, phase string
	long            longForm
}

// asserts decodes a list of assertions, or a single one.
func (b *binder) asserts(n *node, scenario, phase string) []*writtenAssertion {
	if n == nil {
		return nil
	}
	items := []*node{n}
	if n.shape == sequence {
		items = b.unsplit(n)
	}
	var out []*writtenAssertion
	for _, it := range items {
		var long longForm
		if it.isLong(b.format.long) {
			if it, long = b.longForm(it); it == nil {
				continue
			}
		}
		for _, e := range b.expressions(it) {
			out = append(out, &writtenAssertion{e, b.place(e), scenario, phase, long})
		}
	}
	return out
}

// assertions parses all assertions of a plan. Where the plan itself has faults, only those faults are noted that don't
// depend on them.
func (b *binder) assertions(p *Plan, written []*writtenAssertion, complete bool) {
	for _, w := range written {
		var a *expression.Assertion
		var errs []*expression.Error
		if tainted := b.watch(func() { a, errs = expression.ParseAssertion(w.n.text, b.names) }); tainted {
			continue
		}
		if len(errs) > 0 {
			b.explain(w.n, errs)
			continue
		}
		if complete && !(b.fits(p, w, a) && b.fitsLong(p, w, a)) {
			continue
		}
		if w.long.out {
			continue
		}
		p.Assertions = append(p.Assertions, &Assertion{
			Assertion: a, Text: w.n.text, Place: b.textPlace(w.n), Scenario: w.scenario, Phase: w.phase,
			Warn: w.long.warn, Window: w.long.window, Abort: w.long.abort, After: w.long.after,
		})
	}
}

// textPlace is where the text of a scalar begins, behind its quote if it has one.
func (b *binder) textPlace(n *node) diag.Place {
	if p := b.places(n); len(p) > 0 {
		return diag.Place{File: b.of(n).file, Line: p[0].line, Column: p[0].col}
	}
	return b.place(n)
}

// fits checks that each address of an assertion leads somewhere: what leads nowhere would never be judged.
func (b *binder) fits(p *Plan, w *writtenAssertion, a *expression.Assertion) bool {
	ok := true
	for _, ad := range a.Addresses() {
		fault := func(message, hint string) {
			b.within(w.n, ad.Offset, ad.Length, message, hint)
			ok = false
		}
		switch {
		case w.scenario != "" && ad.Scenario != "" && ad.Scenario != w.scenario:
			fault(fmt.Sprintf("an assertion of scenario %s can't name scenario %s", w.scenario, ad.Scenario), "write it in the assert: of the plan")
		case w.phase != "" && ad.Phase != "" && ad.Phase != w.phase:
			fault(fmt.Sprintf("an assertion of phase %s can't name phase %s", w.phase, ad.Phase), "write it in the assert: of the scenario")
		case ad.Metric.Diff != "" && !ad.Metric.Previous && len(p.Targets) < 2:
			fault(ad.Metric.Diff+" compares targets, and the plan has one", "")
		case !p.leads(ad, w.scenario, w.phase):
			fault(b.nowhere(ad, w), "")
		}
	}
	return ok
}

// leads tells whether an address, written in a scenario and a phase or outside of them, has a cell.
func (p *Plan) leads(ad *expression.Address, scenario, phase string) bool {
	fits := func(s *Scenario, ph *Phase) bool {
		return (ad.Scenario == "" || ad.Scenario == s.Name) && (scenario == "" || scenario == s.Name) &&
			(ad.Phase == "" || ad.Phase == ph.Name) && (phase == "" || phase == ph.Name) &&
			p.hasTarget(ad.Target) && s.hasStep(ad.Step, ad.Around)
	}
	for _, s := range p.Scenarios {
		for _, ph := range s.Phases {
			if fits(s, ph) && ph.hasStage(ad) && (ad.Metric.Name != "rate_held" || ph.Capacity != nil) {
				return true
			}
			if bg := ph.Background; bg != nil && fits(bg.Scenario, ph) && ad.Stage == "" && !ad.Ramp && ad.Metric.Name != "rate_held" {
				return true
			}
		}
	}
	return false
}

// hasStep tells whether a scenario has samples of a step, group or branch that lies within others; of "" it has always.
func (s *Scenario) hasStep(name string, around []string) bool {
	known := name == "" || slices.Contains(s.Groups, name) || slices.ContainsFunc(s.Steps, func(st *Step) bool { return st.Name == name })
	if !known {
		return false
	}
	for outer := s.Around[name]; outer != ""; outer = s.Around[outer] {
		around = slices.DeleteFunc(slices.Clone(around), func(a string) bool { return a == outer })
	}
	return len(around) == 0
}

func (p *Plan) hasTarget(name string) bool {
	for _, t := range p.Targets {
		if name == "" || t.Name == name {
			return true
		}
	}
	return false
}

func (ph *Phase) hasStage(ad *expression.Address) bool {
	if ad.Stage == "" && !ad.Ramp {
		return true
	}
	for _, st := range ph.Stages {
		if st.Ramp == ad.Ramp && (ad.Stage == "" || ad.Stage == st.Name) {
			return true
		}
	}
	return false
}

// nowhere says why an address leads nowhere.
func (b *binder) nowhere(ad *expression.Address, w *writtenAssertion) string {
	scenario := ad.Scenario
	if scenario == "" {
		scenario = w.scenario
	}
	what := "the plan"
	if scenario != "" {
		what = "scenario " + scenario
	}
	var parts []string
	if ad.Metric.Name == "rate_held" && ad.Stage == "" && !ad.Ramp {
		return "rate_held is of a capacity phase, and there is none that this leads to"
	}
	if ph := ad.Phase; ph != "" {
		parts = append(parts, "phase "+ph)
	} else if w.phase != "" {
		what = "phase " + w.phase
	}
	if ad.Step != "" {
		step := "step " + ad.Step
		if len(ad.Around) > 0 {
			step += " in " + strings.Join(ad.Around, " and ")
		}
		parts = append(parts, step)
	}
	if ad.Stage != "" {
		parts = append(parts, "stage "+ad.Stage)
	}
	if ad.Ramp {
		parts = append(parts, "ramp")
	}
	if len(parts) == 0 {
		return "nothing is measured that this could be judged by"
	}
	return what + " has no " + strings.Join(parts, " with ")
}
