package plan

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// names are the names of a plan that addresses are made of. One name stands for one kind of thing, as the parts of an
// address come in any order.
type names struct {
	kinds map[string]expression.Kind
	lies  map[[2]string]bool // {inner, outer}
	first map[string]diag.Place
	all   []string
	vars  expression.Root
}

// Kind implements expression.Names.
func (n *names) Kind(name string) (expression.Kind, bool) { k, ok := n.kinds[name]; return k, ok }

// Within implements expression.Names.
func (n *names) Within(inner, outer string) bool { return n.lies[[2]string{inner, outer}] }

// All implements expression.Names.
func (n *names) All() []string { return n.all }

// Root implements expression.Names.
func (n *names) Root(name string) expression.Root {
	if name == "vars" {
		return n.vars
	}
	return nil
}

// declare checks a name and notes what it stands for. n is where it is written, or where it comes from when it is not
// written.
func (b *binder) declare(n *node, name string, kind expression.Kind) bool {
	if !b.identifier(n, name, kind.String()) {
		return false
	}
	known, ok := b.names.kinds[name]
	switch {
	case !ok:
		b.names.kinds[name], b.names.first[name] = kind, b.place(n)
		b.names.all = append(b.names.all, name)
	case known != kind:
		b.on(n, "give one of them another name", "%s is the name of a %s already", name, known).Notes = []string{
			"at " + b.names.first[name].String(),
		}
		return false
	}
	return true
}

// identifier checks that a name can be used in expressions.
func (b *binder) identifier(n *node, name, what string) bool {
	if !identifier.MatchString(name) {
		hint := "use letters, digits and _, beginning with a letter"
		if s := slug(name); s != "" && expression.Reserved(s) == "" {
			hint = "write " + s
			if what == "scenario" || what == "phase" {
				hint += ", with title: " + quoteIfNeeded(name) + " for people"
			}
		}
		b.on(n, hint, "%q can't be the name of %s", name, article(what))
		return false
	}
	if why := expression.Reserved(name); why != "" {
		b.on(n, "choose another name", "%q can't be the name of %s: %s", name, article(what), why)
		return false
	}
	return true
}

// article puts a or an in front of a word.
func article(what string) string {
	if strings.ContainsRune("aeiou", rune(what[0])) {
		return "an " + what
	}
	return "a " + what
}

// slug makes an identifier of any text; "" if nothing is left of it.
func slug(text string) string {
	var s strings.Builder
	for _, r := range text {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			if s.Len() == 0 && unicode.IsDigit(r) {
				s.WriteByte('_')
			}
			s.WriteRune(r)
		case s.Len() > 0 && !strings.HasSuffix(s.String(), "_"):
			s.WriteByte('_')
		}
	}
	return strings.TrimRight(s.String(), "_")
}

// quoteIfNeeded writes text as a YAML scalar.
func quoteIfNeeded(text string) string {
	if strings.ContainsAny(text, ":#{}[],&*!|>'\"%@`") || strings.TrimSpace(text) != text {
		return quote(text)
	}
	return text
}

// nearest is the hint for a name that there is not: the known one that was most likely meant, behind what is written before it,
// or else what is said otherwise.
func nearest(name, before string, known []string, otherwise string) string {
	if near := diag.Suggest(name, known); near != "" {
		return "did you mean " + before + near + "?"
	}
	return otherwise
}
