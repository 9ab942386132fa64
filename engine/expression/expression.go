// Package expression is the language of plans: templates (${...} in strings), expectations on an answer, and assertions
// on cells. All three share the grammar of github.com/expr-lang/expr with unit literals added, and this is the only
// package that knows it.
//
// Expr's parser makes the tree; meaning is given here, node by node from a list of what is allowed. Anything else is
// refused with its place. That list is the sandbox: there is no way from an expression to the environment, to a file or
// to a loop without end. It also keeps calls free of allocations, and messages free of the words of a programming
// language.
//
// Everything that parses returns all faults it can find. Everything that was parsed is immutable and safe for
// concurrent use.
package expression

import "github.com/planrun/planrun/drivers"

// Error is one fault of an expression.
type Error struct {
	Offset, Length int    // in runes, within the text as given
	Message        string // lower case, no full stop, without the place
	Hint           string // what to write instead, if sure
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

// Root resolves what follows one of the names known before the load, such as env, vars, target or lab. path has the
// names after the root, as far as written. It returns the value (string, int64, float64, bool, nil, Missing,
// map[string]any, []any, or a Moment) and how many names of path led to it; the rest is looked up in the value. An error
// about one name of path is a *NameError.
//
// It is called once per reference, while parsing, and not at all for a reference that can't be reached, such as the
// right side of ?? where the left one has a value.
type Root func(path []string) (value any, used int, err error)

// Missing is what a Root gives for a value that is not there, where it knows more than that: the reason, as in
// "environment variable X is empty". To ?? it is nothing, as nil is.
type Missing string

// NameError says which name of a path a Root could not resolve.
type NameError struct {
	Index         int // in path; -1 is the root itself
	Message, Hint string
}

func (e *NameError) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

// Scope has the names that templates and expectations may use, besides iteration and user.
type Scope struct {
	Roots map[string]Root
	// Moment has names that are known only when the call is made; Lookup returns their values. Lookup is called from
	// the goroutine that makes the call.
	Moment []string
	Lookup func(name string, in *drivers.Input) (any, error)
	// Later has names that get a value only behind the place of the expression, and where.
	Later map[string]string
}
