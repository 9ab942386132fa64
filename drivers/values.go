package drivers

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// Values are the fields of a step, or of a group of it, by key. Keys that the plan does not have are absent.
type Values struct {
	path   []string
	fields map[string]Value
}

// NewValues makes Values of what was decoded.
func NewValues(fields map[string]Value) Values { return Values{fields: fields} }

// Has tells whether the plan has the key.
func (v Values) Has(key string) bool { _, ok := v.fields[key]; return ok }

// Get returns the value of a key and whether the plan has it.
func (v Values) Get(key string) (Value, bool) { f, ok := v.fields[key]; return f, ok }

// Template returns the template of a Text, URL or Scalar, or nil.
func (v Values) Template(key string) Template { return v.fields[key].Template }

// Fixed returns a Text that must not depend on the moment of the call; "" when the plan does not have it.
func (v Values) Fixed(key string) (string, error) {
	t := v.fields[key].Template
	if t == nil {
		return "", nil
	}
	c, ok := t.Constant()
	if !ok {
		return "", v.Errorf(key, "%s must be known before the load: it can't depend on the iteration or the user", key)
	}
	if c == nil {
		return "", nil
	}
	if s, ok := c.(string); ok {
		return s, nil
	}
	return fmt.Sprint(c), nil
}

// Bool returns a Bool, or otherwise.
func (v Values) Bool(key string, otherwise bool) bool {
	if f, ok := v.fields[key]; ok {
		return f.Bool
	}
	return otherwise
}

// Int returns an Int, or otherwise.
func (v Values) Int(key string, otherwise int64) int64 {
	if f, ok := v.fields[key]; ok {
		return f.Int
	}
	return otherwise
}

// Duration returns a Duration, or otherwise.
func (v Values) Duration(key string, otherwise time.Duration) time.Duration {
	return time.Duration(v.Int(key, int64(otherwise)))
}

// Choice returns a Choice, or otherwise. It also returns a File's path.
func (v Values) Choice(key, otherwise string) string {
	if f, ok := v.fields[key]; ok {
		return f.String
	}
	return otherwise
}

// Entries returns the entries of a Texts, an Args given by name, a Group or Groups.
func (v Values) Entries(key string) []Entry { return v.fields[key].Map }

// Group returns the fields of a Group, or the groups of Groups by name; empty when the plan does not have it.
func (v Values) Group(key string) Values {
	g := Values{path: append(v.path[:len(v.path):len(v.path)], key), fields: map[string]Value{}}
	for _, e := range v.fields[key].Map {
		g.fields[e.Key] = e.Value
	}
	return g
}

// Errorf makes the error of one field. key may go deeper with further keys or list indexes, as in "headers", "Accept".
func (v Values) Errorf(key, format string, args ...any) *FieldError {
	return &FieldError{Path: append(v.path[:len(v.path):len(v.path)], key), Message: fmt.Sprintf(format, args...)}
}

// FieldError is a fault of one field of a step.
type FieldError struct {
	Path    []string // keys and list indexes from the step's own fields down
	Message string   // lower case, no full stop, without the place
	Hint    string   // what to write instead, if sure
}

func (e *FieldError) Error() string {
	s := strings.Join(e.Path, ".") + ": " + e.Message
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// At appends further keys or list indexes to the error's path.
func (e *FieldError) At(path ...string) *FieldError { e.Path = append(e.Path, path...); return e }

// WithHint says what to write instead.
func (e *FieldError) WithHint(format string, args ...any) *FieldError {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// FieldErrors are all faults of a step.
type FieldErrors []*FieldError

func (e FieldErrors) Error() string {
	var s []string
	for _, f := range e {
		s = append(s, f.Error())
	}
	return strings.Join(s, "; ")
}

// Err returns e as an error, nil if it is empty.
func (e FieldErrors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// With returns the values with another template for a key.
func (v Values) With(key string, t Template) Values {
	fields := maps.Clone(v.fields)
	f := fields[key]
	f.Template = t
	fields[key] = f
	return Values{path: v.path, fields: fields}
}
