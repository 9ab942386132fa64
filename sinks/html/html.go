// Package html writes a run as one page that needs nothing else: no script, no font, no picture from elsewhere. It opens
// from a folder, an artifact or a mail, in light and dark, on a phone and on paper. The verdict comes first, then how the
// targets compare, then everything that stands behind it. All text from plans and servers is shown, never obeyed.
package html

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"

	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
)

//go:embed page.html trend.html style.css
var files embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"style": func() (template.CSS, error) {
		b, err := files.ReadFile("style.css")
		return template.CSS(b), err
	},
	"mark":    mark,
	"shorten": digest.Shorten,
}).ParseFS(files, "*.html"))

// mark is the class of an outcome's word.
func mark(word string) string {
	switch word {
	case "passed":
		return "good"
	case "failed", "no data":
		return "bad"
	case digest.Compared:
		return ""
	}
	return "doubt"
}

// mostCharts is how many phases have charts: a page with more of them is too long for anybody. The tables have all.
const mostCharts = 40

// mostVerdicts, mostFailures and mostConnected are how many rows such tables have, or cells; what is beyond is counted.
const (
	mostVerdicts  = 1000
	mostFailures  = 500
	mostConnected = 500
)

// Options of a Sink.
type Options struct {
	// Results says where the results file can be found; "" says nothing.
	Results string
}

// Sink writes a run. It is safe for concurrent use.
type Sink struct{ options Options }

// New makes a Sink.
func New(o Options) *Sink { return &Sink{o} }

// Write writes a run. It does not read the samples again.
func (s *Sink) Write(w io.Writer, run *result.Run) error {
	d := digest.Of(run)
	p := page{Digest: d, Results: digest.Clean(s.options.Results), Plan: digest.Lines(string(run.Text)), File: digest.Clean(run.File)}
	for _, c := range d.Comparisons {
		p.Comparisons = append(p.Comparisons, newComparison(d, c))
	}
	for _, v := range d.Verdicts {
		if v.Outcome == result.Passed {
			p.Passed = append(p.Passed, v)
		} else {
			p.NotPassed = append(p.NotPassed, v)
		}
	}
	p.PassedLeft, p.Passed = cut(p.Passed, mostVerdicts)
	p.NotPassedLeft, p.NotPassed = cut(p.NotPassed, mostVerdicts)
	p.FailuresLeft, p.Failures = cut(d.Failures, mostFailures)
	p.Scenarios, p.ChartsLeft = scenarios(run, d)
	p.Facts = facts(run)
	p.ConnectedLeft, p.Connected = cut(d.Connected, mostConnected)
	return pages.ExecuteTemplate(w, "page.html", p)
}

func cut[T any](list []T, most int) (left int, short []T) {
	if len(list) > most {
		return len(list) - most, list[:most]
	}
	return 0, list
}

// page is what the template shows.
type page struct {
	*digest.Digest
	Comparisons                             []comparison
	NotPassed, Passed                       []digest.Verdict
	Failures                                []digest.Failure
	Connected                               []digest.Connected
	NotPassedLeft, PassedLeft, FailuresLeft int
	ConnectedLeft                           int
	Scenarios                               []scenario
	ChartsLeft                              int // phases without charts
	Facts                                   []fact
	Plan, File, Results                     string
}

// comparison is a scenario's table.
type comparison struct {
	Title, Scenario string
	Heads           []comparisonHead
	Charts          []chart
	Rows            []comparisonRow
}

type comparisonHead struct{ Text, Class string }

type comparisonRow struct {
	Label string
	Cells []comparisonCell
}

// longestBar is how long the bar of a row's greatest value is, in em, in every column alike.
const longestBar = 7

// comparisonCell is a value or a difference.
type comparisonCell struct {
	Head, Text, Note string
	Class            string
	Length           float64 // of the value's bar, in em
	Bar              bool
	Colour           string
}

