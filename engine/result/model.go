// Package result is the results stream: the one thing that passes between the engine and whatever reads what was
// measured. The engine writes it while it runs; sinks, report, check and compare read it.
package result

import (
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
)

// Version of the format that this program writes. Readers refuse greater ones.
const Version = 1

// Header comes first.
type Header struct {
	Version     int
	Tool        string // planrun's version
	Plan        string // the plan's name
	Description string
	File        string // the plan's file, as given on the command line
	Text        []byte // the plan's text
	Hash        string // SHA-256 of Text, in hex
	Start       time.Time
	Seed        uint64
	Targets     []Target
	Reference   int               // index in Targets
	Environment map[string]string // os, arch, cpus, host, go, ...
	Settings    map[string]string // what the command line changed: vars.x=..., only=...
	Samples     bool              // whether sample blocks are written
	Assertions  []Assertion       // as the plan writes them
	Vars        map[string]string // the values that assertions may read, as written
	Against     string            // the results file that previous stands for; "" if there is none
	Strict      bool              // too few samples for a percentile make its verdict inconclusive
}

// Assertion is one of the plan, so that a results file can be judged again by itself.
type Assertion struct {
	Text     string
	Place    string // file:line:column
	Scenario string // where it is written; "" at the plan's level
	Phase    string
	Severity string // "" or "warn"
	// Window, if not 0, is the length of the windows in each of which it has to hold.
	Window time.Duration
	// Abort says that the run ends once the assertion is false of what was measured so far, After into a round at the
	// earliest.
	Abort bool
	After time.Duration
}

// Target is a variant of the system under test.
type Target struct {
	Name string
	Lab  bool // it is the lab in the box, not a real system
}

// Cell is one scenario, phase and target. Its index in the stream's order identifies it.
type Cell struct {
	Scenario, ScenarioTitle string
	Phase, PhaseTitle       string
	Kind                    string // of the phase: single, sequential, parallel, ramp-and-hold, capacity
	Target                  string
	Rounds                  int
	Open                    bool   // open model: iterations are due by a schedule
	Shape                   string // the load as it is executed, for people: "50 users, 50 iterations"
	Timeout                 time.Duration
	Steps                   []Step
	Stages                  []Stage
}

// Step is one step of a cell's scenario. A scenario of one step has no samples of the step apart from its iterations.
type Step struct {
	Name   string // "" in a scenario of one step
	Driver string // "" of a group or a branch
	Around string // the group or branch in which it lies; "" at the top
}

// Stage is a part of a cell's phase.
type Stage struct {
	Name     string // "" for the only hold; "ramp", "hold_2", or as the plan names it
	Kind     string // "hold", "ramp"
	Judged   bool
	Start    time.Duration // from the release
	Length   time.Duration // as planned; 0 where a count drives the phase
	From, To float64       // rate in iterations a second (open) or users (closed)
}

// Reads tells whether an address is of the stage: one that names a stage, one that says ramp, or else one of what is judged.
func (s *Stage) Reads(name string, ramp bool) bool {
	switch {
	case ramp:
		return s.Kind == "ramp"
	case name != "":
		return s.Name == name
	}
	return s.Judged
}

// Round opens the record of one round of a cell.
type Round struct {
	Cell, Round int
	Release     time.Duration // since Header.Start
}

// RoundEnd closes it.
type RoundEnd struct {
	Cell, Round int
	Length      time.Duration // from the release to the end of the last sample
	Opened      int64         // connections opened, those of the warm-up included
	MaxInFlight int           // the most iterations under way at a time
	Backlogged  int64         // arrivals that waited because all that may be in flight were
	Interrupted bool
	Stopped     time.Duration     // since the release, when nothing more was begun because of that; 0 is not known
	Protocols   []string          // as negotiated
	Lost        int64             // samples that could not be recorded
	Probe       *record.Histogram // lateness of the generator's own probe over the whole round, where no intervals are kept; nil otherwise
	CPU         time.Duration     // processor time the generator used since the release
	Cores       int               // processors that it might use
	GC          time.Duration     // total of the pauses of its garbage collection
	GCLongest   time.Duration     // the longest of them
	ClockStep   time.Duration     // by how much the wall clock was set forward during the round; the rest is of a steady clock
	Aborted     string            // the place of the assertion that ended the run; "" if none did
	Notes       []string          // what a reader of the round should know
	// Addresses are where its connections went, those of the warm-up included, the most used first. They are the first
	// few; MoreAddresses is how many others there were.
	Addresses     []drivers.Address
	MoreAddresses int
}

// Trial opens one hold of a capacity search, at one rate. It is a stage of its cell: trials follow each other, over all
// rounds of the cell, and the index of a trial is that of its stage.
type Trial struct {
	Cell, Round, Stage int
	Rate               float64
	Start              time.Duration // since the release
	Length             time.Duration // as planned
}

// TrialEnd closes a trial.
type TrialEnd struct {
	Cell, Stage int
	Outcome     Outcome // passed: the rate was held; failed; inconclusive: the generator could not tell
	Reason      string  // why, with figures
}

// Capacity is what the search of one round found.
type Capacity struct {
	Cell, Round int
	Outcome     Outcome // passed: there is a rate that holds; failed: the lowest one does not; inconclusive
	Held        float64 // the highest rate that was held, twice; 0 unless passed
	Confirmed   int     // stage of the hold that confirmed it, the last one at that rate; -1 without
	Failed      float64 // the lowest rate above that was not held, twice; 0 if even the highest one allowed was held
	Above       int     // stage of the last trial at that rate; -1 without
	InFlight    float64 // iterations under way in the confirming hold, by Little's law: rate x mean latency
	Reason      string  // why the rate above was not held, or why there is no answer
}

// Block is a run of samples of one round, in columns on the wire.
type Block struct {
	Cell, Round int
	Samples     []record.Sample
}

// Interval is one second of a round, or the rest of its last one. Samples belong to the interval in which they ended.
type Interval struct {
	Cell, Round         int
	Second              int // 0 is the first second after the release
	OK, Failed, Dropped int64
	InFlight            int   // at the end of the interval
	BytesIn             int64 // as they arrived, whether or not their call had ended
	MaxLag              time.Duration
	Latency             *record.Histogram // of the ok samples; nil if there were none
	Probe               *record.Histogram // lateness of the generator's own probe; nil if it did not get to run
}

// Example is one failure in its own words.
type Example struct {
	Cell, Round int
	Step        int
	Failure     drivers.Failure
	At          time.Duration // since the release
	Text        string
}

// Verdict is one row of the judgement.
type Verdict struct {
	Assertion                            string // as written; "ok > 0" and its like for implied ones
	Place                                string // file:line:column; "" for implied ones
	Implied                              bool
	Severity                             string // "" or "warn"
	Scenario, Phase, Stage, Step, Target string // what it was bound to; "" where it was not
	Outcome                              Outcome
	Value                                string   // of the left side, formatted
	Limit                                string   // of the right side, formatted
	N                                    int64    // samples behind the value
	Interval                             string   // the value's 95 % interval, formatted; "" if it has none
	Window                               string   // the window that is shown, the worst one; "" without windows
	Detail                               []string // of what did not pass the value of every part, as a tree; reasons and notes
}

// Outcome of a verdict, and of the whole run.
type Outcome string

const (
	Passed       Outcome = "passed"
	Failed       Outcome = "failed"
	NoData       Outcome = "no data"
	Inconclusive Outcome = "inconclusive"
)

// End comes last. A stream without it was cut off.
type End struct {
	Outcome     Outcome
	Exit        int
	Interrupted bool
	At          time.Duration // since Header.Start
	Notes       []string
}
