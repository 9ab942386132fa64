package sql

import "strings"

// tokenKind is what a piece of SQL text is, as far as finding placeholders needs it.
type tokenKind uint8

const (
	other    tokenKind = iota // operators, spaces, numbers: anything that binds nothing
	opaque                    // a string, quoted name, comment: nothing in it is a placeholder
	word                      // a keyword or name
	named                     // :name
	numbered                  // $1, @p1, ?1: a placeholder with a number
	question                  // ?
)

type token struct {
	kind tokenKind
	text string
}

// scanner cuts SQL text into tokens that, put together, are the text again. It knows just enough of each dialect's
// lexical rules to tell what is a placeholder; it accepts any text. Sources: PostgreSQL manual 4.1 "Lexical Structure",
// MySQL manual 11.1 and 11.7, Transact-SQL reference "Comments" and "Database Identifiers", SQLite "SQL As Understood".
type scanner struct {
	dialect dialect
	rest    string
}

// next returns the next token; false at the end of the text.
func (s *scanner) next() (token, bool) {
	if s.rest == "" {
		return token{}, false
	}
	kind, n := s.measure(s.rest)
	t := token{kind, s.rest[:n]}
	s.rest = s.rest[n:]
	return t, true
}

// measure returns the kind and length of the token that t, which is not empty, begins with.
func (s *scanner) measure(t string) (tokenKind, int) {
	d := s.dialect
	switch c := t[0]; {
	case c == '\'':
		return opaque, quoted(t, 0, '\'', d == mysql)
	case c == '"':
		return opaque, quoted(t, 0, '"', d == mysql)
	case c == '`' && (d == mysql || d == sqlite):
		return opaque, quoted(t, 0, '`', false)
	case c == '[' && (d == sqlserver || d == sqlite):
		return opaque, quoted(t, 0, ']', false)
	case strings.HasPrefix(t, "--") && (d != mysql || len(t) == 2 || t[2] <= ' '), c == '#' && d == mysql:
		if i := strings.IndexByte(t, '\n'); i >= 0 {
			return opaque, i + 1
		}
		return opaque, len(t)
	case strings.HasPrefix(t, "/*"):
		return opaque, comment(t, d == postgres || d == sqlserver)
	case c == '$' && d == postgres:
		if n := digits(t[1:]); n > 0 {
			return numbered, 1 + n
		}
		if n := dollarQuoted(t); n > 0 {
			return opaque, n
		}
		return other, 1
	case c == '?' && d != sqlserver && d != postgres:
		if n := digits(t[1:]); n > 0 && d == sqlite {
			return numbered, 1 + n
		}
		return question, 1
	case c == '$' && d == sqlite && digits(t[1:]) > 0:
		return numbered, 1 + digits(t[1:])
	case c == '@' && d == sqlserver && len(t) > 2 && t[1]|0x20 == 'p' && digits(t[2:]) > 0:
		n := 2 + digits(t[2:])
		if n < len(t) && inName(t[n]) {
			return word, name(t[1:]) + 1
		}
		return numbered, n
	case c == ':':
		if strings.HasPrefix(t, "::") || strings.HasPrefix(t, ":=") {
			return other, 2
		}
		if len(t) > 1 && startsName(t[1]) && t[1] < 0x80 {
			return named, 1 + name(t[1:])
		}
		return other, 1
	case c == '@':
		return word, 1 + name(t[1:])
	case startsName(c):
		n := name(t)
		// E'...' is the one PostgreSQL string in which a backslash hides a quote. The other prefixes (B, N, U&, X)
		// leave the string that follows as it is.
		if d == postgres && n == 1 && c|0x20 == 'e' && len(t) > 1 && t[1] == '\'' {
			return opaque, quoted(t, 1, '\'', true)
		}
		return word, n
	case c >= '0' && c <= '9':
		// Letters and digits that follow belong to the number (0x1F, 1e5), so that they are not taken for a name.
		n := 1
		for n < len(t) && inName(t[n]) {
			n++
		}
		return other, n
	}
	return other, 1
}

// quoted returns the length of the quoted piece whose opening quote is at t[at]. A doubled closing quote, or one after
// a backslash if there is an escape, stands for itself. An unclosed piece goes to the end.
func quoted(t string, at int, end byte, escape bool) int {
	for i := at + 1; i < len(t); i++ {
		switch {
		case escape && t[i] == '\\':
			i++
		case t[i] == end:
			if i+1 < len(t) && t[i+1] == end {
				i++
				continue
			}
			return i + 1
		}
	}
	return len(t)
}

func comment(t string, nests bool) int {
	depth := 1
	for i := 2; i < len(t); i++ {
		switch {
		case strings.HasPrefix(t[i:], "*/"):
			i++
			if depth--; depth == 0 {
				return i + 1
			}
		case nests && strings.HasPrefix(t[i:], "/*"):
			i++
			depth++
		}
	}
	return len(t)
}

// dollarQuoted returns the length of a $tag$...$tag$ string, 0 if t doesn't begin with one.
func dollarQuoted(t string) int {
	n := 1
	if n < len(t) && startsName(t[n]) {
		for n < len(t) && inName(t[n]) && t[n] != '$' {
			n++
		}
	}
	if n >= len(t) || t[n] != '$' {
		return 0
	}
	tag := t[:n+1]
	if i := strings.Index(t[n+1:], tag); i >= 0 {
		return n + 1 + i + len(tag)
	}
	return len(t)
}

func digits(t string) int {
	n := 0
	for n < len(t) && t[n] >= '0' && t[n] <= '9' {
		n++
	}
	return n
}

// name returns how many bytes at the start of t may be in a name.
func name(t string) int {
	n := 0
	for n < len(t) && inName(t[n]) {
		n++
	}
	return n
}

// startsName takes every byte above ASCII for a letter, as the databases' own scanners do.
func startsName(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

// inName holds for $ too: it may be inside a name, which keeps the $1 in a name like t$1 from being a placeholder.
func inName(c byte) bool { return startsName(c) || c == '$' || c >= '0' && c <= '9' }
