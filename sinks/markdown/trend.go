package markdown

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/planrun/planrun/sinks/digest"
)

// WriteTrend writes several runs side by side: a table for each phase, a row for each run.
func (s *Sink) WriteTrend(w io.Writer, t *digest.Trend) error {
	p := &page{limit: s.options.Limit - 400}
	fmt.Fprintf(&p.out, "## %s: %d runs\n", escape(digest.Shorten(t.Title(), 200)), len(t.Runs))
	runs := section{head: []string{row("run", "outcome", "planrun", "results"), "|---|---|---|---|"}}
	for _, r := range t.Runs {
		runs.rows = append(runs.rows, row(escape(r.Label), "**"+escape(r.Outcome.Word)+"**", escape(r.Tool), code(r.File, true)))
	}
	p.room = p.limit
	p.sections([]section{runs})
	for _, x := range t.Tables {
		p.sections([]section{trend(t, x)})
	}
	notes := section{head: []string{"### Notes", ""}}
	for _, n := range t.Notes() {
		notes.rows = append(notes.rows, "- "+escape(digest.Shorten(n, 500)))
	}
	p.sections([]section{notes})
	if p.left > 0 {
		fmt.Fprintf(&p.out, "\n_%d rows did not fit here._\n", p.left)
	}
	_, err := io.WriteString(w, p.out.String())
	return err
}

func trend(t *digest.Trend, x digest.TrendTable) section {
	head, line := []string{"run"}, []string{"---"}
	for _, c := range x.Columns {
		head, line = append(head, escape(c.Label())), append(line, "---:")
	}
	s := section{head: []string{"### " + escape(digest.Shorten(x.Title, 200)), "", row(head...), "|" + strings.Join(line, "|") + "|"}}
	for i, r := range t.Runs {
		fields := []string{escape(r.Label)}
		for _, c := range x.Columns {
			v := escape(c.Cells[i].Text)
			if n := c.Cells[i].Note; n != "" {
				v += "<br>" + escape(n)
			}
			fields = append(fields, v)
		}
		s.rows = append(s.rows, row(fields...))
	}
	changes, bars := []string{"last change"}, []string{"course"}
	for _, c := range x.Columns {
		changes = append(changes, c.Change())
		bars = append(bars, course(c.Cells))
	}
	s.rows = append(s.rows, row(changes...), row(bars...))
	return s
}

// course draws values as blocks from 0 to the greatest; a dot is no data.
func course(cells []digest.Cell) string {
	blocks := []rune("▁▂▃▄▅▆▇█")
	greatest := 0.0
	for _, c := range cells {
		if c.Known {
			greatest = math.Max(greatest, c.Value)
		}
	}
	var b strings.Builder
	for _, c := range cells {
		if !c.Known || greatest <= 0 {
			b.WriteRune('·')
			continue
		}
		i := int(math.Ceil(c.Value/greatest*float64(len(blocks)))) - 1
		b.WriteRune(blocks[min(max(i, 0), len(blocks)-1)])
	}
	return b.String()
}
