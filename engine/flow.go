package engine

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
)

// parts runs parts of an iteration in order. k counts how often they were run before, over all iterations. False ends the
// iteration.
func (u *user) parts(parts []*plan.Part, k int64) bool {
	for _, p := range parts {
		if !u.part(p, k) {
			return false
		}
	}
	return true
}

func (u *user) part(p *plan.Part, k int64) bool {
	if p.When != nil {
		holds, err := p.When[u.rd.target].Holds(&u.input)
		if err != nil {
			return u.undecided(p, err)
		}
		if !holds {
			return true
		}
	}
	for r := range p.Repeat {
		if !u.once(p, k*int64(p.Repeat)+int64(r)) {
			return false
		}
	}
	return true
}

func (u *user) once(p *plan.Part, k int64) bool {
	switch {
	case p.Call != plan.NoCall:
		return u.call(p.Call)
	case p.Parts == nil && p.Mix == nil: // a pause
		u.rest(p.Pause)
		return true
	case p.Sample == plan.NoCall:
		return u.inner(p, k)
	}
	// A group with samples of its own. What it holds adds to the iteration, so the group is what was added meanwhile.
	before, start := u.whole, u.at
	u.whole.Failure, u.whole.Flags = drivers.OK, 0
	on := u.inner(p, k)
	s := u.whole
	u.whole.Flags |= before.Flags
	s.Step, s.Start, s.Due, s.Lag, s.End = int16(p.Sample), start, start, 0, u.at
	s.Paused -= before.Paused
	s.BytesIn -= before.BytesIn
	s.BytesOut -= before.BytesOut
	if u.recorded {
		u.book.Add(&s)
	}
	if before.Failure != drivers.OK {
		u.whole.Failure = before.Failure
	}
	return on
}

func (u *user) inner(p *plan.Part, k int64) bool {
	if p.Transaction != nil {
		return u.transaction(p, k)
	}
	if p.Mix == nil {
		return u.parts(p.Parts, k)
	}
	branch, visits := p.Mix.At(k)
	return u.part(p.Mix.Branches[branch], visits)
}

// transaction runs the steps of a transaction, and takes them back if one of them fails.
func (u *user) transaction(p *plan.Part, k int64) bool {
	before := u.whole.Failure
	u.whole.Failure = drivers.OK
	on := u.call(p.Transaction.Begin) && u.parts(p.Parts, k)
	if u.whole.Failure == drivers.OK {
		on = u.call(p.Transaction.Commit)
	} else {
		u.rollback(p.Transaction.Rollback)
	}
	if before != drivers.OK {
		u.whole.Failure = before
	}
	return on
}

// rollback takes a transaction back. Whether that works or not, the failure that led here is what counts.
func (u *user) rollback(i int) {
	u.input.Deadline = u.rd.clock.Time(u.rd.clock.Now() + u.rd.phase.Timeout)
	u.outcome.Reset()
	_ = u.sessions[u.rd.slots[i]].Do(u.rd.ctx, u.rd.actions[i].Call, &u.input, &u.outcome)
	u.at = int64(u.rd.now())
}

// call makes one step of a flow.
func (u *user) call(i int) bool {
	s := &u.sample
	*s = u.whole
	s.Step, s.Start, s.Due, s.Lag = int16(i), u.at, u.at, 0
	s.Paused, s.BytesIn, s.BytesOut, s.Status, s.Failure, s.Flags = 0, 0, 0, 0, drivers.OK, 0
	if !u.begun {
		s.Due, s.Lag = u.whole.Due, u.whole.Lag // the first call is due with its iteration
		u.begun = true
	}
	u.step(i, s)
	if u.recorded && u.rd.sampled {
		u.book.Add(s)
	}
	u.took(s)
	return s.Failure == drivers.OK || u.rd.scenario.Steps[i].Continue
}

// rest waits within an iteration. Once the run is stopped there is nothing to wait for: what was begun is brought to its
// end.
func (u *user) rest(span plan.Span) {
	begin := u.rd.now()
	u.waiter.Until(u.rd.clock.Now()+u.draw(span), u.rd.Stop)
	u.at = int64(u.rd.now())
	u.whole.Paused += u.at - int64(begin)
}

// draw chooses a length of a span.
func (u *user) draw(span plan.Span) time.Duration {
	d := span.Min
	if span.Max > span.Min {
		d += time.Duration(u.input.Random() % uint64(span.Max-span.Min+1))
	}
	return d
}

// undecided fails the iteration because a condition of its flow could not be evaluated.
func (u *user) undecided(p *plan.Part, err error) bool {
	if u.whole.Failure == drivers.OK {
		u.whole.Failure = drivers.Expectation
	}
	if u.rd.examples.wants(drivers.Expectation) {
		s := u.whole
		s.Failure, s.End = drivers.Expectation, u.at
		u.note(&s, max(p.Call, 0), fmt.Sprintf("when: %s: %s", p.When[u.rd.target], err))
	}
	return false
}

// capture takes from the answer of a step what later steps use. A value that the answer does not have fails the step.
func (u *user) capture(i int, s *record.Sample) {
	for _, c := range u.rd.actions[i].Captures {
		v, err := c.Value.Eval(u.outcome.Answer, &u.input)
		if err == nil && v != nil {
			u.input.Values[c.Index] = keep(v)
			if c.Secret {
				u.hide(c.Index)
			}
			continue
		}
		u.input.Values[c.Index] = nil
		s.Failure = drivers.Expectation
		if u.rd.examples.wants(s.Failure) {
			text := fmt.Sprintf("capture %s: %s is not in the answer", c.Name, c.Value)
			if err != nil {
				text = fmt.Sprintf("capture %s: %s: %s", c.Name, c.Value, err)
			}
			u.note(s, i, text)
		}
		return
	}
}

// hide notes that a captured value must not be shown.
func (u *user) hide(index int) {
	for _, h := range u.hidden {
		if h == index {
			return
		}
	}
	u.hidden = append(u.hidden, index)
}

// note keeps an example of a failure, without what must not be shown.
func (u *user) note(s *record.Sample, step int, text string) {
	for _, i := range u.hidden {
		if v := u.input.Values[i]; v != nil {
			text = u.rd.secrets.Without(string(drivers.AppendText(nil, v)), text)
		}
	}
	u.rd.examples.note(s, step, u.rd.secrets.Clean(text))
}

// keep copies what an answer holds, because the answer is gone with the next call.
func keep(v any) any {
	switch v := v.(type) {
	case string:
		return strings.Clone(v)
	case []byte:
		return string(v)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = keep(x)
		}
		return out
	case map[string]any:
		out := maps.Clone(v)
		for k, x := range out {
			out[k] = keep(x)
		}
		return out
	case map[string]string:
		out := make(map[string]string, len(v))
		for k, x := range v {
			out[strings.Clone(k)] = strings.Clone(x)
		}
		return out
	}
	return v
}
