package html

import (
	"math"
	"strconv"

	"github.com/planrun/planrun/engine/compare"
	"github.com/planrun/planrun/sinks/digest"
)

// differenceCell is coloured only if an interval is behind it: otherwise it may be noise.
func differenceCell(head string, x digest.Difference) comparisonCell {
	c := comparisonCell{Head: head, Text: x.Text, Class: "difference " + findingClass(x)}
	if x.Text == "" {
		c.Class += " empty"
	}
	return c
}

func findingClass(x digest.Difference) string {
	if x.Interval {
		switch x.Finding {
		case compare.Improved:
			return "good"
		case compare.Worsened:
			return "bad"
		}
	}
	return "open"
}

// widestChange is how far a relative change is drawn: tenfold. What goes beyond lies at the end.
const widestChange = 9

// differences draws the relative changes of a scenario that have an interval, on one axis around none.
func differences(d *digest.Digest, c digest.Comparison) (chart, bool) {
	type row struct {
		label, class  string
		at, low, high float64
	}
	var rows []row
	least, greatest := 0.0, 0.0
	for _, r := range c.Rows {
		for i, x := range r.Differences {
			m := x.Measured.Relative
			if i == 0 || !m.Known || !m.Interval {
				continue
			}
			y := row{digest.Clean(r.Phase) + " " + r.Metric, findingClass(x), clip(m.Value), clip(m.Low), clip(m.High)}
			if len(d.Targets) > 2 {
				y.label += ", " + d.Targets[i].Name
			}
			least, greatest = min(least, y.low), max(greatest, y.high)
			rows = append(rows, y)
		}
	}
	if len(rows) == 0 {
		return chart{}, false
	}
	p := &picture{width: chartWidth, about: "Relative differences with their intervals"}
	step := niceAbove((greatest - least) / 5)
	x := axis{low: step * math.Floor(least/step), high: step * math.Ceil(greatest/step), from: 150, to: chartWidth - 24}
	const line = 22.0
	bottom := 8 + line*float64(len(rows))
	for _, v := range x.ticks(6) {
		p.line("grid", x.at(v), 4, x.at(v), bottom)
		text := strconv.FormatFloat(math.Round(v*1e4)/100, 'f', -1, 64) + "%"
		if v > 0 {
			text = "+" + text
		}
		p.text("tick", middle, x.at(v), bottom+14, text)
	}
	p.line("base", x.at(0), 4, x.at(0), bottom)
	for i, r := range rows {
		y := 8 + line*(float64(i)+0.5)
		p.text("label", end, x.from-10, y+4, fit(r.label, x.from-12))
		p.line("whisker "+r.class, x.at(r.low), y, x.at(r.high), y)
		for _, v := range []float64{r.low, r.high} {
			p.line("whisker "+r.class, x.at(v), y-4, x.at(v), y+4)
		}
		p.tag(`<circle class="estimate `, r.class, `" cx="`, px(x.at(r.at)), `" cy="`, px(y), `" r="4"/>`)
	}
	p.height = bottom + 20
	return chart{"Relative differences from " + d.Targets[0].Name, p.html(),
		"Estimates and their 95 % intervals. One that reaches over the line of 0 % shows no difference."}, true
}

func clip(v float64) float64 { return max(-1, min(v, widestChange)) }
