package plan

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/planrun/planrun/engine/diag"
)

// What is read before it is believed. The parser takes quadratic time in some of these, so they are checked before it
// sees the text.
const (
	maxBytes = 1 << 20
	maxDepth = 64
	maxKeys  = 10_000
	maxNodes = 200_000
	// maxTabs bounds the sum over lines of their tabs times their length.
	maxTabs = 200_000_000
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// readTree reads a file of exactly one YAML document. The tree is nil when there is none; findings are in the source.
func readTree(file string, text []byte) (*source, *node) {
	s := newSource(file, "")
	if len(text) > maxBytes {
		s.add(diag.Finding{Message: "the file is larger than 1 MiB", Hint: "keep bodies and data in files of their own"})
		return s, nil
	}
	text = bytes.TrimPrefix(text, byteOrderMark)
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		s.at(1, 1, 0, "the file is UTF-16", "save it as UTF-8")
		return s, nil
	}
	clean := strings.ReplaceAll(strings.ReplaceAll(string(text), "\r\n", "\n"), "\r", "\n")
	s = newSource(file, clean)
	if !s.sane(clean) {
		return s, nil
	}
	return s, s.parse(clean)
}

// sane refuses what is no text, and what would keep the parser busy for long.
func (s *source) sane(text string) bool {
	depth, deepest, tabs := 0, 0, 0
	for i, line := range s.lines {
		col, lineTabs := 1, 0
		for j, r := range line {
			switch {
			case r == utf8.RuneError && !strings.HasPrefix(line[j:], "\ufffd"):
				s.at(i+1, col, 0, "not valid UTF-8", "save the file as UTF-8")
				return false
			case r == '\t':
				lineTabs++
			case unicode.IsControl(r) && r != '\u0085':
				s.at(i+1, col, 0, fmt.Sprintf("the file has a control character (U+%04X)", r), `write it as an escape in double quotes, such as "\u0007"`)
				return false
			case r == '[', r == '{':
				depth++
				if depth > deepest {
					deepest = depth
				}
				if depth > maxDepth {
					s.at(i+1, col, 0, fmt.Sprintf("brackets are nested deeper than %d levels", maxDepth), "")
					return false
				}
			case r == ']', r == '}':
				depth = max(depth-1, 0)
			}
			col++
		}
		tabs += lineTabs * len(line)
		if tabs > maxTabs {
			s.at(i+1, 1, 0, "the line has too many tabs", "")
			return false
		}
		if n := leadingMarks(line); n > maxDepth {
			s.at(i+1, 1, 0, fmt.Sprintf("lists are nested deeper than %d levels", maxDepth), "")
			return false
		}
	}
	return true
}

// leadingMarks counts the "- " and "? " that a line begins with.
func leadingMarks(line string) int {
	n := 0
	for {
		line = strings.TrimLeft(line, " \t")
		if len(line) < 1 || line[0] != '-' && line[0] != '?' && line[0] != '!' && line[0] != '&' {
			return n
		}
		line = line[1:]
		n++
	}
}

// parse makes the tree. The parser is known to panic on some input that is no YAML.
func (s *source) parse(text string) (root *node) {
	defer func() {
		if r := recover(); r != nil {
			root = nil
			if b, ok := r.(budget); ok {
				s.at(b.line, b.col, 0, "the document expands to too many values", "use fewer aliases")
				return
			}
			s.at(1, 1, 0, "not valid YAML", "")
		}
	}()
	tokens := lexer.Tokenize(text)
	ok, tags := s.acceptable(tokens)
	if !ok {
		return nil
	}
	if len(tags) > 0 {
		if tokens = lexer.Tokenize(s.untagged(tags)); slices.ContainsFunc(tokens, func(t *token.Token) bool { return t.Type == token.TagType }) {
			return nil
		}
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		s.syntax(err, tokens)
		return nil
	}
	var body ast.Node
	for _, d := range file.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType {
			continue
		}
		if d.Body.Type() == ast.DirectiveType {
			p := d.Body.GetToken().Position
			s.at(p.Line, p.Column, 0, "directives are not supported", "remove this line")
			return nil
		}
		if body != nil {
			p := d.Body.GetToken().Position
			if d.Start != nil {
				p = d.Start.Position
			}
			s.at(p.Line, p.Column, p.Column+3, "a second document begins here", "a plan is one document; put the other one into a file of its own")
			return nil
		}
		body = d.Body
	}
	if body == nil {
		s.at(1, 1, 0, "the file is empty", "")
		return nil
	}
	l := &loader{source: s, anchors: map[string]*node{}, open: map[string]bool{}}
	return l.node(body, 0)
}

