package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/planrun/planrun/engine/expression"
)

// phases decodes the phases of a scenario. around has the keys that they have of what is around them.
func (b *binder) phases(n, scenario, around *node, name string) ([]*Phase, []*writtenAssertion) {
	switch {
	case n == nil && around.torn, n != nil && n.torn:
		return nil, nil
	case n == nil || n.shape == null:
		b.on(scenario, "write phases: and - single, or put phases into defaults", "scenario %s has no phases", name)
		return nil, nil
	case n.shape == empty: // noted with the scenario or the defaults
		return nil, nil
	case n.shape != sequence:
		hint := "write - before each phase"
		if strings.HasPrefix(n.text, "-") {
			hint = "write a space behind the -"
		}
		b.on(n, hint, "expected a list of phases, not %s", n.describe())
		return nil, nil
	case len(n.items) == 0: // run in the background of another one
		return nil, nil
	}
	var out []*Phase
	var written []*writtenAssertion
	seen := map[string]*node{}
	for _, it := range n.items {
		p, at, more := b.phase(it, around, name)
		if p == nil {
			continue
		}
		written = append(written, more...)
		if first := seen[p.Name]; first != nil {
			if at.misspelt || first.misspelt {
				continue // perhaps it was not meant after all
			}
			b.on(at, "give each of them a name: of its own", "two phases of scenario %s are called %s", name, p.Name).Notes = []string{
				"the first is at " + b.place(first).String(),
			}
			continue
		}
		seen[p.Name] = at
		out = append(out, p)
	}
	return out, written
}

// phase decodes one phase. It returns the node that its name comes from.
func (b *binder) phase(it, around *node, scenario string) (*Phase, *node, []*writtenAssertion) {
	if it.shape == empty || it.shape == null {
		b.on(it, "write "+either(keysOf(b.format.phases)), "a phase is missing")
		return nil, nil, nil
	}
	kind, key, params := b.oneOf(it, it, b.format.phases, "a phase")
	if kind == nil {
		return nil, nil, nil
	}
	switch {
	case params == nil:
		params = &node{shape: mapping, src: key.src, line: key.line, col: key.col}
	case params.shape == empty || params.shape == null:
		b.on(key, "write - "+kind.Key+" if it has no parameters", "%s has no value", kind.Key)
		return nil, nil, nil
	case params.shape != mapping:
		b.on(params, "write "+example(kind), "expected the parameters of %s, not %s", kind.Key, params.describe())
		return nil, nil, nil
	}
	before := b.faults()
	if missing := requiredOf(kind.Keys); len(params.pairs) == 0 && len(missing) > 0 {
		b.on(key, "write "+example(kind), "%s needs %s", kind.Key, strings.Join(missing, ", "))
		torn := *params
		torn.torn = true // so that they are not missed again
		params = &torn
	}
	s := b.section(under(around, params, common...), key, kind.Keys, b.scope)
	p := &Phase{
		Title: s.text("title"), Place: b.place(key), Kind: Kind(kind.Key),
		Timeout: s.duration("timeout", 30*time.Second), Warmup: s.values["warmup"].warmup,
		Rounds: int(s.whole("rounds", 1)), Connections: int(s.whole("connections", 0)),
	}
	if p.Timeout == 0 {
		b.on(s.values["timeout"].node, "leave it out for 30s", "a time-out of 0 lets nothing succeed")
	}
	p.Patience = p.Timeout
	nameNode := key
	p.Name = strings.ReplaceAll(kind.Key, "-", "_")
	if v, ok := s.values["name"]; ok {
		p.Name, nameNode = v.text, v.node
	}
	b.declare(nameNode, p.Name, expression.Phase)

	b.background(s, p, scenario)
	p.Tags = b.tags(s.n.value("tags"))
	sound := b.faults() == before
	switch p.Kind {
	case Single:
		p.Users, p.Count = 1, 1
	case Sequential:
		p.Users = 1
		p.Count, p.Duration, p.Pause = s.whole("count", 0), s.duration("duration", 0), s.values["pause"].span
		b.countOrDuration(s, sound)
	case Parallel:
		p.Users = int(s.whole("users", 1))
		p.Count, p.Duration, p.Pause = s.whole("count", 0), s.duration("duration", 0), s.values["pause"].span
		if p.Count == 0 && p.Duration == 0 {
			p.Count = int64(p.Users)
		}
		b.bounded(s, "users", p.Users)
		if s.has("count") || s.has("duration") {
			b.countOrDuration(s, sound)
		}
		if v, ok := s.values["count"]; ok && sound && v.i < int64(p.Users) {
			b.on(v.node, "count is the total over all users", "%d iterations are too few for %d users", v.i, p.Users)
		}
	case RampAndHold:
		b.rampAndHold(s, p, sound)
	case CapacitySearch:
		b.capacity(s, p, scenario, sound)
	}
	return p, nameNode, b.asserts(s.node("assert"), scenario, p.Name)
}

