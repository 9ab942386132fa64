package engine

import (
	"fmt"
	"time"

	"github.com/planrun/planrun/engine/profile"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/engine/verdict"
)

const (
	// fewestTrials is how many trials the shortest search has: two at the only rate.
	fewestTrials = 2
	// mostTrials ends a search that contradicts itself for ever.
	mostTrials = 100
	// coolDown is the least time between two trials.
	coolDown = time.Second
)

// trialBudget bounds the exact values that trials under way keep, 8 bytes each. Beyond it percentiles are those of a
// histogram.
var trialBudget = record.NewBudget(4_000_000)

// trial is what one hold of a search comes to while it runs.
type trial struct {
	stage    int
	start    int64 // since the release
	length   int64
	steps    map[int]*record.Stats
	quarters [4]*record.Series // latency of ok iterations without lag, by when they were due
	probe    record.Histogram  // how late the generator's own probe was
}

func newTrial(t *result.Trial) *trial {
	x := &trial{stage: t.Stage, start: int64(t.Start), length: int64(t.Length), steps: map[int]*record.Stats{}}
	for i := range x.quarters {
		x.quarters[i] = record.NewSeries(trialBudget)
	}
	return x
}

func (t *trial) add(round int, s *record.Sample) {
	t.stats(int(s.Step)).Add(round, s)
	if s.Step != record.Whole || s.Failure != 0 || s.Flags&record.Dropped != 0 {
		return
	}
	quarter := 4 * (s.Due - t.start) / max(1, t.length)
	t.quarters[min(max(quarter, 0), 3)].Add(s.Latency() - s.Lag)
}

// probed takes in how late the probe was at a time since the release.
func (t *trial) probed(at, late time.Duration) {
	if begin := time.Duration(t.start); at >= begin && at < begin+time.Duration(t.length) {
		t.probe.Record(int64(late))
	}
}

func (t *trial) stats(step int) *record.Stats {
	s := t.steps[step]
	if s == nil {
		s = record.NewStats(trialBudget)
		s.Length, s.Probe = time.Duration(t.length), &t.probe
		t.steps[step] = s
	}
	return s
}

// search looks for the highest rate that the target holds, and writes down what it finds.
func (rd *round) search(p *pool, collect *collector) error {
	c := rd.phase.Capacity
	s := &search{from: c.From, to: c.To, precision: c.Precision}
	answer := &result.Capacity{Cell: rd.index, Round: rd.number, Outcome: result.Inconclusive, Confirmed: -1, Above: -1}
	latest := map[float64]*tried{} // by rate: the last trial, and the last of each outcome
	doubted := 0.0                 // rate of the last trial if the generator could not tell
	for n := 0; ; n++ {
		rate, more := s.next()
		if doubted > 0 {
			rate = doubted
		}
		if !more {
			rd.conclude(answer, s, latest)
			break
		}
		if n == mostTrials {
			answer.Reason = fmt.Sprintf("after %d trials the target still holds a rate once and fails at it the next time", n)
			break
		}
		x, err := rd.try(p, collect, rate, n)
		if err != nil {
			return err
		}
		if x == nil {
			return nil // stopped
		}
		at := latest[rate]
		if at == nil {
			at = &tried{}
			latest[rate] = at
		}
		switch x.end.Outcome {
		case result.Passed:
			at.held = x
		case result.Failed:
			at.failed = x
		default:
			if doubted == rate {
				answer.Reason = fmt.Sprintf("the generator is the limit at %s: %s", rateText(rate), x.end.Reason)
				return rd.emit(answer)
			}
			doubted = rate
			continue
		}
		doubted = 0
		s.note(rate, x.end.Outcome == result.Passed)
	}
	return rd.emit(answer)
}

// tried is the last trials at one rate.
type tried struct{ held, failed *ended }

// ended is a trial that is over.
type ended struct {
	end      *result.TrialEnd
	inFlight float64
}

// conclude fills in the answer of a search that came to one.
func (rd *round) conclude(answer *result.Capacity, s *search, latest map[float64]*tried) {
	low, high := s.bracket()
	if high != nil {
		above := latest[high.rate].failed
		answer.Failed, answer.Above, answer.Reason = high.rate, above.end.Stage, above.end.Reason
	}
	if low == nil {
		answer.Outcome = result.Failed
		return
	}
	held := latest[low.rate].held
	answer.Outcome, answer.Held, answer.Confirmed = result.Passed, low.rate, held.end.Stage
	answer.InFlight = held.inFlight
	if high == nil {
		answer.Reason = fmt.Sprintf("%s is the highest rate that the plan allows to try", rateText(low.rate))
	}
}

