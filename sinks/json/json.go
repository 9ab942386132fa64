// Package json writes a run as one JSON document, for dashboards and scripts. Names are those of the CSV, times are in
// milliseconds, shares are fractions, and no data is null. schema.json, in this folder, describes it; schema_version
// changes when a reader would have to.
package json

import (
	_ "embed"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/compare"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
)

// Version of the document.
const Version = 1

// Schema is the JSON schema (draft 2020-12) of the document.
//
//go:embed schema.json
var Schema []byte

// Sink writes a run. It is safe for concurrent use.
type Sink struct{}

// New makes a Sink.
func New() *Sink { return &Sink{} }

type document struct {
	SchemaVersion int               `json:"schema_version"`
	Plan          string            `json:"plan"`
	Description   string            `json:"description"`
	File          string            `json:"file"`
	SHA256        string            `json:"sha256"`
	Planrun       string            `json:"planrun"`
	Start         *time.Time        `json:"start"`
	Seconds       *float64          `json:"duration_s"`
	Seed          string            `json:"seed"` // all of its 64 bits
	Complete      bool              `json:"complete"`
	Interrupted   bool              `json:"interrupted"`
	Outcome       string            `json:"outcome"`
	Exit          *int              `json:"exit"`
	Summary       string            `json:"summary"`
	Targets       []target          `json:"targets"`
	Environment   map[string]string `json:"environment"`
	Settings      map[string]string `json:"settings"`
	Vars          map[string]string `json:"vars"`
	Notes         []string          `json:"notes"`
	Cells         []cell            `json:"cells"`
	Comparisons   []comparison      `json:"comparisons"`
	Verdicts      []verdict         `json:"verdicts"`
	Failures      []failure         `json:"failures"`
	Trials        []trial           `json:"trials"`
}

type target struct {
	Name      string `json:"name"`
	Reference bool   `json:"reference"`
	Lab       bool   `json:"lab"`
}

// cell is a row of the CSV, and what a row has no room for.
type cell struct {
	Scenario  string           `json:"scenario"`
	Phase     string           `json:"phase"`
	Stage     string           `json:"stage"`
	Step      string           `json:"step"`
	Target    string           `json:"target"`
	Kind      string           `json:"kind"`
	Shape     string           `json:"shape"`
	Open      bool             `json:"open"`
	Judged    bool             `json:"judged"`
	Rounds    int              `json:"rounds"`
	Figures   figures          `json:"figures"`
	Held      *float64         `json:"rate_held_rps"`
	Failures  map[string]int64 `json:"failures"`
	Statuses  map[string]int64 `json:"statuses"`
	Protocols []string         `json:"protocols"`
	Addresses []address        `json:"addresses"`
	More      int              `json:"more_addresses"`
	Verdict   *string          `json:"verdict"`
}

// address is one that connections went to.
type address struct {
	Address string `json:"address"`
	Opened  int64  `json:"opened"`
	Failed  int64  `json:"failed"`
}

// figures are a row's, in the CSV's order.
type figures []figure

type figure struct {
	name  string
	value *float64
}

// MarshalJSON writes an object whose keys have an order.
func (f figures) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, x := range f {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, x.name)
		b = append(b, ':')
		if x.value == nil {
			b = append(b, "null"...)
			continue
		}
		b = strconv.AppendFloat(b, *x.value, 'f', -1, 64)
	}
	return append(b, '}'), nil
}

// comparison is one metric of a phase. Values and differences are in its unit.
type comparison struct {
	Scenario    string       `json:"scenario"`
	Phase       string       `json:"phase"`
	Metric      string       `json:"metric"`
	Unit        string       `json:"unit"`
	Values      []named      `json:"values"`
	Differences []difference `json:"differences"`
}

type named struct {
	Target string   `json:"target"`
	Value  *float64 `json:"value"`
}

type difference struct {
	Target   string `json:"target"`
	Finding  string `json:"finding"`
	Pairs    int    `json:"pairs"`
	Absolute change `json:"absolute"`
	Relative change `json:"relative"`
}

