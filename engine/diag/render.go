package diag

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Style says which terminal sequences surround the parts of a rendering. The zero value has none.
type Style struct {
	Place, Error, Warning, Source, Caret, Hint string
	// Reset ends each of them.
	Reset string
}

// Colour is the style for terminals.
var Colour = Style{
	Place: "\x1b[1m", Error: "\x1b[1;31m", Warning: "\x1b[1;33m", Source: "\x1b[2m", Caret: "\x1b[1;31m", Hint: "\x1b[36m",
	Reset: "\x1b[0m",
}

func (s Style) paint(code, text string) string {
	if code == "" || text == "" {
		return text
	}
	return code + text + s.Reset
}

// excerptWidth is how many columns of a source line are shown; longer lines are shortened around the caret.
const excerptWidth = 110

// Write renders the findings for people, each with its source line, a caret under the text that is meant, and the hint:
//
//	plans/x.yaml:12:7: unknown key "durration"
//	   12 |       durration: 10s
//	      |       ^^^^^^^^^
//	      did you mean duration?
func (fs Findings) Write(w io.Writer, style Style) error {
	var b strings.Builder
	for _, f := range fs {
		f.write(&b, style)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Render is the finding as Findings.Write shows it.
func (f Finding) Render(style Style) string {
	var b strings.Builder
	f.write(&b, style)
	return b.String()
}

func (f Finding) writeHead(b *strings.Builder, style Style) {
	if p := f.Place.String(); p != "" {
		b.WriteString(style.paint(style.Place, oneLine(p)+":"))
		b.WriteByte(' ')
	}
	if f.Severity == Warning {
		b.WriteString(style.paint(style.Warning, "warning:"))
		b.WriteByte(' ')
	}
	b.WriteString(oneLine(f.Message))
}

func (f Finding) write(b *strings.Builder, style Style) {
	f.writeHead(b, style)
	b.WriteByte('\n')
	if f.Source != "" && f.Line > 0 {
		text, caret := excerpt(f.Source, f.Column, f.EndColumn)
		fmt.Fprintf(b, "%5d | %s\n", f.Line, style.paint(style.Source, text))
		if caret != "" {
			code := style.Caret
			if f.Severity == Warning {
				code = style.Warning
			}
			fmt.Fprintf(b, "      | %s\n", style.paint(code, caret))
		}
	}
	if f.Hint != "" {
		fmt.Fprintf(b, "      %s\n", style.paint(style.Hint, oneLine(f.Hint)))
	}
	for _, n := range f.Notes {
		for line := range strings.SplitSeq(n, "\n") {
			fmt.Fprintf(b, "      %s\n", strings.Map(printable, line))
		}
	}
}

// excerpt returns what is shown of a line and the carets below it. column and end count runes from 1; end is exclusive.
func excerpt(line string, column, end int) (text, caret string) {
	runes := []rune(line)
	if column < 1 || column > len(runes)+1 {
		return shorten(runes, 0, 0), ""
	}
	from, to := column-1, max(end-1, column)
	to = min(to, max(len(runes), from+1))

	first, last, lead, tail := window(runes, from, to)
	to = min(to, max(last, from+1))
	var t, c strings.Builder
	t.WriteString(lead)
	c.WriteString(strings.Repeat(" ", len([]rune(lead))))
	for i := first; i < max(last, to); i++ {
		r, wide := ' ', 1
		if i < len(runes) {
			r = printable(runes[i])
			wide = columns(r)
		}
		if i < last {
			t.WriteRune(r)
		}
		switch {
		case i >= to:
		case i >= from:
			if r == '\t' { // as wide as it is, one caret says which it is
				wide = 1
			}
			c.WriteString(strings.Repeat("^", max(wide, 1)))
		case r == '\t':
			c.WriteRune('\t') // whatever a tab is worth on this terminal, both lines have it
		default:
			c.WriteString(strings.Repeat(" ", wide))
		}
	}
	t.WriteString(tail)
	return strings.TrimRight(t.String(), " "), c.String()
}

func shorten(runes []rune, from, to int) string {
	first, last, lead, tail := window(runes, from, to)
	return lead + strings.Map(printable, string(runes[first:last])) + tail
}

// window chooses the runes of a line that are shown, so that those of [from, to) are among them, or at least their
// beginning.
func window(runes []rune, from, to int) (first, last int, lead, tail string) {
	total := 0
	for _, r := range runes {
		total += columns(r)
	}
	if total <= excerptWidth {
		return 0, len(runes), "", ""
	}
	// A third of the room goes to what stands before the caret.
	first = min(from, len(runes))
	for room := excerptWidth / 3; first > 0; first-- {
		if room -= columns(runes[first-1]); room < 0 {
			break
		}
	}
	last = first
	for room := excerptWidth; last < len(runes); last++ {
		if room -= columns(runes[last]); room < 0 {
			break
		}
	}
	for room := excerptWidth - spread(runes[first:last]); first > 0; first-- {
		if room -= columns(runes[first-1]); room < 0 {
			break
		}
	}
	if first > 0 {
		lead = "…"
	}
	if last < len(runes) {
		tail = "…"
	}
	return first, last, lead, tail
}

func spread(runes []rune) int {
	n := 0
	for _, r := range runes {
		n += columns(r)
	}
	return n
}

// columns is how many columns of a terminal a rune takes.
func columns(r rune) int {
	switch {
	case r == '\t':
		return 8
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// printable replaces what would move the cursor or change the direction of the text.
func printable(r rune) rune {
	switch {
	case r == '\t':
		return r
	case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff, r == 0x2028, r == 0x2029:
		return '�'
	}
	return r
}