// acceptable refuses tokens that plans have no use for, before the parser spends time on them. tags are where tags are.
func (s *source) acceptable(tokens token.Tokens) (ok bool, tags []place) {
	keys := 0
	ok = true
	for _, t := range tokens {
		p := t.Position
		switch t.Type {
		case token.TagType:
			tags = append(tags, s.tag(t))
		case token.MappingKeyType:
			s.at(p.Line, p.Column, 0, "keys that begin with ? are not supported", "write key: value, or quote this text")
			ok = false
		case token.MappingValueType:
			if keys++; keys > maxKeys {
				s.at(p.Line, p.Column, 0, fmt.Sprintf("the file has more than %d keys", maxKeys), "keep bodies and data in files of their own")
				return false, nil
			}
		}
		if len(s.findings) > 50 {
			return false, nil
		}
	}
	if len(tokens) > maxNodes {
		s.add(diag.Finding{Message: fmt.Sprintf("the file has more than %d words of YAML", maxNodes), Hint: "keep bodies and data in files of their own"})
		return false, nil
	}
	return ok, tags
}

// tag refuses a tag. Most often it was meant as the beginning of an expression, as in !failed.
func (s *source) tag(t *token.Token) place {
	line, col := s.seek(t.Position.Line, t.Position.Column, t.Value)
	message := fmt.Sprintf("YAML reads %s as a tag, and tags are not supported", t.Value)
	rest := strings.TrimSpace(cutComment(s.from(line, col)))
	if before := s.before(line, col); strings.Count(before, "{")+strings.Count(before, "[") > strings.Count(before, "}")+strings.Count(before, "]") {
		if i := strings.IndexAny(rest, ",]}"); i > 0 {
			rest = rest[:i]
		}
	}
	if strings.HasPrefix(t.Value, "!!") {
		s.at(line, col, col+utf8.RuneCountInString(t.Value), message, "remove it")
		return place{line, col}
	}
	s.at(line, col, col+utf8.RuneCountInString(t.Value), message, "quote this text: "+quote(rest))
	return place{line, col}
}

// blockHeader matches the beginning of a literal or folded text.
var blockHeader = regexp.MustCompile(`^\s*[|>][-+0-9]*\s*$`)

// untagged is the text without its tags, so that the rest of the file can be looked at. What stands behind a tag is
// unknown, as the tag may belong to it: it becomes a word of the same width that the loader knows.
func (s *source) untagged(tags []place) string {
	lines := slices.Clone(s.lines)
	s.unknown = map[place]bool{}
	for _, at := range tags {
		line := []rune(lines[at.line-1])
		if at.col > len(line) {
			continue
		}
		end := at.col - 1
		for end < len(line) && line[end] != ' ' && !strings.ContainsRune(",]}", line[end]) {
			end++
		}
		rest := cutComment(string(line[end:]))
		fill := 'x'
		switch deeper, _ := s.deeper(at.line); {
		case strings.TrimSpace(rest) == "" && deeper > 0, blockHeader.MatchString(rest):
			fill = ' ' // what it belongs to is below it
		case strings.ContainsAny(rest, ",]}[{\"'"):
			s.unknown[at] = true
		default:
			end += len([]rune(strings.TrimRight(rest, " \t")))
			s.unknown[at] = true
		}
		for i := at.col - 1; i < end; i++ {
			line[i] = fill
		}
		lines[at.line-1] = string(line)
	}
	return strings.Join(lines, "\n")
}

