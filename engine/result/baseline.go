package result

import (
	"cmp"
	"io"
	"maps"
	"math"
	"slices"
)

// Save writes a run without its samples: the summaries of each round, its environment and its plan. It is small enough to
// lie in git, and every figure can be computed from it again, percentiles with the error of a histogram.
func Save(w io.Writer, run *Run) error {
	wr := NewWriter(w)
	header := run.Header
	header.Samples = false
	frames := []Frame{&header}
	for _, c := range run.Cells {
		cell := c.Cell
		if cell.IsCapacity() {
			cell.Stages = nil // they come with the trials
		}
		frames = append(frames, &cell)
	}
	for i, c := range run.Cells {
		for n, r := range c.Rounds {
			round := r.Round
			round.Cell = i
			frames = append(frames, &round)
			frames = append(frames, c.saveTrials(i, n)...)
			frames = append(frames, c.saveParts(i, n)...)
			if r.Capacity != nil {
				answer := *r.Capacity
				answer.Cell = i
				frames = append(frames, &answer)
			}
			if r.End != nil {
				end := *r.End
				end.Cell = i
				// The seconds of the round, which have it, are left out.
				end.Probe = c.Probe(n, 0, math.MaxInt64)
				frames = append(frames, &end)
			}
		}
	}
	if run.End != nil {
		frames = append(frames, run.End)
	}
	for _, f := range frames {
		if err := wr.Frame(f); err != nil {
			return err
		}
	}
	return wr.Flush()
}

func (c *CellResult) saveTrials(cell, round int) []Frame {
	var frames []Frame
	for _, t := range c.Trials {
		if t.Round != round {
			continue
		}
		trial := t.Trial
		trial.Cell = cell
		frames = append(frames, &trial)
		if t.End != nil {
			end := *t.End
			end.Cell = cell
			frames = append(frames, &end)
		}
	}
	return frames
}

func (c *CellResult) saveParts(cell, round int) []Frame {
	var frames []Frame
	for _, key := range slices.SortedFunc(maps.Keys(c.parts), func(a, b part) int {
		return cmp.Or(a.round-b.round, a.stage-b.stage, a.step-b.step)
	}) {
		if key.round == round {
			frames = append(frames, &Summary{Cell: cell, Round: round, Stage: key.stage, Step: key.step, Stats: c.parts[key]})
		}
	}
	return frames
}

// Versus makes one run of two: for each cell that both have, a scenario's two columns are what it came to before and
// after. Its targets are called by the two labels, of which the first is the reference; a run of several targets becomes
// a scenario for each of them. The runs must not be changed any more.
func Versus(before, after *Run, labels [2]string) *Run {
	run := NewRun()
	run.Header, run.Compared = after.Header, true
	run.Header.Assertions, run.Header.Samples, run.Reference = nil, false, 0
	run.Header.Targets = []Target{{Name: labels[0]}, {Name: labels[1]}}
	several := len(after.Targets) > 1
	for _, c := range after.Cells {
		old := before.Find(c.Scenario, c.Phase, c.Target)
		if old == nil {
			continue
		}
		for i, from := range []*CellResult{old, c} {
			x := &CellResult{
				Cell: from.Cell, Index: len(run.Cells), Rounds: from.Rounds, Trials: from.Trials, Examples: from.Examples,
				Intervals: from.Intervals, samples: from.samples, budget: from.budget, parts: from.parts,
			}
			if several {
				title := cmp.Or(x.ScenarioTitle, x.Scenario)
				x.Scenario, x.ScenarioTitle = x.Scenario+"."+x.Target, title+", "+x.Target
			}
			x.Target = labels[i]
			run.Cells = append(run.Cells, x)
		}
	}
	for i, r := range []*Run{before, after} {
		for _, t := range r.Targets {
			run.Targets[i].Lab = run.Targets[i].Lab || t.Lab
		}
	}
	return run
}
