package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
)

// defaults are the plan's, as nodes: they are laid under what says otherwise, and each value keeps its own place.
type defaults struct {
	n *node // never nil
}

func (b *binder) defaults(n, key *node) defaults {
	if n == nil {
		return defaults{&node{shape: mapping}}
	}
	s := b.section(n, key, b.format.defaults, b.scope)
	// Blocks of drivers are decoded again with each step that they are laid under. This finds what is wrong with those
	// that no step uses.
	for _, name := range b.format.names {
		if block := s.node(name); block != nil {
			b.checkKeys(block, find(b.format.defaults, name).Keys)
		}
	}
	return defaults{s.n}
}

// checkKeys notes unknown keys of a mapping and of the groups in it.
func (b *binder) checkKeys(n *node, fields []Field) {
	if n.shape != mapping {
		if mainOf(fields) == nil || n.shape != scalar {
			b.wrongShape(n, "a mapping")
		}
		return
	}
	n = b.asMeant(b.indented(n, fields), fields)
	for _, p := range n.pairs {
		f := find(fields, p.key.text)
		switch {
		case b.strayKey(n, p):
		case f == nil:
			b.unknownField(p.key, fields)
		case p.value.shape == empty:
			b.noValue(p.key)
		case f.Kind == drivers.Group && p.value.shape != null:
			b.checkKeys(p.value, f.Keys)
		}
	}
}

// common are the keys that scenarios and phases have of what is around them.
var common = []string{"timeout", "warmup", "rounds", "connections"}

// under returns n laid over those keys of outer.
func under(outer, n *node, keys ...string) *node {
	base := &node{shape: mapping}
	for _, k := range keys {
		if v := outer.value(k); v != nil {
			base.pairs = append(base.pairs, pair{outer.keyOf(k), v})
		}
	}
	return merge(base, n)
}

// scenarioUse is what a scenario uses of each target.
type scenarioUse struct {
	name string
	node *node
	lab  map[string][]*node // by target: where it leads to the lab
}

// scenario decodes a scenario: nil if its name or shape is wrong.
func (b *binder) scenario(key, n *node, outer defaults) (*Scenario, *scenarioUse, []*writtenAssertion) {
	ok := b.declare(key, key.text, expression.Scenario)
	b.read = nil
	switch n.shape {
	case empty, null:
		if n.torn {
			return nil, nil, nil
		}
		b.on(key, "write a step and phases below it", "scenario %s is empty", key.text)
		return nil, nil, nil
	case scalar, sequence:
		b.on(n, "write a step and phases as keys", "expected a scenario, not %s", n.describe())
		return nil, nil, nil
	}
	s := b.section(n, key, b.format.scenario, b.scope)
	sc := &Scenario{Name: key.text, Title: s.text("title"), Place: b.place(key)}
	use := &scenarioUse{name: key.text, node: key, lab: map[string][]*node{}}
	kept := b.values
	b.later = map[string]string{}
	b.capturesIn(n, 0)
	sc.Before = b.around(s, "before", outer, use)
	b.flow(s, sc, key, outer, use)
	sc.After = b.around(s, "after", outer, use)
	b.values = kept
	sc.Tags = b.tags(s.n.value("tags"))

	around := under(outer.n, pick(s.n, common), common...)
	phases := s.n.value("phases")
	if phases == nil {
		phases = outer.n.value("phases")
	}
	sc.Timeout = b.ownTimeout(around)
	written := b.asserts(s.node("assert"), sc.Name, "")
	ps, more := b.phases(phases, key, around, sc.Name)
	sc.Phases = ps
	b.rowsOnce(sc)
	if !ok || len(sc.Steps) == 0 {
		return nil, nil, append(written, more...)
	}
	return sc, use, append(written, more...)
}

