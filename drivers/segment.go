package drivers

// Segmented is a Template that can tell its text from what is put in for it, as in "${target.api}/users/${iteration}".
// A driver uses it where both are treated differently: the host of a URL has to be known before the load, and what
// is put into a path is escaped.
type Segmented interface {
	Template
	// Segments returns the parts in order. A part is text of the plan, or known before the load, if Constant says so.
	// A template without text around its only ${...} has one part.
	Segments() []Template
}

// Segments returns the parts of a template that is Segmented, and otherwise the template as its only part.
func Segments(t Template) []Template {
	if s, ok := t.(Segmented); ok {
		return s.Segments()
	}
	return []Template{t}
}
