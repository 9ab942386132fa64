// Package markdown writes a run as Markdown (GitHub's), for the comment on a pull request or the summary of a job: the
// verdict, the comparison, what did not pass, and the rest folded away. Text from outside is shown as it is: it breaks no
// table, opens no tag, and calls nobody's attention.
package markdown

import (
	"fmt"
	"io"
	"strings"

	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
)

// DefaultLimit is below what GitHub takes as a comment, 65 536 characters.
const DefaultLimit = 60_000

// Options of a Sink.
type Options struct {
	// Limit is how many bytes the output has at most; 0 is DefaultLimit. What does not fit is left out, and counted. Much
	// less than 2000 does not do.
	Limit int
	// Results says where the results file can be found, for whoever wants what was left out; "" says nothing.
	Results string
}

// Sink writes a run. It is safe for concurrent use.
type Sink struct{ options Options }

// New makes a Sink.
func New(o Options) *Sink {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	return &Sink{o}
}

// Shares of the limit that the comparison and what did not pass may take, so that the one does not push out the other.
const (
	comparisonShare = 0.5
	verdictShare    = 0.25
)

// Write writes a run.
func (s *Sink) Write(w io.Writer, run *result.Run) error {
	d := digest.Of(run)
	p := &page{limit: s.options.Limit - 400} // for the last lines
	p.title(d)
	p.budget(comparisonShare, s.options.Limit)
	p.sections(comparisons(d))
	p.budget(verdictShare, s.options.Limit)
	p.sections([]section{notPassed(d)})
	p.room = p.limit
	p.sections([]section{notes(d)})
	p.folded("Figures", figures(d))
	p.folded("Failures", []section{failures(d)})
	p.folded("Where connections went", []section{connected(d)})
	p.folded("Assertions that passed", []section{passed(d)})
	if p.left > 0 {
		where := "the results file has them"
		if s.options.Results != "" {
			where = code(s.options.Results, false) + " has them"
		}
		fmt.Fprintf(&p.out, "\n_%d rows did not fit here; %s._\n", p.left, where)
	} else if s.options.Results != "" {
		fmt.Fprintf(&p.out, "\nResults: %s\n", code(s.options.Results, false))
	}
	_, err := io.WriteString(w, p.out.String())
	return err
}

// page is a document of limited size.
type page struct {
	out   strings.Builder
	limit int // of the whole
	room  int // up to which length the present part may write
	left  int // rows that did not fit
}

// section is lines that belong together: a table, or a list.
type section struct {
	head []string
	rows []string
}

func (p *page) budget(share float64, of int) {
	p.room = min(p.limit, p.out.Len()+int(share*float64(of)))
}

// sections writes what there is room for.
func (p *page) sections(list []section) {
	for _, s := range list {
		if len(s.rows) == 0 {
			continue
		}
		head := "\n" + strings.Join(s.head, "\n") + "\n"
		if p.out.Len()+len(head)+len(s.rows[0])+1 > p.room {
			p.left += len(s.rows)
			continue
		}
		p.out.WriteString(head)
		for i, r := range s.rows {
			if p.out.Len()+len(r)+1 > p.room {
				p.left += len(s.rows) - i
				break
			}
			p.out.WriteString(r)
			p.out.WriteByte('\n')
		}
	}
}

// folded writes sections that open on demand.
func (p *page) folded(title string, list []section) {
	n := 0
	for _, s := range list {
		n += len(s.rows)
	}
	if n == 0 {
		return
	}
	const end = "\n</details>\n"
	head := "\n<details>\n<summary>" + title + "</summary>\n"
	if p.out.Len()+len(head)+len(end) > p.limit {
		p.left += n
		return
	}
	p.out.WriteString(head)
	p.room = p.limit - len(end)
	p.sections(list)
	p.out.WriteString(end)
}

func (p *page) title(d *digest.Digest) {
	fmt.Fprintf(&p.out, "## %s: %s\n", escape(digest.Shorten(d.Title, 200)), d.Outcome.Word)
	fmt.Fprintf(&p.out, "\n**%s**\n", escape(digest.Shorten(d.Outcome.Line, 500)))
	if d.Description != "" {
		fmt.Fprintf(&p.out, "\n%s\n", paragraph(digest.Shorten(d.Description, 1000)))
	}
	if d.About != "" {
		fmt.Fprintf(&p.out, "\n%s\n", paragraph(digest.Shorten(d.About, 200)))
	}
}

func row(fields ...string) string { return "| " + strings.Join(fields, " | ") + " |" }

