package expression

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/planrun/planrun/engine/quantity"
)

const (
	// maxLength in bytes comes before everything else: a thousand nested parentheses are harmless, but expr's parser
	// takes seconds for twenty thousand.
	maxLength = 1 << 10
	maxNodes  = 300
)

// Expr has no literals with units. Each is replaced, before parsing, by an identifier of the same length in runes, so
// that every place stays what it is: a mark that nobody types, a rune that tells the literal, and padding. A literal
// with a unit has at least two runes.
const (
	mark    = 'ꓸ' // Lisu letter tone mya ti, a letter as far as expr knows
	counter = rune(0x4E00)
	padding = '_'
)

// source is the text of one expression.
type source struct {
	runes    []rune
	masked   []rune // runes with strings and comments blanked out
	literals []literal
	errs     []*Error
	// spans of nodes that were asked for: in a < b < c, b is in the tree twice, and what is within it twice as often
	// again.
	spans map[ast.Node]span
}

// literal is a number with a unit, or a faulty number that has been reported.
type literal struct {
	quantity.Value
	faulty bool
}

func (s *source) fail(at span, message, hint string) {
	s.errs = append(s.errs, &Error{Offset: at.from, Length: at.to - at.from, Message: message, Hint: hint})
}

// span is a part of a source, in runes.
type span struct{ from, to int }

// parse returns the tree of an expression, nil if there is none.
func parse(text string) (*source, ast.Node) {
	s := &source{runes: []rune(text)}
	all := span{0, len(s.runes)}
	switch {
	case strings.TrimSpace(text) == "":
		s.fail(all, "expected an expression", "")
		return s, nil
	case len(text) > maxLength:
		s.fail(span{0, 1}, "the expression is longer than "+strconv.Itoa(maxLength)+" bytes", "")
		return s, nil
	case !utf8.ValidString(text):
		s.fail(all, "the expression is not valid UTF-8", "")
		return s, nil
	}
	if i := slices.Index(s.runes, mark); i >= 0 {
		s.fail(span{i, i + 1}, "unexpected character", "")
		return s, nil
	}
	rewritten := s.rewrite()

	config := conf.CreateNew()
	config.MaxNodes = maxNodes
	config.DisableIfOperator = true
	for _, f := range builtin.Builtins {
		// As plain calls they have names of ours. The functions that take a predicate keep their own syntax.
		config.Disabled[f.Name] = true
	}
	tree, err := parser.ParseWithConfig(rewritten, config)
	if err != nil {
		// A faulty literal may well be why the rest can't be read.
		var e *file.Error
		if len(s.errs) == 0 && errors.As(err, &e) {
			s.syntax(e)
		}
		return s, nil
	}
	return s, tree.Node
}

// rewrite replaces literals with units, and blanks out what is no code.
func (s *source) rewrite() string {
	s.masked = append([]rune(nil), s.runes...)
	out := append([]rune(nil), s.runes...)
	at := func(i int) rune {
		if i < len(s.runes) {
			return s.runes[i]
		}
		return -1
	}
	blank := func(from, to int) int {
		for i := from; i < min(to, len(s.runes)); i++ {
			s.masked[i] = ' '
		}
		return min(to, len(s.runes))
	}
	for i := 0; i < len(s.runes); {
		switch r := s.runes[i]; {
		case r == '\'' || r == '"' || r == '`':
			j := i + 1
			for j < len(s.runes) && s.runes[j] != r {
				if s.runes[j] == '\\' && r != '`' {
					j++
				}
				j++
			}
			i = blank(i, j+1)
		case r == '/' && at(i+1) == '/':
			j := i
			for j < len(s.runes) && s.runes[j] != '\n' {
				j++
			}
			i = blank(i, j)
		case r == '/' && at(i+1) == '*':
			j := i + 2
			for j < len(s.runes) && !(s.runes[j] == '*' && at(j+1) == '/') {
				j++
			}
			i = blank(i, j+2)
		case identifierRune(r) && !asciiDigit(r):
			for i < len(s.runes) && identifierRune(s.runes[i]) {
				i++
			}
		case r == '.' && at(i+1) == '.':
			i += 2 // of a range
		case s.afterDot(i):
			j := i
			for j < len(s.runes) && (identifierRune(s.runes[j]) || s.runes[j] == '.') {
				j++
			}
			at := span{i, j}
			for at.from > 0 && identifierRune(s.runes[at.from-1]) {
				at.from--
			}
			if dottedPercentile.MatchString(s.textOf(at)) {
				s.fail(at, s.textOf(at)+" is no name", decimalPercentile(s.textOf(at)))
			} else {
				s.fail(span{i, j}, "expected a name after the dot", "write [0] for the first element of a list")
			}
			i = j
		case asciiDigit(r), r == '.' && asciiDigit(at(i+1)):
			i = s.literal(i, out)
		default:
			i++
		}
	}
	return string(out)
}

var dottedPercentile = regexp.MustCompile(`^p[0-9]{1,2}\.[0-9]+$`)

// decimalPercentile says how to write a percentile such as p99.9.
func decimalPercentile(text string) string {
	number := text[1:]
	name := "p" + strings.Replace(number, ".", "", 1)
	if _, long := longPercentiles[name]; long {
		return "write " + name + " or p(" + number + ")"
	}
	return "write p(" + number + ")"
}

