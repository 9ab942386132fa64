package html

import (
	"html/template"
	"math"
	"strconv"

	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
)

// Measures of every picture.
const (
	chartWidth = 440
	marginLeft = 50
	marginEnd  = 14
	plotTop    = 22 // below the name of the upright axis
	lineHeight = 15
)

// chart is one picture and what is to be read with it.
type chart struct {
	Title   string
	Picture template.HTML
	Caption string
}

// series is a cell in a picture: its name is that of its target.
type series struct {
	cell  *result.CellResult
	name  string
	class string // its colour
}

// colours is how many of them the style sheet has; further targets begin anew.
const colours = 6

func class(i int) string { return "s" + strconv.Itoa(i%colours) }

// stats of the judged stages.
func (s series) stats() *record.Stats {
	return s.cell.Stats(result.Pooled, result.Judged, record.Whole)
}

func entries(list []series) []entry {
	var e []entry
	for _, s := range list {
		e = append(e, entry{s.class, s.name})
	}
	return e
}

// having are the series of which at least n samples succeeded.
func having(list []series, n int64) []series {
	var some []series
	for _, s := range list {
		if s.stats().OK >= n {
			some = append(some, s)
		}
	}
	return some
}

// frame draws the axes of a plot: values upright with lines across, and a name above.
func (p *picture) frame(x, y axis, name string) {
	p.text("axis-name", start, 2, y.to-10, name)
	for _, v := range y.ticks(5) {
		p.line("grid", x.from, y.at(v), x.to, y.at(v))
		p.text("tick", end, x.from-5, y.at(v)+4, y.text(v))
	}
	p.line("base", x.from, y.from, x.to, y.from)
}

// fewest samples of which a curve says anything.
const fewest = 5

// percentiles draws latency over percentile, the far end wide: each 9 takes as much room as the one before it.
func percentiles(list []series) (chart, bool) {
	list = having(list, fewest)
	if len(list) == 0 {
		return chart{}, false
	}
	var most, greatest, least float64 = 0, 0, math.Inf(1)
	for _, s := range list {
		l := s.stats().Latency()
		high, _ := l.Max()
		low, _ := l.Percentile(1)
		most, greatest, least = max(most, float64(l.Count())), max(greatest, float64(high)), min(least, float64(low))
	}
	p := &picture{width: chartWidth, about: "Latency by percentile"}
	bottom := 200.0
	// Nines, not percentiles: 90 % is one of them, 99 % two.
	x := axis{low: 0, high: math.Log10(most), from: marginLeft, to: chartWidth - marginEnd}
	y := newAxis(quantity.Time, least, greatest, bottom, plotTop)
	p.frame(x, y, y.unit("latency"))
	for _, t := range []struct {
		nines float64
		text  string
	}{{0, "0"}, {math.Log10(2), "50"}, {1, "90"}, {2, "99"}, {3, "99.9"}, {4, "99.99"}, {5, "99.999"}, {6, "99.9999"}} {
		if t.nines <= x.high {
			p.line("grid", x.at(t.nines), bottom, x.at(t.nines), plotTop)
			p.text("tick", middle, x.at(t.nines), bottom+14, t.text)
		}
	}
	p.text("axis-name", middle, (x.from+x.to)/2, bottom+30, "percentile")
	for _, s := range list {
		l := s.stats().Latency()
		last := math.Log10(float64(l.Count()))
		const samples = 80
		var points []point
		for i := range samples + 1 {
			nines := last * float64(i) / samples
			v, _ := l.Percentile(100 * (1 - math.Pow(10, -nines)))
			if i == samples {
				v, _ = l.Max()
			}
			points = append(points, point{x.at(nines), y.at(float64(v))})
		}
		p.curve(s.class, points)
	}
	p.height = p.legend(marginLeft, bottom+48, entries(list))
	return chart{"Latency by percentile", p.html(), "Of successful iterations, counted from when they were due. The last point is the slowest one."}, true
}

