package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/expression"
)

// matrixRoot resolves matrix.<name>, in a scenario that has a matrix.
func (b *binder) matrixRoot(path []string) (any, int, error) {
	if b.matrixBroken && len(path) > 0 {
		b.taint()
		return "1", 1, nil
	}
	if b.matrix == nil {
		return nil, 0, &expression.NameError{Index: -1, Message: "matrix is known only in a scenario that has one", Hint: "write matrix: in the scenario"}
	}
	known := slices.Sorted(maps.Keys(b.matrix))
	if len(path) == 0 {
		return nil, 0, &expression.NameError{Index: -1, Message: "matrix needs the name of one of its values", Hint: "write matrix." + known[0]}
	}
	v, ok := b.matrix[path[0]]
	if !ok {
		hint := nearest(path[0], "matrix.", known, "its values are "+strings.Join(known, ", "))
		return nil, 0, &expression.NameError{Index: 0, Message: fmt.Sprintf("the matrix has no %q", path[0]), Hint: hint}
	}
	return v, 1, nil
}

// maxCombinations bounds what a matrix expands to.
const maxCombinations = 500

// combination is one of a matrix: a value for each of its names.
type combination struct {
	names  []string // in the order in which they are written
	values map[string]any
}

func (c combination) text(name string) string { return string(drivers.AppendText(nil, c.values[name])) }

// suffix is what the combination adds to the name of its scenario.
func (c combination) suffix() string {
	s := ""
	for _, n := range c.names {
		s += "_" + strings.TrimPrefix(slug("x "+c.text(n)), "x_")
	}
	return s
}

// describe is the combination for people.
func (c combination) describe() string {
	var parts []string
	for _, n := range c.names {
		parts = append(parts, n+" "+c.text(n))
	}
	return strings.Join(parts, ", ")
}

// combinations decodes a matrix: nil if the scenario has none, and empty if it is faulty.
func (b *binder) combinations(n, key *node) []combination {
	if n == nil || n.shape == null || n.shape == empty { // an empty one is noted with the scenario
		return nil
	}
	none := []combination{}
	if n.shape != mapping || len(n.pairs) == 0 {
		b.on(key, "write a name and its values, as in rate: [100/s, 500/s]", "expected values by name, not %s", n.describeList())
		return none
	}
	before := b.faults()
	all := []combination{{values: map[string]any{}}}
	var names []string
	for _, p := range n.pairs {
		name := p.key.text
		if b.strayKey(n, p) || name == "include" || name == "exclude" {
			continue
		}
		if !identifier.MatchString(name) {
			b.identifier(p.key, name, "value of a matrix")
			continue
		}
		if p.value.shape != sequence || len(p.value.items) == 0 {
			b.on(p.value, "write them in brackets: "+name+": [a, b]", "expected a list of values, not %s", p.value.describeEmpty())
			continue
		}
		names = append(names, name)
		var values []any
		for _, it := range p.value.items {
			if v, ok := b.matrixValue(it); ok {
				values = append(values, v)
			}
		}
		var next []combination
		for _, c := range all {
			for _, v := range values {
				m := maps.Clone(c.values)
				m[name] = v
				if next = append(next, combination{values: m}); len(next) > maxCombinations {
					b.on(key, "", "the matrix has more than %d combinations", maxCombinations)
					return none
				}
			}
		}
		all = next
	}
	if len(names) == 0 && b.faults() == before {
		b.on(key, "write a name and its values, as in rate: [100/s, 500/s]", "the matrix has no values")
	}
	for _, row := range b.matrixRows(n.value("exclude"), n.keyOf("exclude"), names, false) {
		left := slices.DeleteFunc(slices.Clone(all), func(c combination) bool {
			for k, v := range row.values {
				if c.values[k] != v {
					return false
				}
			}
			return true
		})
		if len(left) == len(all) {
			b.on(row.node, "", "no combination of the matrix is like this")
		}
		all = left
	}
	for _, row := range b.matrixRows(n.value("include"), n.keyOf("include"), names, true) {
		all = append(all, combination{values: row.values})
	}
	if b.faults() > before {
		return none
	}
	if len(all) == 0 {
		b.on(key, "", "exclude leaves nothing of the matrix")
		return none
	}
	seen := map[string]bool{}
	for i := range all {
		all[i].names = names
		if s := all[i].suffix(); seen[s] {
			b.on(key, "leave one of them out, or write them so that they differ in letters or digits", "two combinations of the matrix would get the same name: %s", all[i].describe())
			return none
		} else {
			seen[s] = true
		}
	}
	return all
}

// matrixValue decodes one value of a matrix.
func (b *binder) matrixValue(n *node) (any, bool) {
	t, ok := b.scalar(n, b.scope)
	if !ok || t == nil {
		return nil, false
	}
	v, constant := t.Constant()
	if !constant || v == nil {
		b.on(n, "", "expected a value that is known before the load")
		return nil, false
	}
	return v, true
}

type matrixRow struct {
	node   *node
	values map[string]any
}

// matrixRows decodes include or exclude.
func (b *binder) matrixRows(n, key *node, names []string, whole bool) []matrixRow {
	if n == nil || n.shape == null || n.shape == empty {
		return nil
	}
	if n.shape != sequence {
		b.on(n, "write - before each combination", "expected a list of combinations, not %s", n.describe())
		return nil
	}
	var out []matrixRow
	for _, it := range n.items {
		if it.shape != mapping {
			b.on(it, "write - {"+names[0]+": value}", "expected a combination, not %s", it.describe())
			continue
		}
		row := matrixRow{it, map[string]any{}}
		for _, p := range it.pairs {
			if b.strayKey(it, p) {
				continue
			}
			if !slices.Contains(names, p.key.text) {
				hint := nearest(p.key.text, "", names, "its values are "+strings.Join(names, ", "))
				b.on(p.key, hint, "the matrix has no %q", p.key.text)
				continue
			}
			if v, ok := b.matrixValue(p.value); ok {
				row.values[p.key.text] = v
			}
		}
		if whole {
			for _, name := range names {
				if it.value(name) == nil {
					b.on(it, "", "the combination has no %s", name)
				}
			}
		}
		out = append(out, row)
	}
	return out
}

// expanded decodes what is written as one scenario: itself, or one for each combination of its matrix.
func (b *binder) expanded(key, n *node, outer defaults, each func(*Scenario, *scenarioUse, []*writtenAssertion)) {
	if n.shape == mapping {
		n = b.asMeant(b.indented(n, b.format.scenario), b.format.scenario)
	}
	all := b.combinations(n.value("matrix"), n.keyOf("matrix"))
	if all == nil {
		each(b.scenario(key, n, outer))
		return
	}
	if len(all) == 0 { // so that what else is wrong with the scenario is found too
		b.matrixBroken = true
		each(b.scenario(key, n, outer))
		b.matrixBroken = false
		return
	}
	b.places(key)
	for _, c := range all {
		b.matrix = c.values
		k := *key
		k.text += c.suffix()
		sc, use, written := b.scenario(&k, n, outer)
		if sc != nil {
			title := sc.Title
			if title == "" {
				title = key.text
			}
			sc.matrix = key.text
			sc.Title = title + " (" + c.describe() + ")"
		}
		each(sc, use, written)
	}
	b.matrix = nil
}