// change has the 95 % interval where there is one.
type change struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

type verdict struct {
	Assertion string   `json:"assertion"`
	Source    string   `json:"source"` // file:line:column
	Implied   bool     `json:"implied"`
	Severity  string   `json:"severity"`
	Scenario  string   `json:"scenario"`
	Phase     string   `json:"phase"`
	Stage     string   `json:"stage"`
	Step      string   `json:"step"`
	Target    string   `json:"target"`
	Outcome   string   `json:"outcome"`
	Value     string   `json:"value"`
	Limit     string   `json:"limit"`
	N         int64    `json:"n"`
	Interval  string   `json:"interval"` // 95 %, of the value
	Window    string   `json:"window"`   // the worst one
	Detail    []string `json:"detail"`
}

type failure struct {
	Scenario string  `json:"scenario"`
	Phase    string  `json:"phase"`
	Target   string  `json:"target"`
	Step     string  `json:"step"`
	Round    int     `json:"round"`
	Kind     string  `json:"kind"`
	At       float64 `json:"at_ms"` // since the release of the round
	Text     string  `json:"text"`
}

// trial is a hold of a capacity search.
type trial struct {
	Scenario string   `json:"scenario"`
	Phase    string   `json:"phase"`
	Target   string   `json:"target"`
	Round    int      `json:"round"`
	Rate     float64  `json:"rate_rps"`
	Outcome  *string  `json:"outcome"`
	Reason   string   `json:"reason"`
	OK       int64    `json:"ok"`
	P99      *float64 `json:"p99_ms"`
}

// Write writes a run.
func (s *Sink) Write(w io.Writer, run *result.Run) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(true)
	e.SetIndent("", "  ")
	return e.Encode(newDocument(run))
}

func newDocument(run *result.Run) *document {
	d := digest.Of(run)
	x := &document{
		SchemaVersion: Version, Plan: run.Plan, Description: run.Description, File: run.File, SHA256: run.Hash, Planrun: run.Tool,
		Seed: strconv.FormatUint(run.Seed, 10), Complete: run.End != nil && run.Cut == nil, Outcome: d.Outcome.Word, Summary: d.Outcome.Line,
		Targets: []target{}, Environment: some(run.Environment), Settings: some(run.Settings), Vars: some(run.Vars), Notes: list(d.Notes),
		Cells: []cell{}, Comparisons: []comparison{}, Verdicts: []verdict{}, Failures: []failure{}, Trials: []trial{},
	}
	if !run.Start.IsZero() {
		at := run.Start.UTC()
		x.Start = &at
	}
	if run.End != nil {
		x.Interrupted, x.Exit, x.Seconds = run.End.Interrupted, &run.End.Exit, number(run.End.At.Seconds(), true)
	}
	for i, t := range run.Targets {
		x.Targets = append(x.Targets, target{t.Name, i == run.Reference, t.Lab})
	}
	for r := range digest.Records(run) {
		x.Cells = append(x.Cells, newCell(r))
	}
	for _, c := range d.Comparisons {
		for _, r := range c.Rows {
			x.Comparisons = append(x.Comparisons, newComparison(d, c, r))
		}
	}
	for _, v := range run.Verdicts {
		x.Verdicts = append(x.Verdicts, verdict{
			v.Assertion, v.Place, v.Implied, v.Severity, v.Scenario, v.Phase, v.Stage, v.Step, v.Target, string(v.Outcome), v.Value, v.Limit, v.N,
			v.Interval, v.Window, list(v.Detail),
		})
	}
	for _, c := range run.Cells {
		for _, f := range c.Examples {
			y := failure{Scenario: c.Scenario, Phase: c.Phase, Target: c.Target, Round: f.Round, Kind: f.Failure.String(), At: f.At.Seconds() * 1e3, Text: f.Text}
			if f.Step >= 0 && f.Step < len(c.Steps) {
				y.Step = c.Steps[f.Step].Name
			}
			x.Failures = append(x.Failures, y)
		}
		for _, p := range c.Curve() {
			y := trial{Scenario: c.Scenario, Phase: c.Phase, Target: c.Target, Round: p.Trial.Round, Rate: p.Trial.Rate, OK: p.Stats.OK}
			if e := p.Trial.End; e != nil {
				outcome := string(e.Outcome)
				y.Outcome, y.Reason = &outcome, e.Reason
			}
			y.P99 = milliseconds(metric.Value(p.Stats, metric.Metric{Name: "p", Percentile: 99}))
			x.Trials = append(x.Trials, y)
		}
	}
	return x
}

