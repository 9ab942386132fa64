package engine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/profile"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/result"
)

// cell is one scenario, phase and target of the plan, and where it stands in the stream.
type cell struct {
	result.Cell
	index    int
	scenario *plan.Scenario
	phase    *plan.Phase
	target   int
	along    *cell  // of the phase that this one runs along with; nil for a cell of its own
	beside   *cell  // what runs along with this one; nil for nothing
	watch    *watch // nil if no assertion may end the run because of this cell
}

// cellsOf lists the cells of a plan in the order in which they are run and recorded.
func cellsOf(p *plan.Plan) []*cell {
	var cells []*cell
	for _, s := range p.Scenarios {
		for _, ph := range s.Phases {
			for t, target := range p.Targets {
				c := &cell{index: len(cells), scenario: s, phase: ph, target: t}
				c.Cell = result.Cell{
					Scenario: s.Name, ScenarioTitle: s.Title,
					Phase: ph.Name, PhaseTitle: ph.Title,
					Kind:    string(ph.Kind),
					Target:  target.Name,
					Rounds:  ph.Rounds,
					Open:    ph.Open,
					Shape:   Shape(ph),
					Timeout: ph.Timeout,
					Stages:  stagesOf(ph),
				}
				c.Steps = stepsOf(s, t)
				cells = append(cells, c)
			}
			if bg := ph.Background; bg != nil {
				along := cells[len(cells)-len(p.Targets):]
				for _, main := range along {
					c := backgroundOf(main, bg, len(cells))
					main.beside = c
					cells = append(cells, c)
				}
			}
		}
	}
	return cells
}

// backgroundOf is the cell of a scenario that runs along with another cell.
func backgroundOf(main *cell, bg *plan.Background, index int) *cell {
	users := "1 user"
	if bg.Users > 1 {
		users = fmt.Sprintf("%d users", bg.Users)
	}
	ph := &plan.Phase{
		Name: main.phase.Name, Kind: plan.Along, Users: bg.Users, Rounds: main.phase.Rounds, Timeout: bg.Scenario.Timeout,
	}
	c := &cell{index: index, scenario: bg.Scenario, phase: ph, target: main.target, along: main}
	c.Cell = result.Cell{
		Scenario: bg.Scenario.Name, ScenarioTitle: bg.Scenario.Title,
		Phase: ph.Name, PhaseTitle: main.phase.Title,
		Kind: string(plan.Along), Target: main.Target, Rounds: ph.Rounds, Timeout: ph.Timeout,
		Shape:  users + ", in the background of " + main.Scenario,
		Stages: []result.Stage{{Kind: "hold", Judged: true, From: float64(bg.Users), To: float64(bg.Users)}},
	}
	c.Steps = stepsOf(bg.Scenario, main.target)
	return c
}

// stepsOf lists what a scenario has samples of, besides its iterations.
func stepsOf(s *plan.Scenario, target int) (steps []result.Step) {
	for _, step := range s.Steps {
		steps = append(steps, result.Step{Name: step.Name, Driver: step.Actions[target].Driver, Around: s.Around[step.Name]})
	}
	for _, name := range s.Groups {
		steps = append(steps, result.Step{Name: name, Around: s.Around[name]})
	}
	return steps
}

// Cells lists the cells that a plan would run, in order.
func Cells(p *plan.Plan) []result.Cell {
	var list []result.Cell
	for _, c := range cellsOf(p) {
		list = append(list, c.Cell)
	}
	return list
}

// stagesOf lists the stages of a phase. A phase that is driven by a count or a duration is one hold.
// Those of a capacity search are its trials, which nobody knows yet.
func stagesOf(ph *plan.Phase) []result.Stage {
	if ph.Capacity != nil {
		return nil
	}
	if ph.Kind != plan.RampAndHold {
		return []result.Stage{{Kind: "hold", Judged: true, Length: ph.Duration, From: float64(ph.Users), To: float64(ph.Users)}}
	}
	var stages []result.Stage
	var at time.Duration
	for _, s := range ph.Stages {
		kind := "hold"
		if s.Ramp {
			kind = "ramp"
		}
		stages = append(stages, result.Stage{Name: s.Name, Kind: kind, Judged: s.Judged, Start: at, Length: s.Length, From: s.From, To: s.To})
		at += s.Length
	}
	return stages
}

