package result

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/planrun/planrun/engine/record"
)

// ExactValues is how many values a Run keeps exactly in all: 16 million, or 128 MB. A series that finds none left is a
// histogram. A sample of the open model takes up to ten: its latency with and without lag, service time, lag and what it
// has of the timing split; of a closed one, where these are equal or absent, it takes two or three.
const ExactValues = 16_000_000

// Run is a stream that was read, or is being written: samples as statistics, the rest as it is. While nothing is added,
// it is safe for concurrent reading.
type Run struct {
	Header
	Compared bool   // made by Versus
	Path     string // of the file; "" if there is none
	Cells    []*CellResult
	Verdicts []Verdict
	End      *End // nil if the stream has none
	// Cut is a *Cut if the stream ends early, nil otherwise.
	Cut error

	budget *record.Budget
	read   int64 // bytes of the file that were good
}

// CellResult is what a cell came to.
type CellResult struct {
	Cell
	Index     int
	Rounds    []*RoundResult
	Trials    []*TrialResult // of a capacity search; the index is that of the stage
	Examples  []Example
	Intervals []Interval // in the stream's order

	samples bool // summaries are passed over
	budget  *record.Budget
	parts   map[part]*record.Stats

	mu     sync.Mutex
	pooled map[part]*record.Stats // what was asked for, until something is added
}

// RoundResult is one round of a cell.
type RoundResult struct {
	Round
	End      *RoundEnd     // nil if the round did not get to its end
	Capacity *Capacity     // what a capacity search found; nil otherwise, or if it did not get to its end
	last     time.Duration // end of the last sample or interval, since the release
}

// part is one round, stage and step of a cell; in a selection also several rounds or stages.
type part struct{ round, stage, step int }

// What CellResult.Stats takes instead of the number of a round or stage.
const (
	Pooled = -1 // all rounds
	Judged = -1 // all stages that are judged
	Ramps  = -2 // all stages that are ramps
	Every  = -3 // all stages
)

// NewRun makes an empty run, to which frames are added.
func NewRun() *Run { return &Run{budget: record.NewBudget(ExactValues)} }

// Open reads a results file. A file that was cut off gives what is good of it, and Run.Cut. Memory does not grow with the
// samples beyond ExactValues.
func Open(path string) (*Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder, not a results file of planrun", path)
	}
	run, err := Load(f)
	if err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	run.Path = path
	return run, nil
}

// Load reads a stream as Open does. Run.Each needs a Path, which the caller may set.
func Load(r io.Reader) (*Run, error) {
	rd, err := NewReader(r)
	if err != nil {
		return nil, err
	}
	run := NewRun()
	for {
		at := rd.Offset()
		f, err := rd.Next()
		var cut *Cut
		switch {
		case err == nil:
			if err = run.Add(f); err == nil {
				run.read = rd.Offset()
				continue
			}
			run.Cut = &Cut{at, "damaged record: " + err.Error()}
		case errors.As(err, &cut):
			run.Cut = cut
		case err != io.EOF:
			return nil, err
		}
		return run, nil
	}
}