// capturesIn notes what the steps below a node capture, for findings of steps that use it too early.
func (b *binder) capturesIn(n *node, depth int) {
	if depth > maxDepth {
		return
	}
	for _, p := range n.entries() {
		if p.key.text == "capture" {
			for _, c := range p.value.entries() {
				b.later[c.key.text] = fmt.Sprintf("it is captured in line %d: a value is known to the steps behind the one that captures it", c.key.line)
			}
		} else if p.value != nil {
			b.capturesIn(p.value, depth+1)
		}
	}
	for _, it := range n.items {
		b.capturesIn(it, depth+1)
	}
}

// pick returns a mapping with some keys of n.
func pick(n *node, keys []string) *node {
	c := *n
	c.pairs = nil
	for _, p := range n.pairs {
		if slices.Contains(keys, p.key.text) {
			c.pairs = append(c.pairs, p)
		}
	}
	return &c
}

// writtenStep is a step as the plan says it for a target, the defaults laid under it.
type writtenStep struct {
	driver          string
	key             *node // of the driver
	n               *node // its fields
	expect, capture *node
}

// flow decodes what a scenario does: one step, or several.
func (b *binder) flow(s *section, sc *Scenario, key *node, outer defaults, use *scenarioUse) {
	kept := b.values
	defer func() { b.values = kept }()
	b.values = slices.Clip(kept)
	first := ""
	for _, p := range s.n.pairs {
		switch k := p.key.text; {
		case k != "steps" && k != "mix" && k != "by_target" && !slices.Contains(b.format.names, k):
		case (k == "steps" || k == "mix") && first != "", first == "steps" || first == "mix":
			b.on(p.key, "put both into steps:", "a scenario has %s or %s, not both", first, k)
			return
		case first == "":
			first = k
		}
	}
	if first != "steps" && first != "mix" {
		if step := b.oneStep(s, key, outer, use); step != nil {
			sc.Steps = []*Step{step}
			sc.Captures = b.values
		}
		return
	}
	if k := s.n.keyOf("expect"); k != nil && s.node("expect") != nil {
		b.on(k, "write it in the step whose answer it is about", "expect belongs to a step")
	}
	f := b.newFlow(sc, outer, use)
	var parts []*Part
	if n := s.node(first); n == nil {
		if s.n.value(first).shape == null {
			b.on(s.n.keyOf(first), "write - http: GET /, or another step", "%s can't be null: it is what the scenario does", first)
		}
		return
	} else if first == "steps" {
		parts = f.steps(n, s.n.keyOf("steps"))
	} else if m := f.mix(n, s.n.keyOf("mix")); m != nil {
		parts = []*Part{{Place: b.place(s.n.keyOf("mix")), Call: NoCall, Sample: NoCall, Repeat: 1, Mix: m}}
	}
	if len(parts) > 0 && len(sc.Steps) == 0 && b.faults() == 0 {
		b.on(s.n.keyOf(first), "write a step with a driver, such as - http: GET /", "scenario %s calls nothing", sc.Name)
	}
	f.finish(parts)
	sc.Captures = b.values
}

