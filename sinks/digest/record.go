package digest

import (
	"fmt"
	"iter"

	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// Figure is a column of the formats that programs read, CSV and JSON. Its name says the unit.
type Figure struct {
	Name   string
	Metric metric.Metric
	Time   bool // its values are nanoseconds, to be written as milliseconds
}

// Figures are the columns, in their order.
var Figures = []Figure{
	{Name: "count", Metric: metric.Metric{Name: "count"}},
	{Name: "ok", Metric: metric.Metric{Name: "ok"}},
	{Name: "failed", Metric: metric.Metric{Name: "failed"}},
	{Name: "dropped", Metric: metric.Metric{Name: "dropped"}},
	{Name: "error_rate", Metric: metric.Metric{Name: "error_rate"}},
	{Name: "offered_rps", Metric: metric.Metric{Name: "offered_rps"}},
	{Name: "rps", Metric: metric.Metric{Name: "rps"}},
	{Name: "mean_ms", Metric: metric.Metric{Name: "mean"}, Time: true},
	{Name: "min_ms", Metric: metric.Metric{Name: "min"}, Time: true},
	{Name: "max_ms", Metric: metric.Metric{Name: "max"}, Time: true},
	{Name: "stddev_ms", Metric: metric.Metric{Name: "stddev"}, Time: true},
	{Name: "p50_ms", Metric: metric.Metric{Name: "p", Percentile: 50}, Time: true},
	{Name: "p75_ms", Metric: metric.Metric{Name: "p", Percentile: 75}, Time: true},
	{Name: "p90_ms", Metric: metric.Metric{Name: "p", Percentile: 90}, Time: true},
	{Name: "p95_ms", Metric: metric.Metric{Name: "p", Percentile: 95}, Time: true},
	{Name: "p99_ms", Metric: metric.Metric{Name: "p", Percentile: 99}, Time: true},
	{Name: "p999_ms", Metric: metric.Metric{Name: "p", Percentile: 99.9}, Time: true},
	{Name: "ttfb_p50_ms", Metric: metric.Metric{Name: "p", Percentile: 50, Group: "ttfb"}, Time: true},
	{Name: "connect_p50_ms", Metric: metric.Metric{Name: "p", Percentile: 50, Group: "connect"}, Time: true},
	{Name: "tls_p50_ms", Metric: metric.Metric{Name: "p", Percentile: 50, Group: "tls"}, Time: true},
	{Name: "lag_p99_ms", Metric: metric.Metric{Name: "p", Percentile: 99, Group: "lag"}, Time: true},
	{Name: "bytes_in", Metric: metric.Metric{Name: "bytes_in"}},
	{Name: "bytes_out", Metric: metric.Metric{Name: "bytes_out"}},
	{Name: "throughput_Bps", Metric: metric.Metric{Name: "throughput"}},
}

// Record is one row of those formats: a cell, or where there are several, one stage, one step, or one step in one stage of it. Its names are as
// measured, not Clean.
type Record struct {
	Cell        *result.CellResult
	Stage, Step string // "" is the whole
	Stats       *record.Stats
	Judged      bool   // assertions on the phase read it; a ramp is only reported
	Verdict     string // the gravest outcome of the assertions on it; "" if there are none
}

// Records yields the rows of a run in the plan's order.
func Records(run *result.Run) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, c := range run.Cells {
			names := StageNames(c)
			// A stage of -1 is the whole.
			row := func(stage int, step string, judged bool, s *record.Stats) bool {
				if stage < 0 {
					return yield(Record{c, "", step, s, judged, gravest(run, c, "", step)})
				}
				return yield(Record{c, names[stage], step, s, judged, gravest(run, c, StageName(c.Stages[stage]), step)})
			}
			if !row(-1, "", true, c.Stats(result.Pooled, result.Judged, record.Whole)) {
				return
			}
			if len(c.Stages) > 1 {
				for i, g := range c.Stages {
					if !row(i, "", g.Judged, c.Stats(result.Pooled, i, record.Whole)) {
						return
					}
				}
			}
			if len(c.Steps) < 2 {
				continue
			}
			for i, x := range c.Steps {
				if !row(-1, x.Name, true, c.Stats(result.Pooled, result.Judged, i)) {
					return
				}
				if len(c.Stages) < 2 {
					continue
				}
				for k, g := range c.Stages {
					if !row(k, x.Name, g.Judged, c.Stats(result.Pooled, k, i)) {
						return
					}
				}
			}
		}
	}
}

// StageNames are how the stages of a cell are called in rows. Each has a name of its own, so that programs can tell rows
// apart: of several ramps, or several trials at one rate, the second is called "ramp 2".
func StageNames(c *result.CellResult) []string {
	names := make([]string, len(c.Stages))
	times := map[string]int{}
	for i, g := range c.Stages {
		names[i] = StageName(g)
		if times[names[i]]++; times[names[i]] > 1 {
			names[i] = fmt.Sprintf("%s %d", names[i], times[names[i]])
		}
	}
	return names
}

// StageName is how a stage is called in charts, whose axis tells stages of one name apart.
func StageName(g result.Stage) string { return or(g.Name, g.Kind) }

// gravest is the gravest outcome among the assertions on a row: those bound to a stage or step on its own row, and all
// of them on the row of the cell. An assertion that is bound to no one phase is on no row; "" is none.
func gravest(run *result.Run, c *result.CellResult, stage, step string) string {
	word, weight := "", -1
	for _, v := range run.Verdicts {
		whole := stage == "" && step == ""
		if v.Scenario != c.Scenario || v.Phase != c.Phase || v.Target != "" && v.Target != c.Target ||
			!whole && (v.Stage != stage || v.Step != step) {
			continue
		}
		x, w := string(v.Outcome), 4
		switch {
		case v.Outcome == result.Passed:
			w = 0
		case v.Severity == "warn":
			x, w = "warning", 1
		case v.Outcome == result.Inconclusive:
			w = 2
		case v.Outcome == result.NoData:
			w = 3
		}
		if w > weight {
			word, weight = x, w
		}
	}
	return word
}