// Each calls f with the blocks of samples, read again from the file at Path up to where the run was read, and stops at
// the first error. A block is valid until f returns. Where Header.Samples is false there are none.
func (r *Run) Each(f func(*Block) error) error {
	if r.Path == "" {
		return errors.New("the samples are no longer at hand: there is no results file")
	}
	file, err := os.Open(r.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	rd, err := NewReader(file)
	if err != nil {
		return fmt.Errorf("%s %w", r.Path, err)
	}
	// A run that was built frame by frame did not read the file, and takes all of it.
	for r.read == 0 || rd.Offset() < r.read {
		x, err := rd.Next()
		var cut *Cut
		if err == io.EOF || errors.As(err, &cut) {
			return nil
		}
		if err != nil {
			return err
		}
		if b, ok := x.(*Block); ok {
			if _, err := r.round(b.Cell, b.Round); err != nil {
				return nil
			}
			if err := f(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// Add adds a frame as the stream has it. It keeps nothing of a *Block, and other frames become the run's. The error says
// what is wrong with a frame that does not fit what came before.
func (r *Run) Add(f Frame) error {
	switch f := f.(type) {
	case *Header:
		if r.Version != 0 {
			return errors.New("a second header")
		}
		if f.Version < 1 {
			return errors.New("a header without a format version")
		}
		r.Header = *f
	case *Cell:
		if f.IsCapacity() && len(f.Stages) > 0 {
			return errors.New("a capacity search has stages before its trials")
		}
		r.Cells = append(r.Cells, &CellResult{
			Cell: *f, Index: len(r.Cells), samples: r.Samples, budget: r.budget, parts: map[part]*record.Stats{},
		})
	case *Round:
		c, err := r.cell(f.Cell)
		if err != nil {
			return err
		}
		if f.Round != len(c.Rounds) {
			return fmt.Errorf("round %d of %s comes when round %d is due", f.Round+1, c.name(), len(c.Rounds)+1)
		}
		c.changed()
		c.Rounds = append(c.Rounds, &RoundResult{Round: *f})
	case *RoundEnd:
		x, err := r.round(f.Cell, f.Round)
		if err != nil {
			return err
		}
		r.Cells[f.Cell].changed()
		x.End = f
	case *Trial:
		if _, err := r.round(f.Cell, f.Round); err != nil {
			return err
		}
		return r.Cells[f.Cell].trial(f)
	case *TrialEnd:
		c, err := r.cell(f.Cell)
		if err != nil {
			return err
		}
		return c.trialEnd(f)
	case *Capacity:
		x, err := r.round(f.Cell, f.Round)
		if err != nil {
			return err
		}
		return r.Cells[f.Cell].capacity(x, f)
	case *Block:
		x, err := r.round(f.Cell, f.Round)
		if err != nil {
			return err
		}
		return r.Cells[f.Cell].add(x, f)
	case *Summary:
		x, err := r.round(f.Cell, f.Round)
		if err != nil {
			return err
		}
		return r.Cells[f.Cell].summary(x, f)
	case *Interval:
		x, err := r.round(f.Cell, f.Round)
		if err != nil {
			return err
		}
		c := r.Cells[f.Cell]
		c.Intervals = append(c.Intervals, *f)
		x.last = max(x.last, time.Duration(f.Second)*time.Second)
	case *Example:
		x, err := r.round(f.Cell, f.Round)
		if err != nil {
			return err
		}
		c := r.Cells[x.Cell]
		c.Examples = append(c.Examples, *f)
	case *Verdict:
		r.Verdicts = append(r.Verdicts, *f)
	case *End:
		r.End = f
	default:
		return errors.New("it is of no known type")
	}
	return nil
}

func (r *Run) cell(i int) (*CellResult, error) {
	if i < 0 || i >= len(r.Cells) {
		return nil, fmt.Errorf("cell %d is not known", i)
	}
	return r.Cells[i], nil
}

func (r *Run) round(cell, round int) (*RoundResult, error) {
	c, err := r.cell(cell)
	if err != nil {
		return nil, err
	}
	if round < 0 || round >= len(c.Rounds) {
		return nil, fmt.Errorf("round %d of %s is not known", round+1, c.name())
	}
	return c.Rounds[round], nil
}

func (c *CellResult) name() string { return c.Scenario + "." + c.Phase + "." + c.Target }

// stages is the number of stages; a cell that names none has one.
func (c *CellResult) stages() int { return max(1, len(c.Stages)) }

// steps is the number of steps that have samples of their own.
func (c *CellResult) steps() int {
	if len(c.Steps) == 1 && c.Steps[0].Name == "" {
		return 0
	}
	return len(c.Steps)
}

// Step returns the index of the step, group or branch of a name that lies within some others; false if there is none.
func (c *Cell) Step(name string, around []string) (int, bool) {
	find := func(name string) int {
		return slices.IndexFunc(c.Steps, func(s Step) bool { return name != "" && s.Name == name })
	}
	at := find(name)
	if at < 0 {
		return 0, false
	}
	var outer []string
	for i := find(c.Steps[at].Around); i >= 0 && len(outer) < len(c.Steps); i = find(c.Steps[i].Around) {
		outer = append(outer, c.Steps[i].Name)
	}
	return at, !slices.ContainsFunc(around, func(name string) bool { return !slices.Contains(outer, name) })
}

// part returns the statistics of one round, stage and step, which it makes if need be.
func (c *CellResult) part(round, stage, step int) (*record.Stats, error) {
	if stage < 0 || stage >= c.stages() {
		return nil, fmt.Errorf("stage %d of %s is not known", stage, c.name())
	}
	if step < record.Whole || step >= c.steps() {
		return nil, fmt.Errorf("step %d of %s is not known", step, c.name())
	}
	key := part{round, stage, step}
	s := c.parts[key]
	if s == nil {
		s = record.NewStats(c.budget)
		c.parts[key] = s
	}
	return s, nil
}

// changed forgets what was pooled.
func (c *CellResult) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, s := range c.pooled {
		if c.parts[key] != s {
			s.Release()
		}
	}
	clear(c.pooled)
}

func (c *CellResult) add(x *RoundResult, b *Block) error {
	c.changed()
	var s *record.Stats
	stage, step := int16(math.MinInt16), int16(math.MinInt16)
	for i := range b.Samples {
		v := &b.Samples[i]
		if s == nil || v.Stage != stage || v.Step != step {
			var err error
			if s, err = c.part(b.Round, int(v.Stage), int(v.Step)); err != nil {
				return err
			}
			stage, step = v.Stage, v.Step
		}
		s.Add(b.Round, v)
		x.last = max(x.last, time.Duration(v.End))
	}
	return nil
}

func (c *CellResult) summary(x *RoundResult, f *Summary) error {
	if c.samples {
		return nil
	}
	c.changed()
	s, err := c.part(f.Round, f.Stage, f.Step)
	if err != nil {
		return err
	}
	s.Merge(f.Stats)
	for _, span := range f.Stats.Spans() {
		x.last = max(x.last, time.Duration(span.Last))
	}
	return nil
}

// Stats returns the statistics of a round, or of all with Pooled; of a stage, or of several with Judged, Ramps or Every;
// and of a step, or of whole iterations with record.Whole. The step of a scenario of one step is its iterations. Numbers
// that there are not give the statistics of no samples. The result is shared: it must only be read, and is valid until
// something is added to the run.
func (c *CellResult) Stats(round, stage, step int) *record.Stats {
	if step == 0 && c.steps() == 0 {
		step = record.Whole
	}
	rounds := c.selectedRounds(round)
	stages := c.selectedStages(stage)
	// However they were asked for, the same rounds and stages have the same statistics, kept once.
	key := part{round, stage, step}
	if len(rounds) == 1 {
		key.round = rounds[0]
	}
	if len(stages) == 1 {
		key.stage = stages[0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.pooled[key]; s != nil {
		return s
	}
	s := c.parts[key]
	if s == nil {
		s = record.NewStats(c.budget)
		for _, r := range rounds {
			for _, g := range stages {
				if p := c.parts[part{r, g, step}]; p != nil {
					s.Merge(p)
				}
			}
		}
	}
	s.Length = 0
	for _, r := range rounds {
		for _, g := range stages {
			s.Length += c.length(r, g)
		}
	}
	s.Probe = c.probe(rounds, stages)
	if c.pooled == nil {
		c.pooled = map[part]*record.Stats{}
	}
	c.pooled[key] = s
	return s
}

func (c *CellResult) selectedRounds(round int) []int {
	if round != Pooled {
		if round < 0 || round >= len(c.Rounds) {
			return nil
		}
		return []int{round}
	}
	all := make([]int, len(c.Rounds))
	for i := range all {
		all[i] = i
	}
	return all
}

func (c *CellResult) selectedStages(stage int) (list []int) {
	for g := range c.stages() {
		if c.selects(stage, g) {
			list = append(list, g)
		}
	}
	return list
}

func (c *CellResult) selects(want, stage int) bool {
	switch want {
	case Judged:
		return len(c.Stages) == 0 || c.Stages[stage].Judged
	case Ramps:
		return len(c.Stages) > 0 && c.Stages[stage].Kind == "ramp"
	case Every:
		return true
	}
	return want == stage
}

// Ran tells whether a stage is of a round: all are but the trials of a search, each of which belongs to one.
func (c *CellResult) Ran(round, stage int) bool {
	return !c.IsCapacity() || stage < len(c.Trials) && c.Trials[stage].Round == round
}

// length is how long a stage lasted by plan, or until the round was cut short; 0 where a count drives it.
func (c *CellResult) length(round, stage int) time.Duration {
	if len(c.Stages) == 0 || !c.Ran(round, stage) {
		return 0
	}
	s, r := &c.Stages[stage], c.Rounds[round]
	if s.Length <= 0 || r.End != nil && !r.End.Interrupted {
		return max(0, s.Length)
	}
	lasted := r.last
	if r.End != nil {
		lasted = cmp.Or(r.End.Stopped, r.End.Length)
	}
	return min(max(0, lasted-s.Start), s.Length)
}

// Probe is how late the generator's own probe was between two times since the release of a round, to the second; nil if that
// is not known. Where no intervals were kept it is that of the whole round.
func (c *CellResult) Probe(round int, from, to time.Duration) *record.Histogram {
	all := new(record.Histogram)
	c.mergeSeconds(all, round, from, to)
	c.mergeRounds(all, []int{round})
	return orNil(all)
}

// probe is that of some stages of some rounds.
func (c *CellResult) probe(rounds, stages []int) *record.Histogram {
	all := new(record.Histogram)
	for _, r := range rounds {
		for _, g := range stages {
			if !c.Ran(r, g) {
				continue
			}
			from, to := time.Duration(0), time.Duration(math.MaxInt64)
			if len(c.Stages) > 0 {
				from = c.Stages[g].Start
				if length := c.Stages[g].Length; length > 0 {
					to = from + length
				}
			}
			c.mergeSeconds(all, r, from, to)
		}
	}
	c.mergeRounds(all, rounds)
	return orNil(all)
}

func (c *CellResult) mergeSeconds(all *record.Histogram, round int, from, to time.Duration) {
	first := int(from / time.Second)
	at, _ := slices.BinarySearchFunc(c.Intervals, [2]int{round, first}, func(v Interval, want [2]int) int {
		return cmp.Or(v.Round-want[0], v.Second-want[1])
	})
	for i := at; i < len(c.Intervals); i++ {
		v := &c.Intervals[i]
		if v.Round != round || time.Duration(v.Second)*time.Second >= to {
			break
		}
		all.Merge(v.Probe)
	}
}

func (c *CellResult) mergeRounds(all *record.Histogram, rounds []int) {
	for _, r := range rounds {
		if end := c.Rounds[r].End; end != nil {
			all.Merge(end.Probe)
		}
	}
}

func orNil(h *record.Histogram) *record.Histogram {
	if h.Count() == 0 {
		return nil
	}
	return h
}

// Having returns the verdicts with the given outcome, in the stream's order.
func (r *Run) Having(o Outcome) []Verdict {
	var list []Verdict
	for _, v := range r.Verdicts {
		if v.Outcome == o {
			list = append(list, v)
		}
	}
	return list
}

// Find returns the cell of a scenario, phase and target; nil if there is none.
func (r *Run) Find(scenario, phase, target string) *CellResult {
	for _, c := range r.Cells {
		if c.Scenario == scenario && c.Phase == phase && c.Target == target {
			return c
		}
	}
	return nil
}
