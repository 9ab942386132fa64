package postgres

import (
	"strconv"
	"strings"
)

// token is a piece of SQL that means something: no space, no comment.
type token struct {
	kind tokenKind
	text string // as written
	from int    // offset in the SQL
}

type tokenKind uint8

const (
	word      tokenKind = iota // identifier or keyword, quoted or not
	number                     // unsigned
	literal                    // a string
	parameter                  // $1
	symbol                     // one character, or an operator
)

// is tells whether a token is a keyword or symbol, given in upper case.
func (t token) is(text string) bool {
	return t.kind != literal && strings.EqualFold(t.text, text)
}

// name is a token as the name of a column or table: unquoted, in lower case unless it was quoted.
func (t token) name() string {
	if len(t.text) >= 2 && t.text[0] == '"' {
		return strings.ReplaceAll(t.text[1:len(t.text)-1], `""`, `"`)
	}
	return strings.ToLower(t.text)
}

// index is the number of a parameter, from 1; 0 if it is none that PostgreSQL knows.
func (t token) index() int {
	n, err := strconv.Atoi(t.text[1:])
	if err != nil || n < 1 || n > 65535 {
		return 0
	}
	return n
}

// operators of more than one character, longer ones first.
var operators = []string{"->>", "::", "<=", ">=", "<>", "!=", "||", "->", "=="}

// scan cuts SQL into tokens. It takes whatever it is given: what is not terminated goes to the end.
// See https://www.postgresql.org/docs/current/sql-syntax-lexical.html.
func scan(sql string) []token {
	var tokens []token
	for i := 0; i < len(sql); {
		from := i
		kind := symbol
		switch c := sql[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			i++
			continue
		case strings.HasPrefix(sql[i:], "--"):
			if n := strings.IndexByte(sql[i:], '\n'); n >= 0 {
				i += n + 1
			} else {
				i = len(sql)
			}
			continue
		case strings.HasPrefix(sql[i:], "/*"):
			i = afterComment(sql, i)
			continue
		case c == '\'':
			kind = literal
			i = afterQuoted(sql, i, '\'')
		case (c == 'x' || c == 'X') && i+1 < len(sql) && sql[i+1] == '\'':
			kind = literal
			i = afterQuoted(sql, i+1, '\'')
		case c == '"':
			kind = word
			i = afterQuoted(sql, i, '"')
		case c == '$' && i+1 < len(sql) && isDigit(sql[i+1]):
			kind = parameter
			for i++; i < len(sql) && isDigit(sql[i]); i++ {
			}
		case isDigit(c) || c == '.' && i+1 < len(sql) && isDigit(sql[i+1]):
			kind = number
			for i++; i < len(sql) && (isLetter(sql[i]) || isDigit(sql[i]) || sql[i] == '.' ||
				(sql[i] == '+' || sql[i] == '-') && (sql[i-1] == 'e' || sql[i-1] == 'E')); i++ {
			}
		case isLetter(c):
			kind = word
			for i++; i < len(sql) && (isLetter(sql[i]) || isDigit(sql[i]) || sql[i] == '$'); i++ {
			}
		default:
			i++
			for _, o := range operators {
				if strings.HasPrefix(sql[from:], o) {
					i = from + len(o)
					break
				}
			}
		}
		tokens = append(tokens, token{kind, sql[from:i], from})
	}
	return tokens
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= 0x80
}

// afterQuoted is the offset behind what is quoted from i on. A quote is doubled within.
func afterQuoted(sql string, i int, quote byte) int {
	for i++; i < len(sql); i++ {
		if sql[i] != quote {
			continue
		}
		if i+1 < len(sql) && sql[i+1] == quote {
			i++
			continue
		}
		return i + 1
	}
	return len(sql)
}

// afterComment is the offset behind the comment that begins at i. Comments nest.
func afterComment(sql string, i int) int {
	depth := 0
	for i < len(sql) {
		switch {
		case strings.HasPrefix(sql[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(sql[i:], "*/"):
			depth--
			i += 2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return len(sql)
}

// split cuts the tokens of several statements apart, at the semicolons. Empty statements are left out.
func split(tokens []token) [][]token {
	var all [][]token
	first := 0
	for i := 0; i <= len(tokens); i++ {
		if i < len(tokens) && !tokens[i].is(";") {
			continue
		}
		if i > first {
			all = append(all, tokens[first:i])
		}
		first = i + 1
	}
	return all
}

// translate writes a statement of PostgreSQL as one of SQLite: parameters as ?1, casts as CAST(x AS type).
func translate(tokens []token) string {
	var out []string
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch {
		case t.kind == parameter:
			out = append(out, "?"+t.text[1:])
		case t.is("::") && len(out) > 0 && i+1 < len(tokens):
			// What is cast is one token, or what stands in parentheses with the function's name in front of it.
			from := len(out) - 1
			if out[from] == ")" {
				for depth := 0; from >= 0; from-- {
					if out[from] == ")" {
						depth++
					} else if out[from] == "(" {
						if depth--; depth == 0 {
							break
						}
					}
				}
				from = max(from, 0)
				if from > 0 && isLetter(out[from-1][0]) && !reserved[strings.ToUpper(out[from-1])] {
					from--
				}
			}
			for from >= 2 && out[from-1] == "." {
				from -= 2
			}
			operand := strings.Join(out[from:], " ")
			i++
			kind := typeByName(tokens[i].name())
			if i+1 < len(tokens) && tokens[i].is("DOUBLE") && tokens[i+1].is("PRECISION") {
				i++
			}
			if i+1 < len(tokens) && tokens[i+1].is("(") { // varchar(20)
				for i++; i < len(tokens) && !tokens[i].is(")"); i++ {
				}
			}
			out = append(out[:from], "CAST("+operand+" AS "+kind.affinity()+")")
		case t.is("ILIKE"):
			out = append(out, "LIKE") // which does not mind case in SQLite
		case tokens[0].is("CREATE") && (t.is("SERIAL") || t.is("BIGSERIAL")):
			out = append(out, "INTEGER")
		default:
			out = append(out, t.text)
		}
	}
	return strings.Join(out, " ")
}

// reserved words that may stand in front of a parenthesis without calling a function.
var reserved = map[string]bool{
	"SELECT": true, "WHERE": true, "AND": true, "OR": true, "NOT": true, "IN": true, "VALUES": true, "FROM": true,
	"ON": true, "BY": true, "THEN": true, "ELSE": true, "WHEN": true, "CASE": true, "AS": true, "SET": true,
	"RETURNING": true, "LIMIT": true, "OFFSET": true, "BETWEEN": true, "LIKE": true, "IS": true, "HAVING": true,
}
