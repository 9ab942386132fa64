package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/expression"
)

// flow decodes the steps of a scenario in their order.
type flow struct {
	*binder
	scenario *Scenario
	outer    defaults
	use      *scenarioUse
	named    map[string]*node // steps, groups and branches
	unnamed  []unnamedStep
	groups   []*Part // with names, in the order of Scenario.Groups
	captured map[string]*node
	stride   int64 // of the next mix at the top
	repeated bool
	// unseen are calls that are never recorded, one for each of ends.
	unseen []*Step
	ends   []*Transaction
	quiet  bool // nothing is measured, so nothing needs a name
	depth  int
}

type unnamedStep struct {
	step *Step
	at   *node
}

// maxSamples bounds the steps and groups of a scenario.
const maxSamples = 1000

func (b *binder) newFlow(sc *Scenario, outer defaults, use *scenarioUse) *flow {
	return &flow{binder: b, scenario: sc, outer: outer, use: use, named: map[string]*node{}, captured: map[string]*node{}}
}

// steps decodes a list of steps.
func (f *flow) steps(n, key *node) []*Part {
	switch {
	case n == nil:
		f.on(key, "write - http: GET /, or another step", "%s has no step", key.text)
		return nil
	case n.shape != sequence:
		f.on(n, "write - before each step", "expected a list of steps, not %s", n.describe())
		return nil
	case len(n.items) == 0:
		f.on(key, "write - http: GET /, or another step", "%s has no step", key.text)
		return nil
	}
	if f.depth++; f.depth > 8 {
		f.on(key, "", "groups of steps are nested deeper than 8 levels")
		return nil
	}
	defer func() { f.depth-- }()
	var parts []*Part
	for _, it := range n.items {
		if p := f.item(it, it, f.format.item, "a step"); p != nil {
			parts = append(parts, p)
		}
	}
	return parts
}

// bareCall matches a URL, with or without a method in front.
var bareCall = regexp.MustCompile(`^([A-Z]+ +)?(https?:/)?/`)

// item decodes a step, a pause, a group or a mix. at is where to say what is missing.
func (f *flow) item(n, at *node, fields []Field, what string) *Part {
	switch n.shape {
	case empty, null:
		f.on(at, "write http: GET / or another step", "%s is missing", what)
		return nil
	case scalar, sequence:
		hint := "write its driver as a key, as in - http: GET /"
		if d, ok := strings.CutPrefix(n.text, "pause "); ok {
			hint = "write pause: " + d
		} else if bareCall.MatchString(n.text) && slices.Contains(f.format.names, "http") {
			hint = "write http: " + n.text
		}
		f.on(n, hint, "expected %s, not %s", what, n.describe())
		return nil
	}
	before := f.faults()
	s := f.section(n, at, fields, f.scope)
	p := &Part{Place: f.place(at), Call: NoCall, Sample: NoCall, Repeat: int(s.whole("repeat", 1))}
	if p.Repeat > 1 {
		f.repeated = true
	}
	kind := f.kindOf(s, at, what, f.faults() == before)
	if kind == "" {
		return nil
	}
	p.When = f.when(s.node("when"), at)
	if v, ok := s.values["timeout"]; ok && v.d == 0 {
		f.on(v.node, "leave it out for that of the phase", "a time-out of 0 lets nothing succeed")
	}
	for _, k := range foreign[kind] {
		if v := s.n.keyOf(k); v != nil && s.node(k) != nil {
			hint := "write it in the steps of the group"
			if kind == "pause" {
				hint = "write a step of its own"
			}
			f.on(v, hint, "%s belongs to a step with a driver", k)
		}
	}
	if raw := s.n.value(kind); raw != nil && raw.shape == empty {
		return nil // noted with the section
	}
	name := s.values["name"]
	switch kind {
	case "pause":
		p.Pause = s.values["pause"].span
		if p.Pause == (Span{}) {
			return nil
		}
	case "transaction":
		f.transaction(p, s, name)
		if p.Parts == nil {
			return nil
		}
	case "steps", "mix":
		if kind == "steps" {
			p.Parts = f.steps(s.node("steps"), s.n.keyOf("steps"))
		} else {
			p.Mix = f.mix(s.node("mix"), s.n.keyOf("mix"))
		}
		if name.node != nil {
			f.group(p, name.node, name.text)
		}
		if p.Parts == nil && p.Mix == nil {
			return nil
		}
	default:
		step := f.oneStep(s, at, f.outer, f.use)
		if step == nil {
			return nil
		}
		step.Timeout = s.duration("timeout", 0)
		step.Continue = s.text("on_failure") == "continue"
		p.Call = len(f.scenario.Steps)
		f.scenario.Steps = append(f.scenario.Steps, step)
		if name.node != nil {
			f.name(name.node, name.text)
			step.Name = name.text
		} else {
			f.unnamed = append(f.unnamed, unnamedStep{step, at})
		}
	}
	return p
}

