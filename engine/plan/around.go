package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/planrun/planrun/engine/expression"
)

// around decodes the steps before or after a load; nil if there are none.
func (b *binder) around(s *section, key string, outer defaults, use *scenarioUse) *Scenario {
	n := s.node(key)
	if n == nil {
		return nil
	}
	sc := &Scenario{Name: key, Place: b.place(s.n.keyOf(key))}
	f := b.newFlow(sc, outer, use)
	f.quiet = true
	f.finish(f.steps(n, s.n.keyOf(key)))
	sc.Captures = b.values
	if len(sc.Steps) == 0 {
		return nil
	}
	return sc
}

// Background is a scenario that runs along with a phase, from its release to its end.
type Background struct {
	Scenario *Scenario
	Users    int
}

// alongside is a background as it is written.
type alongside struct {
	phase    *Phase
	scenario string // that the phase is of
	node     *node
	name     string
	users    int
}

// background notes what runs along with a phase. The scenario may be written further down.
func (b *binder) background(s *section, ph *Phase, scenario string) {
	n := s.node("background")
	if n == nil {
		return
	}
	a := &alongside{phase: ph, scenario: scenario, node: n, users: 1}
	switch n.shape {
	case scalar:
		a.name = n.text
	default:
		inner := b.section(n, s.n.keyOf("background"), b.format.background, b.scope)
		v, ok := inner.values["scenario"]
		if !ok {
			return
		}
		a.name, a.node, a.users = v.text, v.node, int(inner.whole("users", 1))
		b.bounded(inner, "users", a.users)
	}
	b.along = append(b.along, a)
}

// backgrounds finds the scenarios that run along with phases, and those that nothing runs.
func (b *binder) backgrounds(p *Plan) {
	used := map[string]bool{}
	var names []string
	for _, s := range p.Scenarios {
		names = append(names, s.Name)
	}
	cells := map[[2]string]*alongside{}
	for _, a := range b.along {
		used[a.name] = true
		i := slices.Index(names, a.name)
		switch {
		case i < 0:
			if k, ok := b.names.kinds[a.name]; ok && k == expression.Scenario {
				continue // it has faults of its own
			}
			hint := nearest(a.name, "", names, "scenarios are "+strings.Join(names, ", "))
			b.on(a.node, hint, "there is no scenario %q", a.name)
		case a.name == a.scenario:
			b.on(a.node, "give it more users, or write another scenario", "scenario %s can't run along with itself", a.name)
		case cells[[2]string{a.name, a.phase.Name}] != nil && b.faults() == 0:
			b.on(a.node, "give one of the phases a name: of its own", "%s runs along with two phases called %s, and its samples could not be told apart", a.name, a.phase.Name)
		default:
			cells[[2]string{a.name, a.phase.Name}] = a
			sc := p.Scenarios[i]
			if slices.ContainsFunc(sc.Phases, func(ph *Phase) bool { return ph.Name == a.phase.Name }) {
				b.on(a.node, "give one of the phases a name: of its own", "scenario %s has a phase %s of its own, and their samples could not be told apart", a.name, a.phase.Name)
				continue
			}
			if len(sc.Phases) == 0 && (sc.Before != nil || sc.After != nil) {
				b.atPlace(sc.Place, "before and after stand around phases, and scenario "+sc.Name+" has none", "write them in scenario "+a.scenario)
			}
			a.phase.Background = &Background{Scenario: sc, Users: a.users}
			sc.IsBackground = true
		}
	}
	for _, s := range p.Scenarios {
		if len(s.Phases) == 0 && !used[s.Name] && b.faults() == 0 {
			b.atPlace(s.Place, "scenario "+s.Name+" has no phases, and no phase runs it in the background", "write phases: and - single, or background: "+s.Name+" in a phase")
		}
	}
}

// ownTimeout is that of a scenario, for where no phase says more.
func (b *binder) ownTimeout(around *node) time.Duration {
	n := around.value("timeout")
	if n == nil {
		return 30 * time.Second
	}
	v, ok := b.simple(n, find(b.format.scenario, "timeout"), b.scope)
	if !ok {
		return 30 * time.Second
	}
	return v.d
}

// tags decodes tags.
func (b *binder) tags(n *node) []string {
	var out []string
	for _, it := range listOf(n) {
		if it.shape != scalar || strings.TrimSpace(it.text) == "" || strings.ContainsAny(it.text, " ,@") {
			b.on(it, "", "expected a tag, which is one word without @ and commas")
			continue
		}
		out = append(out, it.text)
	}
	return out
}