// oneStep decodes the step of a scenario for all targets.
func (b *binder) oneStep(s *section, key *node, outer defaults, use *scenarioUse) *Step {
	steps := map[string]*writtenStep{} // by target
	switch by := s.n.value("by_target"); {
	case by != nil && by.shape != null && by.shape != empty:
		if w := b.driverOf(s, key, outer, "", true); w != nil {
			b.on(s.n.keyOf("by_target"), "", "a scenario has %s or by_target, not both", w.driver)
		}
		if by.shape != mapping {
			b.on(by, "write the name of each target, and below it a step", "expected a step for each target, not %s", by.describe())
			return nil
		}
		all := b.targetNames()
		for _, p := range by.pairs {
			if b.strayKey(by, p) {
				continue
			}
			if !slices.Contains(all, p.key.text) {
				hint := nearest(p.key.text, "", all, "targets are "+strings.Join(all, ", "))
				b.on(p.key, hint, "there is no target %q", p.key.text)
				continue
			}
			if p.value.shape == empty || p.value.shape == null {
				b.noValue(p.key)
				steps[p.key.text] = nil
				continue
			}
			t := b.section(p.value, p.key, b.format.step, b.scope)
			w := b.driverOf(t, p.key, outer, "the step of target "+p.key.text, false)
			if w != nil && w.expect == nil {
				w.expect = s.node("expect")
			}
			if w != nil && w.capture == nil {
				w.capture = s.node("capture")
			}
			steps[p.key.text] = w
		}
		for _, t := range b.targets {
			if _, ok := steps[t.name]; !ok {
				b.on(s.n.keyOf("by_target"), "", "the step of target %s is missing", t.name)
			}
		}
	default:
		w := b.driverOf(s, key, outer, "a scenario", false)
		if w == nil {
			return nil
		}
		for _, t := range b.targets {
			steps[t.name] = w
		}
	}

	step := &Step{Place: b.place(key)}
	for _, t := range b.targets {
		w := steps[t.name]
		if w == nil {
			step.Actions = append(step.Actions, Action{})
			continue
		}
		action, u := b.action(w, t)
		if len(u.lab) > 0 {
			use.lab[t.name] = u.lab
		}
		step.Actions = append(step.Actions, action)
		if len(step.Actions) == 1 {
			step.Place = b.place(w.key)
		}
	}
	b.remember(step)
	if b.written == nil {
		b.written = map[*Step]map[string]*writtenStep{}
	}
	b.written[step] = steps
	return step
}

func (b *binder) targetNames() []string {
	out := make([]string, len(b.targets))
	for i, t := range b.targets {
		out[i] = t.name
	}
	return out
}

// driverOf finds the one driver of a step. With quiet it notes nothing.
func (b *binder) driverOf(s *section, at *node, outer defaults, what string, quiet bool) *writtenStep {
	var w *writtenStep
	found := false
	for _, p := range s.n.pairs {
		if !slices.Contains(b.format.names, p.key.text) {
			continue
		}
		if found && !quiet {
			b.on(p.key, "write another scenario for it", "%s has one step, and %s is above this one", what, w.driver)
			continue
		}
		found = true
		w = &writtenStep{driver: p.key.text, key: p.key, expect: s.node("expect"), capture: s.node("capture")}
		w.n = b.stepNode(w, p.value, outer.n.value(p.key.text))
	}
	if !found && !quiet && !s.n.torn && !s.mayBeStep(b) {
		b.on(at, "write one of "+strings.Join(b.format.names, ", ")+" below it", "%s needs a step", what)
	}
	if w == nil || w.n == nil {
		if quiet {
			return w
		}
		return nil
	}
	return w
}

// mayBeStep tells whether an unknown key of a section may have been meant as its step.
func (s *section) mayBeStep(b *binder) bool {
	return slices.ContainsFunc(s.unknown, func(key string) bool {
		near := diag.Suggest(key, keysOf(b.format.scenario))
		return near == "" || near == "by_target" || near == "steps" || near == "mix" || slices.Contains(b.format.names, near)
	})
}

// stepNode is the mapping of a step's fields: a string fills the main one, and the defaults are laid under it.
func (b *binder) stepNode(w *writtenStep, n, outer *node) *node {
	switch n.shape {
	case empty: // noted already
		return nil
	case null:
		b.on(w.key, "", "%s can't be null: it is what the scenario does", w.key.text)
		return nil
	}
	inner := b.filed(w, b.expand(w, n))
	if inner == nil || outer == nil || outer.shape == null || outer.shape == empty {
		return inner
	}
	o := b.filed(w, b.expand(w, outer))
	if o == nil {
		return inner
	}
	return merge(o, inner)
}

func (b *binder) expand(w *writtenStep, n *node) *node {
	fields := find(b.format.step, w.driver).Keys
	switch n.shape {
	case mapping:
		return b.asMeant(b.indented(n, fields), fields)
	case scalar:
		main := mainOf(fields)
		if main == nil {
			b.on(n, "write its keys below "+w.driver+":", "expected a mapping, not text")
			return nil
		}
		return &node{shape: mapping, src: n.src, line: n.line, col: n.col, pairs: []pair{{&node{shape: scalar, src: n.src, text: main.Key, line: n.line, col: n.col}, n}}}
	case null, empty:
		return nil
	}
	b.on(n, "write its keys below "+w.driver+":", "expected a mapping, not %s", n.describe())
	return nil
}