// foreign are keys that have no meaning for a kind of item.
var foreign = map[string][]string{
	"pause": {"expect", "capture", "timeout", "on_failure", "repeat", "name"},
	"steps": {"expect", "capture", "timeout", "on_failure"},
	"mix":   {"expect", "capture", "timeout", "on_failure"},

	"transaction": {"expect", "capture", "timeout", "on_failure"},
}

// kindOf finds which one of its kinds an item is: pause, steps, mix, or step for a call. sound tells that nothing else is
// wrong with it.
func (f *flow) kindOf(s *section, at *node, what string, sound bool) string {
	kind := ""
	var first string
	for _, p := range s.n.pairs {
		k := p.key.text
		this := k
		switch {
		case slices.Contains(f.format.names, k) || k == "by_target":
			this = "step"
		case k != "pause" && k != "steps" && k != "mix" && k != "transaction":
			continue
		}
		if kind != "" {
			f.on(p.key, "begin another one with -", "%s is one thing, and %s is above this", what, first)
			return ""
		}
		kind, first = this, k
	}
	if kind == "" && sound && !s.n.torn {
		f.on(at, "write one of "+strings.Join(append(slices.Clone(f.format.names), "pause", "steps", "transaction", "mix"), ", "), "%s does nothing", what)
	}
	return kind
}

// when decodes a condition for each target.
func (f *flow) when(n, at *node) []*expression.Value {
	if n == nil {
		return nil
	}
	e := f.expressions(n)
	switch {
	case len(e) == 0:
		return nil
	case n.shape == sequence:
		f.on(n, "join conditions by and", "expected one condition, not a list")
		return nil
	}
	var out []*expression.Value
	for _, t := range f.targets {
		var v *expression.Value
		var errs []*expression.Error
		if tainted := f.watch(func() { v, errs = expression.ParseCondition(e[0].text, f.stepScope(t, at).Scope) }); tainted {
			return nil
		}
		f.explain(e[0], errs)
		out = append(out, v)
	}
	return out
}

// name notes the name of a step, a group or a branch.
func (f *flow) name(n *node, name string) bool {
	if f.quiet {
		return f.identifier(n, name, "step")
	}
	if !f.declare(n, name, expression.Step) {
		return false
	}
	if first := f.named[name]; first != nil {
		f.on(n, "give each of them a name of its own", "two steps of scenario %s are called %s", f.scenario.Name, name).Notes = []string{
			"the first is at " + f.place(first).String(),
		}
		return false
	}
	f.named[name] = n
	return true
}

// group makes a part one that has samples of its own.
func (f *flow) group(p *Part, n *node, name string) {
	if f.name(n, name) {
		f.groups = append(f.groups, p)
		f.scenario.Groups = append(f.scenario.Groups, name)
	}
}