func newCell(r digest.Record) cell {
	c := r.Cell
	x := cell{
		Scenario: c.Scenario, Phase: c.Phase, Stage: r.Stage, Step: r.Step, Target: c.Target, Kind: c.Kind, Shape: c.Shape, Open: c.Open, Judged: r.Judged,
		Rounds: len(c.Rounds), Failures: map[string]int64{}, Statuses: map[string]int64{}, Protocols: []string{}, Addresses: []address{},
	}
	for _, f := range digest.Figures {
		v, ok := metric.Value(r.Stats, f.Metric)
		if f.Time {
			x.Figures = append(x.Figures, figure{f.Name, milliseconds(v, ok)})
		} else {
			x.Figures = append(x.Figures, figure{f.Name, number(v, ok)})
		}
	}
	if r.Stage == "" && r.Step == "" {
		x.Held = number(c.RateHeld(result.Pooled))
		x.Protocols = list(digest.Protocols(c))
		var addresses []drivers.Address
		addresses, x.More = digest.Addresses(c)
		for _, a := range addresses {
			x.Addresses = append(x.Addresses, address{a.Addr, a.Opened, a.Failed})
		}
	}
	for _, k := range drivers.Failures {
		if n := r.Stats.Failures[k]; n > 0 {
			x.Failures[k.String()] = n
		}
	}
	for code, n := range r.Stats.Statuses {
		x.Statuses[strconv.Itoa(int(code))] = n
	}
	if r.Verdict != "" {
		x.Verdict = &r.Verdict
	}
	return x
}

func newComparison(d *digest.Digest, c digest.Comparison, r digest.Row) comparison {
	x := comparison{Scenario: c.Scenario, Phase: r.Phase, Metric: r.Metric, Values: []named{}, Differences: []difference{}}
	factor := 1.0
	switch r.Dim {
	case quantity.Time:
		x.Unit, factor = "ms", 1e-6
	case quantity.Speed:
		x.Unit = "B/s"
	case quantity.Rate:
		x.Unit = "/s"
	}
	for i, t := range d.Targets {
		x.Values = append(x.Values, named{t.Name, number(r.Cells[i].Value*factor, r.Cells[i].Known)})
		m := r.Differences[i].Measured
		if i == 0 || !m.Absolute.Known {
			continue
		}
		x.Differences = append(x.Differences, difference{
			t.Name, finding(r.Differences[i].Finding), m.Pairs, newChange(m.Absolute, factor), newChange(m.Relative, 1),
		})
	}
	return x
}

func newChange(c compare.Change, factor float64) change {
	return change{number(c.Value*factor, c.Known), number(c.Low*factor, c.Interval), number(c.High*factor, c.Interval)}
}

func finding(f compare.Finding) string {
	switch f {
	case compare.Same:
		return "same"
	case compare.Improved:
		return "improved"
	case compare.Worsened:
		return "worsened"
	}
	return "unknown"
}

// number is null if it is not known, or no number that JSON has.
func number(v float64, known bool) *float64 {
	if !known || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// milliseconds of nanoseconds, to the nanosecond.
func milliseconds(ns float64, known bool) *float64 {
	return number(math.Round(ns)/1e6, known)
}

func list(s []string) []string {
	x := []string{}
	for _, t := range s {
		x = append(x, strings.ToValidUTF8(t, "\ufffd"))
	}
	return x
}

func some(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