// Shape says in words how a round of a phase drives the load, such as "50 users, 50 iterations".
func Shape(ph *plan.Phase) string {
	var s string
	switch ph.Kind {
	case plan.Single:
		s = "1 iteration"
	case plan.Sequential:
		s = "1 user, " + amount(ph)
	case plan.Parallel:
		s = fmt.Sprintf("%d users, %s", ph.Users, amount(ph))
	case plan.RampAndHold:
		s = stagesText(ph)
	case plan.CapacitySearch:
		c := ph.Capacity
		s = fmt.Sprintf("%s to %s, holds of %s, while %s", rateText(c.From), rateText(c.To), timeText(c.Hold), c.While)
		if ph.Poisson {
			s += ", Poisson arrivals"
		}
	}
	return s
}

func amount(ph *plan.Phase) string {
	if ph.Duration > 0 {
		return "for " + timeText(ph.Duration)
	}
	if ph.Count == 1 {
		return "1 iteration"
	}
	return fmt.Sprintf("%d iterations", ph.Count)
}

func stagesText(ph *plan.Phase) string {
	level := func(v float64) string {
		if ph.Open {
			return rateText(v)
		}
		return fmt.Sprintf("%g users", v)
	}
	var s string
	for i, st := range ph.Stages {
		if i > 0 {
			s += ", "
		}
		if st.Ramp {
			s += fmt.Sprintf("%s to %s in %s", level(st.From), level(st.To), timeText(st.Length))
		} else {
			s += fmt.Sprintf("%s for %s", level(st.To), timeText(st.Length))
		}
	}
	if ph.Poisson {
		s += ", Poisson arrivals"
	}
	return s
}

// timeText is a duration as plans write it.
func timeText(d time.Duration) string {
	return quantity.Value{F: float64(d), Dim: quantity.Time}.Text(12)
}

func rateText(perSecond float64) string {
	return quantity.Value{F: perSecond, Dim: quantity.Rate}.String()
}

// arrivalsOf is the schedule of an open phase in one round. Poisson arrivals do not depend on the target.
func arrivalsOf(ph *plan.Phase, seed uint64) (*profile.Arrivals, error) {
	if ph.Poisson {
		return profile.Poisson(segmentsOf(ph), seed)
	}
	return profile.Even(segmentsOf(ph))
}

func segmentsOf(ph *plan.Phase) []profile.Segment {
	var segments []profile.Segment
	for _, s := range ph.Stages {
		segments = append(segments, profile.Segment{From: s.From, To: s.To, Length: s.Length})
	}
	return segments
}

// maxInFlight is how many iterations an open phase may have under way at a time: what the greatest rate piles up if
// every call runs to its time-out, as far as the descriptors of this process reach.
func maxInFlight(ph *plan.Phase) int {
	if ph.MaxInFlight > 0 {
		return ph.MaxInFlight
	}
	var rate float64
	if ph.Capacity != nil {
		rate = ph.Capacity.To
	}
	for _, s := range ph.Stages {
		rate = max(rate, s.From, s.To)
	}
	n := math.Ceil(rate * ph.Timeout.Seconds())
	return int(max(1, min(n, 0.8*float64(descriptorLimit()))))
}

// stageAt returns the index of the stage in which t falls. What is due at the very end belongs to the last one.
func stageAt(stages []result.Stage, t time.Duration) int {
	i, found := slices.BinarySearchFunc(stages, t, func(s result.Stage, t time.Duration) int {
		return int(s.Start - t)
	})
	if found {
		return i
	}
	return max(0, i-1)
}

// Load is what a phase brings in one round on one target.
type Load struct {
	Iterations  int64         // 0 where a duration drives it, or a search
	Length      time.Duration // 0 where a count drives it; of a search, the shortest there can be
	MaxInFlight int
}

// LoadOf works out the load of a phase before it is run. Poisson arrivals are those of the default seed.
func LoadOf(ph *plan.Phase) (Load, error) {
	switch {
	case ph.Capacity != nil:
		return Load{0, fewestTrials * ph.Capacity.Hold, maxInFlight(ph)}, nil
	case ph.Open:
		a, err := arrivalsOf(ph, 1)
		if err != nil {
			return Load{}, err
		}
		return Load{a.Count(), a.Length(), maxInFlight(ph)}, nil
	case ph.Kind == plan.RampAndHold:
		u := usersOf(ph)
		return Load{0, u.Length(), u.Max()}, nil
	default:
		return Load{ph.Count, ph.Duration, ph.Users}, nil
	}
}
