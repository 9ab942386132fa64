package terminal

import (
	"bufio"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Escape sequences for colours (ECMA-48, SGR).
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// widths measures text as terminals do, whatever the locale of the machine is.
var widths = &runewidth.Condition{StrictEmojiNeutral: true}

// text is a piece of a line and its colour, "" for none.
type text struct{ string, color string }

func plain(s string) text { return text{s, ""} }

type column struct {
	head  string
	right bool // values are aligned to the right
}

type table struct {
	columns []column
	rows    [][]text
}

// printer writes lines of a limited width. Errors are bufio's to keep.
type printer struct {
	out   *bufio.Writer
	width int
	color bool
}

func (p *printer) line() { p.out.WriteByte('\n') }

// paint colours text, if that is allowed.
func (p *printer) paint(color, s string) string {
	if !p.color || color == "" || s == "" {
		return s
	}
	return color + s + reset
}

// visible is text without the escape sequences that paint puts in.
var visible = strings.NewReplacer(reset, "", bold, "", red, "", green, "", yellow, "")

func width(s string) int { return widths.StringWidth(visible.Replace(s)) }

// wrap prints text over as many lines as it needs, the first indented by first and the others by rest. It breaks at
// spaces, but for those around an equals sign, and within a word only if the word alone is wider than a line.
func (p *printer) wrap(first, rest int, s string) {
	indent, used := first, 0
	var line strings.Builder
	flush := func() {
		p.out.WriteString(strings.Repeat(" ", indent))
		p.out.WriteString(strings.TrimRight(line.String(), " "))
		p.out.WriteByte('\n')
		line.Reset()
		indent, used = rest, 0
	}
	for i, word := range words(s) {
		w := width(word)
		if i > 0 {
			if indent+used+1+w > p.width && used > 0 {
				flush()
			} else {
				line.WriteByte(' ')
				used++
			}
		}
		for indent+used+w > p.width && w > p.width-rest {
			part := widths.Truncate(word, p.width-indent-used, "")
			if part == "" || part == word {
				break
			}
			line.WriteString(part)
			flush()
			word = word[len(part):]
			w = width(word)
		}
		line.WriteString(word)
		used += w
	}
	flush()
}

// words are what wrap keeps together. "n = 50" is one.
func words(s string) []string {
	var list []string
	joins := false
	for word := range strings.SplitSeq(s, " ") {
		if n := len(list); n > 0 && (joins || word == "=") {
			list[n-1] += " " + word
		} else {
			list = append(list, word)
		}
		joins = word == "="
	}
	return list
}

// table prints a table if it fits, and says whether it does.
func (p *printer) table(indent int, columns []column, rows [][]text) bool {
	t := table{columns, rows}
	if !p.fits(indent, t) {
		return false
	}
	p.print(indent, t)
	return true
}

const gap = 2 // between columns

// measure returns the width of each column; -1 is one that has nothing in it, and is left out.
func (t table) measure() []int {
	w := make([]int, len(t.columns))
	for i, c := range t.columns {
		w[i] = -1
		if c.head != "" {
			w[i] = width(c.head)
		}
		for _, r := range t.rows {
			if r[i].string != "" {
				w[i] = max(w[i], width(r[i].string))
			}
		}
	}
	return w
}

func (p *printer) fits(indent int, t table) bool {
	total := indent - gap
	for _, w := range t.measure() {
		if w >= 0 {
			total += w + gap
		}
	}
	return total <= p.width
}

func (p *printer) print(indent int, t table) {
	w := t.measure()
	var heads []text
	any := false
	for _, c := range t.columns {
		heads = append(heads, plain(c.head))
		any = any || c.head != ""
	}
	rows := t.rows
	if any {
		rows = append([][]text{heads}, rows...)
	}
	for _, r := range rows {
		var line strings.Builder
		line.WriteString(strings.Repeat(" ", indent))
		start := true
		for i, x := range r {
			if w[i] < 0 {
				continue
			}
			if !start {
				line.WriteString(strings.Repeat(" ", gap))
			}
			start = false
			pad := strings.Repeat(" ", max(0, w[i]-width(x.string)))
			if t.columns[i].right {
				line.WriteString(pad + p.paint(x.color, x.string))
			} else {
				line.WriteString(p.paint(x.color, x.string) + pad)
			}
		}
		p.out.WriteString(strings.TrimRight(line.String(), " "))
		p.out.WriteByte('\n')
	}
}
