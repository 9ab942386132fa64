// Package junit writes the verdicts of a run as JUnit XML, as GitHub's reporters, GitLab, Jenkins and Azure Pipelines read
// it: a suite for each phase, a case for each assertion. There is no specification of the format; this is the part that
// all of them understand.
//
// A failed assertion, or one without data, is a failure; an inconclusive one is an error. A run that did not pass always
// has a failure or an error, and every run has a case, so that no reader takes an unfinished run for a good one.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
)

// Options of a Sink.
type Options struct {
	// Strict leaves out of cases where an assertion is written, file and line, as the xUnit plugin of Jenkins refuses the
	// attributes. GitLab and most reporters for GitHub make links of them.
	Strict bool
}

// Sink writes a run. It is safe for concurrent use.
type Sink struct{ options Options }

// New makes a Sink.
func New(o Options) *Sink { return &Sink{o} }

type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Time     seconds  `xml:"time,attr"`
	Suites   []*suite `xml:"testsuite"`
}

type suite struct {
	Name       string      `xml:"name,attr"`
	Tests      int         `xml:"tests,attr"`
	Failures   int         `xml:"failures,attr"`
	Errors     int         `xml:"errors,attr"`
	Skipped    int         `xml:"skipped,attr"`
	Time       seconds     `xml:"time,attr"`
	Timestamp  string      `xml:"timestamp,attr,omitempty"`
	Hostname   string      `xml:"hostname,attr,omitempty"`
	Properties *properties `xml:"properties"`
	Cases      []testcase  `xml:"testcase"`

	scenario, phase string
}

