package html

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
)

// bin is some seconds of a round, or the rest of them.
type bin struct {
	from, length        float64 // seconds; from the beginning of the axis
	ok, failed, dropped float64
	bytes               float64
	inFlight            float64
	latency             *record.Histogram
}

// mostBins is how many of them a curve has, so that an hour takes no more room than a minute.
const mostBins = 160

// shortest is how long the rest of a round must be to say anything by itself; a shorter one joins the second before it.
const shortest = 0.3

// track is what the rounds of one cell came to over time, one round after the other.
type track struct {
	series
	rounds [][]bin
}

// timeline is the time axis that the targets of a phase share.
type timeline struct {
	tracks []track
	starts []float64 // of the rounds, in seconds
	length float64
}

// newTimeline lays the rounds of all targets beside each other: the first ones of all begin together, then the second
// ones. In truth they took turns.
func newTimeline(list []series) *timeline {
	t := &timeline{}
	rounds := 0
	for _, s := range list {
		rounds = max(rounds, len(s.cell.Rounds))
	}
	lasted := make([]float64, rounds)
	for _, s := range list {
		for _, v := range s.cell.Intervals {
			lasted[v.Round] = max(lasted[v.Round], float64(v.Second)+lengthOf(s.cell, v))
		}
	}
	for _, d := range lasted {
		t.starts = append(t.starts, t.length)
		t.length += d
	}
	merged := max(1, int(math.Ceil(t.length/mostBins)))
	for _, s := range list {
		tr := track{s, make([][]bin, len(s.cell.Rounds))}
		for _, v := range s.cell.Intervals {
			tr.add(v, t.starts[v.Round], lengthOf(s.cell, v), merged)
		}
		t.tracks = append(t.tracks, tr)
	}
	return t
}

// lengthOf is how long an interval lasted, in seconds: the last one of a round ends with it.
func lengthOf(c *result.CellResult, v result.Interval) float64 {
	if e := c.Rounds[v.Round].End; e != nil {
		if rest := (e.Length - time.Duration(v.Second)*time.Second).Seconds(); rest > 0 && rest < 1 {
			return rest
		}
	}
	return 1
}

func (t *track) add(v result.Interval, begin, length float64, merged int) {
	list := t.rounds[v.Round]
	joins := len(list) > 0 && (v.Second%merged != 0 || length < shortest)
	if !joins {
		list = append(list, bin{from: begin + float64(v.Second)})
	}
	b := &list[len(list)-1]
	b.length += length
	b.ok += float64(v.OK)
	b.failed += float64(v.Failed)
	b.dropped += float64(v.Dropped)
	b.bytes += float64(v.BytesIn)
	if !joins || length >= shortest {
		b.inFlight = max(b.inFlight, float64(v.InFlight))
	}
	if v.Latency != nil {
		if b.latency == nil {
			b.latency = new(record.Histogram)
		}
		b.latency.Merge(v.Latency)
	}
	t.rounds[v.Round] = list
}

// panel is one of the plots that share the time axis.
type panel struct {
	name   string
	dim    quantity.Dim
	height float64
	curves []curve
}

// curve is one figure of each bin; NaN is none.
type curve struct {
	class string
	of    func(b *bin) float64
}

func quantile(q float64) func(*bin) float64 {
	return func(b *bin) float64 {
		if b.latency == nil {
			return math.NaN()
		}
		v, ok := b.latency.Quantile(q)
		if !ok {
			return math.NaN()
		}
		return float64(v)
	}
}

var (
	latencyPanel = panel{"latency", quantity.Time, 110, []curve{{"thin", quantile(0.99)}, {"", quantile(0.5)}}}
	ratePanel    = panel{"ok", quantity.Rate, 80, []curve{{"", func(b *bin) float64 { return b.ok / b.length }}}}
	bytesPanel   = panel{"received", quantity.Speed, 110, []curve{{"", func(b *bin) float64 { return b.bytes / b.length }}}}
	failedPanel  = panel{"failed", quantity.Rate, 55, []curve{{"", func(b *bin) float64 { return b.failed / b.length }}}}
	droppedPanel = panel{"dropped", quantity.Rate, 55, []curve{{"", func(b *bin) float64 { return b.dropped / b.length }}}}
	flightPanel  = panel{"in flight", quantity.Number, 70, []curve{{"", func(b *bin) float64 { return b.inFlight }}}}
)

// panels are those that say something.
func (t *timeline) panels() []panel {
	var list []panel
	var failed, dropped, bytes, inFlight bool
	ok := 0.0
	for _, tr := range t.tracks {
		for _, round := range tr.rounds {
			for _, b := range round {
				ok += b.ok
				failed = failed || b.failed > 0
				dropped = dropped || b.dropped > 0
				bytes = bytes || b.bytes > 0 && isDownload(tr.cell)
				inFlight = inFlight || b.inFlight > 1
			}
		}
	}
	if bytes {
		list = append(list, bytesPanel)
	}
	// A few long downloads are told by their bytes.
	if ok >= fewest || ok > 0 && !bytes {
		list = append(list, latencyPanel, ratePanel)
	}
	if failed {
		list = append(list, failedPanel)
	}
	if dropped {
		list = append(list, droppedPanel)
	}
	if inFlight {
		list = append(list, flightPanel)
	}
	return list
}

