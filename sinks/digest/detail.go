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
	Remark                               string   // "not judged", as ramps are; what became of a trial: "held", "not held"; else ""
	Unit                                 string   // of times: the same for all details of a scenario; "" where none has any
	Values                               []string // by Columns; "" is no data
}

// Columns are the heads of Detail.Values. Times are in Detail.Unit; "opened" is how many calls opened a connection.
var Columns = []string{
	"count", "ok", "failed", "dropped", "rps", "throughput", "mean", "p50", "p90", "p95", "p99", "max",
	"ttfb p50", "connect p50", "tls p50", "opened", "lag p99",
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
	var from []figures
	for _, c := range run.Cells {
		of := Detail{Scenario: Clean(c.Scenario), Phase: Clean(c.Phase), Target: Clean(c.Target)}
		add := func(d Detail, stage, step int) {
			list = append(list, d)
			from = append(from, figures{c, c.Stats(result.Pooled, stage, step)})
		}
		add(of, result.Judged, record.Whole)
		if len(c.Stages) > 1 {
			names := StageNames(c)
			for i, g := range c.Stages {
				if g.Judged && g.Name == "" && judgedStages(c) == 1 {
					continue // the cell's own row
				}
				d := of
				d.Stage, d.Remark = Clean(names[i]), remark(c, i)
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
	// A scenario's rows are read down their columns, so they share their units.
	times, speeds := map[string][]float64{}, map[string][]float64{}
	for i, d := range list {
		times[d.Scenario] = append(times[d.Scenario], from[i].times()...)
		speeds[d.Scenario] = append(speeds[d.Scenario], from[i].speed()...)
	}
	for i := range list {
		d := &list[i]
		scale := tableScale(quantity.Time, times[d.Scenario])
		if len(times[d.Scenario]) > 0 {
			d.Unit = scale.Unit
		}
		d.Values = from[i].values(scale, tableScale(quantity.Speed, speeds[d.Scenario]))
	}
	return list
}

// remark is what a reader of a stage's row has to know.
func remark(c *result.CellResult, stage int) string {
	if c.IsCapacity() && stage < len(c.Trials) {
		switch end := c.Trials[stage].End; {
		case end == nil:
			return "cut short"
		case end.Outcome == result.Passed:
			return "held"
		case end.Outcome == result.Failed:
			return "not held"
		default:
			return Clean(string(end.Outcome))
		}
	}
	if !c.Stages[stage].Judged {
		return "not judged"
	}
	return ""
}

func judgedStages(c *result.CellResult) (n int) {
	for _, g := range c.Stages {
		if g.Judged {
			n++
		}
	}
	return n
}

// figures are what the values of one row are made of.
type figures struct {
	cell  *result.CellResult
	stats *record.Stats
}

// timed are the columns of times.
var timed = []struct {
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
	{"tls p50", metric.Metric{Name: "p", Percentile: 50, Group: "tls"}},
	{lagColumn, metric.Metric{Name: "p", Percentile: 99, Group: "lag"}},
}

const lagColumn = "lag p99"

// time is the value of one of timed. Lag is no figure of the closed model, where nothing is due at a time of its own.
func (f figures) time(i int) (ns float64, ok bool) {
	if timed[i].column == lagColumn && !f.cell.Open {
		return 0, false
	}
	return metric.Value(f.stats, timed[i].metric)
}

func (f figures) times() []float64 {
	var all []float64
	for i := range timed {
		if v, ok := f.time(i); ok {
			all = append(all, v)
		}
	}
	return all
}

// speed is the throughput, of downloads only.
func (f figures) speed() []float64 {
	v, ok := metric.Value(f.stats, metric.Metric{Name: "throughput"})
	if ok && slices.ContainsFunc(f.cell.Steps, func(x result.Step) bool { return x.Driver == "download" }) {
		return []float64{v}
	}
	return nil
}

func (f figures) values(times, speeds Scale) []string {
	values := make([]string, len(Columns))
	set := func(column, text string) { values[slices.Index(Columns, column)] = text }
	for _, name := range []string{"count", "ok", "failed", "dropped", "opened"} {
		if v, ok := metric.Value(f.stats, metric.Metric{Name: name}); ok {
			set(name, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	if v, ok := metric.Value(f.stats, metric.Metric{Name: "rps"}); ok && f.cell.Kind != "single" {
		set("rps", ScaleOf(quantity.Rate).Text(v))
	}
	for _, v := range f.speed() {
		set("throughput", speeds.With(v))
	}
	for i, t := range timed {
		if v, ok := f.time(i); ok {
			set(t.column, times.Text(v))
		}
	}
	return values
}

// Failure is one kind of failure of a cell, or of one step of it where it has several.
type Failure struct {
	Place    string // scenario.phase.step.target
	Kind     string
	Count    int64
	Of       int64  // samples of the cell, or of the step, that were sent
	Statuses string // of kind status, the most frequent first: "503: 12, 500: 3"
	Example  string // in its own words; "" if none was kept
}

func failures(run *result.Run) []Failure {
	var list []Failure
	for _, c := range run.Cells {
		whole := c.Stats(result.Pooled, result.Every, record.Whole)
		for _, k := range drivers.Failures {
			left := whole.Failures[k]
			if left == 0 {
				continue
			}
			add := func(step string, s *record.Stats, count int64, fits func(result.Example) bool) {
				f := Failure{Place: Name(c.Scenario, c.Phase, step, c.Target), Kind: k.String(), Count: count, Of: s.Count()}
				if k == drivers.Status {
					f.Statuses = statuses(s)
				}
				for _, x := range c.Examples {
					if x.Failure == k && fits(x) {
						f.Example = Shorten(Clean(x.Text), 200)
						break
					}
				}
				list = append(list, f)
			}
			if len(c.Steps) > 1 {
				for i, x := range c.Steps {
					s := c.Stats(result.Pooled, result.Every, i)
					if n := s.Failures[k]; n > 0 {
						add(x.Name, s, n, func(e result.Example) bool { return e.Step == i })
						left -= n
					}
				}
			}
			// What no step accounts for is the iteration's own, or was recorded without its steps.
			if left > 0 {
				add("", whole, left, func(e result.Example) bool { return len(c.Steps) < 2 || e.Step < 0 || left == whole.Failures[k] })
			}
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
