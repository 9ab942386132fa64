package plan

import "strings"

// places returns where each rune of a scalar's text is written, and one more place for the end: behind a plain scalar,
// at the closing quote, or behind the last line of a block. It is nil when the text can't be followed in the file.
//
// The parser tells only where a scalar begins. Here the scalar is read once more beside its text, by the rules of YAML 1.2
// for folding (6.5), quoting (7.3) and blocks (8.1), and whatever disagrees ends it: a caret is right, or it is not drawn.
func (s *source) places(n *node) []place {
	if n.placed {
		return n.places
	}
	n.placed = true
	s = s.of(n)
	if n.shape != scalar || n.line < 1 || n.col < 1 {
		return nil
	}
	w := &walker{source: s, value: []rune(n.text), line: n.line, col: n.col}
	w.load()
	ok := false
	switch n.style {
	case plain:
		ok = w.flowScalar(0)
	case single:
		ok = w.quoted('\'')
	case double:
		ok = w.quoted('"')
	case literal, folded:
		ok = w.block(n.style == folded)
	}
	if ok {
		n.places = append(w.places, place{w.line, w.col})
	}
	return n.places
}

// walker follows a scalar's text in its file.
type walker struct {
	*source
	value     []rune // what is left of the text
	line, col int
	runes     []rune // of the line
	places    []place
}

func (w *walker) load() { w.runes = []rune(w.source.line(w.line)) }

// rest is the current line from the current column on.
func (w *walker) rest() []rune {
	if w.col-1 >= len(w.runes) {
		return nil
	}
	return w.runes[w.col-1:]
}

func (w *walker) blank() bool { return strings.Trim(string(w.rest()), " \t") == "" }

// take notes that the next runes of the text are written here, in width columns.
func (w *walker) take(runes, width int) {
	for range runes {
		w.places = append(w.places, place{w.line, w.col})
	}
	w.value = w.value[runes:]
	w.col += width
}

// next goes to the first text of the next line.
func (w *walker) next() bool {
	if w.line >= len(w.lines) {
		return false
	}
	w.line++
	w.col = 1
	w.load()
	return true
}

func (w *walker) skipBlanks() {
	for r := w.rest(); len(r) > 0 && (r[0] == ' ' || r[0] == '\t'); r = r[1:] {
		w.col++
	}
}

// fold passes the end of a line within a plain or quoted scalar: one line break is a space, and each empty line a line
// break.
func (w *walker) fold() bool {
	end := place{w.line, w.col}
	breaks := 0
	for {
		if !w.next() {
			return false
		}
		if !w.blank() {
			break
		}
		breaks++
	}
	w.skipBlanks()
	want, n := '\n', breaks
	if breaks == 0 {
		want, n = ' ', 1
	}
	for range n {
		if len(w.value) == 0 || w.value[0] != want {
			return false
		}
		w.places = append(w.places, end)
		w.value = w.value[1:]
	}
	return true
}

func (w *walker) flowScalar(quote rune) bool {
	for len(w.value) > 0 {
		switch r := w.rest(); {
		case quote == 0 && w.blank():
			if !w.fold() {
				return false
			}
		case len(r) == 0 || r[0] != w.value[0]:
			return false
		default:
			w.take(1, 1)
		}
	}
	return true
}

func (w *walker) quoted(quote rune) bool {
	if r := w.rest(); len(r) == 0 || r[0] != quote {
		return false
	}
	w.col++
	for len(w.value) > 0 {
		r := w.rest()
		switch {
		case w.blank():
			if !w.fold() {
				return false
			}
		case quote == '\'' && len(r) > 1 && r[0] == '\'' && r[1] == '\'':
			if w.value[0] != '\'' {
				return false
			}
			w.take(1, 2)
		case quote == '"' && r[0] == '\\':
			if !w.escape(r) {
				return false
			}
		case r[0] == w.value[0] && r[0] != quote:
			w.take(1, 1)
		default:
			return false
		}
	}
	return true
}

// escape passes an escape sequence: an escaped line break, which is nothing, or one rune of the text.
func (w *walker) escape(r []rune) bool {
	if len(r) == 1 {
		if !w.next() {
			return false
		}
		w.skipBlanks()
		return true
	}
	width := 2
	switch r[1] {
	case 'x':
		width = 4
	case 'u':
		width = 6
		if w.value[0] > 0xffff { // a surrogate pair
			width = 12
		}
	case 'U':
		width = 10
	}
	if width > len(r) {
		return false
	}
	w.take(1, width)
	return true
}

// block follows a literal or folded scalar, whose text begins on the line after its header.
func (w *walker) block(folds bool) bool {
	header := w.rest()
	indent := 0
	for _, r := range header[min(1, len(header)):] {
		if r == ' ' || r == '#' {
			break
		}
		if r >= '1' && r <= '9' {
			indent = int(r - '0')
		}
	}
	if indent > 0 { // counted from the indentation of the line that the header belongs to, list dashes included
		indent += parentIndent(w.runes)
	} else {
		for i := w.line + 1; i <= len(w.lines); i++ {
			text := w.source.line(i)
			if trimmed := strings.TrimLeft(text, " "); trimmed != "" {
				indent = len(text) - len(trimmed)
				break
			}
		}
	}
	if !w.next() {
		return len(w.value) == 0
	}
	w.col = indent + 1
	for len(w.value) > 0 {
		r := w.rest()
		switch {
		case len(r) > 0 && r[0] == w.value[0]:
			w.take(1, 1)
		case len(r) > 0 && !w.blank():
			return false
		case w.value[0] == '\n' || folds && w.value[0] == ' ':
			w.places = append(w.places, place{w.line, w.col})
			w.value = w.value[1:]
			if len(w.value) == 0 {
				return true
			}
			if !w.next() {
				return false
			}
			w.col = indent + 1
			if folds && w.value[0] != '\n' { // the empty lines of a fold are line breaks already passed
				for w.blank() && w.line < len(w.lines) {
					w.next()
					w.col = indent + 1
				}
			}
		default:
			return false
		}
	}
	return true
}

// parentIndent is how far a line is indented, counting the dashes of list items as indentation.
func parentIndent(line []rune) int {
	n := 0
	for n < len(line) && line[n] == ' ' {
		n++
	}
	for n+1 < len(line) && line[n] == '-' && line[n+1] == ' ' {
		m := n + 2
		for m < len(line) && line[m] == ' ' {
			m++
		}
		if m >= len(line) || line[m] == '|' || line[m] == '>' {
			break
		}
		n = m
	}
	return n
}