// over draws a phase over time: latency, rate, failures and what is in flight, with its stages and rounds.
func over(list []series) (chart, bool) {
	t := newTimeline(list)
	bins := 0
	for _, tr := range t.tracks {
		n := 0
		for _, r := range tr.rounds {
			n += len(r)
		}
		bins = max(bins, n)
	}
	panels := t.panels()
	if bins < 3 || len(panels) == 0 {
		return chart{}, false
	}
	p := &picture{width: chartWidth, about: "Over time"}
	x := axis{low: 0, high: t.length, from: marginLeft, to: chartWidth - marginEnd, scale: scaleOf(quantity.Number, t.length)}
	top := 16.0
	y := top
	var plots []axis
	for _, q := range panels {
		y += 26
		plots = append(plots, axis{to: y, from: y + q.height})
		y += q.height + 8
	}
	bottom := y - 8
	t.marks(p, x, top, bottom)
	for i, q := range panels {
		t.panel(p, x, plots[i], q)
	}
	for _, v := range x.ticks(7) {
		p.text("tick", middle, x.at(v), bottom+14, x.text(v))
	}
	p.text("axis-name", middle, (x.from+x.to)/2, bottom+29, "seconds")
	p.height = p.legend(marginLeft, bottom+46, entries(list))
	has := func(name string) bool {
		return slices.ContainsFunc(panels, func(q panel) bool { return q.name == name })
	}
	caption := "Failures are counted in the second in which they came."
	switch {
	case has(latencyPanel.name):
		caption = "Latency is p50, and thin p99, of what ended in each second."
	case has(bytesPanel.name):
		caption = "Bytes are counted in the second in which they came."
	}
	if len(t.starts) > 1 {
		caption += " Rounds stand one after the other, and targets above each other; when it was measured they took turns."
	}
	return chart{"Over time", p.html(), caption}, true
}

func (t *timeline) panel(p *picture, x, place axis, q panel) {
	greatest, least := 0.0, math.Inf(1)
	for _, tr := range t.tracks {
		for _, round := range tr.rounds {
			for i := range round {
				for _, c := range q.curves {
					if v := c.of(&round[i]); v > 0 {
						greatest, least = max(greatest, v), min(least, v)
					}
				}
			}
		}
	}
	if q.dim != quantity.Time {
		least = 0
	}
	y := newAxis(q.dim, least, greatest, place.from, place.to)
	p.text("axis-name", start, 2, y.to-10, y.unit(q.name))
	ticks := 4
	if q.height < 80 {
		ticks = 2
	}
	for _, v := range y.ticks(ticks) {
		p.line("grid", x.from, y.at(v), x.to, y.at(v))
		p.text("tick", end, x.from-5, y.at(v)+4, y.text(v))
	}
	p.line("base", x.from, y.from, x.to, y.from)
	for _, c := range q.curves {
		for _, tr := range t.tracks {
			var points []point
			for _, round := range tr.rounds {
				for i := range round {
					b := &round[i]
					v := c.of(b)
					at := point{x.at(b.from + b.length/2), math.NaN()}
					if !math.IsNaN(v) {
						at.y = y.at(v)
					}
					points = append(points, at)
				}
				points = append(points, point{0, math.NaN()})
			}
			name := tr.class
			if c.class != "" {
				name = c.class + " " + name
			}
			p.curve(name, points)
		}
	}
}

// marks shades ramps, and names stages and rounds.
func (t *timeline) marks(p *picture, x axis, top, bottom float64) {
	var stages []result.Stage
	for _, tr := range t.tracks {
		if tr.cell.IsCapacity() && len(t.tracks) > 1 {
			stages = nil // each target has trials of its own
			break
		}
		if len(tr.cell.Stages) > len(stages) {
			stages = tr.cell.Stages
		}
	}
	named := len(stages) > 1 && len(t.starts) == 1
	free := 0.0 // where the next name may begin
	for r, begin := range t.starts {
		for i, g := range stages {
			from, to := begin+g.Start.Seconds(), begin+(g.Start+g.Length).Seconds()
			if g.Length <= 0 || from >= t.length {
				continue
			}
			to = min(to, t.length)
			if g.Kind == "ramp" {
				p.rect("ramp", x.at(from), top, x.at(to)-x.at(from), bottom-top, "")
			} else if len(stages) > 1 {
				p.line("stage", x.at(from), top, x.at(from), bottom)
			}
			// What lies between two trials is free for the name of the first.
			until := t.length
			if i+1 < len(stages) {
				until = min(t.length, max(to, begin+stages[i+1].Start.Seconds()))
			}
			room := x.at(until) - x.at(from)
			name := digest.Clean(digest.StageName(g))
			if named && x.at(from) >= free && (room >= 40 || textWidth(name) <= room) {
				p.text("tick", start, x.at(from)+2, top-4, fit(name, max(room-4, 8)))
				free = x.at(until)
			}
		}
		if len(t.starts) > 1 {
			if r > 0 {
				p.line("round", x.at(begin), top, x.at(begin), bottom)
			}
			if r == 0 {
				p.text("tick", start, 2, top-4, "round")
			}
			name := fmt.Sprint(r + 1)
			if x.at(begin) >= free {
				p.text("tick", start, x.at(begin)+2, top-4, name)
				free = x.at(begin) + textWidth(name) + 6
			}
		}
	}
}