// afterDot tells whether a number begins at i, dot included, where only the name of a member can stand.
func (s *source) afterDot(i int) bool {
	r := s.runes[i]
	if r == '.' && (i+1 == len(s.runes) || !asciiDigit(s.runes[i+1])) || r != '.' && !asciiDigit(r) {
		return false
	}
	if r == '.' && i > 0 && (identifierRune(s.runes[i-1]) || bracket(s.runes[i-1]) < 0) {
		return true
	}
	j := i - 1
	for j >= 0 && unicode.IsSpace(s.runes[j]) {
		j--
	}
	return j >= 0 && s.runes[j] == '.' && (j == 0 || s.runes[j-1] != '.')
}

// literal reads the number at i and returns where it ends.
func (s *source) literal(i int, out []rune) int {
	text := string(s.runes[i:])
	v, n, err := quantity.Scan(text)
	end := i + utf8.RuneCountInString(text[:n])
	if err != nil {
		if word := string(s.runes[i:end]); statusClass.MatchString(word) {
			err.Hint = "write " + strconv.Quote(word)
		}
		s.fail(span{i + err.Offset, i + err.Offset + err.Length}, err.Message, err.Hint)
	}
	if err == nil && v.Dim == quantity.Number || end-i < 2 {
		return end
	}
	out[i], out[i+1] = mark, counter+rune(len(s.literals))
	for j := i + 2; j < end; j++ {
		out[j] = padding
	}
	s.literals = append(s.literals, literal{v, err != nil})
	return end
}

// quantityOf returns the literal that an identifier stands for.
func (s *source) quantityOf(name string) (literal, bool) {
	r, n := utf8.DecodeRuneInString(name)
	if r != mark {
		return literal{}, false
	}
	r, _ = utf8.DecodeRuneInString(name[n:])
	if i := int(r - counter); i >= 0 && i < len(s.literals) {
		return s.literals[i], true
	}
	return literal{}, false
}

func asciiDigit(r rune) bool { return r >= '0' && r <= '9' }

func identifierRune(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// span returns where a node stands. Expr knows only one token of each.
func (s *source) span(n ast.Node) span {
	at, known := s.spans[n]
	if !known {
		at = s.widen(n)
		if s.spans == nil {
			s.spans = map[ast.Node]span{}
		}
		s.spans[n] = at
	}
	return at
}

// widen computes what span returns.
func (s *source) widen(n ast.Node) span {
	at := span{n.Location().From, n.Location().To}
	join := func(nodes ...ast.Node) {
		for _, n := range nodes {
			if n != nil {
				o := s.span(n)
				at = span{min(at.from, o.from), max(at.to, o.to)}
			}
		}
	}
	switch n := n.(type) {
	case *ast.UnaryNode:
		join(n.Node)
	case *ast.BinaryNode:
		join(n.Left, n.Right)
	case *ast.ChainNode:
		return s.span(n.Node)
	case *ast.MemberNode:
		join(n.Node, n.Property)
	case *ast.SliceNode:
		join(n.Node, n.From, n.To)
	case *ast.CallNode:
		at = s.opening(s.span(n.Callee))
		join(n.Arguments...)
	case *ast.BuiltinNode:
		at = s.opening(at)
		join(n.Arguments...)
	case *ast.PredicateNode:
		join(n.Node)
	case *ast.ConditionalNode:
		at = s.span(n.Cond)
		join(n.Exp1, n.Exp2)
	case *ast.ArrayNode:
		join(n.Nodes...)
	case *ast.MapNode:
		join(n.Pairs...)
	case *ast.PairNode:
		join(n.Key, n.Value)
	case *ast.SequenceNode:
		join(n.Nodes...)
	case *ast.VariableDeclaratorNode:
		join(n.Value, n.Expr)
	}
	return s.balance(at)
}

// opening widens the name of a function to its opening parenthesis, if it has one: in `x | f` it has none.
func (s *source) opening(at span) span {
	for i := at.to; i < len(s.masked); i++ {
		if s.masked[i] == '(' {
			return span{at.from, i + 1}
		}
		if !unicode.IsSpace(s.masked[i]) {
			break
		}
	}
	return at
}

// balance widens a span until all its brackets have their partners.
func (s *source) balance(at span) span {
	at.from, at.to = max(0, min(at.from, len(s.masked))), max(0, min(at.to, len(s.masked)))
	depth, least := 0, 0
	for _, r := range s.masked[at.from:at.to] {
		depth += bracket(r)
		least = min(least, depth)
	}
	for open := depth - least; open > 0 && at.to < len(s.masked); at.to++ {
		open += bracket(s.masked[at.to])
	}
	for ; least < 0 && at.from > 0; at.from-- {
		least += bracket(s.masked[at.from-1])
	}
	return at
}

func bracket(r rune) int {
	switch r {
	case '(', '[', '{':
		return 1
	case ')', ']', '}':
		return -1
	}
	return 0
}

// text is a node as written, on one line.
func (s *source) text(n ast.Node) string { return s.textOf(s.span(n)) }

func (s *source) textOf(at span) string {
	return strings.Join(strings.Fields(string(s.runes[at.from:at.to])), " ")
}

// end is the span just behind the last word, where something is missing.
func (s *source) end() span {
	n := len(s.runes)
	for n > 0 && unicode.IsSpace(s.runes[n-1]) {
		n--
	}
	return span{n, n}
}
