package drivertest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
)

// Fields are a step's fields in simple Go values, by key:
//
//	Text, URL, Scalar    a string, number, bool, nil, or a Func
//	Bool, Int, Size      bool, int
//	Duration             time.Duration
//	Choice, File         string
//	Texts, Group, Groups Fields (in the order of the keys; text for one of Groups is its main field)
//	List, FileList       []any
//	Args, Tree           []any, Fields, or as Scalar
//	TextOrBool           as Text, or a bool
type Fields map[string]any

// Func is a Template that depends on the moment of the call.
type Func func(in *drivers.Input) any

// Constant implements drivers.Template.
func (f Func) Constant() (any, bool) { return nil, false }

// Eval implements drivers.Template. An error that f returns is the template's.
func (f Func) Eval(in *drivers.Input) (any, error) {
	v := f(in)
	if err, ok := v.(error); ok {
		return nil, err
	}
	return v, nil
}

// AppendText implements drivers.Template.
func (f Func) AppendText(dst []byte, in *drivers.Input) ([]byte, error) {
	v, err := f.Eval(in)
	if err != nil {
		return dst, err
	}
	return drivers.AppendText(dst, v), nil
}

// Mix is a Template made of parts: strings, and Funcs for what would be ${...}.
type Mix []any

// Constant implements drivers.Template.
func (m Mix) Constant() (any, bool) { return nil, false }

// Segments implements drivers.Segmented.
func (m Mix) Segments() []drivers.Template {
	var s []drivers.Template
	for _, p := range m {
		s = append(s, template(p))
	}
	return s
}

// Eval implements drivers.Template.
func (m Mix) Eval(in *drivers.Input) (any, error) {
	b, err := m.AppendText(nil, in)
	return string(b), err
}

// AppendText implements drivers.Template.
func (m Mix) AppendText(dst []byte, in *drivers.Input) ([]byte, error) {
	var err error
	for _, p := range m {
		if dst, err = template(p).AppendText(dst, in); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func template(v any) drivers.Template {
	switch v := v.(type) {
	case drivers.Template:
		return v
	case func(in *drivers.Input) any:
		return Func(v)
	case int:
		return drivers.Constant(int64(v))
	}
	return drivers.Constant(v)
}

// NewOp makes a step of simple values, as the decoder would make it of a plan. reads are the names of the answer that
// the step's expectations look at.
func NewOp(t testing.TB, d drivers.Driver, fields Fields, reads ...string) *drivers.Op {
	t.Helper()
	values, err := decode(d.Fields(), fields)
	if err != nil {
		t.Fatal(err)
	}
	op := &drivers.Op{Values: drivers.NewValues(values), Reads: map[string]bool{}}
	for _, r := range reads {
		op.Reads[r] = true
	}
	return op
}

// Prepare makes a call of simple values and ends the test when the driver refuses them.
func Prepare(t testing.TB, d drivers.Driver, fields Fields, reads ...string) drivers.Call {
	t.Helper()
	call, err := d.Prepare(NewOp(t, d, fields, reads...))
	if err != nil {
		t.Fatal(err)
	}
	return call
}

func decode(fields []drivers.Field, given Fields) (map[string]drivers.Value, error) {
	values := map[string]drivers.Value{}
	for key, v := range given {
		i := slices.IndexFunc(fields, func(f drivers.Field) bool { return f.Key == key })
		if i < 0 {
			return nil, fmt.Errorf("the driver has no field %q", key)
		}
		value, err := decodeOne(fields[i], v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		values[key] = value
	}
	return values, nil
}

func decodeOne(f drivers.Field, v any) (drivers.Value, error) {
	value := drivers.Value{Kind: f.Kind}
	wrong := fmt.Errorf("a value of type %T doesn't fit", v)
	switch f.Kind {
	case drivers.Text, drivers.URL, drivers.Scalar:
		value.Template = template(v)
	case drivers.TextOrBool:
		if b, ok := v.(bool); ok {
			value.Kind, value.Bool = drivers.Bool, b
		} else {
			value.Kind, value.Template = drivers.Text, template(v)
		}
	case drivers.Bool:
		b, ok := v.(bool)
		if !ok {
			return value, wrong
		}
		value.Bool = b
	case drivers.Int, drivers.Size, drivers.Duration:
		switch v := v.(type) {
		case int:
			value.Int = int64(v)
		case int64:
			value.Int = v
		case time.Duration:
			value.Int = int64(v)
		default:
			return value, wrong
		}
	case drivers.Choice, drivers.File:
		s, ok := v.(string)
		if !ok {
			return value, wrong
		}
		if f.Kind == drivers.Choice && !slices.Contains(f.Choices, s) {
			return value, fmt.Errorf("%q is none of %v", s, f.Choices)
		}
		value.String = s
	case drivers.FileList:
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, item := range list {
			s, ok := item.(string)
			if !ok {
				return value, wrong
			}
			value.List = append(value.List, drivers.Value{Kind: drivers.File, String: s})
		}
	case drivers.Group:
		g, ok := v.(Fields)
		if !ok {
			return value, wrong
		}
		sub, err := decode(f.Fields, g)
		if err != nil {
			return value, err
		}
		value.IsMap = true
		for _, key := range slices.Sorted(maps.Keys(sub)) {
			value.Map = append(value.Map, drivers.Entry{Key: key, Value: sub[key]})
		}
	case drivers.Groups:
		groups, ok := v.(Fields)
		if !ok {
			return value, wrong
		}
		value.IsMap = true
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			one := groups[key]
			if _, ok := one.(Fields); !ok {
				main := slices.IndexFunc(f.Fields, func(f drivers.Field) bool { return f.Main })
				if main < 0 {
					return value, wrong
				}
				one = Fields{f.Fields[main].Key: one}
			}
			g, err := decodeOne(drivers.Field{Kind: drivers.Group, Fields: f.Fields}, one)
			if err != nil {
				return value, fmt.Errorf("%s: %w", key, err)
			}
			value.Map = append(value.Map, drivers.Entry{Key: key, Value: g})
		}
	case drivers.Texts:
		m, ok := v.(Fields)
		if !ok {
			return value, wrong
		}
		value.IsMap = true
		for _, key := range slices.Sorted(maps.Keys(m)) {
			value.Map = append(value.Map, drivers.Entry{Key: key, Value: drivers.Value{Kind: drivers.Text, Template: template(m[key])}})
		}
	case drivers.List, drivers.Args, drivers.Tree:
		value = tree(v)
		value.Kind = f.Kind
	default:
		return value, fmt.Errorf("fields of kind %d are unknown here", f.Kind)
	}
	return value, nil
}

func tree(v any) drivers.Value {
	value := drivers.Value{Kind: drivers.Tree}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			value.List = append(value.List, tree(item))
		}
	case Fields:
		value.IsMap = true
		for _, key := range slices.Sorted(maps.Keys(v)) {
			value.Map = append(value.Map, drivers.Entry{Key: key, Value: tree(v[key])})
		}
	default:
		value.Kind, value.Template = drivers.Scalar, template(v)
	}
	return value
}
