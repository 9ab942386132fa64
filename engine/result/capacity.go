package result

import (
	"fmt"
	"slices"

	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/record"
)

// TrialResult is a trial, with how it ended.
type TrialResult struct {
	Trial
	End *TrialEnd // nil if the trial did not get to its end
}

// Trial opens a trial.
func (w *Writer) Trial(t *Trial) error {
	return w.frame(t.kind(), func(m *mapping) {
		m.int("cell", int64(t.Cell))
		m.int("round", int64(t.Round))
		m.int("stage", int64(t.Stage))
		m.float("rate", t.Rate)
		m.int("start", int64(t.Start))
		m.int("length", int64(t.Length))
	})
}

// TrialEnd closes a trial.
func (w *Writer) TrialEnd(t *TrialEnd) error {
	return w.frame(t.kind(), func(m *mapping) {
		m.int("cell", int64(t.Cell))
		m.int("stage", int64(t.Stage))
		m.string("outcome", string(t.Outcome))
		m.string("reason", t.Reason)
	})
}

// Capacity writes what a search found.
func (w *Writer) Capacity(c *Capacity) error {
	return w.frame(c.kind(), func(m *mapping) {
		m.int("cell", int64(c.Cell))
		m.int("round", int64(c.Round))
		m.string("outcome", string(c.Outcome))
		m.float("held", c.Held)
		m.int("confirmed", int64(c.Confirmed))
		m.float("failed", c.Failed)
		m.int("above", int64(c.Above))
		m.float("in_flight", c.InFlight)
		m.string("reason", c.Reason)
	})
}

// maxTrials is what a stage's number in a sample has room for.
const maxTrials = 1<<15 - 1

func (d *decoder) trialField(t *Trial, key []byte) {
	switch string(key) {
	case "cell":
		t.Cell = d.index()
	case "round":
		t.Round = d.index()
	case "stage":
		t.Stage = d.int(0, maxTrials)
	case "rate":
		t.Rate = d.float()
	case "start":
		t.Start = d.duration()
	case "length":
		t.Length = d.duration()
	default:
		d.skip()
	}
}

func (d *decoder) trialEndField(t *TrialEnd, key []byte) {
	switch string(key) {
	case "cell":
		t.Cell = d.index()
	case "stage":
		t.Stage = d.int(0, maxTrials)
	case "outcome":
		t.Outcome = Outcome(d.string())
	case "reason":
		t.Reason = d.string()
	default:
		d.skip()
	}
}

func (d *decoder) capacityField(c *Capacity, key []byte) {
	switch string(key) {
	case "cell":
		c.Cell = d.index()
	case "round":
		c.Round = d.index()
	case "outcome":
		c.Outcome = Outcome(d.string())
	case "held":
		c.Held = d.float()
	case "confirmed":
		c.Confirmed = d.int(-1, maxTrials)
	case "failed":
		c.Failed = d.float()
	case "above":
		c.Above = d.int(-1, maxTrials)
	case "in_flight":
		c.InFlight = d.float()
	case "reason":
		c.Reason = d.string()
	default:
		d.skip()
	}
}

// IsCapacity tells whether the cell is a search for a rate. Its stages are its trials.
func (c *Cell) IsCapacity() bool { return c.Kind == "capacity" }

// trial adds a trial and the stage that it is.
func (c *CellResult) trial(t *Trial) error {
	if !c.IsCapacity() || t.Stage != len(c.Trials) || t.Stage != len(c.Stages) {
		return fmt.Errorf("trial %d of %s does not follow the one before", t.Stage+1, c.name())
	}
	c.changed()
	c.Trials = append(c.Trials, &TrialResult{Trial: *t})
	c.Stages = append(slices.Clip(c.Stages), t.AsStage())
	return nil
}

// AsStage is the stage that a trial is. It is not judged unless it confirms the answer.
func (t *Trial) AsStage() Stage {
	name := quantity.Value{F: t.Rate, Dim: quantity.Rate}.String()
	return Stage{Name: name, Kind: "trial", Start: t.Start, Length: t.Length, From: t.Rate, To: t.Rate}
}

func (c *CellResult) trialEnd(t *TrialEnd) error {
	if t.Stage >= len(c.Trials) {
		return fmt.Errorf("trial %d of %s is not known", t.Stage+1, c.name())
	}
	c.Trials[t.Stage].End = t
	return nil
}

func (c *CellResult) capacity(x *RoundResult, f *Capacity) error {
	if f.Confirmed >= len(c.Stages) || f.Above >= len(c.Stages) {
		return fmt.Errorf("the answer of %s is from a trial that is not known", c.name())
	}
	c.changed()
	if f.Confirmed >= 0 {
		c.Stages[f.Confirmed].Judged = true
	}
	x.Capacity = f
	return nil
}

// RateHeld is the highest rate that was held in a round of a capacity search; of all rounds with Pooled, where it is
// their median. false is no data: the cell is no search, or one of its rounds has no answer.
func (c *CellResult) RateHeld(round int) (float64, bool) {
	if !c.IsCapacity() || len(c.Rounds) == 0 {
		return 0, false
	}
	rounds := c.selectedRounds(round)
	rates := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		f := c.Rounds[r].Capacity
		if f == nil || f.Outcome != Passed {
			return 0, false
		}
		rates = append(rates, f.Held)
	}
	if len(rates) == 0 {
		return 0, false
	}
	slices.Sort(rates)
	return (rates[(len(rates)-1)/2] + rates[len(rates)/2]) / 2, true
}

// Curve is what each trial of a capacity search came to, in ascending order of rates; trials of one rate are in the order
// in which they were run.
func (c *CellResult) Curve() []CurvePoint {
	var list []CurvePoint
	for i, t := range c.Trials {
		p := CurvePoint{Trial: t, Stats: c.Stats(t.Round, i, record.Whole), Confirmed: c.Stages[i].Judged}
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b CurvePoint) int {
		switch {
		case a.Trial.Rate < b.Trial.Rate:
			return -1
		case a.Trial.Rate > b.Trial.Rate:
			return 1
		}
		return 0
	})
	return list
}

// CurvePoint is a trial and the statistics of its iterations.
type CurvePoint struct {
	Trial     *TrialResult
	Stats     *record.Stats
	Confirmed bool // the answer rests on it
}
