package verdict

import (
	"slices"

	"github.com/planrun/planrun/engine/compare"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// bench is the run that is judged, by the names that assertions use. It implements expression.Names.
type bench struct {
	run       *result.Run
	previous  *bench // nil if there is none
	vars      map[string]string
	strict    bool
	windows   map[windowKey]*record.Stats
	remarks   []string
	fewest    map[string]fewSamples // by percentile: the fewest samples that one was asserted of
	cells     map[cellName]*result.CellResult
	scenarios []string
	phases    []string // of all scenarios, each once
	targets   []string
	kinds     map[string]expression.Kind
	names     []string
}

type cellName struct{ scenario, phase, target string }

func newBench(run *result.Run, c Case) *bench {
	b := &bench{run: run, vars: c.Vars, strict: c.Strict, fewest: map[string]fewSamples{}, cells: map[cellName]*result.CellResult{}, kinds: map[string]expression.Kind{}}
	if c.Previous != nil {
		b.previous = newBench(c.Previous, Case{})
	}
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
			if s.Kind == "hold" {
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

// Within tells whether a step lies within a group or branch.
func (b *bench) Within(inner, outer string) bool {
	return slices.ContainsFunc(b.run.Cells, func(c *result.CellResult) bool {
		_, known := c.Step(inner, []string{outer})
		return known
	})
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
		free.difference = free.difference || a.Metric.Diff != "" && !a.Metric.Previous && a.Target == ""
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
				if !slices.ContainsFunc(addresses, func(a *expression.Address) bool { return b.stats(a, bound, result.Pooled) == nil }) {
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

// stats is what an address reads in a row, in one round or in all of them; nil if the run has no such cell, stage or step.
func (b *bench) stats(a *expression.Address, bound binding, round int) *record.Stats {
	c := b.cell(a, bound)
	if c == nil || a.Metric.Name == "rate_held" && !c.IsCapacity() {
		return nil
	}
	return statsOf(c, a, round)
}

// statsOf is the part of a cell that an address reads: the judged stages together, a stage of its own, or the ramps. Of a
// capacity search it is the holds that confirm the answer, and has no data while there are none.
func statsOf(c *result.CellResult, a *expression.Address, round int) *record.Stats {
	step := record.Whole
	if a.Step != "" {
		var known bool
		if step, known = c.Step(a.Step, a.Around); !known {
			return nil
		}
	}
	stage := result.Judged
	switch {
	case a.Ramp:
		stage = result.Ramps
	case a.Stage != "":
		stage = slices.IndexFunc(c.Stages, func(s result.Stage) bool { return s.Name == a.Stage })
	case c.IsCapacity():
		return c.Stats(round, stage, step)
	}
	if !slices.ContainsFunc(c.Stages, func(s result.Stage) bool { return s.Reads(a.Stage, a.Ramp) }) {
		return nil
	}
	return c.Stats(round, stage, step)
}

// measure reads the metric of an address, without a difference, in one round or in all of them.
func (b *bench) measure(a *expression.Address, bound binding, round int, v View) (float64, bool) {
	if b == nil {
		return 0, false
	}
	s := b.stats(a, bound, round)
	if s == nil {
		return 0, false
	}
	if a.Metric.Name == "rate_held" {
		return b.cell(a, bound).RateHeld(round)
	}
	return metric.Value(v(s), MetricOf(a.Metric))
}

// side is an address over the rounds of its cell.
func (b *bench) side(a *expression.Address, bound binding, v View) compare.Side {
	if b == nil {
		return compare.Side{}
	}
	c := b.cell(a, bound)
	if c == nil {
		return compare.Side{}
	}
	return compare.Measure(len(c.Rounds), func(round int) (float64, bool) { return b.measure(a, bound, round, v) })
}

// difference is what delta and change are made of: an address against the reference target, or against the earlier run.
func (b *bench) difference(a *expression.Address, bound binding, v View) (compare.Difference, bool) {
	if a.Metric.Previous {
		return compare.Of(b.previous.side(a, bound, v), b.side(a, bound, v))
	}
	reference := *a
	reference.Target = b.targets[b.run.Reference]
	return compare.Of(b.side(&reference, bound, v), b.side(a, bound, v))
}

// value reads an address in a row.
func (b *bench) value(a *expression.Address, bound binding, v View) (float64, bool) {
	if a.Metric.Diff == "" {
		from := b
		if a.Metric.Previous {
			from = b.previous
		}
		return from.measure(a, bound, result.Pooled, v)
	}
	change, ok := b.change(a, bound, v)
	switch {
	case !ok:
		return 0, false
	case a.Metric.Bound == "low":
		return change.Low, change.Interval
	case a.Metric.Bound == "high":
		return change.High, change.Interval
	}
	return change.Value, true
}

// change is the difference of an address, absolute for delta and relative for change.
func (b *bench) change(a *expression.Address, bound binding, v View) (compare.Change, bool) {
	d, ok := b.difference(a, bound, v)
	c := d.Absolute
	if a.Metric.Diff == "change" {
		c = d.Relative
	}
	return c, ok && c.Known
}

// MetricOf is the metric of an address, without what it is compared with.
func MetricOf(m expression.Metric) metric.Metric {
	return metric.Metric{Name: m.Name, Group: m.Group, Percentile: m.Percentile, Within: m.Within, Status: m.Status, Failure: m.Failure}
}