// mix decodes branches and their weights.
func (f *flow) mix(n, key *node) *Mix {
	if n == nil {
		f.on(key, "write the name of each branch, and below it weight: and a step", "mix has no branch")
		return nil
	}
	if n.shape != mapping || len(n.pairs) == 0 {
		f.on(n, "write the name of each branch, and below it weight: and a step", "expected branches by name, not %s", n.describeList())
		return nil
	}
	if f.depth++; f.depth > 8 {
		f.on(key, "", "groups of steps are nested deeper than 8 levels")
		return nil
	}
	defer func() { f.depth-- }()
	stride := f.stride
	var branches []*Part
	var weights []int
	for _, pr := range n.pairs {
		if f.strayKey(n, pr) {
			continue
		}
		var p *Part
		weight := 1
		before, loose := len(f.scenario.Steps), len(f.unnamed)
		if pr.value.shape == empty || pr.value.shape == null {
			f.on(pr.key, "write weight: and a step below it", "branch %s is empty", pr.key.text)
			continue
		}
		if p = f.item(pr.value, pr.key, f.format.branch, "branch "+pr.key.text); p == nil {
			continue
		}
		if w := pr.value.value("weight"); w != nil {
			if v, ok := f.simple(w, find(f.format.branch, "weight"), f.scope); ok {
				weight = int(v.i)
			}
		}
		if p.Call != NoCall && len(f.scenario.Steps) == before+1 {
			f.unnamed = f.unnamed[:loose]
			f.name(pr.key, pr.key.text)
			f.scenario.Steps[p.Call].Name = pr.key.text
		} else {
			f.group(p, pr.key, pr.key.text)
		}
		branches, weights = append(branches, p), append(weights, weight)
	}
	if len(branches) == 0 {
		return nil
	}
	m := newMix(branches, weights, stride)
	if m == nil {
		f.on(key, "round them", "the weights of the branches only add up after more than %d iterations", maxCycle)
		return nil
	}
	if f.depth == 1 || stride == 0 {
		f.stride = max(1, stride) * m.Cycle()
	}
	return m
}

// finish gives names to what has none, and brings the samples of groups behind those of steps.
func (f *flow) finish(parts []*Part) {
	sc := f.scenario
	for i, g := range f.groups {
		g.Sample = len(sc.Steps) + i
	}
	if len(sc.Steps)+len(sc.Groups) > maxSamples {
		f.on(f.use.node, "", "scenario %s has more than %d steps", sc.Name, maxSamples)
	}
	for i := range f.unseen {
		f.ends[i].Rollback = len(sc.Steps) + i
	}
	sc.Unseen = f.unseen
	sc.Flow = parts
	if len(parts) == 1 && len(f.unnamed) == 1 && parts[0].Call != NoCall && parts[0].Repeat == 1 && parts[0].When == nil {
		sc.Flow = nil
	}
	if len(sc.Steps) == 1 && len(sc.Groups) == 0 && !f.repeated && len(f.unnamed) == 1 {
		return
	}
	if f.quiet {
		return
	}
	by := map[string][]*node{}
	for _, u := range f.unnamed {
		by[u.step.driver()] = append(by[u.step.driver()], u.at)
	}
	for _, u := range f.unnamed {
		name := u.step.driver()
		if all := by[name]; len(all) > 1 || f.named[name] != nil {
			f.on(u.at, "write name: and what the step does", "%d steps of scenario %s have no name and call with %s", len(all), sc.Name, name)
			continue
		}
		if k, taken := f.names.kinds[name]; taken && k != expression.Step {
			f.on(u.at, "write name: and what the step does", "the step needs a name, as %s is the name of a %s", name, k)
			continue
		}
		if f.name(u.at, name) {
			u.step.Name = name
		}
	}
	sc.Around = map[string]string{}
	f.nest(parts, nil)
}

// nest notes which named parts lie within which others. outer are the names around parts, the innermost last.
func (f *flow) nest(parts []*Part, outer []string) {
	for _, p := range parts {
		inside := outer
		if name := f.nameOf(p); name != "" {
			for _, o := range outer {
				f.names.lies[[2]string{name, o}] = true
			}
			if len(outer) > 0 {
				f.scenario.Around[name] = outer[len(outer)-1]
			}
			inside = append(slices.Clip(outer), name)
		}
		f.nest(p.Parts, inside)
		if p.Mix != nil {
			f.nest(p.Mix.Branches, inside)
		}
	}
}