// distributions draws how often which latency was, a strip for each target over one common axis.
func distributions(list []series) (chart, bool) {
	list = having(list, fewest)
	if len(list) == 0 {
		return chart{}, false
	}
	var low, high float64 = math.Inf(1), 0
	for _, s := range list {
		l := s.stats().Latency()
		a, _ := l.Min()
		// The slowest in a thousand would squeeze the rest together; the curve by percentile shows them.
		b, _ := l.Percentile(99.9)
		low, high = min(low, float64(a)), max(high, float64(b))
	}
	p := &picture{width: chartWidth, about: "Distribution of latency"}
	x := axis{low: low, high: high, from: 12, to: chartWidth - marginEnd, dim: quantity.Time, scale: scaleOf(quantity.Time, high)}
	if high > 4*low && low > 0 {
		x.log = true
	} else {
		room := max((high-low)*0.04, high*0.01, 1)
		x.low, x.high = max(0, low-room), high+room
	}
	const strip, tall, bins = 66.0, 38.0, 60
	base := 0.0
	for i, s := range list {
		base = 24 + strip*float64(i) + tall
		l := s.stats().Latency()
		edge := func(k int) float64 {
			f := float64(k) / bins
			if x.log {
				return x.low * math.Pow(x.high/x.low, f)
			}
			return x.low + (x.high-x.low)*f
		}
		var counts [bins]float64
		below, greatest := float64(0), 1.0
		for k := range bins {
			upTo := float64(l.CountAtMost(int64(edge(k + 1))))
			counts[k] = upTo - below
			greatest = max(greatest, counts[k])
			below = upTo
		}
		var points []point
		for k, n := range counts {
			h := base - tall*n/greatest
			points = append(points, point{x.at(edge(k)), h}, point{x.at(edge(k + 1)), h})
		}
		p.area(s.class, base, points)
		p.line("base", x.from, base, x.to, base)
		text := s.name + ": "
		for _, m := range []struct {
			name string
			at   float64
		}{{"p50", 50}, {"p99", 99}} {
			v, _ := l.Percentile(m.at)
			if m.at == 99 && l.Count() < 100 {
				continue
			}
			at := x.at(min(float64(v), x.high))
			p.line("mark "+s.class, at, base+5, at, base-tall)
			if m.at > 50 {
				text += ", "
			}
			text += m.name + " " + digest.ScaleOf(quantity.Time, float64(v)).With(float64(v))
		}
		p.rect("swatch "+s.class, x.from, base-tall-16, 9, 9, "")
		p.text("label", start, x.from+13, base-tall-8, fit(text, chartWidth-40))
	}
	bottom := base + 8
	for _, v := range x.ticks(7) {
		p.line("base", x.at(v), bottom-8, x.at(v), bottom-3)
		p.text("tick", middle, min(max(x.at(v), 14), chartWidth-16), bottom+9, x.text(v))
	}
	p.text("axis-name", middle, chartWidth/2, bottom+24, x.unit("latency"))
	p.height = bottom + 30
	caption := "Uprights are p50 and, from 100 samples on, p99. Each strip has its own height."
	if x.log {
		caption += " The axis is logarithmic."
	}
	return chart{"Distribution of latency", p.html(), caption}, true
}

// part is a part of the timing split.
type part struct{ class, name string }

var parts = []part{
	{"p0", "late start"}, {"p1", "dns"}, {"p2", "connect"}, {"p3", "tls"}, {"p4", "wait"}, {"p5", "first byte"}, {"p6", "transfer"}, {"p7", "other"},
}

