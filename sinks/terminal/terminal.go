// Package terminal prints a run as plain text: the tables, what failed and why, and the verdict last, where the eye is
// when the program ends. Nothing in it moves the cursor.
package terminal

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/planrun/planrun/engine/compare"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
)

// DefaultWidth is the width where there is no terminal to ask.
const DefaultWidth = 120

// minWidth is the width below which lines run over rather than getting any narrower.
const minWidth = 40

// Options of a Sink.
type Options struct {
	// Width is how many columns there are; 0 is DefaultWidth. Tables that are too wide for it are folded, never cut.
	Width int
	// Color allows the escape sequences for colours, and no others.
	Color bool
	// Files are printed before the verdict: where the results and the reports are.
	Files []File
}

// File is something that the run left behind.
type File struct{ What, Path string }

// Sink prints a run. It is safe for concurrent use.
type Sink struct{ options Options }

// New makes a Sink.
func New(o Options) *Sink {
	if o.Width <= 0 {
		o.Width = DefaultWidth
	}
	o.Width = max(o.Width, minWidth)
	return &Sink{o}
}

// Write prints a run.
func (s *Sink) Write(w io.Writer, run *result.Run) error {
	p := s.printer(w)
	d := digest.Of(run)
	p.title(d)
	for _, c := range d.Comparisons {
		p.comparison(d, c)
	}
	p.details(d)
	p.failures(d)
	p.notes(d)
	p.verdicts(d)
	p.files(s.options.Files)
	p.outcome(d)
	return p.out.Flush()
}

func (s *Sink) printer(w io.Writer) *printer {
	return &printer{out: bufio.NewWriter(w), width: s.options.Width, color: s.options.Color}
}

func (p *printer) title(d *digest.Digest) {
	p.wrap(0, 0, p.paint(bold, d.Title))
	if d.Description != "" {
		p.wrap(0, 0, d.Description)
	}
	if d.About != "" {
		p.wrap(0, 0, d.About)
	}
}

// comparison prints a scenario's table, or where it is too wide, each row's targets below each other.
func (p *printer) comparison(d *digest.Digest, c digest.Comparison) {
	p.line()
	p.wrap(0, 0, p.paint(bold, heading(c.Scenario, c.Title)))
	columns := []column{{}}
	for i, t := range d.Targets {
		columns = append(columns, column{head: t.Label(), right: true}, column{})
		if i > 0 {
			columns = append(columns, column{head: difference(d, t)})
		}
	}
	var rows [][]text
	for _, r := range c.Rows {
		row := []text{plain(r.Label)}
		for i := range d.Targets {
			row = append(row, value(r.Cells[i]), note(r.Cells[i]))
			if i > 0 {
				row = append(row, change(r.Differences[i]))
			}
		}
		rows = append(rows, row)
	}
	if p.table(2, columns, rows) {
		return
	}
	for _, r := range c.Rows {
		p.wrap(2, 4, r.Label)
		var rows [][]text
		for i, t := range d.Targets {
			rows = append(rows, []text{plain(t.Label()), value(r.Cells[i]), note(r.Cells[i]), change(r.Differences[i])})
		}
		if p.table(4, []column{{}, {right: true}, {}, {}}, rows) {
			continue
		}
		for _, row := range rows {
			line := row[0].string + ":"
			for i, x := range row[1:] {
				if x.string == "" {
					continue
				}
				if i == 2 { // a change, after a value and perhaps a note
					line += ","
				}
				line += " " + x.string
			}
			p.wrap(4, 6, line)
		}
	}
}

// difference is the head of a column of differences.
func difference(d *digest.Digest, t digest.Target) string {
	if len(d.Targets) == 2 {
		return "difference"
	}
	return "difference of " + t.Name
}

func heading(name, title string) string {
	if title == name || title == "" {
		return name
	}
	return title + " (" + name + ")"
}

func value(c digest.Cell) text {
	if !c.Known && c.Text != digest.NotRun {
		return text{c.Text, yellow}
	}
	return plain(c.Text)
}

func note(c digest.Cell) text {
	if c.Note == "" {
		return text{}
	}
	return text{"(" + c.Note + ")", yellow}
}

// change is painted only if an interval is behind it: otherwise it may be noise.
func change(x digest.Difference) text {
	t := plain(x.Text)
	if x.Interval {
		switch x.Finding {
		case compare.Improved:
			t.color = green
		case compare.Worsened:
			t.color = red
		}
	}
	return t
}

func (p *printer) details(d *digest.Digest) {
	for at := 0; at < len(d.Details); {
		end := at
		for end < len(d.Details) && d.Details[end].Scenario == d.Details[at].Scenario {
			end++
		}
		p.scenario(d.Details[at:end])
		at = end
	}
}