// nameOf is the name under which a part has samples; "" if it has none.
func (f *flow) nameOf(p *Part) string {
	sc := f.scenario
	switch i := p.Sample - len(sc.Steps); {
	case p.Call != NoCall:
		return sc.Steps[p.Call].Name
	case p.Sample != NoCall && i >= 0 && i < len(sc.Groups):
		return sc.Groups[i]
	}
	return ""
}

func (s *Step) driver() string {
	for _, a := range s.Actions {
		if a.Driver != "" {
			return a.Driver
		}
	}
	return ""
}

// captures decodes what a step captures for one target.
func (b *binder) captures(n *node, answer []drivers.Name, scope *stepScope, op *drivers.Op) []Capture {
	if n == nil {
		return nil
	}
	if n.shape != mapping {
		b.on(n, "write name: and what to take, as in token: json.token", "expected names and what to capture, not %s", n.describe())
		return nil
	}
	var out []Capture
	for _, p := range n.pairs {
		if b.strayKey(n, p) {
			continue
		}
		if p.value.shape == empty || p.value.shape == null {
			b.on(p.key, "write what to take of the answer, as in "+p.key.text+": json."+p.key.text, "%s has no value", p.key.text)
			continue
		}
		if !b.capturable(p.key) {
			continue
		}
		value, secret := p.value, false
		if value.shape == mapping && (value.value("value") != nil || value.value("secret") != nil) {
			s := b.section(value, p.key, b.format.capture, b.scope)
			secret = s.boolean("secret", false)
			if value = s.node("value"); value == nil {
				continue
			}
		}
		e := b.expressions(value)
		if len(e) != 1 {
			if len(e) > 1 {
				b.on(value, "write a name for each", "expected one expression, not a list")
			}
			continue
		}
		v, errs := expression.ParseCapture(e[0].text, answer, scope.Scope)
		if len(errs) > 0 {
			b.explain(e[0], errs)
			continue
		}
		for _, name := range v.Reads() {
			op.Reads[name] = true
		}
		out = append(out, Capture{Name: p.key.text, Value: v, Secret: secret})
	}
	return out
}

// capturable checks the name of a captured value.
func (b *binder) capturable(n *node) bool {
	name := n.text
	what := ""
	switch {
	case !identifier.MatchString(name):
		return b.identifier(n, name, "captured value")
	case name == "iteration" || name == "user" || slices.Contains(rootNames, name):
		what = "a name of its own in expressions"
	default:
		for _, d := range b.format.names {
			if slices.ContainsFunc(b.opt.Drivers[d].Answer(), func(a drivers.Name) bool { return a.Name == name }) {
				what = "what an answer has, and could not be told from it"
			}
		}
	}
	if what != "" {
		b.on(n, "choose another name", "%q can't be the name of a captured value: it is %s", name, what)
		return false
	}
	return true
}

// rootNames are what expressions of a step may begin with.
var rootNames = []string{"env", "vars", "target", "lab", "data", "secret", "matrix"}

// remember gives what a step captures its place among the values of an iteration, so that later steps may use it.
func (b *binder) remember(step *Step) {
	for i := range step.Actions {
		for j := range step.Actions[i].Captures {
			c := &step.Actions[i].Captures[j]
			if c.Index = slices.Index(b.values, c.Name); c.Index < 0 {
				c.Index = len(b.values)
				b.values = append(b.values[:c.Index:c.Index], c.Name)
			}
		}
	}
}

// lookup finds captured values by name.
func lookup(names []string) func(string, *drivers.Input) (any, error) {
	index := make(map[string]int, len(names))
	for i, n := range names {
		index[n] = i
	}
	return func(name string, in *drivers.Input) (any, error) {
		if i := index[name]; i < len(in.Values) {
			return in.Values[i], nil
		}
		return nil, fmt.Errorf("%s has not been captured", name)
	}
}