func newComparison(d *digest.Digest, c digest.Comparison) comparison {
	x := comparison{Title: c.Title, Scenario: digest.Clean(c.Scenario)}
	if chart, ok := differences(d, c); ok {
		x.Charts = append(x.Charts, chart)
	}
	for i, t := range d.Targets {
		x.Heads = append(x.Heads, comparisonHead{t.Label(), "value"})
		if i > 0 {
			x.Heads = append(x.Heads, comparisonHead{differenceHead(d, t), ""})
		}
	}
	for _, r := range c.Rows {
		greatest := 0.0
		for _, v := range r.Cells {
			if v.Known {
				greatest = max(greatest, v.Value)
			}
		}
		row := comparisonRow{Label: r.Label}
		for i, v := range r.Cells {
			cell := comparisonCell{Head: d.Targets[i].Label(), Text: v.Text, Note: v.Note, Class: "value", Colour: class(i)}
			switch {
			case v.Known && greatest > 0:
				cell.Bar, cell.Length = true, longestBar*v.Value/greatest
			case !v.Known && v.Text != digest.NotRun:
				cell.Class = "value warn"
			}
			row.Cells = append(row.Cells, cell)
			if i > 0 {
				row.Cells = append(row.Cells, differenceCell(differenceHead(d, d.Targets[i]), r.Differences[i]))
			}
		}
		x.Rows = append(x.Rows, row)
	}
	return x
}

func differenceHead(d *digest.Digest, t digest.Target) string {
	if len(d.Targets) == 2 {
		return "difference"
	}
	return "difference of " + t.Name
}

// scenario is the figures and the charts of one.
type scenario struct {
	Title, Name string
	Unit        string // of the times among the figures
	Columns     []string
	Figures     []figureRow
	Phases      []phase
}

type figureRow struct {
	Name   string
	Remark string
	Values []string
}

type phase struct {
	Title  string
	Charts []chart
}

func scenarios(run *result.Run, d *digest.Digest) (list []scenario, left int) {
	charted := 0
	for _, c := range d.Comparisons {
		s := scenario{Title: c.Title, Name: digest.Clean(c.Scenario)}
		var details []digest.Detail
		for _, x := range d.Details {
			if x.Scenario == s.Name {
				details = append(details, x)
			}
		}
		s.figures(details)
		seen := map[string]bool{}
		for _, r := range c.Rows {
			if seen[r.Phase] {
				continue
			}
			seen[r.Phase] = true
			if p := newPhase(run, d, c.Scenario, r.Phase); len(p.Charts) > 0 {
				if charted++; charted > mostCharts {
					left++
					continue
				}
				s.Phases = append(s.Phases, p)
			}
		}
		list = append(list, s)
	}
	return list, left
}

func (s *scenario) figures(details []digest.Detail) {
	used := digest.Used(details)
	if len(details) > 0 {
		s.Unit = details[0].Unit
	}
	for i, name := range digest.Columns {
		if used[i] {
			s.Columns = append(s.Columns, name)
		}
	}
	for _, x := range details {
		row := figureRow{Name: digest.Name(x.Phase, x.Stage, x.Step, x.Target), Remark: x.Remark}
		for i, v := range x.Values {
			if used[i] {
				if v == "" {
					v = "-"
				}
				row.Values = append(row.Values, v)
			}
		}
		s.Figures = append(s.Figures, row)
	}
}

func newPhase(run *result.Run, d *digest.Digest, scenario, name string) phase {
	var list []series
	for i, t := range d.Targets {
		for _, c := range run.Cells {
			if c.Scenario == scenario && c.Phase == name && digest.Clean(c.Target) == t.Name {
				list = append(list, series{c, t.Name, class(i)})
			}
		}
	}
	var p phase
	for _, s := range list {
		p.Title = digest.Label(s.cell)
	}
	for _, draw := range []func([]series) (chart, bool){capacity, percentiles, distributions, over, split} {
		if c, ok := draw(list); ok {
			p.Charts = append(p.Charts, c)
		}
	}
	return p
}

// fact is one line about the run.
type fact struct{ Name, Value string }

func facts(run *result.Run) []fact {
	var list []fact
	add := func(name, value string) {
		if value != "" {
			list = append(list, fact{digest.Clean(name), digest.Clean(value)})
		}
	}
	add("plan file", run.File)
	add("SHA-256 of the plan", run.Hash)
	if !run.Start.IsZero() {
		add("started", run.Start.UTC().Format("2006-01-02 15:04:05.000 UTC"))
	}
	if run.End != nil {
		add("lasted", fmt.Sprintf("%.1f s", run.End.At.Seconds()))
	}
	add("planrun", run.Tool)
	if run.Seed != 0 {
		add("seed", fmt.Sprint(run.Seed))
	}
	for _, name := range slices.Sorted(maps.Keys(run.Environment)) {
		add(name, run.Environment[name])
	}
	for _, name := range slices.Sorted(maps.Keys(run.Settings)) {
		add("set: "+name, run.Settings[name])
	}
	for _, name := range slices.Sorted(maps.Keys(run.Vars)) {
		add("vars."+name, run.Vars[name])
	}
	return list
}