// requiredOf lists the keys of fields that have to be there.
func requiredOf(fields []Field) []string {
	var out []string
	for _, f := range fields {
		if f.Required {
			out = append(out, f.Key)
		}
	}
	return out
}

// example shows a kind with what it most likely needs.
func example(kind *Field) string {
	switch Kind(kind.Key) {
	case Sequential:
		return "sequential: {count: 50}"
	case Parallel:
		return "parallel: {users: 50}"
	case RampAndHold:
		return "ramp-and-hold: {rate: 10/s, hold: 30s}"
	case CapacitySearch:
		return "capacity: {from: 50/s, to: 2000/s, hold: 30s, while: p95 < 500ms}"
	}
	return "- " + kind.Key
}

// countOrDuration wants exactly one of the two. sound tells that nothing else is wrong with the phase.
func (b *binder) countOrDuration(s *section, sound bool) {
	_, count := s.values["count"]
	d, duration := s.values["duration"]
	switch {
	case count && duration:
		b.on(d.node, "remove one of the two", "a phase ends by count or by duration, not by both")
	case !count && !duration && sound:
		b.on(s.title, "write count: 50 or duration: 1m", "%s needs count or duration", s.title.text)
	case duration && d.d == 0:
		b.on(d.node, "", "a duration of 0 begins nothing")
	}
}

// maxUsers bounds the users of a phase: each one is a goroutine with a connection.
const maxUsers = 1_000_000

func (b *binder) bounded(s *section, key string, n int) {
	if n > maxUsers {
		b.on(s.values[key].node, fmt.Sprintf("at most %d", maxUsers), "%d is too many users", n)
	}
}

// rampAndHold decodes the stages of a phase in either model.
func (b *binder) rampAndHold(s *section, p *Phase, sound bool) {
	stages := s.node("stages")
	rate, byRate := s.values["rate"]
	users, byUsers := s.values["users"]
	switch {
	case byRate && byUsers:
		b.on(users.node, "rate is the open model: arrivals, however many are under way; users is the closed model",
			"a phase has rate or users, not both")
		return
	case stages == nil && !byRate && !byUsers:
		if sound && s.n.value("rate") == nil && s.n.value("users") == nil {
			b.on(s.title, "write rate: 10/s or users: 10", "%s needs rate or users", s.title.text)
		}
		return
	}
	if stages != nil {
		for _, k := range []string{"rate", "users", "ramp", "hold"} {
			if v, ok := s.values[k]; ok {
				b.on(v.node, "write it in each stage", "%s can't stand beside stages", k)
			}
		}
		b.stages(s, stages, p)
	} else {
		p.Open = byRate
		to := rate.f
		if byUsers {
			to = float64(users.i)
			b.bounded(s, "users", int(users.i))
		}
		if byRate && to == 0 && sound {
			b.on(rate.node, "", "a rate of 0 sends nothing")
		}
		hold, held := s.values["hold"]
		ramp, ramped := s.values["ramp"]
		if !ramped && !held && sound {
			b.on(s.title, "write hold: 30s", "%s needs hold", s.title.text)
		}
		if ramp.d > 0 {
			p.Stages = append(p.Stages, Stage{Name: "ramp", Ramp: true, To: to, Length: ramp.d})
		}
		if hold.d > 0 {
			p.Stages = append(p.Stages, Stage{From: to, To: to, Length: hold.d, Judged: true})
		}
		if len(p.Stages) == 0 && sound && (ramped || held) {
			b.on(s.title, "write hold: 30s", "%s takes no time", s.title.text)
		}
	}
	b.begin(s, p)
	if d := s.duration("ramp_down", 0); d > 0 && len(p.Stages) > 0 {
		p.Stages = append(p.Stages, Stage{Name: "ramp", Ramp: true, From: p.Stages[len(p.Stages)-1].To, Length: d})
	}
	b.openOnly(s, p)
	b.judgeable(s, p, sound)
}

// begin gives the first ramp its beginning.
func (b *binder) begin(s *section, p *Phase) {
	v, ok := s.values["from"]
	if !ok {
		return
	}
	switch {
	case v.isNumber && v.f != 0 && p.Open:
		b.on(v.node, fmt.Sprintf("write %s/s or %s/min", v.text, v.text), "expected a rate")
	case !v.isNumber && !p.Open:
		b.on(v.node, "", "expected a number of users, as the phase has users")
	case len(p.Stages) == 0:
	case !p.Stages[0].Ramp:
		if v.f != 0 {
			b.on(v.node, "write ramp: and how long it takes", "from begins a ramp, and there is none")
		}
	default:
		p.Stages[0].From = v.f
	}
}

