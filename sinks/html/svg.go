package html

import (
	"html/template"
	"math"
	"strconv"
	"strings"
)

// picture is an SVG in the making. Its lengths are pixels on a page 440 wide; the page scales it. Colours come from the
// page's style sheet by class, so that one picture does for light, dark and paper. Text is escaped.
type picture struct {
	b             strings.Builder
	width, height float64
	about         string // for those who can't see it
}

func (p *picture) tag(parts ...string) {
	for _, s := range parts {
		p.b.WriteString(s)
	}
}

// px prints a coordinate; a tenth of a pixel is fine enough.
func px(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

func (p *picture) line(class string, x1, y1, x2, y2 float64) {
	p.tag(`<line class="`, class, `" x1="`, px(x1), `" y1="`, px(y1), `" x2="`, px(x2), `" y2="`, px(y2), `"/>`)
}

// rect has a title, which is shown when somebody points at it; "" is none.
func (p *picture) rect(class string, x, y, w, h float64, title string) {
	p.tag(`<rect class="`, class, `" x="`, px(x), `" y="`, px(y), `" width="`, px(max(w, 0)), `" height="`, px(max(h, 0)), `"`)
	if title == "" {
		p.tag(`/>`)
		return
	}
	p.tag(`><title>`, template.HTMLEscapeString(title), `</title></rect>`)
}

func (p *picture) dot(class string, x, y float64) {
	p.tag(`<circle class="`, class, `" cx="`, px(x), `" cy="`, px(y), `" r="2"/>`)
}

// Where text stands from its point.
const (
	start  = "start"
	middle = "middle"
	end    = "end"
)

func (p *picture) text(class, anchor string, x, y float64, s string) {
	p.tag(`<text class="`, class, `" text-anchor="`, anchor, `" x="`, px(x), `" y="`, px(y), `">`, template.HTMLEscapeString(s), `</text>`)
}

type point struct{ x, y float64 }

// curve joins points; one that is not a number makes a gap, and one between two gaps is a dot.
func (p *picture) curve(class string, points []point) {
	var d strings.Builder
	for i := 0; i < len(points); {
		j := i
		for j < len(points) && !math.IsNaN(points[j].y) {
			j++
		}
		if j-i == 1 {
			p.dot("dot "+class, points[i].x, points[i].y)
		} else {
			for k, q := range points[i:j] {
				d.WriteString(map[bool]string{true: "M", false: "L"}[k == 0])
				d.WriteString(px(q.x) + " " + px(q.y))
			}
		}
		i = j + 1
	}
	if d.Len() > 0 {
		p.tag(`<path class="curve `, class, `" d="`, d.String(), `"/>`)
	}
}

// area fills what lies between points and a base line.
func (p *picture) area(class string, base float64, points []point) {
	if len(points) == 0 {
		return
	}
	p.tag(`<path class="area `, class, `" d="M`, px(points[0].x), ` `, px(base))
	for _, q := range points {
		p.tag(`L`, px(q.x), ` `, px(q.y))
	}
	p.tag(`L`, px(points[len(points)-1].x), ` `, px(base), `Z"/>`)
}

func (p *picture) html() template.HTML {
	// Every text inside is escaped, and everything else is numbers and names of classes.
	return template.HTML(`<svg viewBox="0 0 ` + px(p.width) + ` ` + px(p.height) + `" role="img" aria-label="` +
		template.HTMLEscapeString(p.about) + `">` + p.b.String() + `</svg>`)
}

// textWidth is about how wide a text is at the size that pictures use; wide characters count twice.
func textWidth(s string) float64 {
	w := 0.0
	for _, r := range s {
		if r >= 0x1100 {
			w += 12
		} else {
			w += 6.3
		}
	}
	return w
}

// fit shortens a text to a width.
func fit(s string, width float64) string {
	if textWidth(s) <= width {
		return s
	}
	r := []rune(s)
	for len(r) > 1 && textWidth(string(r))+6.3 > width {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}

// entry is one line of a legend.
type entry struct{ class, text string }

// legend writes entries in as many rows as they take from y down, and returns the y below. A swatch is a box.
func (p *picture) legend(x, y float64, entries []entry) float64 {
	at := x
	for _, e := range entries {
		text := fit(e.text, p.width-x-24)
		w := textWidth(text) + 26
		if at > x && at+w > p.width {
			at = x
			y += 15
		}
		p.rect("swatch "+e.class, at, y-8, 9, 9, "")
		p.text("label", start, at+13, y, text)
		at += w
	}
	return y + 15
}
