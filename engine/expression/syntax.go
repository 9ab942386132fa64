package expression

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/file"

	"github.com/planrun/planrun/engine/quantity"
)

var unexpectedToken = regexp.MustCompile(`^unexpected token (Identifier|Number|String|Bytes|Operator|Bracket|EOF)`)

// syntax says in words of a plan what expr's parser could not read.
func (s *source) syntax(e *file.Error) {
	at := span{min(max(0, e.From), len(s.runes)), min(max(0, e.To), len(s.runes))}
	if at.to <= at.from {
		at.to = min(at.from+1, len(s.runes))
	}
	if m := unexpectedToken.FindStringSubmatch(e.Message); m != nil {
		if m[1] == "EOF" {
			s.tooShort()
			return
		}
		s.unexpected(at, m[1])
		return
	}
	for _, p := range phrases {
		if strings.HasPrefix(e.Message, p.prefix) {
			s.fail(at, p.message, p.hint)
			return
		}
	}
	s.fail(at, "can't read the expression from here on", "")
}

// phrases are expr's messages by their beginnings, in our words.
var phrases = []struct{ prefix, message, hint string }{
	{"unexpected end of expression", "the expression ends too early", ""},
	{"literal not terminated", "the text in quotes has no end", ""},
	{"unclosed comment", "the comment has no end", ""},
	{"invalid char escape", "unknown escape sequence", `write \\ for a backslash`},
	{"unable to unescape", "unknown escape sequence", `write \\ for a backslash`},
	{"unrecognized character", "unexpected character", ""},
	{"bad number syntax", "can't read this number", ""},
	{"invalid integer literal", "the number is too large", ""},
	{"integer literal is too large", "the number is too large", ""},
	{"float literal is too large", "the number is too large", ""},
	{"invalid float literal", "can't read this number", ""},
	{"compilation failed: expression exceeds maximum", "the expression is too long", ""},
	{"Operator (", "?? can't stand beside another operator", "put the part with ?? in parentheses"},
	{"expected name", "expected a name after the dot", ""},
	{"expected at least", "arguments are missing", ""},
	{"wrap predicate", "unexpected ;", ""},
	{"a map key must be", "expected a key: a name, a number or text in quotes", ""},
}

// tooShort says what an expression that ends too early lacks.
func (s *source) tooShort() {
	var open []int
	for i, r := range s.masked {
		switch bracket(r) {
		case 1:
			open = append(open, i)
		case -1:
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		}
	}
	if len(open) > 0 {
		i := open[len(open)-1]
		s.fail(span{i, i + 1}, strconv.Quote(string(s.runes[i]))+" has no partner", "")
		return
	}
	end, hint := s.end(), ""
	if end.from > 0 && s.masked[end.from-1] == '%' {
		if n := s.before(end.from - 1); n.from < n.to && asciiDigit(s.runes[n.from]) {
			hint = "write " + s.textOf(n) + "% without a space"
		}
	}
	s.fail(end, "the expression ends too early", hint)
}

// unexpected says what is wrong with a token where none of its kind can be.
func (s *source) unexpected(at span, kind string) {
	word := s.textOf(at)
	before := s.before(at.from)
	switch {
	case word == "=":
		s.fail(at, `"=" does not compare`, "write ==")
		return
	case kind == "Identifier" && at.from > before.to && before.from < before.to && asciiDigit(s.runes[before.from]):
		glued := string(s.runes[before.from:before.to]) + word
		if _, err := quantity.Parse(glued); err == nil {
			s.fail(span{before.from, at.to}, "unexpected space in "+s.textOf(span{before.from, at.to}), "write "+glued+" without a space")
			return
		} else if e := (*quantity.Error)(nil); errors.As(err, &e) && e.Hint != "" {
			s.fail(span{before.from, at.to}, "unexpected space in "+s.textOf(span{before.from, at.to}), e.Hint)
			return
		}
	case kind == "Operator" && word == "!" || word == "not":
		s.fail(at, "unexpected "+strconv.Quote(word), "write != to compare, or put the negation in front")
		return
	case word == ")" || word == "]" || word == "}":
		s.fail(at, "unexpected "+strconv.Quote(word), "")
		return
	}
	hint := ""
	switch strings.ToLower(word) {
	case "&":
		hint = "write and"
	case "between":
		hint = "write x >= 200 and x <= 299, with what is compared for x"
	case "for":
		hint = "write assert: and the condition, and below it window: and how long, such as 10s"
	case "is", "equals", "eq":
		hint = "write =="
	case "ne":
		hint = "write !="
	case "lt":
		hint = "write <"
	case "gt":
		hint = "write >"
	case "le", "lte":
		hint = "write <="
	case "ge", "gte":
		hint = "write >="
	case "and", "or", "not":
		if word != strings.ToLower(word) {
			hint = "write " + strings.ToLower(word)
		}
	}
	s.fail(at, "unexpected "+strconv.Quote(shorten(word, 40)), hint)
}

// before is the word that ends before i, spaces left out.
func (s *source) before(i int) span {
	for i > 0 && s.masked[i-1] == ' ' {
		i--
	}
	j := i
	for j > 0 && (identifierRune(s.masked[j-1]) || s.masked[j-1] == '.') {
		j--
	}
	return span{j, i}
}

// shorten cuts text to n runes.
func shorten(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-3]) + "..."
	}
	return text
}