type properties struct {
	List []property `xml:"property"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testcase struct {
	Class   string  `xml:"classname,attr"`
	Name    string  `xml:"name,attr"`
	Time    seconds `xml:"time,attr"`
	File    string  `xml:"file,attr,omitempty"`
	Line    string  `xml:"line,attr,omitempty"`
	Failure *reason `xml:"failure"`
	Error   *reason `xml:"error"`
	Out     *output `xml:"system-out"`
}

// reason of a failure or an error: a line, and what stands behind it.
type reason struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type output struct {
	Text string `xml:",chardata"`
}

// seconds is a time as such, to the millisecond.
type seconds float64

func (s seconds) MarshalXMLAttr(name xml.Name) (xml.Attr, error) {
	return xml.Attr{Name: name, Value: strconv.FormatFloat(float64(s), 'f', 3, 64)}, nil
}

// Write writes a run.
func (s *Sink) Write(w io.Writer, run *result.Run) error {
	d := digest.Of(run)
	all := &suites{Name: d.Title}
	for _, c := range run.Cells {
		if all.find(c.Scenario, c.Phase) == nil {
			all.add(run, c.Scenario, c.Phase)
		}
	}
	for _, v := range run.Verdicts {
		g := all.find(v.Scenario, v.Phase)
		if g == nil {
			g = all.add(run, v.Scenario, v.Phase)
		}
		g.Cases = append(g.Cases, s.testcase(run, v))
	}
	// A suite in which nothing was judged says nothing, and some readers stumble over it.
	all.Suites = slices.DeleteFunc(all.Suites, func(g *suite) bool { return len(g.Cases) == 0 })
	all.conclude(run, d)
	all.distinguish(d.Title)
	for _, g := range all.Suites {
		g.count()
		all.Tests += g.Tests
		all.Failures += g.Failures
		all.Errors += g.Errors
		all.Time += g.Time
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (a *suites) find(scenario, phase string) *suite {
	for _, g := range a.Suites {
		if g.scenario == scenario && g.phase == phase {
			return g
		}
	}
	return nil
}

// add adds the suite of a phase, or of what is bound to no one phase.
func (a *suites) add(run *result.Run, scenario, phase string) *suite {
	g := &suite{
		Name: or(digest.Name(scenario, phase), "all phases"), Hostname: digest.Clean(run.Environment["host"]), Properties: &properties{},
		scenario: scenario, phase: phase,
	}
	if !run.Start.IsZero() {
		g.Timestamp = run.Start.UTC().Format("2006-01-02T15:04:05")
	}
	g.property("plan", run.Plan)
	g.property("planrun", run.Tool)
	if run.Hash != "" {
		g.property("plan.sha256", run.Hash)
	}
	for _, name := range slices.Sorted(maps.Keys(run.Settings)) {
		g.property("set."+name, run.Settings[name])
	}
	for _, c := range run.Cells {
		if c.Scenario != scenario || c.Phase != phase {
			continue
		}
		g.Time += seconds(lasted(c).Seconds())
		g.cell(c)
	}
	a.Suites = append(a.Suites, g)
	return g
}

// cell notes what a cell ran and what it came to.
func (g *suite) cell(c *result.CellResult) {
	of := digest.Name(c.Target)
	g.property(of+".load", strings.TrimSpace(c.Kind+" "+c.Shape))
	for _, s := range c.Steps {
		g.property(strings.Trim(digest.Name(of, s.Name)+".driver", "."), s.Driver)
	}
	var protocols []string
	for _, r := range c.Rounds {
		if r.End == nil {
			continue
		}
		for _, p := range r.End.Protocols {
			if !slices.Contains(protocols, p) {
				protocols = append(protocols, p)
			}
		}
	}
	if len(protocols) > 0 {
		g.property(of+".protocol", strings.Join(protocols, ", "))
	}
	st := c.Stats(result.Pooled, result.Judged, record.Whole)
	for _, f := range digest.Figures {
		switch f.Name {
		case "count", "failed", "dropped", "rps", "mean_ms", "p50_ms", "p95_ms", "p99_ms":
		default:
			continue
		}
		v, ok := metric.Value(st, f.Metric)
		if !ok {
			continue
		}
		if f.Time {
			v /= 1e6
		}
		g.property(of+"."+f.Name, strconv.FormatFloat(v, 'g', 6, 64))
	}
}

func (g *suite) property(name, value string) {
	g.Properties.List = append(g.Properties.List, property{digest.Clean(name), digest.Clean(value)})
}

func (g *suite) count() {
	g.Tests = len(g.Cases)
	for _, c := range g.Cases {
		if c.Failure != nil {
			g.Failures++
		}
		if c.Error != nil {
			g.Errors++
		}
	}
}

func (s *Sink) testcase(run *result.Run, v result.Verdict) testcase {
	c := testcase{Class: digest.Name(v.Scenario, v.Phase, v.Stage, v.Step, v.Target), Name: or(digest.Clean(v.Assertion), "assertion")}
	text := explain(v)
	for _, x := range run.Cells {
		if x.Scenario == v.Scenario && x.Phase == v.Phase && (v.Target == "" || x.Target == v.Target) {
			c.Time += seconds(lasted(x).Seconds())
			text += examples(x)
		}
	}
	file, line := place(v.Place)
	if !s.options.Strict {
		c.File, c.Line = file, line
	}
	switch {
	case v.Outcome == result.Passed:
	case v.Severity == "warn":
		c.Out = &output{"warning, " + string(v.Outcome) + ": " + text}
	case v.Outcome == result.Inconclusive:
		c.Error = &reason{"inconclusive", message(v), text}
	case v.Outcome == result.NoData:
		c.Failure = &reason{"no data", message(v), text}
	default:
		c.Failure = &reason{"assertion", message(v), text}
	}
	return c
}

// message is the line that lists show.
func message(v result.Verdict) string {
	f := digest.Verdict{
		Value: digest.Clean(v.Value), Limit: digest.Clean(v.Limit), N: v.N, Interval: digest.Clean(v.Interval), Window: digest.Clean(v.Window),
	}.Figures()
	switch {
	case v.Outcome == result.NoData && len(digest.Reasons(v)) > 0:
		return "no data: " + digest.Reasons(v)[0]
	case f == "":
		return string(v.Outcome)
	}
	return string(v.Outcome) + ": " + f
}

// explain is the expression, its place, and the value of every name in it.
func explain(v result.Verdict) string {
	lines := []string{digest.Clean(v.Assertion)}
	if v.Place != "" {
		lines = append(lines, "at "+digest.Clean(v.Place))
	}
	for _, d := range digest.Reasons(v) {
		lines = append(lines, digest.Shorten(d, 1000))
	}
	return strings.Join(lines, "\n")
}

// examples are the first failures of a cell in their own words, one of a kind.
func examples(c *result.CellResult) string {
	text := ""
	var seen []string
	for _, x := range c.Examples {
		kind := x.Failure.String()
		if slices.Contains(seen, kind) {
			continue
		}
		seen = append(seen, kind)
		text += "\n" + digest.Name(c.Target) + ", " + kind + ": " + digest.Shorten(digest.Clean(x.Text), 1000)
	}
	return text
}

// place takes file:line:column apart.
func place(s string) (file, line string) {
	parts := strings.Split(digest.Clean(s), ":")
	if len(parts) < 3 {
		return "", ""
	}
	return strings.Join(parts[:len(parts)-2], ":"), parts[len(parts)-2]
}

// conclude adds a case for the run itself where the assertions alone do not tell how it ended.
func (a *suites) conclude(run *result.Run, d *digest.Digest) {
	told := false
	for _, g := range a.Suites {
		for _, c := range g.Cases {
			told = told || c.Failure != nil || c.Error != nil
		}
	}
	good := d.Outcome.Good()
	if len(a.Suites) > 0 && (good || told) {
		return
	}
	g := a.add(run, "", "")
	g.Name = "run"
	c := testcase{Class: "run", Name: "outcome of the run"}
	if run.End != nil {
		c.Time = seconds(run.End.At.Seconds())
	}
	if !good {
		c.Error = &reason{d.Outcome.Word, d.Outcome.Line, strings.Join(append([]string{d.Outcome.Line}, d.Notes...), "\n")}
	}
	g.Cases = append(g.Cases, c)
}

// distinguish makes each class and name occur once, over all plans of a pipeline: GitLab shows only the first of those
// that are the same.
func (a *suites) distinguish(plan string) {
	seen := map[[2]string]int{}
	for _, g := range a.Suites {
		for i := range g.Cases {
			c := &g.Cases[i]
			// A dot separates the levels in which Jenkins shows classes.
			c.Class = strings.TrimSuffix(strings.ReplaceAll(plan, ".", "_")+"."+c.Class, ".")
			key := [2]string{c.Class, c.Name}
			seen[key]++
			for n := seen[key]; n > 1; n++ {
				name := fmt.Sprintf("%s (%d)", c.Name, n)
				if seen[[2]string{c.Class, name}] == 0 {
					c.Name = name
					seen[[2]string{c.Class, name}]++
					break
				}
			}
		}
	}
}

// lasted is how long the rounds of a cell took.
func lasted(c *result.CellResult) time.Duration {
	var d time.Duration
	for _, r := range c.Rounds {
		if r.End != nil {
			d += r.End.Length
		}
	}
	return d
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
