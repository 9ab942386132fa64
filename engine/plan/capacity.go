package plan

import (
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/expression"
)

// CapacitySearch is the kind of a phase that looks for the highest rate at which a condition holds.
const CapacitySearch Kind = "capacity"

// Capacity is what a capacity phase looks for, on each target by itself.
type Capacity struct {
	From, To  float64 // the lowest and the highest rate that is tried, in iterations a second
	Hold      time.Duration
	While     *expression.Assertion // of one hold; its addresses name a step at most
	Precision float64               // the answer is the highest rate but for this share of it
}

// capacity lists the parameters of a capacity phase.
func (f *format) capacity() []Field {
	return []Field{
		entry("from", RateKind, "from", "The lowest rate that is tried, and the first.", "50/s").required(),
		entry("to", RateKind, "to", "The highest rate that is tried.", "2000/s").required(),
		entry("hold", drivers.Duration, "hold", "How long each rate is held.", "30s").required(),
		entry("while", ExpressionKind, "condition", "What has to hold of each hold. Besides, nothing may be dropped, nothing may fail unless the condition reads failures, and the backlog must not grow.", "within(1s) >= 99%").required(),
		entry("precision", ShareKind, "precision", "The search ends when the lowest rate that fails is this close above the highest that holds.", "2%").otherwise("5%"),
		entry("arrivals", drivers.Choice, "arrivals", "`even` spaces arrivals evenly; `poisson` draws them, as independent callers would come.").choices("even", "poisson").otherwise("even"),
		entry("max_in_flight", CountKind, "most in flight", "How many iterations may be under way at a time; further arrivals wait. Left out: the highest rate times the time-out.", "500"),
		entry("patience", drivers.Duration, "patience", "An arrival that would begin later than this after it was due is dropped. Left out: the time-out.", "1s"),
	}
}

// writtenWhile is the condition of a capacity phase as it stands in the file, before there are names to parse it with.
type writtenWhile struct {
	n        *node
	scenario string
	capacity *Capacity
}

// mostTrials bounds how finely a search may look.
const finest = 0.001

// capacity decodes the parameters of a capacity phase.
func (b *binder) capacity(s *section, p *Phase, scenario string, sound bool) {
	c := &Capacity{From: s.values["from"].f, To: s.values["to"].f, Hold: s.duration("hold", 0), Precision: 0.05}
	p.Open, p.Capacity = true, c
	p.Poisson = s.text("arrivals") == "poisson"
	p.MaxInFlight = int(s.whole("max_in_flight", 0))
	p.Patience = s.duration("patience", p.Timeout)
	b.bounded(s, "max_in_flight", p.MaxInFlight)
	if p.Warmup.Count > 0 {
		b.on(s.values["warmup"].node, "write warmup: 5s in this phase, or null for none",
			"a warm-up is a time in the open model: phase %s has a rate and no users to count by", p.Name)
	}
	if v, ok := s.values["precision"]; ok {
		if c.Precision = v.f; v.f < finest || v.f > 1 {
			b.on(v.node, "write 5%", "a precision lies between 0.1%% and 100%%")
		}
	}
	from, to, hold := s.values["from"], s.values["to"], s.values["hold"]
	switch {
	case from.node != nil && from.f == 0:
		b.on(from.node, "write the lowest rate that is worth knowing of, such as 10/s", "a rate of 0 sends nothing")
	case from.node != nil && to.node != nil && to.f <= from.f:
		b.on(to.node, "", "to is the highest rate, and lies above from")
	case hold.node != nil && c.Hold == 0:
		b.on(hold.node, "", "a hold of 0 measures nothing")
	case c.Hold > longest:
		b.on(hold.node, "", "the hold takes longer than ten years")
	case sound && c.To*c.Hold.Seconds() > 1e12:
		b.on(s.title, "", "the phase has more than a million million arrivals")
	case sound && c.From*c.Hold.Seconds() < 1:
		b.on(hold.node, "hold longer, or begin with a higher rate", "nothing arrives within the hold at the lowest rate")
	}
	if n := s.node("while"); n != nil {
		if items := b.expressions(n); n.shape == sequence {
			b.on(n, "join them by and", "expected one condition, not a list")
		} else if len(items) == 1 {
			b.whiles = append(b.whiles, &writtenWhile{items[0], scenario, c})
		}
	}
}

// conditions parses the conditions of all capacity phases.
func (b *binder) conditions() {
	for _, w := range b.whiles {
		var a *expression.Assertion
		var errs []*expression.Error
		if tainted := b.watch(func() { a, errs = expression.ParseAssertion(w.n.text, b.names) }); tainted {
			continue
		}
		if len(errs) > 0 {
			b.explain(w.n, errs)
			continue
		}
		w.capacity.While = a
		for _, ad := range a.Addresses() {
			message, hint := "", ""
			switch {
			case ad.Metric.Name == "rate_held":
				message, hint = "rate_held is what the search is for", "write what a hold has to be, such as p95 < 500ms"
			case ad.Metric.Diff != "" || ad.Metric.Previous:
				message = "a hold is judged by itself, and not compared"
			case ad.Scenario != "" || ad.Phase != "" || ad.Target != "":
				message, hint = "the condition is of each hold of this phase, on each target by itself", "leave out what stands before the metric"
			case ad.Stage != "" || ad.Ramp:
				message = "a hold has no stages"
			}
			if message != "" {
				b.within(w.n, ad.Offset, ad.Length, message, hint)
			}
		}
	}
}