// action decodes a step for a target.
func (b *binder) action(w *writtenStep, t *target) (Action, *usage) {
	driver := b.format.drivers[w.driver]
	a := Action{Driver: w.driver}
	u := &usage{}
	b.now = u
	defer func() { b.now = nil }()

	before := b.faults()
	scope := b.stepScope(t, w.key)
	values, faulty := b.fields(w.n, find(b.format.step, w.driver).Keys, scope)
	b.credentials(w.n)
	a.payload = b.payload(w, values, u)
	op := &drivers.Op{Values: drivers.NewValues(values), Reads: map[string]bool{}}
	if len(u.lab) > 0 {
		op.Roots = b.opt.Roots
	}
	a.Expect = b.expects(w.expect, driver.Answer(), scope)
	a.Captures = b.captures(w.capture, driver.Answer(), scope, op)
	for _, e := range a.Expect {
		for _, name := range e.Reads() {
			op.Reads[name] = true
		}
	}
	if u.tainted {
		return a, u
	}
	call, err := driver.Prepare(op)
	if err != nil {
		again := func(key, text string) error {
			other := *op
			other.Values, other.Reads = op.With(key, drivers.Constant(text)), maps.Clone(op.Reads)
			_, err := driver.Prepare(&other)
			return err
		}
		b.prepared(w.n, w.key, faulty, t, again, err)
	}
	if b.faults() == before {
		a.Call = call
	}
	return a, u
}

// expects decodes expectations.
func (b *binder) expects(n *node, names []drivers.Name, scope *stepScope) []*expression.Expectation {
	var out []*expression.Expectation
	for _, it := range b.expressions(n) {
		e, errs := expression.ParseExpectation(it.text, names, scope.Scope)
		if len(errs) > 0 {
			b.explain(it, errs)
			continue
		}
		out = append(out, e)
	}
	return out
}

// expressions returns the scalars of one expression or a list of them.
func (b *binder) expressions(n *node) []*node {
	if n == nil {
		return nil
	}
	items := []*node{n}
	if n.shape == sequence {
		items = b.unsplit(n)
	}
	var out []*node
	for _, it := range items {
		switch {
		case it.torn: // noted already
		case it.shape == empty || it.shape == null:
			b.on(it, "write an expression, or remove the -", "an expression is missing")
		case it.shape != scalar:
			b.wrongShape(it, "an expression")
		case strings.TrimSpace(it.text) == "":
			b.on(it, "", "an expression is missing")
		case b.cutByComment(it):
		default:
			out = append(out, it)
		}
	}
	return out
}

// unsplit returns the items of a list without those that a comma has split, as in [change(p95, previous) < 10%], which is
// two items to YAML.
func (b *binder) unsplit(n *node) []*node {
	if !n.flow {
		return n.items
	}
	var out []*node
	for i := 0; i < len(n.items); i++ {
		it := n.items[i]
		if !it.isPlain() || open(it.text) <= 0 {
			out = append(out, it)
			continue
		}
		text, j := it.text, i+1
		for ; j < len(n.items) && open(text) > 0 && n.items[j].isPlain(); j++ {
			text += ", " + n.items[j].text
		}
		if j == i+1 || open(text) != 0 {
			out = append(out, it)
			continue
		}
		b.on(it, "quote it: "+quote(text), "the comma splits this expression in two")
		i = j - 1
	}
	return out
}

// open counts the parentheses and brackets of text that are not closed.
func open(text string) int {
	n := 0
	for _, r := range text {
		switch r {
		case '(', '[':
			n++
		case ')', ']':
			n--
		}
	}
	return n
}
