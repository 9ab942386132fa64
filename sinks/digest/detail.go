package digest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// Detail is the figures of a cell, or of one stage or step of it.
type Detail struct {
	Scenario, Phase, Stage, Step, Target string
	Judged                               bool     // assertions on the phase read it; a ramp is only reported
	Values                               []string // by Columns; "" is no data
}

// Columns are the heads of Detail.Values. Times of a row are all in the unit that its column "unit" names; "opened" is how
// many calls opened a connection.
var Columns = []string{
	"count", "ok", "failed", "dropped", "rps", "throughput", "unit", "mean", "p50", "p90", "p95", "p99", "max",
	"ttfb p50", "connect p50", "opened", "lag p99",
}

// Used tells for each of Columns whether any of some details has a value in it that says anything: no failures at all
// say nothing.
func Used(list []Detail) []bool {
	used := make([]bool, len(Columns))
	for _, d := range list {
		for i, v := range d.Values {
			quiet := v == "" || v == "0" && (Columns[i] == "failed" || Columns[i] == "dropped" || Columns[i] == "opened")
			used[i] = used[i] || !quiet
		}
	}
	return used
}

// details has a row for each cell, and where there are several, one for each stage and each step.
func details(run *result.Run) []Detail {
	var list []Detail
	for _, c := range run.Cells {
		of := Detail{Scenario: Clean(c.Scenario), Phase: Clean(c.Phase), Target: Clean(c.Target), Judged: true}
		add := func(d Detail, stage, step int) {
			d.Values = figures(c, c.Stats(result.Pooled, stage, step))
			list = append(list, d)
		}
		add(of, result.Judged, record.Whole)
		if len(c.Stages) > 1 {
			for i, g := range c.Stages {
				if g.Judged && g.Name == "" && judgedStages(c) == 1 {
					continue // the cell's own row
				}
				d := of
				d.Stage, d.Judged = Clean(or(g.Name, g.Kind)), g.Judged
				add(d, i, record.Whole)
			}
		}
		if len(c.Steps) > 1 {
			for i, s := range c.Steps {
				d := of
				d.Step = Clean(s.Name)
				add(d, result.Judged, i)
			}
		}
	}
	return list
}

func judgedStages(c *result.CellResult) (n int) {
	for _, g := range c.Stages {
		if g.Judged {
			n++
		}
	}
	return n
}

// figures are the values of one row.
func figures(c *result.CellResult, s *record.Stats) []string {
	values := make([]string, len(Columns))
	set := func(column, text string) { values[slices.Index(Columns, column)] = text }
	number := func(column string, m metric.Metric) {
		if v, ok := metric.Value(s, m); ok {
			set(column, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	number("count", metric.Metric{Name: "count"})
	number("ok", metric.Metric{Name: "ok"})
	number("failed", metric.Metric{Name: "failed"})
	number("dropped", metric.Metric{Name: "dropped"})
	number("opened", metric.Metric{Name: "opened"})
	if v, ok := metric.Value(s, metric.Metric{Name: "rps"}); ok && c.Kind != "single" {
		set("rps", ScaleOf(quantity.Rate).Text(v))
	}
	if v, ok := metric.Value(s, metric.Metric{Name: "throughput"}); ok && slices.ContainsFunc(c.Steps, func(x result.Step) bool { return x.Driver == "download" }) {
		set("throughput", ScaleOf(quantity.Speed, v).With(v))
	}
	times := []struct {
		column string
		metric metric.Metric
	}{
		{"mean", metric.Metric{Name: "mean"}},
		{"p50", metric.Metric{Name: "p", Percentile: 50}},
		{"p90", metric.Metric{Name: "p", Percentile: 90}},
		{"p95", metric.Metric{Name: "p", Percentile: 95}},
		{"p99", metric.Metric{Name: "p", Percentile: 99}},
		{"max", metric.Metric{Name: "max"}},
		{"ttfb p50", metric.Metric{Name: "p", Percentile: 50, Group: "ttfb"}},
		{"connect p50", metric.Metric{Name: "p", Percentile: 50, Group: "connect"}},
		{"lag p99", metric.Metric{Name: "p", Percentile: 99, Group: "lag"}},
	}
	var all []float64
	for _, t := range times {
		if v, ok := metric.Value(s, t.metric); ok {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return values
	}
	scale := ScaleOf(quantity.Time, all...)
	for _, t := range times {
		if t.column == "lag p99" && !c.Open {
			continue // it is no figure of the closed model, where nothing is due at a time of its own
		}
		if v, ok := metric.Value(s, t.metric); ok {
			set(t.column, scale.Text(v))
			set("unit", scale.Unit)
		}
	}
	return values
}

// Failure is one kind of failure of a cell.
type Failure struct {
	Place    string // scenario.phase.target
	Kind     string
	Count    int64
	Of       int64  // samples of the cell that were sent
	Statuses string // of kind status, the most frequent first: "503: 12, 500: 3"
	Example  string // in its own words; "" if none was kept
}

func failures(run *result.Run) []Failure {
	var list []Failure
	for _, c := range run.Cells {
		s := c.Stats(result.Pooled, result.Every, record.Whole)
		for _, k := range drivers.Failures {
			if s.Failures[k] == 0 {
				continue
			}
			f := Failure{Place: Name(c.Scenario, c.Phase, c.Target), Kind: k.String(), Count: s.Failures[k], Of: s.Count()}
			if k == drivers.Status {
				f.Statuses = statuses(s)
			}
			for _, x := range c.Examples {
				if x.Failure == k {
					f.Example = Shorten(Clean(x.Text), 200)
					break
				}
			}
			list = append(list, f)
		}
	}
	return list
}

// statuses lists the most frequent statuses but successes, five at most.
func statuses(s *record.Stats) string {
	var codes []int32
	for code := range s.Statuses {
		if code < 200 || code >= 400 {
			codes = append(codes, code)
		}
	}
	slices.SortFunc(codes, func(a, b int32) int {
		if d := s.Statuses[b] - s.Statuses[a]; d != 0 {
			return int(d)
		}
		return int(a - b)
	})
	var parts []string
	for i, code := range codes {
		if i == 5 {
			parts = append(parts, "...")
			break
		}
		parts = append(parts, fmt.Sprintf("%d: %d", code, s.Statuses[code]))
	}
	return strings.Join(parts, ", ")
}
