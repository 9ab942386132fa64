package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/planrun/planrun/engine/diag"
)

// maxFindings is as many as anybody reads at once.
const maxFindings = 100

// source is the text of a file, by lines, and what was found in it.
type source struct {
	file   string
	lines  []string
	folder folder
	// unknown is where a tag was, and nobody knows what was meant.
	unknown map[place]bool
	*findingLog
}

// findingLog is what was found in a plan, its other files included.
type findingLog struct {
	findings diag.Findings
	seen     map[seenKey]bool
	errors   int // noted, the same one at the same place each time
	files    []*source
}

type seenKey struct {
	place   diag.Place
	message string
}

func newSource(file, text string) *source {
	return &source{file: file, lines: strings.Split(text, "\n"), findingLog: &findingLog{seen: map[seenKey]bool{}}}
}

// of is the file that a node is written in.
func (s *source) of(n *node) *source {
	if n != nil && n.src != nil {
		return n.src
	}
	return s
}

// adopt takes over what was found in another file, and what will be.
func (s *source) adopt(other *source) {
	for _, f := range other.findings {
		s.add(f)
	}
	other.findingLog = s.findingLog
	s.files = append(s.files, other)
}

// faults counts the errors that were noted, the same one at the same place each time.
func (s *source) faults() int { return s.errors }

// line returns a line, from 1; "" beyond the end.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

// from returns the rest of a line from a column on, both from 1.
func (s *source) from(line, col int) string {
	text := s.line(line)
	for ; col > 1 && text != ""; col-- {
		_, w := utf8.DecodeRuneInString(text)
		text = text[w:]
	}
	return text
}

// before returns a line up to a column, exclusive.
func (s *source) before(line, col int) string {
	text := s.line(line)
	return strings.TrimSuffix(text, s.from(line, col))
}

// add notes a finding. The same one at the same place is noted once: what a default says wrong is met by every scenario
// that uses it.
func (s *source) add(f diag.Finding) *diag.Finding {
	if f.File == "" {
		f.File = s.file
	}
	if f.Source == "" && f.File == s.file {
		f.Source = s.line(f.Line)
	}
	if f.Severity == diag.Error {
		s.errors++
	}
	key := seenKey{f.Place, f.Message}
	if s.seen[key] {
		return &diag.Finding{}
	}
	s.seen[key] = true
	s.findings = append(s.findings, f)
	return &s.findings[len(s.findings)-1]
}

// at notes an error at a place.
func (s *source) at(line, col, end int, message, hint string) *diag.Finding {
	return s.add(diag.Finding{Place: diag.Place{Line: line, Column: col}, EndColumn: end, Message: message, Hint: hint})
}

// on notes an error that is about a whole node.
func (s *source) on(n *node, hint, format string, args ...any) *diag.Finding {
	s = s.of(n)
	line, col, end := s.span(n)
	f := s.at(line, col, end, fmt.Sprintf(format, args...), hint)
	if n != nil && n.use != nil {
		f.Notes = append(f.Notes, fmt.Sprintf("used at %s as *%s", diag.Place{File: s.file, Line: n.use.line, Column: n.use.col}, n.use.name))
	}
	return f
}

// within notes an error about some runes of a scalar's text.
func (s *source) within(n *node, offset, length int, message, hint string) *diag.Finding {
	s = s.of(n)
	line, col, end, ok := s.stretch(n, offset, length)
	if !ok {
		return s.on(n, hint, "%s", message)
	}
	f := s.at(line, col, end, message, hint)
	if n.use != nil {
		f.Notes = append(f.Notes, fmt.Sprintf("used at %s as *%s", diag.Place{File: s.file, Line: n.use.line, Column: n.use.col}, n.use.name))
	}
	return f
}

// stretch is where some runes of a scalar's text are written, as far as they are on one line. It is not ok when the text
// can't be followed in the file.
func (s *source) stretch(n *node, offset, length int) (line, col, end int, ok bool) {
	p := s.of(n).places(n)
	if p == nil || offset < 0 || offset >= len(p) {
		return 0, 0, 0, false
	}
	first := p[offset]
	end = first.col + 1
	for _, q := range p[offset:min(offset+max(length, 1), len(p))] {
		if q.line == first.line {
			end = max(end, q.col+1)
		}
	}
	return first.line, first.col, end, true
}

// span is where a node is written: its line, its first column and the column behind its last one on that line.
func (s *source) span(n *node) (line, col, end int) {
	if n == nil {
		return 0, 0, 0
	}
	s = s.of(n)
	rest := strings.TrimRight(s.from(n.line, n.col), " \t")
	width := 1
	switch {
	case n.shape == scalar && (n.style == literal || n.style == folded):
	case n.shape == scalar:
		if p := s.places(n); len(p) > 0 {
			end := p[len(p)-1] // of the closing quote, or behind a plain scalar
			if n.style != plain {
				end.col++
			}
			if end.line == n.line {
				return n.line, n.col, max(end.col, n.col+1)
			}
		}
		width = utf8.RuneCountInString(rest)
	case n.flow:
		width = flowWidth(rest)
	case n.shape == mapping && len(n.pairs) > 0 && n.pairs[0].key.line == n.line:
		width = utf8.RuneCountInString(n.pairs[0].key.text)
	}
	return n.line, n.col, n.col + max(width, 1)
}

// flowWidth counts the runes of a flow mapping or sequence that begins text, as far as the line goes.
func flowWidth(text string) int {
	depth := 0
	for i, r := range []rune(text) {
		switch r {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return utf8.RuneCountInString(text)
}

// place is where a node is written.
func (s *source) place(n *node) diag.Place {
	if n == nil {
		return diag.Place{File: s.file}
	}
	s = s.of(n)
	return diag.Place{File: s.file, Line: n.line, Column: n.col}
}

// sorted returns what was found, in the order of the file.
func (s *source) sorted() diag.Findings {
	f := slices.Clone(s.findings)
	f.Sort()
	if len(f) > maxFindings {
		rest := diag.Finding{Place: diag.Place{File: s.file}, Message: fmt.Sprintf("%d more findings are not shown", len(f)-maxFindings)}
		if !f[maxFindings:].HasErrors() {
			rest.Severity = diag.Warning
		}
		f = append(f[:maxFindings:maxFindings], rest)
	}
	return f
}