// comparisons is a table for each scenario.
func comparisons(d *digest.Digest) []section {
	var list []section
	for _, c := range d.Comparisons {
		title := escape(c.Title)
		if c.Title != c.Scenario {
			title += " (" + code(c.Scenario, false) + ")"
		}
		head, line := []string{"phase"}, []string{"---"}
		for i, t := range d.Targets {
			head, line = append(head, escape(t.Label())), append(line, "---:")
			if i > 0 {
				name := "difference"
				if len(d.Targets) > 2 {
					name += " of " + escape(t.Name)
				}
				head, line = append(head, name), append(line, "---")
			}
		}
		s := section{head: []string{"### " + title, "", row(head...), "|" + strings.Join(line, "|") + "|"}}
		for _, r := range c.Rows {
			fields := []string{escape(digest.Shorten(r.Label, 200))}
			for i := range d.Targets {
				x := escape(r.Cells[i].Text)
				if n := r.Cells[i].Note; n != "" {
					x += "<br>" + escape(n)
				}
				fields = append(fields, x)
				if i > 0 {
					fields = append(fields, escape(r.Differences[i].Text))
				}
			}
			s.rows = append(s.rows, row(fields...))
		}
		list = append(list, s)
	}
	return list
}

// notPassed is what somebody has to look at.
func notPassed(d *digest.Digest) section {
	s := section{head: []string{"### Assertions that did not pass", "", row("outcome", "where", "assertion", "figures"), "|---|---|---|---|"}}
	for _, v := range d.Verdicts {
		if v.Outcome == result.Passed {
			continue
		}
		assertion := code(digest.Shorten(v.Assertion, 300), true)
		if v.Source != "" {
			assertion += "<br>" + escape(v.Source)
		}
		var figures []string
		if f := v.Figures(); f != "" {
			figures = append(figures, escape(f))
		}
		for _, x := range v.Detail {
			inner := strings.TrimLeft(x, " ")
			figures = append(figures, strings.Repeat("&nbsp;", len(x)-len(inner))+escape(inner))
		}
		s.rows = append(s.rows, row("**"+v.Mark()+"**", place(v.Place), assertion, strings.Join(figures, "<br>")))
	}
	return s
}

func place(name string) string {
	if name == "" {
		return ""
	}
	return code(name, true)
}

func passed(d *digest.Digest) section {
	s := section{head: []string{row("where", "assertion", "figures"), "|---|---|---|"}}
	for _, v := range d.Verdicts {
		if v.Outcome == result.Passed {
			s.rows = append(s.rows, row(place(v.Place), code(digest.Shorten(v.Assertion, 300), true), escape(v.Figures())))
		}
	}
	return s
}

func notes(d *digest.Digest) section {
	s := section{head: []string{"### Notes", ""}}
	for _, n := range d.Notes {
		s.rows = append(s.rows, "- "+escape(digest.Shorten(n, 500)))
	}
	return s
}

// figures is a table for each scenario.
func figures(d *digest.Digest) []section {
	var list []section
	for at := 0; at < len(d.Details); {
		end := at
		for end < len(d.Details) && d.Details[end].Scenario == d.Details[at].Scenario {
			end++
		}
		list = append(list, figuresOf(d.Details[at:end]))
		at = end
	}
	return list
}

func figuresOf(details []digest.Detail) section {
	used := digest.Used(details)
	head, line := []string{code(details[0].Scenario, true)}, []string{"---"}
	if unit := details[0].Unit; unit != "" {
		head[0] += ", times in " + unit
	}
	for i, name := range digest.Columns {
		if !used[i] {
			continue
		}
		head, line = append(head, name), append(line, "---:")
	}
	s := section{head: []string{row(head...), "|" + strings.Join(line, "|") + "|"}}
	for _, d := range details {
		name := code(digest.Name(d.Phase, d.Stage, d.Step, d.Target), true)
		if d.Remark != "" {
			name += " (" + escape(d.Remark) + ")"
		}
		fields := []string{name}
		for i := range digest.Columns {
			if !used[i] {
				continue
			}
			if d.Values[i] == "" {
				fields = append(fields, "-")
			} else {
				fields = append(fields, d.Values[i])
			}
		}
		s.rows = append(s.rows, row(fields...))
	}
	return s
}

func failures(d *digest.Digest) section {
	s := section{head: []string{row("where", "failed", "of", "kind", "for example"), "|---|---:|---:|---|---|"}}
	for _, f := range d.Failures {
		kind := f.Kind
		if f.Statuses != "" {
			kind += " (" + f.Statuses + ")"
		}
		s.rows = append(s.rows, row(place(f.Place), fmt.Sprint(f.Count), fmt.Sprint(f.Of), kind, escape(f.Example)))
	}
	return s
}

// connected is for cells that connected to more than one address: to one, it says nothing.
func connected(d *digest.Digest) section {
	s := section{head: []string{row("where", "address", "connections", "attempts that failed"), "|---|---|---:|---:|"}}
	for _, c := range d.Connected {
		if !c.Several() {
			continue
		}
		for _, a := range c.Addresses {
			s.rows = append(s.rows, row(place(c.Place), code(a.Addr, true), fmt.Sprint(a.Opened), fmt.Sprint(a.Failed)))
		}
		if left := c.Left(); left != "" {
			s.rows = append(s.rows, row(place(c.Place), left, "", ""))
		}
	}
	return s
}