// split draws what the mean latency is made of, a bar for each target, and each step where there are several.
func split(list []series) (chart, bool) {
	type bar struct {
		name   string
		values [8]float64
		total  float64
	}
	var bars []bar
	greatest, late := 0.0, false
	for _, s := range list {
		steps := []int{record.Whole}
		if len(s.cell.Steps) > 1 {
			steps = steps[:0]
			for i := range s.cell.Steps {
				steps = append(steps, i)
			}
		}
		for _, step := range steps {
			st := s.cell.Stats(result.Pooled, result.Judged, step)
			if st.OK == 0 {
				continue
			}
			b := bar{name: s.name}
			if step != record.Whole {
				b.name += ", " + digest.Clean(s.cell.Steps[step].Name)
			}
			n := float64(st.OK)
			b.total = st.Latency().Sum() / n
			service := st.Service().Sum() / n
			b.values[0] = max(0, b.total-service)
			known := 0.0
			for i, x := range []*record.Series{st.DNS, st.Connect, st.TLS, st.Wait, st.TTFB, st.Transfer} {
				b.values[i+1] = x.Sum() / n
				known += b.values[i+1]
			}
			if known == 0 {
				continue
			}
			b.values[7] = max(0, service-known)
			if b.values[7] < 0.01*b.total {
				b.values[7] = 0
			}
			late = late || b.values[0] >= 0.01*b.total
			greatest = max(greatest, b.total)
			bars = append(bars, b)
		}
	}
	if len(bars) == 0 || greatest == 0 {
		return chart{}, false
	}
	p := &picture{width: chartWidth, about: "What the mean latency is made of"}
	x := newAxis(quantity.Time, 0, greatest, 8, chartWidth-marginEnd-64)
	const strip = 38.0
	y := 0.0
	used := map[int]bool{}
	for _, b := range bars {
		p.text("label", start, x.from, y+12, fit(b.name, chartWidth-20))
		at := x.from
		for i, v := range b.values {
			w := x.at(v) - x.from
			if w <= 0 {
				continue
			}
			// What is thinner than a hair is in the table that pointing opens, not in the legend.
			if w >= 0.5 {
				used[i] = true
			}
			p.rect("part "+parts[i].class, at, y+17, w, 14, parts[i].name+" "+digest.ScaleOf(quantity.Time, v).With(v))
			at += w
		}
		p.text("label", start, at+6, y+28, digest.ScaleOf(quantity.Time, b.total).With(b.total))
		y += strip
	}
	var e []entry
	for i, q := range parts {
		if used[i] {
			e = append(e, entry{"part " + q.class, q.name})
		}
	}
	p.height = p.legend(x.from, y+12, e)
	caption := "Means over all successful calls: a connection that only some of them opened counts with its share."
	if late {
		caption += " Late start is from when a call was due until it was sent."
	}
	return chart{"What the mean latency is made of", p.html(), caption}, true
}

// capacity draws the latency and the failures of each trial of a search over its rate.
func capacity(list []series) (chart, bool) {
	type trial struct {
		rate, value float64
		held        bool
	}
	var all [][]trial
	var shown []series
	greatest, least, fastest := 0.0, math.Inf(1), 0.0
	for _, s := range list {
		var trials []trial
		for _, c := range s.cell.Curve() {
			v, ok := metric.Value(c.Stats, metric.Metric{Name: "p", Percentile: 99})
			if !ok {
				v = math.NaN()
			} else {
				greatest, least = max(greatest, v), min(least, v)
			}
			fastest = max(fastest, c.Trial.Rate)
			trials = append(trials, trial{c.Trial.Rate, v, c.Trial.End != nil && c.Trial.End.Outcome == result.Passed})
		}
		if len(trials) > 0 {
			all, shown = append(all, trials), append(shown, s)
		}
	}
	if len(all) == 0 || greatest == 0 {
		return chart{}, false
	}
	p := &picture{width: chartWidth, about: "Latency by rate"}
	bottom := 200.0
	x := newAxis(quantity.Rate, 0, fastest, marginLeft, chartWidth-marginEnd)
	y := newAxis(quantity.Time, least, greatest, bottom, plotTop)
	p.frame(x, y, y.unit("p99 latency"))
	for _, v := range x.ticks(7) {
		p.text("tick", middle, x.at(v), bottom+14, x.text(v))
	}
	p.text("axis-name", middle, (x.from+x.to)/2, bottom+30, "offered rate, iterations per second")
	var e []entry
	for i, s := range shown {
		var line []point
		for _, t := range all[i] {
			q := point{x.at(t.rate), y.at(t.value)}
			line = append(line, q)
			switch {
			case math.IsNaN(t.value):
			case t.held:
				p.tag(`<circle class="held `, s.class, `" cx="`, px(q.x), `" cy="`, px(q.y), `" r="4"/>`)
			default:
				p.line("missed "+s.class, q.x-4, q.y-4, q.x+4, q.y+4)
				p.line("missed "+s.class, q.x-4, q.y+4, q.x+4, q.y-4)
			}
		}
		p.curve("thin "+s.class, line)
		text := s.name
		if v, ok := s.cell.RateHeld(result.Pooled); ok {
			p.line("limit "+s.class, x.at(v), bottom, x.at(v), plotTop)
			text += " held " + quantity.Value{F: v, Dim: quantity.Rate}.String()
		}
		e = append(e, entry{s.class, text})
	}
	p.height = p.legend(marginLeft, bottom+48, e)
	return chart{"Latency by rate", p.html(), "Each point is a hold: a circle where the criterion held, a cross where it did not. The upright line is the rate held."}, true
}

// isDownload tells whether what counts is how fast bytes come.
func isDownload(c *result.CellResult) bool {
	for _, s := range c.Steps {
		if s.Driver == "download" {
			return true
		}
	}
	return false
}