// try holds a rate once and judges it; nil if the run was stopped meanwhile. number counts the trials of the round.
func (rd *round) try(p *pool, collect *collector, rate float64, number int) (*ended, error) {
	hold := rd.phase.Capacity.Hold
	arrivals, err := rd.arrivals(rate, hold, number)
	if err != nil {
		return nil, &SetupError{rd.label(), err}
	}
	if number > 0 {
		// What the trial before piled up at the target takes about as long to work off as its slowest answer took.
		slowest, _ := collect.trial.stats(record.Whole).All().Max()
		rest := max(coolDown, time.Duration(slowest))
		collect.trial.release()
		if !rd.clock.NewWaiter().Until(rd.clock.Now()+rest, rd.Stop) || rd.halted() {
			return nil, nil
		}
	}
	begin := &result.Trial{Cell: rd.index, Round: rd.number, Stage: len(rd.Stages), Rate: rate, Start: rd.now(), Length: hold}
	if err := rd.emit(begin); err != nil {
		return nil, err
	}
	rd.Stages = append(rd.Stages, begin.AsStage())
	rd.trial = begin.Stage
	t := newTrial(begin)
	collect.trial = t
	err = collect.around(func() { p.run(arrivals, rd.release+begin.Start, true) })
	p.first += arrivals.Count()
	if err != nil || rd.halted() {
		return nil, err
	}
	end := &result.TrialEnd{Cell: rd.index, Stage: begin.Stage}
	end.Outcome, end.Reason = rd.judgeTrial(t)
	return &ended{end, t.inFlight()}, rd.emit(end)
}

func (rd *round) arrivals(rate float64, length time.Duration, number int) (*profile.Arrivals, error) {
	segments := []profile.Segment{{From: rate, To: rate, Length: length}}
	if rd.phase.Poisson {
		return profile.Poisson(segments, mix(rd.seed+uint64(number)))
	}
	return profile.Even(segments)
}

// judgeTrial says whether a rate was held: the condition of the plan is true, nothing was dropped, and the target's
// backlog did not grow.
func (rd *round) judgeTrial(t *trial) (result.Outcome, string) {
	outcome, reason := verdict.JudgeHold(rd.phase.Capacity.While, func(step string) *record.Stats {
		for i := range rd.Steps {
			if rd.Steps[i].Name == step && len(rd.Steps) > 1 {
				return t.stats(i)
			}
		}
		return t.stats(record.Whole)
	})
	if outcome != result.Passed {
		return outcome, reason
	}
	if grown := t.grown(); grown != "" {
		if held := verdict.Crowded(t.stats(record.Whole)); held != "" {
			return result.Inconclusive, grown + ", but " + held
		}
		return result.Failed, grown
	}
	return outcome, reason
}

const (
	// growth is by how much the median latency of the last quarter of a hold may exceed that of the second before the
	// target counts as falling behind; differences below growthFloor, and quarters with fewer answers than growthCount,
	// say nothing.
	growth      = 1.25
	growthFloor = time.Millisecond
	growthCount = 8
)

// inFlight is how many iterations were under way on average, by Little's law: rate x mean latency (Little, A Proof for the
// Queuing Formula L = lambda W, 1961).
func (t *trial) inFlight() float64 {
	s := t.stats(record.Whole)
	mean, _ := s.All().Mean()
	return float64(s.Count()) / time.Duration(t.length).Seconds() * mean / float64(time.Second)
}

// release gives back what the statistics hold.
func (t *trial) release() {
	for _, s := range t.steps {
		s.Release()
	}
	for _, q := range t.quarters {
		q.Release()
	}
}

// grown says how the backlog grew during a hold; "" if it did not.
func (t *trial) grown() string {
	second, last := t.quarters[1], t.quarters[3]
	if second.Count() < growthCount || last.Count() < growthCount {
		return ""
	}
	a, _ := second.Percentile(50)
	b, _ := last.Percentile(50)
	if float64(b) <= growth*float64(a) || b-a < int64(growthFloor) {
		return ""
	}
	text := func(ns int64) string { return quantity.Value{F: float64(ns), Dim: quantity.Time}.String() }
	return fmt.Sprintf("its backlog grew: the median latency rose from %s in the second quarter of the hold to %s in the last, by more than a quarter", text(a), text(b))
}
