package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
)

// selection is one entry of --only: a part that is empty was left out and means "each".
type selection struct{ text, scenario, phase, target, tag string }

// only cuts the plan down to what the command line asks for.
func (b *binder) only(p *Plan, uses *[]*scenarioUse) {
	var entries []selection
	for _, text := range b.opt.Only {
		if e, ok := b.selection(text); ok {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return
	}
	targets := map[string]bool{} // of the first phase that is kept
	var from string              // its entry
	var scenarios []*Scenario
	var kept []*scenarioUse
	used := make([]bool, len(entries))
	for i, s := range p.Scenarios {
		var phases []*Phase
		for _, ph := range s.Phases {
			mine := map[string]bool{}
			by := ""
			for j, e := range entries {
				if e.scenario != "" && e.scenario != s.Name || e.phase != "" && e.phase != ph.Name {
					continue
				}
				if e.tag != "" && !slices.Contains(s.Tags, e.tag) && !slices.Contains(ph.Tags, e.tag) {
					continue
				}
				used[j], by = true, e.text
				for _, t := range p.Targets {
					if e.target == "" || e.target == t.Name {
						mine[t.Name] = true
					}
				}
			}
			if len(mine) == 0 {
				continue
			}
			phases = append(phases, ph)
			if from == "" {
				targets, from = mine, by
			} else if !maps.Equal(targets, mine) {
				b.command("--only", "run planrun once for each", "%s and %s choose different targets, but all scenarios of a run have the same ones", from, by)
				return
			}
		}
		if len(phases) > 0 {
			c := *s
			c.Phases = phases
			scenarios = append(scenarios, &c)
			kept = append(kept, (*uses)[i])
		}
	}
	for j, e := range entries {
		if !used[j] && e.tag != "" {
			all := p.tags()
			hint := "the plan has no tags"
			if near := diag.Suggest(e.tag, all); near != "" {
				hint = "did you mean @" + near + "?"
			} else if len(all) > 0 {
				hint = "tags are " + strings.Join(all, ", ")
			}
			b.command("--only", hint, "no scenario or phase has the tag %q", e.tag)
			return
		}
		if !used[j] && e.phase == "" {
			b.command("--only", "name the scenario that it runs along with", "scenario %s has no phases of its own: it runs in the background of others", e.scenario)
			return
		}
		if !used[j] {
			b.command("--only", "", "scenario %s has no phase %s", e.scenario, e.phase)
			return
		}
	}
	p.Scenarios, *uses = scenarios, kept
	reference := p.Targets[p.Reference].Name
	b.cutTargets(p, targets)
	b.cutAssertions(p, reference)
}

// selection reads an entry of --only.
func (b *binder) selection(text string) (selection, bool) {
	e := selection{text: text}
	if tag, ok := strings.CutPrefix(text, "@"); ok {
		e.tag = tag
		return e, true
	}
	for name := range strings.SplitSeq(text, ".") {
		kind, known := b.names.Kind(name)
		part := map[expression.Kind]*string{expression.Scenario: &e.scenario, expression.Phase: &e.phase, expression.Target: &e.target}[kind]
		if !known || part == nil {
			var all []string
			for _, n := range b.names.all {
				if k := b.names.kinds[n]; k == expression.Scenario || k == expression.Phase || k == expression.Target {
					all = append(all, n)
				}
			}
			hint := nearest(name, "", all, "names are "+strings.Join(all, ", "))
			b.command("--only", hint, "there is no scenario, phase or target %q", name)
			return e, false
		}
		if *part != "" {
			b.command("--only", fmt.Sprintf("write --only %s --only %s for both", *part, name), "%s names two %ss, and nothing is both", text, kind)
			return e, false
		}
		*part = name
	}
	return e, true
}

// tags lists the tags of the plan.
func (p *Plan) tags() []string {
	all := map[string]bool{}
	for _, s := range p.Scenarios {
		for _, t := range s.Tags {
			all[t] = true
		}
		for _, ph := range s.Phases {
			for _, t := range ph.Tags {
				all[t] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// cutTargets leaves the plan with the targets that are kept.
func (b *binder) cutTargets(p *Plan, kept map[string]bool) {
	reference := p.Targets[p.Reference].Name
	var targets []Target
	var index []int
	p.Reference = 0
	for i, t := range p.Targets {
		if kept[t.Name] {
			if t.Name == reference {
				p.Reference = len(targets)
			}
			targets = append(targets, t)
			index = append(index, i)
		}
	}
	for _, s := range p.everyFlow() {
		for _, list := range []*[]*Step{&s.Steps, &s.Unseen} {
			steps := slices.Clone(*list)
			for i, st := range steps {
				c := *st
				c.Actions = nil
				for _, j := range index {
					c.Actions = append(c.Actions, st.Actions[j])
				}
				steps[i] = &c
			}
			*list = steps
		}
		s.Flow = cutConditions(s.Flow, index)
	}
	p.Targets = targets
}

// everyFlow lists everything of a plan that makes calls, each once.
func (p *Plan) everyFlow() (all []*Scenario) {
	add := func(s *Scenario) {
		if s != nil && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	add(p.Before)
	for _, s := range p.Scenarios {
		add(s.Before)
		add(s)
		add(s.After)
		for _, ph := range s.Phases {
			if ph.Background != nil {
				add(ph.Background.Scenario)
			}
		}
	}
	add(p.After)
	return all
}

// cutConditions returns a flow with the conditions of some targets.
func cutConditions(parts []*Part, index []int) []*Part {
	out := slices.Clone(parts)
	for i, p := range out {
		c := *p
		if p.When != nil {
			c.When = nil
			for _, j := range index {
				c.When = append(c.When, p.When[j])
			}
		}
		c.Parts = cutConditions(p.Parts, index)
		if p.Mix != nil {
			m := *p.Mix
			m.Branches = cutConditions(m.Branches, index)
			c.Mix = &m
		}
		out[i] = &c
	}
	return out
}

// cutAssertions drops the assertions that read something that is not measured in this run.
func (b *binder) cutAssertions(p *Plan, reference string) {
	p.Assertions = slices.DeleteFunc(p.Assertions, func(a *Assertion) bool {
		for _, ad := range a.Addresses() {
			compares := ad.Metric.Diff != "" && !ad.Metric.Previous
			if !p.leads(ad, a.Scenario, a.Phase) || compares && (len(p.Targets) < 2 || !p.hasTarget(reference)) {
				if !p.leads(&expression.Address{}, a.Scenario, a.Phase) {
					return true // it belongs to what was cut, and nobody misses it
				}
				b.add(diag.Finding{
					Place: a.Place, EndColumn: a.Place.Column + len([]rune(a.Text)), Severity: diag.Warning,
					Message: "this assertion is not judged: --only leaves out what it reads",
				})
				return true
			}
		}
		return false
	})
}
