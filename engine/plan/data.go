package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/data"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
)

// dataSet is rows of the plan by name.
type dataSet struct {
	name   string
	key    *node
	set    *data.Set // nil if it could not be read
	choice data.Choice
}

// sets decodes data.
func (b *binder) sets(n, key *node) {
	if n == nil || n.shape == null || n.shape == empty {
		return // an empty one is noted with the plan
	}
	if n.shape != mapping || len(n.pairs) == 0 {
		b.on(key, "write the name of each set of rows, and below it csv: and a file", "expected data by name, not %s", n.describeList())
		return
	}
	for _, p := range n.pairs {
		if b.strayKey(n, p) {
			continue
		}
		if !identifier.MatchString(p.key.text) {
			b.identifier(p.key, p.key.text, "set of rows")
			continue
		}
		if p.value.shape == empty || p.value.shape == null {
			b.on(p.key, "write csv: and a file below it", "%s has no rows", p.key.text)
		}
		d := &dataSet{name: p.key.text, key: p.key}
		b.data = append(b.data, d)
		b.rowsOf(d, p.value)
	}
}

// rowsOf decodes one set of rows.
func (b *binder) rowsOf(d *dataSet, n *node) {
	before := b.faults()
	s := b.section(n, d.key, b.format.data, b.scope)
	types := b.types(s.node("types"))
	format := data.Format{Types: types}
	for _, m := range []struct {
		key  string
		into *byte
	}{{"separator", &format.Separator}, {"quote", &format.Quote}} {
		v, ok := s.values[m.key]
		if !ok {
			continue
		}
		if s.n.value("csv") == nil {
			b.on(v.node, "", "%s is for csv", m.key)
		}
		switch {
		case v.text == `\t` || v.text == "tab":
			*m.into = '\t'
		case len(v.text) != 1 || v.text[0] > '~' || v.text[0] == '\n':
			b.on(v.node, "write one character, such as \";\", or tab", "expected one character")
		default:
			*m.into = v.text[0]
		}
	}
	kind := ""
	for _, p := range s.n.pairs {
		switch k := p.key.text; {
		case k != "csv" && k != "json" && k != "json_lines" && k != "rows":
		case kind != "":
			b.on(p.key, "write another set for it", "%s has one source, and %s is above this", d.name, kind)
			return
		default:
			kind = k
		}
	}
	if kind == "" {
		if n.shape == mapping && b.faults() == before {
			b.on(d.key, "write csv:, json: or json_lines: and a file, or rows:", "%s has no rows", d.name)
		}
		return
	}
	source := s.node(kind)
	if source == nil || b.faults() > before {
		return
	}
	if kind == "rows" {
		d.set = b.inline(source, types)
	} else if path, ok := b.file(source, b.scope); ok {
		var err error
		switch kind {
		case "csv":
			d.set, err = data.OpenCSV(path, format)
		case "json":
			d.set, err = data.OpenJSON(path, types)
		default:
			d.set, err = data.OpenJSONLines(path, types)
		}
		if err != nil {
			var e *data.Error
			if errors.As(err, &e) && e.Line > 0 {
				b.on(source, "", "line %d of %s: %s", e.Line, source.text, e.Message)
			} else {
				b.on(source, "", "%s: %s", source.text, err)
			}
			return
		}
	}
	if d.set == nil {
		return
	}
	for name := range types {
		if !slices.Contains(d.set.Columns(), name) {
			b.on(s.node("types").keyOf(name), columnHint(name, d.set.Columns()), "%s has no column %q", d.name, name)
		}
	}
	order, _ := data.ParseOrder(s.text("order"))
	d.choice = data.NewChoice(order, d.set.Len(), d.name)
}

// types decodes what columns mean.
func (b *binder) types(n *node) map[string]data.Type {
	if n == nil {
		return nil
	}
	if n.shape != mapping {
		b.on(n, "write the name of a column and its type, as in age: int", "expected types by column, not %s", n.describe())
		return nil
	}
	types := map[string]data.Type{}
	for _, p := range n.pairs {
		if b.strayKey(n, p) {
			continue
		}
		t, ok := data.ParseType(p.value.text)
		if !ok || p.value.shape != scalar {
			b.on(p.value, "types are "+strings.Join(data.Types(), ", "), "expected the type of column %s", p.key.text)
			continue
		}
		types[p.key.text] = t
	}
	return types
}

// inline decodes rows that the plan itself has.
func (b *binder) inline(n *node, types map[string]data.Type) *data.Set {
	if n.shape != sequence {
		b.on(n, "write - before each row", "expected a list of rows, not %s", n.describe())
		return nil
	}
	if len(n.items) == 0 {
		b.on(n, "", "rows has no row")
		return nil
	}
	var columns []string
	var rows [][]any
	sound := true
	for i, it := range n.items {
		if it.shape != mapping {
			b.on(it, "write the columns as keys, as in - {name: ann, age: 3}", "expected a row, not %s", it.describe())
			return nil
		}
		row := make([]any, len(columns))
		for _, p := range it.pairs {
			at := slices.Index(columns, p.key.text)
			switch {
			case b.strayKey(it, p):
				sound = false
				continue
			case at < 0 && i > 0:
				b.on(p.key, columnHint(p.key.text, columns), "the first row has no column %q", p.key.text)
				sound = false
				continue
			case at < 0:
				at = len(columns)
				columns, row = append(columns, p.key.text), append(row, nil)
			}
			switch p.value.shape {
			case null:
			case scalar:
				v, err := types[p.key.text].Of(p.value.text)
				if err != nil {
					b.on(p.value, "", "%s", err)
					sound = false
				}
				row[at] = v
			default:
				b.on(p.value, "put rows with lists or mappings into a file of JSON", "expected text, not %s", p.value.describe())
				sound = false
			}
		}
		if len(it.pairs) < len(columns) {
			for _, c := range columns {
				if it.value(c) == nil {
					b.on(it, "write null if it has none", "the row has no %q", c)
					sound = false
				}
			}
		}
		rows = append(rows, row)
	}
	if !sound {
		return nil
	}
	return data.Inline(columns, rows)
}

