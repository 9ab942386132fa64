package plan

import "github.com/planrun/planrun/drivers"

// Field is one key of a plan. The decoder, schema.json and the reference are made from the same fields: those of this
// package, and those that drivers list for their steps.
type Field struct {
	drivers.Field
	// Keys are the keys of a Group, or of the value of an OneOf.
	Keys []Field
	// Item is what each value of a Named is.
	Item *Field
	// Exactly lists keys of a Group of which one has to be there.
	Exactly []string
	// Alone says that a key of a OneOf needs no value.
	Alone bool
	// Required says that the mapping makes no sense without the key.
	Required bool
}

// Kinds of values that only plans have, beside those of drivers.
const (
	CountKind      drivers.Kind = 64 + iota // a whole number, at least 1
	RateKind                                // a number of iterations per second, minute or hour
	SpeedKind                               // a number of bytes per second
	ShareKind                               // a percentage
	SpanKind                                // a duration, or two with .. between them
	WarmupKind                              // a number of iterations, or a duration
	NameKind                                // an identifier
	ExpressionKind                          // one expression
	CaptureKind                             // a mapping of names to expressions; Keys are those of the long form
	TreeFileKind                            // the path of a file that has a Tree
	TagsKind                                // a word or a list of them
	MatrixKind                              // a mapping of names to lists of values
	DataTypesKind                           // a mapping of columns to types
	ExpectsKind                             // an expression or a list of them
	AssertsKind                             // an assertion or a list of them; Keys are those of the long form
	NamedKind                               // a mapping of names to values of Item
	OneOfKind                               // a mapping of one of Keys to its value, or that key alone
	SequenceKind                            // a list of Item
	VarsKind                                // a mapping of names to Scalar
	TextMapKind                             // a mapping of names to Text
)

// own makes fields of those of a driver. What may be any YAML may stand in a file of its own as well.
func own(fields []drivers.Field) []Field {
	var out []Field
	for _, f := range fields {
		out = append(out, Field{Field: f, Keys: own(f.Fields)})
		if f.Kind == drivers.Tree {
			file := entry(f.Key+"_file", TreeFileKind, f.Title+" in a file", "A file of JSON or YAML with what `"+f.Key+"` would be. `${...}` works in it too.", f.Key+".json")
			out = append(out, file)
		}
	}
	return out
}

// find returns the field of a key, nil if there is none.
func find(fields []Field, key string) *Field {
	for i := range fields {
		if fields[i].Key == key {
			return &fields[i]
		}
	}
	return nil
}

// keysOf lists the keys of fields.
func keysOf(fields []Field) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.Key
	}
	return out
}

// mainOf returns the field that a string fills, nil if there is none.
func mainOf(fields []Field) *Field {
	for i := range fields {
		if fields[i].Main {
			return &fields[i]
		}
	}
	return nil
}

// Fields are the keys of a plan whose steps may have those drivers, for a reference of the format. sinks are the kinds of
// reports.
func Fields(known map[string]drivers.Driver, sinks []string) []Field {
	return newFormat(known, sinks).plan
}
