package plan

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/planrun/planrun/drivers"
)

// Reference is the reference of the format in Markdown, made from the same tables as the decoder and the schema: a section
// for each mapping, with a row for each of its keys.
func Reference(known map[string]drivers.Driver, sinks ...string) []byte {
	f := newFormat(known, sinks)
	r := &reference{seen: map[*Field]string{}}
	r.section("The plan", f.plan)
	for len(r.later) > 0 {
		next := r.later[0]
		r.later = r.later[1:]
		r.section(next.title, next.fields)
	}
	return r.Bytes()
}

type reference struct {
	bytes.Buffer
	seen  map[*Field]string // sections by the first field of their table
	later []table
}

// table is a mapping whose section is still to come.
type table struct {
	title  string
	fields []Field
}

func (r *reference) section(title string, fields []Field) {
	fmt.Fprintf(r, "\n### %s\n\n| key | value | meaning |\n|---|---|---|\n", title)
	for _, f := range fields {
		fmt.Fprintf(r, "| `%s` | %s | %s |\n", f.Key, r.value(title, f), meaning(f))
	}
}

// meaning is what a key does, and what holds without it.
func meaning(f Field) string {
	s := cell(f.Doc)
	if f.Required {
		s += " Required."
	}
	if f.Main {
		s += " A text alone is this."
	}
	if f.Default != "" {
		s += " Default: " + code(f.Default) + "."
	}
	if len(f.Examples) > 0 {
		var all []string
		for _, e := range f.Examples {
			all = append(all, code(e))
		}
		s += " Example: " + strings.Join(all, ", ") + "."
	}
	return s
}

// usersToo tells whether a rate may be a number of users instead: where a ramp begins, but not a search for capacity.
func usersToo(f Field) bool { return f.Key == "from" && !f.Required }

func code(text string) string { return "`" + cell(text) + "`" }

// cell makes text fit into a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// value says what stands behind a key, and puts off the section of a mapping.
func (r *reference) value(title string, f Field) string {
	switch f.Kind {
	case drivers.Choice:
		var all []string
		for _, c := range f.Choices {
			all = append(all, "`"+c+"`")
		}
		return either(all)
	case drivers.Bool:
		return "`true` or `false`"
	case drivers.Int:
		return "whole number"
	case CountKind:
		return "whole number, at least 1"
	case drivers.Duration:
		return "duration"
	case drivers.Size:
		return "size"
	case RateKind:
		if usersToo(f) {
			return "rate or number of users"
		}
		return "rate"
	case SpeedKind:
		return "bytes per second"
	case ShareKind:
		return "percentage"
	case SpanKind:
		return "duration, or two with `..`"
	case WarmupKind:
		return "whole number or duration"
	case NameKind:
		return "name"
	case drivers.URL:
		return "URL"
	case drivers.File, TreeFileKind:
		return "path"
	case drivers.FileList:
		return "path or list of paths"
	case drivers.Texts, TextMapKind:
		return "texts by name"
	case drivers.Scalar:
		return "value"
	case drivers.List:
		return "list of values"
	case drivers.Args:
		text := "list of values, or values by name"
		if len(f.Keys) > 0 {
			text += "; one may be " + r.link("An argument with a type", f.Keys)
		}
		return text
	case drivers.Tree:
		return "any YAML"
	case drivers.TextOrBool:
		return "text, `true` or `false`"
	case ExpressionKind:
		return "expression"
	case ExpectsKind:
		return "expression or list of them"
	case VarsKind:
		return "values by name"
	case TagsKind:
		return "word or list of words"
	case DataTypesKind:
		return "type by column"
	case MatrixKind:
		return "lists of values by name"
	case AssertsKind:
		return "assertion, list of them, or " + r.link("The long form of an assertion", f.Keys)
	case CaptureKind:
		return "expression by name, or " + r.link("The long form of a capture", f.Keys)
	case drivers.Group:
		text := ""
		if mainOf(f.Keys) != nil {
			text = "text, or "
		}
		return text + r.link(r.name(title, f), f.Keys)
	case NamedKind:
		return "by name: " + r.inner(title, f)
	case SequenceKind:
		return "list of: " + r.inner(title, f)
	case OneOfKind:
		return r.link(r.name(title, f), f.Keys)
	}
	return "text"
}

// inner is what the items of a list or the values of a mapping of names are.
func (r *reference) inner(title string, f Field) string {
	item := *f.Item
	if item.Key == "" {
		item.Key = f.Key
	}
	if f.Key == "by_target" {
		item.Title = f.Title
	}
	return r.value(title, item)
}

// sections are what tables are called whose field's title does not say it.
var sections = map[string]string{
	"rows": "Rows", "defaults": "The defaults", "results": "The results", "lab": "The lab", "step for each target": "A step for one target",
}

// name is what the section of a mapping is called.
func (r *reference) name(title string, f Field) string {
	switch name := sections[f.Title]; {
	case name != "":
		return name
	case strings.HasSuffix(f.Title, " step"), strings.HasSuffix(f.Title, " defaults"):
		return "`" + f.Key + "` step"
	case title == "A phase" || title == "A service" || title == "A report":
		return "`" + f.Key + "`"
	case strings.HasPrefix(title, "`"):
		return title + ", `" + f.Key + "`"
	}
	return strings.ToUpper(article(f.Title)[:1]) + article(f.Title)[1:]
}

// link leads to the section of a table, which is written once.
func (r *reference) link(title string, fields []Field) string {
	if len(fields) == 0 {
		return "mapping"
	}
	known, ok := r.seen[&fields[0]]
	if !ok {
		for _, taken := range r.seen {
			if taken == title {
				title += ", " + fields[0].Key
			}
		}
		known = title
		r.seen[&fields[0]] = title
		r.later = append(r.later, table{title, fields})
	}
	return "[" + strings.ToLower(known[:1]) + known[1:] + "](#" + anchor(known) + ")"
}

// anchor is the fragment that GitHub gives a heading.
func anchor(title string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(title) {
		switch {
		case c == ' ':
			b.WriteByte('-')
		case c == '-' || c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		}
	}
	return b.String()
}