func columnHint(name string, columns []string) string {
	if near := diag.Suggest(name, columns); near != "" {
		return "did you mean " + near + "?"
	}
	return "columns are " + strings.Join(columns[:min(len(columns), 20)], ", ")
}

// dataRoot resolves data.<set>.<column>.
func (b *binder) dataRoot(path []string) (any, int, error) {
	var names []string
	for _, d := range b.data {
		names = append(names, d.name)
	}
	if len(path) == 0 {
		return nil, 0, &expression.NameError{Index: -1, Message: "data needs the name of a set of rows and of a column", Hint: "write data.users.name"}
	}
	i := slices.Index(names, path[0])
	if i < 0 {
		hint := "the plan has no data"
		if near := diag.Suggest(path[0], names); near != "" {
			hint = "did you mean data." + near + "?"
		} else if len(names) > 0 {
			hint = "sets of rows are " + strings.Join(names, ", ")
		}
		return nil, 0, &expression.NameError{Index: 0, Message: fmt.Sprintf("there is no data %q", path[0]), Hint: hint}
	}
	d := b.data[i]
	if d.set == nil {
		b.taint()
		return "1", len(path), nil
	}
	if !slices.Contains(b.read, d) {
		b.read = append(b.read, d)
	}
	if len(path) == 1 {
		return expression.Moment{Eval: func(in *drivers.Input) (any, error) {
			row, err := d.row(in)
			if err != nil {
				return nil, err
			}
			return d.set.Row(row)
		}}, 1, nil
	}
	column := slices.Index(d.set.Columns(), path[1])
	if column < 0 {
		return nil, 0, &expression.NameError{Index: 1, Message: fmt.Sprintf("%s has no column %q", d.name, path[1]), Hint: columnHint(path[1], d.set.Columns())}
	}
	return expression.Moment{Text: d.set.IsText(column), Eval: func(in *drivers.Input) (any, error) {
		row, err := d.row(in)
		if err != nil {
			return nil, err
		}
		return d.set.Value(row, column)
	}}, 2, nil
}

// row is the number of the row of an iteration.
func (d *dataSet) row(in *drivers.Input) (int64, error) {
	row, ok := d.choice.Row(in.Iteration, in.Seed, in.Round)
	if !ok {
		return 0, fmt.Errorf("the rows of %s are used up", d.name)
	}
	return row, nil
}

// rowsOnce sets how many iterations a scenario can have, by the rows that it uses once, and finds phases that need more.
func (b *binder) rowsOnce(sc *Scenario) {
	for _, d := range b.read {
		if d.choice.Order == data.Once && (sc.MostBy == "" || d.set.Len() < sc.Most) {
			sc.Most, sc.MostBy = d.set.Len(), d.name
		}
	}
	if sc.MostBy == "" {
		return
	}
	for _, ph := range sc.Phases {
		if ph.Warmup != (Warmup{}) {
			b.atPlace(ph.Place, fmt.Sprintf("a warm-up would use up rows of %s, which are used once", sc.MostBy), "write warmup: 0, or order: in_turn for the rows")
		}
		if n := ph.iterations(); n > sc.Most {
			b.atPlace(ph.Place, fmt.Sprintf("phase %s has %d iterations, but %s has %d rows, which are used once", ph.Name, n, sc.MostBy, sc.Most), "give it more rows, or write order: in_turn")
		}
	}
}

// atPlace notes an error at a place of any file of the plan.
func (b *binder) atPlace(p diag.Place, message, hint string) {
	b.add(diag.Finding{Place: p, EndColumn: b.wordEnd(p), Message: message, Hint: hint, Source: b.lineAt(p)})
}

// lineAt is the line of a place in any file of the plan.
func (b *binder) lineAt(p diag.Place) string {
	for _, s := range b.files {
		if s.file == p.File {
			return s.line(p.Line)
		}
	}
	return ""
}

// wordEnd is the column behind the word that begins at a place.
func (b *binder) wordEnd(p diag.Place) int {
	line := []rune(b.lineAt(p))
	end := p.Column - 1
	for end < len(line) && (line[end] == '_' || line[end] == '-' || unicode.IsLetter(line[end]) || unicode.IsDigit(line[end])) {
		end++
	}
	return end + 1
}

// iterations is how many a phase has for certain; 0 if only the run will tell.
func (ph *Phase) iterations() int64 {
	if !ph.Open || ph.Capacity != nil {
		return ph.Count
	}
	var n float64
	for _, st := range ph.Stages {
		n += (st.From + st.To) / 2 * st.Length.Seconds()
	}
	if ph.Poisson {
		return 0
	}
	return int64(n)
}