// syntax words a fault that the parser found.
func (s *source) syntax(err error, tokens token.Tokens) {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil || e.GetToken().Position == nil {
		s.at(1, 1, 0, "not valid YAML", "")
		return
	}
	t := e.GetToken()
	line, col := t.Position.Line, max(t.Position.Column, 1)
	text := e.GetMessage()
	rest := cutComment(s.from(line, col))
	message, hint := "not valid YAML: "+text, ""
	var note string
	switch {
	case strings.Contains(text, "tab character"), strings.Contains(text, `'\t'`), strings.Contains(text, "'\t'"):
		message, hint = "a tab can't be used for indentation", "use spaces"
		// The parser points behind what it had read; the tab is in the indentation of the line.
		if before, _, ok := strings.Cut(s.line(line), "\t"); ok {
			col, rest = utf8.RuneCountInString(before)+1, ""
		}
	case strings.Contains(text, "mapping value is not allowed"):
		message = "unexpected colon"
		if i := colonIn(rest); i >= 0 {
			hint = "quote this text if the colon belongs to it: " + quote(strings.TrimSpace(rest))
			note = s.before(line, col) + quote(strings.TrimSpace(rest))
		} else if l, c := s.deeper(line); l > 0 {
			line, col = l, c
			rest = s.from(line, col)
			message, hint = "this line is indented too far", "begin it where the line above begins"
		}
	case strings.Contains(text, "could not find end character of"):
		message, hint = "the quote that opens here is never closed", "close it"
	case strings.Contains(s.line(line), "{{"):
		i := strings.Index(s.line(line), "{{")
		col = utf8.RuneCountInString(s.line(line)[:i]) + 1
		rest = cutComment(s.from(line, col))
		message, hint = "YAML takes {{ for the beginning of two mappings", "write ${...} for a value, or quote this text: "+quote(strings.TrimSpace(rest))
	case strings.Contains(text, "']'"), strings.Contains(text, "'}'"), strings.Contains(text, "flow map content"):
		message, hint = "unexpected text in a list or mapping", "separate values by commas, and quote text that holds brackets or commas"
		if c, value := unquotedBraces(s.line(line)); value != "" {
			col, rest = c, value
			message, hint = "within braces and brackets, ${...} has to stand in quotes", "quote this text: "+quote(value)
		} else if t := unclosed(tokens); t != nil {
			line, col = t.Position.Line, t.Position.Column
			rest = t.Value
			message, hint = "the bracket that opens here is never closed", "write ] behind the last item"
			if t.Type == token.MappingStartType {
				message, hint = "the brace that opens here is never closed", "write } behind the last value"
			}
		}
	case strings.Contains(text, "is a reserved character"):
		message = "text can't begin with " + firstRune(rest)
		hint = "quote this text: " + quote(strings.TrimSpace(rest))
	case strings.Contains(text, "document separator"):
		message = "the document ends within quoted text"
	case strings.Contains(text, "unknown escape character"):
		message, hint = "unknown escape in double quotes", `write \\ for a backslash, or use single quotes`
	case strings.Contains(text, "value is not allowed in this context"), strings.Contains(text, "non-map value"),
		strings.Contains(text, "unexpected"), strings.Contains(text, "could not find"):
		message, hint = "unexpected text here", "check the indentation, and quote text that holds special characters"
		switch start := s.valueStart(line); {
		case glued.MatchString(s.line(line)):
			hint = "write a space behind the colon"
		case start > 0 && start < col:
			value := strings.TrimSpace(cutComment(s.from(line, start)))
			col, rest = start, value
			hint = "quote all of this text: " + quote(value)
			if value[0] == '\'' {
				hint = "write '' for a quote within single quotes, or use double quotes"
			}
			message = "text goes on behind what YAML takes for the whole value"
		}
	}
	f := s.at(line, col, col+max(1, utf8.RuneCountInString(strings.TrimRight(rest, " \t"))), message, hint)
	if note != "" {
		f.Notes = append(f.Notes, note)
	}
}

