package digest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/result"
)

// Trend is the headline values of several runs, the oldest first. The zero value has none.
type Trend struct {
	Runs   []TrendRun
	Tables []TrendTable
}

// TrendRun is one run.
type TrendRun struct {
	Plan    string
	Start   time.Time
	Label   string // when it began, and its number where another began at the same time
	Outcome Outcome
	Tool    string
	File    string // its results file
	targets []Target
}

// TrendTable is a phase: a row for each run, a column for each figure of each target.
type TrendTable struct {
	Scenario string // its name
	Phase    string
	Title    string   // scenario and phase for people, with the load if it was the same in all runs
	Loads    []string // by run, as executed; "" where it did not run
	Columns  []TrendColumn
}

// TrendColumn is one metric of one target.
type TrendColumn struct {
	Target string
	Metric string
	Dim    quantity.Dim
	Scale  Scale
	Cells  []Cell // by run
}

// Label is the head of the column.
func (c TrendColumn) Label() string { return Name(c.Target) + " " + c.Metric }

// Add adds a run, of which it keeps only what the trend shows.
func (t *Trend) Add(run *result.Run) {
	d := Of(run)
	at, _ := slices.BinarySearchFunc(t.Runs, run.Start, func(r TrendRun, start time.Time) int {
		// Behind those of the same time.
		return cmp.Or(r.Start.Compare(start), -1)
	})
	n := len(t.Runs)
	t.Runs = slices.Insert(t.Runs, at, TrendRun{
		Plan: d.Title, Start: run.Start, Outcome: d.Outcome, Tool: Clean(run.Tool), File: Clean(run.Path), targets: d.Targets,
	})
	t.label()
	none := Cell{Text: NotRun}
	for i := range t.Tables {
		t.Tables[i].Loads = slices.Insert(t.Tables[i].Loads, at, "")
		for k := range t.Tables[i].Columns {
			c := &t.Tables[i].Columns[k]
			c.Cells = slices.Insert(c.Cells, at, none)
		}
	}
	for _, c := range d.Comparisons {
		for _, r := range c.Rows {
			table := t.table(c, r, n+1)
			load, _ := strings.CutSuffix(r.Label, ", "+strings.ReplaceAll(r.Metric, "_", " "))
			table.Loads[at] = load
			table.Title = c.Title + ": " + load
			if slices.ContainsFunc(table.Loads, func(s string) bool { return s != "" && s != load }) {
				table.Title = c.Title + ": " + Clean(r.Phase)
			}
			for i, target := range d.Targets {
				if r.Cells[i].Text != NotRun {
					table.column(target.Name, r, n+1).Cells[at] = r.Cells[i]
				}
			}
		}
	}
	t.scale()
}

// label names runs by when they began.
func (t *Trend) label() {
	count := map[string]int{}
	for i := range t.Runs {
		r := &t.Runs[i]
		r.Label = "unknown time"
		if !r.Start.IsZero() {
			r.Label = r.Start.UTC().Format("2006-01-02 15:04")
		}
		if count[r.Label]++; count[r.Label] > 1 {
			r.Label += fmt.Sprintf(" (%d)", count[r.Label])
		}
	}
}

func (t *Trend) table(c Comparison, r Row, runs int) *TrendTable {
	for i := range t.Tables {
		if x := &t.Tables[i]; x.Scenario == c.Scenario && x.Phase == r.Phase {
			return x
		}
	}
	t.Tables = append(t.Tables, TrendTable{Scenario: c.Scenario, Phase: r.Phase, Loads: make([]string, runs)})
	return &t.Tables[len(t.Tables)-1]
}

func (t *TrendTable) column(target string, r Row, runs int) *TrendColumn {
	for i := range t.Columns {
		if c := &t.Columns[i]; c.Target == target && c.Metric == r.Metric {
			return c
		}
	}
	c := TrendColumn{Target: target, Metric: r.Metric, Dim: r.Dim, Cells: make([]Cell, runs)}
	for i := range c.Cells {
		c.Cells[i].Text = NotRun
	}
	t.Columns = append(t.Columns, c)
	return &t.Columns[len(t.Columns)-1]
}

// scale prints the values of one metric in one unit over all runs and targets.
func (t *Trend) scale() {
	for i := range t.Tables {
		columns := t.Tables[i].Columns
		known := map[string][]float64{}
		for _, c := range columns {
			for _, x := range c.Cells {
				if x.Known {
					known[c.Metric] = append(known[c.Metric], x.Value)
				}
			}
		}
		for k := range columns {
			c := &columns[k]
			c.Scale = ScaleOf(c.Dim, known[c.Metric]...)
			for r := range c.Cells {
				if c.Cells[r].Known {
					c.Cells[r].Text = c.Scale.With(c.Cells[r].Value)
				}
			}
		}
	}
}

// Change is how the last value differs from the one before it that is known: "+12%"; "" if there are not two.
func (c TrendColumn) Change() string {
	var known []float64
	for _, x := range c.Cells {
		if x.Known {
			known = append(known, x.Value)
		}
	}
	n := len(known)
	if n < 2 || !c.Cells[len(c.Cells)-1].Known || known[n-2] <= 0 {
		return ""
	}
	return percent(known[n-1]/known[n-2] - 1)
}

// Title is what the runs are of.
func (t *Trend) Title() string {
	var plans []string
	for _, r := range t.Runs {
		if !slices.Contains(plans, r.Plan) {
			plans = append(plans, r.Plan)
		}
	}
	return strings.Join(plans, ", ")
}

// Notes is what a reader should know before comparing the runs.
func (t *Trend) Notes() []string {
	var list []string
	if strings.Contains(t.Title(), ", ") && len(t.Runs) > 1 {
		first := t.Runs[0].Plan
		if slices.ContainsFunc(t.Runs, func(r TrendRun) bool { return r.Plan != first }) {
			list = append(list, "The runs are of different plans.")
		}
	}
	for _, x := range t.Tables {
		loads := slices.DeleteFunc(slices.Clone(x.Loads), func(s string) bool { return s == "" })
		if slices.ContainsFunc(loads, func(s string) bool { return s != loads[0] }) {
			list = append(list, fmt.Sprintf("%s: the load is not the same in all runs: %s.", Name(x.Scenario, x.Phase), strings.Join(slices.Compact(loads), "; ")))
		}
	}
	tools, labs, real := map[string]bool{}, false, false
	for _, r := range t.Runs {
		tools[r.Tool] = true
		for _, x := range r.targets {
			labs, real = labs || x.Lab, real || !x.Lab
		}
	}
	switch {
	case labs && real:
		list = append(list, "Some runs measured the lab in the box, others a real system.")
	case labs:
		list = append(list, "Measured against the lab in the box, not a real system.")
	}
	if len(tools) > 1 {
		list = append(list, "The runs are of different versions of planrun.")
	}
	for _, r := range t.Runs {
		if !r.Outcome.Good() {
			list = append(list, fmt.Sprintf("The run of %s: %s.", r.Label, r.Outcome.Line))
		}
	}
	list = append(list, "One run beside another shows no interval: machines, neighbours and the time of day differ too.")
	return list
}
