package html

import (
	"io"
	"math"

	"github.com/planrun/planrun/sinks/digest"
)

// WriteTrend writes several runs side by side on one page: for each phase a table, and a chart of each of its metrics.
func (s *Sink) WriteTrend(w io.Writer, t *digest.Trend) error {
	p := trendPage{Trend: t, Notes: t.Notes()}
	for _, x := range t.Tables {
		p.Phases = append(p.Phases, newTrendPhase(t, x))
	}
	return pages.ExecuteTemplate(w, "trend.html", p)
}

type trendPage struct {
	*digest.Trend
	Notes  []string
	Phases []trendPhase
}

type trendPhase struct {
	digest.TrendTable
	Rows   []trendRow
	Charts []chart
}

type trendRow struct {
	Run   digest.TrendRun
	Cells []trendCell
}

type trendCell struct {
	Head string
	digest.Cell
}

func newTrendPhase(t *digest.Trend, x digest.TrendTable) trendPhase {
	p := trendPhase{TrendTable: x}
	for i, r := range t.Runs {
		row := trendRow{Run: r}
		for _, c := range x.Columns {
			row.Cells = append(row.Cells, trendCell{c.Label(), c.Cells[i]})
		}
		p.Rows = append(p.Rows, row)
	}
	var metrics []string
	byMetric := map[string][]digest.TrendColumn{}
	for _, c := range x.Columns {
		if byMetric[c.Metric] == nil {
			metrics = append(metrics, c.Metric)
		}
		byMetric[c.Metric] = append(byMetric[c.Metric], c)
	}
	for _, m := range metrics {
		if c, ok := course(t, m, byMetric[m]); ok {
			p.Charts = append(p.Charts, c)
		}
	}
	return p
}

// course draws a metric over the runs, a line for each target.
func course(t *digest.Trend, name string, columns []digest.TrendColumn) (chart, bool) {
	greatest := 0.0
	for _, c := range columns {
		for _, v := range c.Cells {
			if v.Known {
				greatest = max(greatest, v.Value)
			}
		}
	}
	if len(t.Runs) < 2 || greatest == 0 {
		return chart{}, false
	}
	p := &picture{width: chartWidth, about: name + " by run"}
	const bottom = 150.0
	x := axis{low: 0, high: float64(len(t.Runs) - 1), from: marginLeft + 14, to: chartWidth - 34}
	y := newAxis(columns[0].Dim, 0, greatest, bottom, plotTop)
	frame := x
	frame.from, frame.to = marginLeft, chartWidth-marginEnd
	p.frame(frame, y, y.unit(name))
	free := 0.0
	for i, r := range t.Runs {
		// The day is enough below the axis; the table has the time.
		text := r.Label
		if !r.Start.IsZero() {
			text = r.Start.UTC().Format("2 Jan 15:04")
		}
		at := x.at(float64(i))
		p.line("base", at, bottom, at, bottom+3)
		if w := textWidth(text); at-w/2 >= free {
			p.text("tick", middle, max(at, w/2), bottom+15, text)
			free = at + w/2 + 8
		}
	}
	var e []entry
	for i, c := range columns {
		var points []point
		for k, v := range c.Cells {
			q := point{x.at(float64(k)), math.NaN()}
			if v.Known {
				q.y = y.at(v.Value)
				p.dot("dot "+class(i), q.x, q.y)
			}
			points = append(points, q)
		}
		p.curve(class(i), points)
		e = append(e, entry{class(i), c.Target})
	}
	p.height = p.legend(marginLeft, bottom+34, e)
	return chart{Title: name, Picture: p.html()}, true
}
