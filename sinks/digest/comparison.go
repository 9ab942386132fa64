package digest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/compare"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// Comparison is a scenario's table: a row for each phase, and a column for each target.
type Comparison struct {
	Scenario string // its name
	Title    string // for people; the name if it has none
	Rows     []Row
}

// Row is one metric of one phase.
type Row struct {
	Phase       string // its name
	Label       string // the phase, its load, and the metric
	Metric      string // as in an assertion: "mean", "p99", "throughput", "rate_held"
	Dim         quantity.Dim
	Scale       Scale
	Cells       []Cell       // by target
	Differences []Difference // by target; that of the reference is empty
}

// Cell is a value, or what there is instead.
type Cell struct {
	Text  string // "13.0 ms", "no data", "all failed (50 of 50: timeout)", NotRun
	Note  string // "3 of 50 failed", "12 dropped"; "" if nothing is wrong
	Value float64
	Known bool
}

// NotRun is the text of a cell that the plan does not have.
const NotRun = "-"

// Difference of a target from the reference.
type Difference struct {
	Text     string // "+11.2 ms (+86%), slower"; "" if there is nothing to compare
	Finding  compare.Finding
	Interval bool // the finding has an interval behind it
	Pairs    int
	Measured compare.Difference // in figures; empty if there is nothing to compare
}

// headline is what a row shows.
type headline struct {
	name   string
	metric metric.Metric
	dim    quantity.Dim
	better compare.Better
}

// headlines are the metrics by which a cell is told in a row or two: throughput of a download, the middle and the far end
// of an open model, the rate held of a capacity phase, and else the mean, as for any wait that somebody sits through.
func headlines(c *result.CellResult) []headline {
	switch {
	case c.Kind == "capacity":
		return []headline{{"rate held", metric.Metric{Name: rateHeld}, quantity.Rate, compare.More}}
	case len(c.Steps) == 1 && c.Steps[0].Driver == "download":
		return []headline{{"throughput", metric.Metric{Name: "throughput"}, quantity.Speed, compare.More}}
	case c.Kind == "ramp-and-hold":
		return []headline{
			{"p50", metric.Metric{Name: "p", Percentile: 50}, quantity.Time, compare.Less},
			{"p99", metric.Metric{Name: "p", Percentile: 99}, quantity.Time, compare.Less},
		}
	case c.Kind == "single" && c.Cell.Rounds < 2:
		return []headline{{"latency", metric.Metric{Name: "mean"}, quantity.Time, compare.Less}}
	}
	return []headline{{"mean", metric.Metric{Name: "mean"}, quantity.Time, compare.Less}}
}

// rateHeld is not a metric of samples: it is the rate of the hold that confirmed it.
const rateHeld = "rate_held"

func value(c *result.CellResult, round int, h headline) (float64, bool) {
	if h.metric.Name == rateHeld {
		return c.RateHeld(round)
	}
	return metric.Value(c.Stats(round, result.Judged, record.Whole), h.metric)
}

func comparisons(run *result.Run, targets []Target) []Comparison {
	var list []Comparison
	type name struct{ scenario, phase string }
	seen := map[name]bool{}
	for _, c := range run.Cells {
		key := name{c.Scenario, c.Phase}
		if seen[key] {
			continue
		}
		seen[key] = true
		i := slices.IndexFunc(list, func(x Comparison) bool { return x.Scenario == c.Scenario })
		if i < 0 {
			i = len(list)
			list = append(list, Comparison{Scenario: c.Scenario, Title: Clean(or(c.ScenarioTitle, c.Scenario))})
		}
		cells := make([]*result.CellResult, len(targets))
		for k, t := range targets {
			for _, x := range run.Cells {
				if x.Scenario == c.Scenario && x.Phase == c.Phase && Clean(x.Target) == t.Name {
					cells[k] = x
				}
			}
		}
		for k, h := range headlines(c) {
			r := row(c, h, cells)
			for j := range r.Cells {
				if k > 0 {
					r.Cells[j].Note = "" // the row above has it
				}
			}
			list[i].Rows = append(list[i].Rows, r)
		}
	}
	return list
}

func row(c *result.CellResult, h headline, cells []*result.CellResult) Row {
	r := Row{
		Phase: c.Phase, Label: Label(c) + ", " + h.name, Metric: h.metric.Name, Dim: h.dim,
		Cells: make([]Cell, len(cells)), Differences: make([]Difference, len(cells)),
	}
	if h.metric.Name == "p" {
		r.Metric = h.name
	}
	sides := make([]compare.Side, len(cells))
	var known []float64
	for i, x := range cells {
		if x == nil {
			continue
		}
		sides[i] = compare.Measure(len(x.Rounds), func(round int) (float64, bool) { return value(x, round, h) })
		if p := sides[i].Pooled; p.Known {
			known = append(known, p.Value)
		}
	}
	r.Scale = ScaleOf(h.dim, known...)
	for i, x := range cells {
		r.Cells[i].Text = NotRun
		if x != nil {
			r.Cells[i] = cell(x, sides[i].Pooled, r.Scale)
		}
		if i > 0 {
			r.Differences[i] = difference(sides[0], sides[i], r.Scale, h)
			if cells[0] != nil && x != nil {
				r.Differences[i].qualify(cells[0], x, h)
			}
		}
	}
	return r
}

// Label is a phase and its load: "parallel (50 users, 50 iterations, 10 rounds)".
func Label(c *result.CellResult) string {
	var load []string
	if c.Shape != "" {
		load = append(load, Clean(c.Shape))
	}
	if n := max(c.Cell.Rounds, len(c.Rounds)); n > 1 {
		load = append(load, fmt.Sprintf("%d rounds", n))
	}
	s := Clean(or(c.PhaseTitle, c.Phase))
	if len(load) > 0 {
		s += " (" + strings.Join(load, ", ") + ")"
	}
	return s
}

