package grpc

import (
	"maps"
	"slices"

	"github.com/planrun/planrun/drivers"
)

// A message in a plan is a tree of these:
//
//	object                                  a mapping
//	[]any                                   a list
//	string, int64, float64, bool, nil       a leaf that is known before the load
//	dynamic                                 a leaf that is not
//
// What a dynamic leaf gives may be a tree again, made of map[string]any instead of objects.
type object []member

type member struct {
	key   string
	value any
}

type dynamic struct{ drivers.Template }

// treeOf makes a tree of a value of kind Tree.
func treeOf(v drivers.Value) any {
	switch {
	case v.Template != nil:
		if c, ok := v.Template.Constant(); ok {
			return c
		}
		return dynamic{v.Template}
	case v.IsMap:
		o := make(object, len(v.Map))
		for i, e := range v.Map {
			o[i] = member{e.Key, treeOf(e.Value)}
		}
		return o
	}
	list := make([]any, len(v.List))
	for i, item := range v.List {
		list[i] = treeOf(item)
	}
	return list
}

// isDynamic tells whether a tree has a leaf that depends on the moment of the call.
func isDynamic(tree any) bool {
	switch t := tree.(type) {
	case dynamic:
		return true
	case object:
		return slices.ContainsFunc(t, func(m member) bool { return isDynamic(m.value) })
	case []any:
		return slices.ContainsFunc(t, isDynamic)
	}
	return false
}

// evaluate puts values in for the dynamic leaves of a tree.
func evaluate(tree any, in *drivers.Input) (any, error) {
	switch t := tree.(type) {
	case dynamic:
		return t.Eval(in)
	case object:
		o := make(object, len(t))
		for i, m := range t {
			v, err := evaluate(m.value, in)
			if err != nil {
				return nil, err
			}
			o[i] = member{m.key, v}
		}
		return o, nil
	case []any:
		list := make([]any, len(t))
		for i, item := range t {
			v, err := evaluate(item, in)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	}
	return tree, nil
}

// members returns the entries of a mapping, in order, and whether v is one.
func members(v any) (object, bool) {
	switch v := v.(type) {
	case object:
		return v, true
	case map[string]any:
		o := make(object, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			o = append(o, member{k, v[k]})
		}
		return o, true
	case map[string]string:
		o := make(object, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			o = append(o, member{k, v[k]})
		}
		return o, true
	}
	return nil, false
}