// unquotedBraces finds a value in a flow mapping or list that has ${...} and no quotes, which YAML takes for a mapping within
// it. It returns the value and the column that it begins in; "" if there is none.
func unquotedBraces(line string) (col int, value string) {
	text := []rune(line)
	depth, start := 0, 0
	for i := 0; i < len(text); i++ {
		switch r := text[i]; {
		case (r == '"' || r == '\'') && i == start: // a value in quotes
			for i++; i < len(text) && text[i] != r; i++ {
			}
		case r == '$' && i+1 < len(text) && text[i+1] == '{' && depth > 0:
			end := i + 2
			for inner := 1; end < len(text) && (inner > 0 || !strings.ContainsRune(",]}", text[end])); end++ {
				switch {
				case text[end] == '{':
					inner++
				case text[end] == '}':
					inner--
				}
			}
			return start + 1, strings.TrimRight(string(text[start:end]), " ")
		case r == '{' || r == '[':
			depth++
			start = i + 1
		case r == '}' || r == ']':
			depth--
		case r == ',', r == ':' && i+1 < len(text) && text[i+1] == ' ':
			start = i + 1
		case r == ' ' && i == start:
			start++
		}
	}
	return 0, ""
}

// glued matches a key whose colon is not followed by a space.
var glued = regexp.MustCompile(`^[ -]*[A-Za-z_][A-Za-z0-9_-]*:[^\s/:]`)

// beginning matches what stands before the value on a line: dashes and a key.
var beginning = regexp.MustCompile(`^\s*(- +)*([A-Za-z_][A-Za-z0-9_-]*: +)?`)

// valueStart is the column in which the value of a line begins, 0 if it has none.
func (s *source) valueStart(line int) int {
	text := s.line(line)
	lead := beginning.FindString(text)
	if lead == text || strings.TrimSpace(lead) == "" {
		return 0
	}
	return utf8.RuneCountInString(lead) + 1
}

// unclosed returns the last bracket that opens and is never closed.
func unclosed(tokens token.Tokens) *token.Token {
	var open []*token.Token
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			open = append(open, t)
		case token.MappingEndType, token.SequenceEndType:
			open = open[:max(len(open)-1, 0)]
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[len(open)-1]
}

// deeper finds the next line with text if it has a key and is indented further than a line.
func (s *source) deeper(line int) (int, int) {
	indent := len(indentation(s.line(line)))
	for l := line + 1; l <= len(s.lines); l++ {
		text := s.line(l)
		if strings.TrimSpace(text) == "" {
			continue
		}
		if n := len(indentation(text)); n > indent && colonIn(text) >= 0 {
			return l, n + 1
		}
		break
	}
	return 0, 0
}

func firstRune(s string) string {
	r, w := utf8.DecodeRuneInString(s)
	if w == 0 {
		return "this"
	}
	return string(r)
}

// colonIn returns the index of a colon in text that YAML takes for the end of a key, or -1.
func colonIn(text string) int {
	for i := range len(text) {
		if text[i] == ':' && i > 0 && (i+1 == len(text) || text[i+1] == ' ') {
			return i
		}
	}
	return -1
}

// cutComment removes a comment at the end of a line of plain text.
func cutComment(line string) string {
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return strings.TrimRight(line[:i], " \t")
		}
	}
	return line
}

// quote writes text as a YAML scalar in quotes: double ones unless the text has some and no escape is needed.
func quote(text string) string {
	if strings.ContainsAny(text, `"\`) && !strings.Contains(text, "\n") {
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

// seek returns where first is written, at or near a place that the parser gave: tabs and multi-line text make it count
// wrong.
func (s *source) seek(line, col int, first string) (int, int) {
	if first == "" || strings.HasPrefix(s.from(line, col), first) {
		return line, max(col, 1)
	}
	for _, l := range []int{line, line - 1, line + 1, line - 2, line + 2} {
		text := s.line(l)
		from := 0
		if l == line {
			from = len(s.before(line, col))
		}
		i := strings.Index(text[from:], first)
		if i < 0 && l == line {
			from, i = 0, strings.Index(text, first)
		}
		if i >= 0 {
			return l, utf8.RuneCountInString(text[:from+i]) + 1
		}
	}
	return line, max(col, 1)
}
