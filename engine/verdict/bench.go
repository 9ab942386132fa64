package verdict

import (
	"slices"

	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// bench is the run that is judged, by the names that assertions use. It implements expression.Names.
type bench struct {
	run       *result.Run
	vars      map[string]string
	cells     map[cellName]*result.CellResult
	scenarios []string
	phases    []string // of all scenarios, each once
	targets   []string
	kinds     map[string]expression.Kind
	names     []string
}

type cellName struct{ scenario, phase, target string }

func newBench(run *result.Run, vars map[string]string) *bench {
	b := &bench{run: run, vars: vars, cells: map[cellName]*result.CellResult{}, kinds: map[string]expression.Kind{}}
	learn := func(list []string, name string, kind expression.Kind) []string {
		if name == "" || slices.Contains(list, name) {
			return list
		}
		b.kinds[name] = kind
		b.names = append(b.names, name)
		return append(list, name)
	}
	var steps, stages []string
	for _, t := range run.Targets {
		b.targets = learn(b.targets, t.Name, expression.Target)
	}
	for _, c := range run.Cells {
		b.cells[cellName{c.Scenario, c.Phase, c.Target}] = c
		b.scenarios = learn(b.scenarios, c.Scenario, expression.Scenario)
		b.phases = learn(b.phases, c.Phase, expression.Phase)
		for _, s := range c.Steps {
			steps = learn(steps, s.Name, expression.Step)
		}
		for _, s := range c.Stages {
			if s.Kind != "ramp" {
				stages = learn(stages, s.Name, expression.Stage)
			}
		}
	}
	return b
}

// Kind says what an identifier of an address names.
func (b *bench) Kind(name string) (expression.Kind, bool) {
	k, ok := b.kinds[name]
	return k, ok
}

// All lists the names that an address may have.
func (b *bench) All() []string { return b.names }

// Root resolves vars.
func (b *bench) Root(name string) expression.Root {
	if name != "vars" {
		return nil
	}
	return func(path []string) (any, int, error) {
		if len(path) == 0 {
			return nil, 0, &expression.NameError{Index: -1, Message: "expected a name after vars"}
		}
		v, ok := b.vars[path[0]]
		if !ok {
			return nil, 0, &expression.NameError{Index: 0, Message: "unknown variable " + path[0]}
		}
		return v, 1, nil
	}
}

// binding is what the names that an assertion leaves out stand for in one row; "" where it names them all.
type binding struct{ scenario, phase, target string }

// bindings lists the rows of an assertion: what its addresses leave out means each, bound alike in all of them.
func (b *bench) bindings(addresses []*expression.Address, written result.Assertion) []binding {
	var free struct{ scenario, phase, target, difference bool }
	for _, a := range addresses {
		free.scenario = free.scenario || a.Scenario == ""
		free.phase = free.phase || a.Phase == ""
		free.target = free.target || a.Target == ""
		free.difference = free.difference || a.Metric.Diff != "" && a.Target == ""
	}
	choose := func(free bool, inside string, all []string) []string {
		switch {
		case inside != "":
			return []string{inside}
		case free:
			return all
		}
		return []string{""}
	}
	targets := choose(free.target, "", b.targets)
	if free.difference {
		targets = slices.Delete(slices.Clone(targets), b.run.Reference, b.run.Reference+1)
	}
	var list []binding
	for _, s := range choose(free.scenario, written.Scenario, b.scenarios) {
		for _, p := range choose(free.phase, written.Phase, b.phases) {
			for _, t := range targets {
				bound := binding{s, p, t}
				if !slices.ContainsFunc(addresses, func(a *expression.Address) bool { return b.stats(a, bound) == nil }) {
					list = append(list, bound)
				}
			}
		}
	}
	return list
}

// cell is where an address leads to in a row; nil if there is no such cell.
func (b *bench) cell(a *expression.Address, bound binding) *result.CellResult {
	return b.cells[cellName{either(a.Scenario, bound.scenario), either(a.Phase, bound.phase), either(a.Target, bound.target)}]
}

func either(written, bound string) string {
	if written != "" {
		return written
	}
	return bound
}

// stats is what an address reads in a row; nil if the run has no such cell, stage or step.
func (b *bench) stats(a *expression.Address, bound binding) *record.Stats {
	c := b.cell(a, bound)
	if c == nil {
		return nil
	}
	return statsOf(c, a)
}

// statsOf is the part of a cell that an address reads: the judged stages together, a stage of its own, or the ramps.
func statsOf(c *result.CellResult, a *expression.Address) *record.Stats {
	step := record.Whole
	if a.Step != "" {
		step = slices.IndexFunc(c.Steps, func(s result.Step) bool { return s.Name == a.Step })
		if step < 0 {
			return nil
		}
	}
	stage := result.Judged
	switch {
	case a.Ramp:
		stage = result.Ramps
	case a.Stage != "":
		stage = slices.IndexFunc(c.Stages, func(s result.Stage) bool { return s.Name == a.Stage })
	}
	if !slices.ContainsFunc(c.Stages, func(s result.Stage) bool {
		return a.Ramp && s.Kind == "ramp" || a.Stage != "" && s.Name == a.Stage || !a.Ramp && a.Stage == "" && s.Judged
	}) {
		return nil
	}
	return c.Stats(result.Pooled, stage, step)
}