// scenario prints the figures of a scenario's cells, in several tables if need be.
func (p *printer) scenario(list []digest.Detail) {
	p.line()
	head := "Figures of " + list[0].Scenario
	if unit := list[0].Unit; unit != "" {
		head += ", times in " + unit
	}
	p.wrap(0, 0, p.paint(bold, head))
	used := digest.Used(list)
	var pick []int
	for i := range digest.Columns {
		if used[i] {
			pick = append(pick, i)
		}
	}
	for len(pick) > 0 {
		// As many columns as fit, and one at the least.
		n := len(pick)
		for n > 1 && !p.fits(2, figures(list, pick[:n])) {
			n--
		}
		p.print(2, figures(list, pick[:n]))
		if pick = pick[n:]; len(pick) > 0 {
			p.line()
		}
	}
}

func figures(list []digest.Detail, pick []int) table {
	t := table{columns: []column{{}}}
	for _, i := range pick {
		t.columns = append(t.columns, column{head: digest.Columns[i], right: true})
	}
	for _, d := range list {
		row := []text{plain(digest.Name(d.Phase, d.Stage, d.Step, d.Target))}
		if d.Remark != "" {
			row[0].string += " (" + d.Remark + ")"
		}
		for _, i := range pick {
			x := plain(d.Values[i])
			if x.string == "" {
				x.string = "-"
			}
			if (digest.Columns[i] == "failed" || digest.Columns[i] == "dropped") && x.string != "0" && x.string != "-" {
				x.color = yellow
			}
			row = append(row, x)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func (p *printer) failures(d *digest.Digest) {
	if len(d.Failures) == 0 {
		return
	}
	p.line()
	p.wrap(0, 0, p.paint(bold, "Failures"))
	for _, f := range d.Failures {
		line := fmt.Sprintf("%s: %d of %d failed, %s", f.Place, f.Count, f.Of, f.Kind)
		if f.Statuses != "" {
			line += " (" + f.Statuses + ")"
		}
		p.wrap(2, 4, line)
		if f.Example != "" {
			p.wrap(4, 4, f.Example)
		}
	}
}

func (p *printer) notes(d *digest.Digest) {
	if len(d.Notes) == 0 {
		return
	}
	p.line()
	p.wrap(0, 0, p.paint(bold, "Notes"))
	for _, n := range d.Notes {
		p.wrap(2, 4, "- "+n)
	}
}

// passedShown is how many passed assertions are listed before they are only counted.
const passedShown = 20

func (p *printer) verdicts(d *digest.Digest) {
	if len(d.Verdicts) == 0 {
		return
	}
	p.line()
	p.wrap(0, 0, p.paint(bold, "Assertions"))
	passed := 0
	for _, v := range d.Verdicts {
		if v.Outcome == result.Passed {
			passed++
		}
	}
	shown := 0
	var left, implied int
	for _, v := range d.Verdicts {
		if v.Outcome == result.Passed && passed > passedShown && (v.Implied || shown >= passedShown) {
			if left++; v.Implied {
				implied++
			}
			continue
		}
		head := v.Assertion
		if v.Place != "" {
			head = v.Place + ": " + head
		}
		mark := p.paint(color(v), fmt.Sprintf("%-12s", v.Mark()))
		if v.Outcome == result.Passed {
			shown++
			if f := v.Figures(); f != "" {
				head += " (" + f + ")"
			}
			p.wrap(2, 15, mark+" "+head)
			continue
		}
		p.wrap(2, 15, mark+" "+head)
		if f := v.Figures(); f != "" {
			p.wrap(15, 17, f)
		}
		if v.Source != "" {
			p.wrap(15, 17, v.Source)
		}
		for _, x := range v.Detail {
			p.wrap(15, 17, x)
		}
	}
	switch {
	case left > 0 && implied == left:
		p.wrap(2, 15, p.paint(green, fmt.Sprintf("%-12s", "passed"))+fmt.Sprintf(" and %d implied ones", left))
	case left > 0:
		p.wrap(2, 15, p.paint(green, fmt.Sprintf("%-12s", "passed"))+fmt.Sprintf(" and %d more, %d of them implied", left, implied))
	}
}

func color(v digest.Verdict) string {
	switch {
	case v.Outcome == result.Passed:
		return green
	case v.Warning || v.Outcome == result.Inconclusive:
		return yellow
	}
	return red
}

func (p *printer) files(files []File) {
	if len(files) == 0 {
		return
	}
	p.line()
	for _, f := range files {
		// A path is printed whole, so that it can be copied.
		fmt.Fprintf(p.out, "%s %s\n", digest.Clean(f.What), digest.Clean(f.Path))
	}
}

func (p *printer) outcome(d *digest.Digest) {
	p.line()
	c := red
	switch {
	case d.Outcome.Good():
		c = green
	case d.Outcome.Word == string(result.Inconclusive):
		c = yellow
	}
	word, rest, _ := strings.Cut(d.Outcome.Line, ":")
	p.wrap(0, 2, p.paint(c, word)+":"+rest)
}