func cell(c *result.CellResult, v compare.Value, scale Scale) Cell {
	s := c.Stats(result.Pooled, result.Judged, record.Whole)
	x := Cell{Value: v.Value, Known: v.Known}
	if c.IsCapacity() {
		x.Text, x.Note = held(c, v, scale)
		return x
	}
	switch {
	case v.Known:
		x.Text = scale.With(v.Value)
	case s.Count() > 0 && s.OK == 0:
		x.Text = fmt.Sprintf("all failed (%d of %d: %s)", s.Failed, s.Count(), kinds(s))
	case s.Due() > 0 && s.Count() == 0:
		x.Text = fmt.Sprintf("all %d dropped", s.Dropped)
	default:
		x.Text = "no data"
	}
	if v.Known && s.Failed > 0 {
		x.Note = fmt.Sprintf("%d of %d failed", s.Failed, s.Count())
	}
	if s.Dropped > 0 && s.Count() > 0 {
		if x.Note != "" {
			x.Note += ", "
		}
		x.Note += fmt.Sprintf("%d of %d dropped", s.Dropped, s.Due())
	}
	return x
}

// kinds lists the kinds of failure of some samples, the most frequent first.
func kinds(s *record.Stats) string {
	list := slices.DeleteFunc(slices.Clone(drivers.Failures), func(k drivers.Failure) bool { return s.Failures[k] == 0 })
	slices.SortStableFunc(list, func(a, b drivers.Failure) int { return int(s.Failures[b] - s.Failures[a]) })
	var names []string
	for _, k := range list {
		names = append(names, k.String())
	}
	return or(strings.Join(names, ", "), "unknown")
}

func difference(reference, other compare.Side, scale Scale, h headline) Difference {
	d, ok := compare.Of(reference, other)
	if !ok {
		return Difference{}
	}
	x := Difference{Finding: d.Finding(h.better), Interval: d.Absolute.Interval, Pairs: d.Pairs, Measured: d}
	values := []float64{d.Reference, d.Other}
	a := d.Absolute
	if x.Finding == compare.Same {
		x.Text = "no difference"
		if x.Interval {
			x.Text += " larger than " + scale.unit(strings.TrimLeft(scale.signed(math.Max(math.Abs(a.Low), math.Abs(a.High)), values...), "+"))
		}
		return x
	}
	if x.Interval {
		x.Text = fmt.Sprintf("%s to %s", scale.signed(a.Low, values...), scale.change(a.High, values...))
		x.Text = fmt.Sprintf("%s, %s", scale.change(a.Value, values...), x.Text)
	} else {
		x.Text = scale.change(a.Value, values...)
	}
	if d.Relative.Known {
		x.Text += " (" + percent(d.Relative.Value) + ")"
	}
	return x
}

// qualify adds to a difference what it means: in a word where an interval stands behind it, modestly where none does, and
// not at all where the side that looks better is so by its successes alone.
func (d *Difference) qualify(reference, other *result.CellResult, h headline) {
	better, worse := "faster", "slower"
	if h.metric.Name == rateHeld {
		better, worse = "higher", "lower"
	}
	word, good := worse, reference
	switch d.Finding {
	case compare.Improved:
		word, good = better, other
	case compare.Worsened:
	default:
		return
	}
	a, b := reference.Stats(result.Pooled, result.Judged, record.Whole), other.Stats(result.Pooled, result.Judged, record.Whole)
	s := good.Stats(result.Pooled, result.Judged, record.Whole)
	switch lost := s.Failed + s.Dropped; {
	case h.metric.Name != rateHeld && lost > 0:
		d.Finding = compare.Unknown
		d.Text += fmt.Sprintf(", but of its successes alone: %d of %d failed or were dropped", lost, s.Due())
		if good == reference {
			d.Text = strings.Replace(d.Text, "of its successes", "of the reference's successes", 1)
		}
	case d.Interval:
		d.Text += ", " + word
	case h.metric.Name != rateHeld && min(a.Count(), b.Count()) < 2:
		d.Text += ", one call only"
	case h.metric.Name != rateHeld && (heldMuch(a) || heldMuch(b)):
		d.Finding = compare.Unknown
		d.Text += ", while the generator was held up"
	default:
		d.Text += ", " + word + " in this run"
	}
}

// heldMuch tells whether the generator was held up for more than a tenth of the time, from where on what it costs has no known
// bound and a difference without an interval says nothing.
func heldMuch(s *record.Stats) bool {
	share, _ := s.HeldUp()
	return share > 0.1
}

// held says what a capacity search found: the rate, and what is wrong with the one above it.
func held(c *result.CellResult, v compare.Value, scale Scale) (text, note string) {
	var last *result.Capacity
	for _, r := range c.Rounds {
		if r.Capacity != nil && (last == nil || last.Outcome == result.Passed) {
			last = r.Capacity
		}
	}
	switch {
	case last == nil:
		return "no data", ""
	case v.Known && last.Failed > 0:
		return scale.With(v.Value), fmt.Sprintf("%s fails: %s", scale.With(last.Failed), Clean(last.Reason))
	case v.Known:
		return "at least " + scale.With(v.Value), Clean(last.Reason)
	case last.Outcome == result.Inconclusive:
		return "not found", Clean(last.Reason)
	}
	return "none", fmt.Sprintf("even %s fails: %s", ScaleOf(quantity.Rate, last.Failed).With(last.Failed), Clean(last.Reason))
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
