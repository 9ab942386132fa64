package plan

import (
	"fmt"
	"time"

	"github.com/planrun/planrun/engine/expression"
)

// longForm is what an assertion says besides its condition.
type longForm struct {
	warn, abort   bool
	window, after time.Duration
	out           bool             // when: says that it is not judged
	nodes         map[string]*node // of the keys that are there
}

// shortestWindow keeps the number of windows within reason.
const shortestWindow = 100 * time.Millisecond

// isLong tells a mapping that is an assertion in its long form from one that YAML has made of text with a colon.
func (n *node) isLong(fields []Field) bool {
	if n.shape != mapping {
		return false
	}
	for _, p := range n.pairs {
		if find(fields, p.key.text) != nil {
			return true
		}
	}
	return false
}

// longForm decodes an assertion's long form. The node is its condition; nil if there is none.
func (b *binder) longForm(it *node) (*node, longForm) {
	s := b.section(it, it, b.format.long, b.scope)
	f := longForm{
		warn: s.text("severity") == "warn", abort: s.boolean("abort", false),
		window: s.duration("window", 0), after: s.duration("after", 0),
		nodes: map[string]*node{},
	}
	for _, key := range []string{"severity", "abort", "window", "after"} {
		if v, ok := s.values[key]; ok {
			f.nodes[key] = v.node
		}
	}
	switch n := f.nodes["window"]; {
	case n == nil:
	case f.window == 0:
		b.on(n, "write 10s", "a window of 0 holds nothing")
	case f.window < shortestWindow:
		b.on(n, "write 10s", "a window of less than %s holds too little to judge", shortestWindow)
	}
	if n := f.nodes["after"]; n != nil && !f.abort {
		b.on(n, "write abort: true beside it", "after is the grace time of abort")
	}
	if n := f.nodes["abort"]; n != nil && f.abort && f.warn {
		b.on(n, "remove one of the two", "a warning does not end the run")
	}
	f.out = !b.applies(s.node("when"))
	n := s.node("assert")
	if n != nil && n.shape == sequence {
		b.on(n, "write an item for each", "expected one assertion, not a list")
		n = nil
	}
	return n, f
}

// applies evaluates a when:, which has to be known before the load. What can't be evaluated applies.
func (b *binder) applies(n *node) bool {
	if n == nil {
		return true
	}
	for _, it := range b.expressions(n) {
		const begin = "${"
		var t *expression.Template
		var errs []*expression.Error
		if tainted := b.watch(func() { t, errs = expression.ParseTemplate(begin+it.text+"}", b.scope) }); tainted {
			continue
		}
		if len(errs) > 0 {
			for _, e := range errs {
				e.Offset = max(0, e.Offset-len(begin))
			}
			b.explain(it, errs)
			continue
		}
		v, constant := t.Constant()
		holds, isTruth := v.(bool)
		switch {
		case !constant:
			b.on(it, "", "this must be known before the load: it can't depend on the iteration or the user")
		case !isTruth:
			b.on(it, `write a comparison, such as env.STAGE == "prod"`, "expected a condition")
		default:
			return holds
		}
	}
	return true
}

// fitsLong checks what the long form of an assertion asks for against what the plan measures.
func (b *binder) fitsLong(p *Plan, w *writtenAssertion, a *expression.Assertion) bool {
	before := b.faults()
	f := w.long
	for _, ad := range a.Addresses() {
		fault := func(message, hint string) { b.within(w.n, ad.Offset, ad.Length, message, hint) }
		one := a.Addresses()[0]
		switch {
		case f.window > 0 && (ad.Metric.Previous || ad.Metric.Bound != ""):
			fault("a window has no rounds, and none to compare with in an earlier run", "")
		case f.window > 0 && ad.Metric.Name == "rate_held":
			fault("rate_held is of a whole phase, not of a window", "")
		case f.abort && (ad.Metric.Diff != "" || ad.Metric.Previous):
			fault("abort looks at one cell while it is measured, and can't compare", "")
		case f.abort && (ad.Scenario != one.Scenario || ad.Phase != one.Phase || ad.Target != one.Target):
			fault("abort looks at one cell while it is measured, and can't compare", "")
		case f.abort && ad.Metric.Name == "rate_held":
			fault("rate_held is known only when the phase is over", "")
		}
	}
	if n := f.nodes["window"]; n != nil && f.window > 0 {
		if !p.Results.Samples {
			b.on(n, "write samples: true in results", "windows are judged by samples, and results keeps none")
		} else if longest := p.longestHold(a.Addresses()[0], w); longest < f.window {
			b.on(n, "", "%s", noWindow(longest))
		}
	}
	return b.faults() == before
}

func noWindow(longest time.Duration) string {
	if longest == 0 {
		return "a window needs a phase with a duration or a hold, and this leads to none"
	}
	return fmt.Sprintf("no whole window fits: the longest judged stage takes %s", longest)
}

// longestHold is the length of the longest stage that an address reads.
func (p *Plan) longestHold(ad *expression.Address, w *writtenAssertion) time.Duration {
	var most time.Duration
	for _, s := range p.Scenarios {
		if ad.Scenario != "" && ad.Scenario != s.Name || w.scenario != "" && w.scenario != s.Name {
			continue
		}
		for _, ph := range s.Phases {
			if ad.Phase != "" && ad.Phase != ph.Name || w.phase != "" && w.phase != ph.Name {
				continue
			}
			most = max(most, ph.Duration)
			if ph.Capacity != nil {
				most = max(most, ph.Capacity.Hold)
			}
			for _, st := range ph.Stages {
				if st.Ramp == ad.Ramp && (ad.Stage == "" && (st.Judged || ad.Ramp) || ad.Stage == st.Name) {
					most = max(most, st.Length)
				}
			}
		}
	}
	return most
}

// against decodes the results of an earlier run.
func (b *binder) against(n, key *node) Against {
	if n == nil || n.shape == null || n.shape == empty {
		return Against{}
	}
	fields := find(b.format.plan, "against").Keys
	if n.shape == scalar {
		n = &node{shape: mapping, line: n.line, col: n.col, pairs: []pair{{&node{shape: scalar, text: "path", line: n.line, col: n.col}, n}}}
	}
	s := b.section(n, key, fields, b.scope)
	return Against{Path: s.text("path"), AnyEnvironment: s.boolean("any_environment", false)}
}
