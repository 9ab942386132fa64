package sql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/planrun/planrun/drivers"
)

// bindings are the arguments of a call, as the plan gives them.
type bindings struct {
	dialect dialect
	given   bool
	// names are those of a mapping, in its order; nil for a list.
	names     []string
	templates []drivers.Template
	types     []temporal // none beyond its end has one
}

// typeOf is the type of binding i, if it has one of its own.
func (b *bindings) typeOf(i int) temporal {
	if i >= len(b.types) {
		return untyped
	}
	return b.types[i]
}

// statement is SQL text in its database's own form.
type statement struct {
	text string
	// order has, for each argument of text, the index of its binding.
	order []int
	// types has PostgreSQL's type of each argument, 0 where the server knows best; nil where it always does.
	types []uint32
	// opens says that text may begin a transaction; ends that it ends one and begins none; manual that from then on
	// every statement may begin one.
	opens, ends, manual bool
}

// flaw is a fault of a statement or of its arguments.
type flaw struct {
	path          []string // below the step's fields; empty for the statement's own field
	message, hint string
}

func (f flaw) Error() string {
	if f.hint == "" {
		return f.message
	}
	return f.message + ": " + f.hint
}

// compile brings text into the database's own form and matches its placeholders with the bindings. It finds every flaw.
func (b *bindings) compile(text string) (statement, []flaw) {
	var s statement
	var flaws []flaw
	var out strings.Builder
	used := make([]bool, len(b.templates))
	numbers := map[string]int{} // the number of a name, where placeholders are numbered
	unknown := map[string]bool{}
	highest, questions, foreign := 0, 0, ""
	var first, last string // words
	declares, starts := false, true

	scan := scanner{dialect: b.dialect, rest: text}
	for t, ok := scan.next(); ok; t, ok = scan.next() {
		switch t.kind {
		case named:
			i := slices.Index(b.names, t.text[1:])
			switch {
			case i >= 0:
				used[i] = true
				out.WriteString(b.place(t.text, i, &s, numbers))
				continue
			case b.names == nil && b.dialect == sqlite:
				// SQLite binds :name by itself, but a list has no names.
				fallthrough
			default:
				if !unknown[t.text] {
					unknown[t.text] = true
					flaws = append(flaws, b.unknown(t.text[1:]))
				}
			}
		case numbered:
			n, err := strconv.Atoi(strings.TrimLeft(t.text, "$?@pP"))
			if err != nil || n == 0 || n > 65535 {
				flaws = append(flaws, flaw{message: fmt.Sprintf("%s is no placeholder: they count from 1", t.text)})
				break
			}
			highest = max(highest, n)
			foreign = t.text
		case question:
			if b.dialect == mysql && b.names == nil {
				t.text = b.typeOf(questions).marked(t.text)
			}
			questions++
			foreign = "?"
		case word:
			upper := strings.ToUpper(t.text)
			if first == "" {
				first = upper
			}
			s.opens = s.opens || b.dialect.opens(upper, last, starts)
			s.manual = s.manual || upper == "AUTOCOMMIT" || upper == "IMPLICIT_TRANSACTIONS"
			declares = declares || upper == "DECLARE"
			last, starts = upper, false
		case other:
			starts = starts || t.text == ";"
		}
		out.WriteString(t.text)
	}
	s.text = out.String()
	s.ends = (first == "COMMIT" || first == "ROLLBACK" || first == "END" || first == "ABORT") && !s.opens && last != "CHAIN"

	// T-SQL may declare a variable of that name itself.
	own := foreign != "" && !(b.dialect == sqlserver && declares)
	switch {
	case b.names != nil:
		if own {
			flaws = append(flaws, flaw{message: fmt.Sprintf("the query has the placeholder %s, but args gives names", foreign),
				hint: "write :name in the query, or make args a list"})
		}
		for i, n := range b.names {
			if !used[i] {
				f := flaw{path: []string{"args", n}, message: fmt.Sprintf("the query has no :%s", n)}
				if len(unknown) == 0 {
					f.hint = "use it or leave it out"
				}
				flaws = append(flaws, f)
			}
		}
	case own && !b.given:
		flaws = append(flaws, flaw{message: fmt.Sprintf("the query has the placeholder %s, but there are no args", foreign)})
	case own || b.given && len(b.templates) > 0:
		want := max(highest, questions)
		if got := len(b.templates); got != want && (len(unknown) == 0 || own) && !(b.dialect == sqlserver && declares) {
			f := flaw{path: []string{"args"}, message: fmt.Sprintf("the query takes %s, args has %d", count(want, "argument"), got)}
			if want == 0 {
				f.hint = fmt.Sprintf("mark them in the query with %s, as %s does", b.dialect.placeholders(), b.dialect)
			}
			flaws = append(flaws, f)
		}
	}
	if b.names == nil {
		for i := range b.templates {
			s.order = append(s.order, i)
		}
	}
	if b.dialect == postgres && slices.ContainsFunc(b.types, func(k temporal) bool { return k != untyped }) {
		for _, i := range s.order {
			s.types = append(s.types, temporals[b.typeOf(i)].oid)
		}
	}
	return s, flaws
}

// opens tells whether a word in capitals begins a transaction. last is the word before it; starts says that it is the
// first of a statement. BEGIN alone may also begin a block, in procedures and in all of T-SQL.
func (d dialect) opens(word, last string, starts bool) bool {
	switch word {
	case "TRAN", "TRANSACTION":
		return last == "START" || d == sqlserver && (last == "BEGIN" || last == "DISTRIBUTED")
	case "BEGIN":
		return starts && d != sqlserver
	case "SAVEPOINT":
		return starts && d == sqlite
	}
	return false
}

// place returns the database's own placeholder for binding i.
func (b *bindings) place(name string, i int, s *statement, numbers map[string]int) string {
	if b.dialect == mysql || b.dialect == sqlite {
		s.order = append(s.order, i)
		if b.dialect == mysql {
			return b.typeOf(i).marked("?")
		}
		return "?"
	}
	n := numbers[name]
	if n == 0 {
		s.order = append(s.order, i)
		n = len(s.order)
		numbers[name] = n
	}
	if b.dialect == sqlserver {
		return "@p" + strconv.Itoa(n)
	}
	return "$" + strconv.Itoa(n)
}

func (b *bindings) unknown(name string) flaw {
	f := flaw{message: fmt.Sprintf("the query names :%s, which args doesn't have", name)}
	switch {
	case !b.given:
		f.message = fmt.Sprintf("the query names :%s, but there are no args", name)
	case b.names == nil:
		f.message = fmt.Sprintf("the query names :%s, but args is a list", name)
		f.hint = fmt.Sprintf("name the arguments, as in args: {%s: ...}", name)
	default:
		if near := nearest(name, b.names); near != "" {
			f.hint = fmt.Sprintf("did you mean :%s?", near)
		} else if b.dialect == postgres {
			f.hint = "where the colon is not a placeholder, as in a[1:n], put a space after it"
		}
	}
	return f
}

// nearest returns the candidate that name is most likely a misspelling of, or "".
func nearest(name string, candidates []string) string {
	best, least := "", 1+len(name)/3
	for _, c := range candidates {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(c)); d <= least && (best == "" || d < least) {
			best, least = c, d
		}
	}
	return best
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