// openOnly decodes what only the open model has.
func (b *binder) openOnly(s *section, p *Phase) {
	if !p.Open {
		for _, k := range []string{"arrivals", "max_in_flight", "patience"} {
			if v, ok := s.values[k]; ok {
				b.on(v.node, "", "%s needs rate: users wait for their answers", k)
			}
		}
		return
	}
	p.Poisson = s.text("arrivals") == "poisson"
	p.MaxInFlight = int(s.whole("max_in_flight", 0))
	p.Patience = s.duration("patience", p.Timeout)
	b.bounded(s, "max_in_flight", p.MaxInFlight)
	if p.Warmup.Count > 0 {
		b.on(s.values["warmup"].node, "write warmup: 5s in this phase, or null for none",
			"a warm-up is a time in the open model: phase %s has a rate and no users to count by", p.Name)
	}
}

// judgeable wants a hold that is judged.
func (b *binder) judgeable(s *section, p *Phase, sound bool) {
	if len(p.Stages) == 0 || !sound {
		return
	}
	if !slices.ContainsFunc(p.Stages, func(st Stage) bool { return st.Judged }) {
		b.on(s.title, "write hold: 30s", "phase %s has no hold that is judged", p.Name)
	}
	var total time.Duration
	peak := 0.0
	for _, st := range p.Stages {
		total += st.Length
		peak = max(peak, st.From, st.To)
	}
	if total > longest {
		b.on(s.title, "", "the phase takes longer than ten years")
	} else if p.Open && peak*total.Seconds() > 1e12 {
		b.on(s.title, "", "the phase has more than a million million arrivals")
	}
}

// stages decodes several ramps and holds.
func (b *binder) stages(s *section, n *node, p *Phase) {
	if n.shape != sequence {
		b.on(n, "write - before each stage", "expected a list of stages, not %s", n.describe())
		return
	}
	if len(n.items) == 0 {
		b.on(s.n.keyOf("stages"), "", "stages has no stage")
		return
	}
	last := s.values["from"].f
	first := ""
	unnamed, holds := 0, 0
	names := map[string]bool{}
	for _, it := range n.items {
		if it.shape != mapping {
			b.on(it, "write rate: and hold:", "expected a stage, not %s", it.describe())
			continue
		}
		before := b.faults()
		st := b.section(it, it, b.format.stage, b.scope)
		sound := b.faults() == before
		rate, byRate := st.values["rate"]
		users, byUsers := st.values["users"]
		key, at := "rate", rate.node
		to := rate.f
		switch {
		case byRate && byUsers:
			b.on(users.node, "", "a stage has rate or users, not both")
			continue
		case byUsers:
			key, at, to = "users", users.node, float64(users.i)
			b.bounded(st, "users", int(users.i))
		case !byRate:
			if sound {
				b.on(it, "write rate: 10/s", "a stage needs rate or users")
			}
			continue
		}
		if first == "" {
			first = key
			p.Open = byRate
		} else if first != key {
			b.on(at, "", "earlier stages have %s: a phase has one model", first)
			continue
		}
		ramp, hold := st.duration("ramp", 0), st.duration("hold", 0)
		if ramp == 0 && hold == 0 {
			if sound {
				b.on(it, "write hold: 30s", "a stage needs ramp or hold")
			}
			continue
		}
		if ramp > 0 {
			p.Stages = append(p.Stages, Stage{Name: "ramp", Ramp: true, From: last, To: to, Length: ramp})
		}
		last = to
		name, judge := st.values["name"], st.boolean("judge", true)
		if hold == 0 {
			if name.node != nil {
				b.on(name.node, "", "name is that of a hold, and the stage has none")
			}
			if v, ok := st.values["judge"]; ok && v.b {
				b.on(v.node, "", "ramps are not judged")
			}
			continue
		}
		holds++
		if name.node != nil {
			b.declare(name.node, name.text, expression.Stage)
			if names[name.text] {
				b.on(name.node, "", "two stages are called %s", name.text)
			}
			names[name.text] = true
		} else {
			unnamed++
		}
		p.Stages = append(p.Stages, Stage{Name: name.text, From: to, To: to, Length: hold, Judged: judge})
	}
	if holds < 2 || unnamed == 0 {
		return
	}
	next := 1
	for i := range p.Stages {
		if st := &p.Stages[i]; !st.Ramp && st.Name == "" {
			for names[fmt.Sprintf("hold_%d", next)] {
				next++
			}
			st.Name = fmt.Sprintf("hold_%d", next)
			next++
			b.declare(n, st.Name, expression.Stage)
		}
	}
}
