// Package plan is a plan as the engine runs it, decoded from the YAML tree, so that every value knows its line and
// column and all findings of a file come at once.
package plan

import (
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/secret"
	"github.com/planrun/planrun/lab"
)

// Plan is one YAML file, checked and prepared: nothing about it can fail any more but the systems it calls.
type Plan struct {
	File        string // as given on the command line
	Text        []byte
	Name        string // free text; the file's name without its ending unless the plan says otherwise
	Description string
	Targets     []Target // at least one
	Reference   int      // index in Targets
	Scenarios   []*Scenario
	// Before and After are run once for each target, before and after everything else; nil if there is nothing to do.
	Before, After *Scenario
	Secrets       *secret.Mask // keeps the plan's secrets out of whatever is written
	Assertions    []*Assertion // all that are written, wherever they are
	Sinks         []Sink
	Results       Results
	Against       Against
	// StrictSamples makes a verdict on a percentile inconclusive when there are too few samples for it.
	StrictSamples bool
	Lab           *lab.Spec // nil when no target that is used leads to it
	Described     *lab.Spec // the lab that the plan describes, used or not; nil if it describes none
	Preflight     bool
	// Placeholders has addresses that stand for the lab's while it is not running, and how the plan calls them.
	Placeholders map[string]string
	Vars         map[string]string // as written, for assertions that read them
	Settings     map[string]string // what the command line changed, by key: vars.file_size, only
}

// Target is a named variant of the system under test.
type Target struct {
	Name string
	Lab  bool // it leads to the lab
}

// Scenario is what one iteration does.
type Scenario struct {
	Name, Title string
	Place       diag.Place
	Steps       []*Step // every call that is measured
	Unseen      []*Step // calls that are not: those that take a transaction back, numbered after Steps
	// Flow is in which order they are made; nil where one call is all there is.
	Flow []*Part
	// Groups are the names of groups and of branches of a mix, whose samples are numbered after those of Steps.
	Groups []string
	// Around is the group or branch in which a named step, group or branch lies; none for those at the top.
	Around map[string]string
	// Captures are the names of what steps capture; their values are in drivers.Input.Values, in this order.
	Captures []string
	// Most is how many iterations a round can have, because each uses up a row of the data named MostBy; "" without a bound.
	Most   int64
	MostBy string
	Phases []*Phase
	// Before and After are run once for each target, around all phases; nil if there is nothing to do.
	Before, After *Scenario
	Tags          []string
	IsBackground  bool          // a phase of another scenario runs it along
	Timeout       time.Duration // of a step, where neither it nor a phase says more
	matrix        string        // the name as written, of a combination of a matrix; "" for others
}

// Step is one call through one driver.
type Step struct {
	Name    string // "" in a scenario of one call
	Place   diag.Place
	Timeout time.Duration // 0: the phase's
	// Continue says that the iteration goes on after the step has failed. It has failed all the same.
	Continue bool
	// Actions has what the step does for each target, in the order of Plan.Targets.
	Actions []Action
}

// Action is a step for one target.
type Action struct {
	Driver   string
	Call     drivers.Call
	Expect   []*expression.Expectation // none: the protocol's own judgement
	Captures []Capture
	payload  *payload
}

// Capture is a value of an answer that later steps use.
type Capture struct {
	Name   string
	Index  int // in Scenario.Captures
	Value  *expression.Value
	Secret bool // it must not be shown
}

// Part is a piece of what an iteration does. Exactly one of Call, Pause, Parts and Mix is what it is.
type Part struct {
	Place  diag.Place
	Call   int // index in Scenario.Steps; NoCall for other parts
	Pause  Span
	Parts  []*Part // a group
	Mix    *Mix
	Repeat int // how often, at least 1
	// Transaction is of a group whose steps are one; nil for others.
	Transaction *Transaction
	// When has the condition of each target, in the order of Plan.Targets; nil if the part is always run.
	When []*expression.Value
	// Sample is the index of a group's own samples, behind those of the steps; NoCall where it has none.
	Sample int
}

// Transaction is the calls around the steps of a transaction, by their indexes in Scenario.Steps.
type Transaction struct{ Begin, Commit, Rollback int }

// NoCall is the Call of a Part that makes none by itself.
const NoCall = -1

// Kind is how a phase drives iterations.
type Kind string

const (
	Single      Kind = "single"
	Sequential  Kind = "sequential"
	Parallel    Kind = "parallel"
	RampAndHold Kind = "ramp-and-hold"
	// Along is how a scenario is driven that runs in the background of a phase. No plan writes it.
	Along Kind = "background"
)

// Phase is how iterations are driven.
type Phase struct {
	Name, Title string
	Place       diag.Place
	Kind        Kind

	// Of single, sequential and parallel. Either Count or Duration is set.
	Users    int
	Count    int64 // iterations in all
	Duration time.Duration
	Pause    Span

	// Of ramp-and-hold.
	Open        bool // by rate; otherwise by users
	Stages      []Stage
	Poisson     bool // arrivals are drawn; otherwise they are even
	MaxInFlight int  // 0: the engine chooses
	Patience    time.Duration

	Capacity *Capacity // of capacity, which is Open too; nil otherwise

	Background *Background // what runs along; nil for nothing
	Tags       []string

	Timeout     time.Duration
	Warmup      Warmup
	Rounds      int
	Connections int // 0: the driver chooses
}

// Span is a duration, or drawn uniformly from between two.
type Span struct{ Min, Max time.Duration }

// Warmup is unrecorded iterations before the release: Count a user, or as many as fit into Duration.
type Warmup struct {
	Count    int
	Duration time.Duration
}

// Stage is a part of a ramp-and-hold.
type Stage struct {
	Name     string // "" for the only hold, "ramp" for a ramp
	Ramp     bool
	From, To float64 // iterations a second, or users
	Length   time.Duration
	Judged   bool
}

// Assertion is one that the plan writes.
type Assertion struct {
	*expression.Assertion
	Text     string
	Place    diag.Place
	Scenario string // where it is written; "" at the plan's level
	Phase    string
	Warn     bool // severity: warn
	// Window, if not 0, is the length of the windows in each of which it has to hold.
	Window time.Duration
	// Abort ends the run once the assertion is false of what was measured so far of a cell, After into a round at the
	// earliest.
	Abort bool
	After time.Duration
}

// Against names the results of an earlier run, which previous stands for in assertions.
type Against struct {
	Path           string // relative to the working directory; "" if there is none
	AnyEnvironment bool   // it may come from another kind of machine
}

// Sink is a report that the plan asks for.
type Sink struct {
	Kind  string // csv, markdown
	Path  string // relative to the working directory
	Rows  string // of csv: cells or samples
	Place diag.Place
}

// Results says where the results stream goes.
type Results struct {
	Path    string // "": results/<plan>-<UTC time>-<4 hex>.msgpack
	Samples bool   // raw samples are kept; true unless the plan says otherwise
}

// hide makes the mask of the plan's secrets.
func (p *Plan) hide(values []string) {
	if p != nil {
		p.Secrets = secret.NewMask(values...)
	}
}
