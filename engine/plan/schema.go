package plan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/data"
)

// object is a JSON object.
type object = map[string]any

// Schema is the JSON schema (draft-07) of plans whose steps may have those drivers, made from the same tables as the
// decoder. sinks are the kinds of reports; without any they are csv and markdown. It is for editors: what depends on more
// than one place of a plan is only found by Parse.
func Schema(known map[string]drivers.Driver, sinks ...string) []byte {
	if len(sinks) == 0 {
		sinks = []string{"csv", "markdown"}
	}
	f := newFormat(known, sinks)
	g := &schemas{defs: definitions(), shared: map[*Field]string{}}
	for _, s := range f.step {
		if s.Kind == drivers.Group && len(s.Keys) > 0 {
			g.defs[s.Key+"_step"] = g.group(s.Keys, nil)
			g.shared[&s.Keys[0]] = s.Key + "_step"
		}
	}
	g.defs["phases"] = g.body(*find(f.scenario, "phases"))
	g.shared[&f.item[0]], g.shared[&f.branch[0]] = "step", "branch" // they hold themselves
	g.defs["step"], g.defs["branch"] = g.group(f.item, nil), g.group(f.branch, nil)
	root := g.group(f.plan, nil)
	root["patternProperties"] = object{"^x-": object{"description": "Free for anchors."}}
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "planrun plan"
	root["description"] = "A performance plan: targets, scenarios, phases and assertions."
	root["definitions"] = g.defs

	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic(err) // only maps, slices, strings and numbers
	}
	return out.Bytes()
}

// placeholder is what may stand for any scalar: its value is known only when the plan is read.
const placeholder = `\$\{`

// definitions are the schemas of literals. Their patterns say what package quantity reads.
func definitions() object {
	const number = `(0|[1-9][0-9]*)(\.[0-9]+)?`
	var times []string
	rest := ""
	for _, unit := range []string{"ns", "(us|µs|μs)", "ms", "s", "m", "h"} {
		times = append(times, number+unit+rest)
		rest = "(" + number + unit + ")?" + rest
	}
	slices.Reverse(times)
	duration := "(" + strings.Join(times, "|") + "|0)"
	literal := func(pattern string) object {
		return object{"anyOf": []any{
			object{"type": "string", "pattern": "^" + pattern + "$|" + placeholder},
			object{"const": 0},
		}}
	}
	const size = number + `(B|[kKMGT]B|[KMGT]iB)`
	const rate = number + `/(s|m|min|h)`
	whole := func(least int, pattern string) object {
		return object{"anyOf": []any{
			object{"type": "integer", "minimum": least},
			object{"type": "string", "pattern": "^" + pattern + "$|" + placeholder},
		}}
	}
	return object{
		"text":       object{"type": []any{"string", "number", "boolean", "null"}},
		"scalar":     object{"type": []any{"string", "number", "boolean", "null"}},
		"truth":      object{"anyOf": []any{object{"type": []any{"boolean", "null"}}, object{"type": "string", "pattern": "^(true|false)$|" + placeholder}}},
		"whole":      whole(0, `(0|[1-9][0-9]*)`),
		"count":      whole(1, `[1-9][0-9]*`),
		"duration":   literal(duration),
		"size":       literal("(" + size + "|0)"),
		"rate":       literal("(" + rate + "|0)"),
		"from":       object{"anyOf": []any{literal("(" + rate + "|0)"), whole(0, `(0|[1-9][0-9]*)`)}},
		"speed":      literal("(" + size + "/(s|m|min|h)|0)"),
		"share":      literal("(" + number + "%|0)"),
		"span":       literal(duration + `(\.\.` + duration + `)?`),
		"warmup":     object{"anyOf": []any{literal(duration), whole(0, `(0|[1-9][0-9]*)`)}},
		"name":       object{"type": "string", "pattern": identifier.String()},
		"expression": object{"type": "string", "minLength": 1},
		"file":       object{"type": []any{"string", "null"}},
	}
}

type schemas struct {
	defs object
	// shared are the tables that occur in several places, by their first field, and the names of their definitions.
	shared map[*Field]string
}

// group is the schema of a mapping with those keys. exactly lists keys of which one has to be there.
func (g *schemas) group(fields []Field, exactly []string) object {
	properties := object{}
	var required []any
	for _, f := range fields {
		properties[f.Key] = g.field(f)
		if f.Required {
			required = append(required, f.Key)
		}
	}
	o := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	if len(exactly) > 0 {
		var one []any
		for _, k := range exactly {
			one = append(one, object{"required": []any{k}})
		}
		o["oneOf"] = one
	}
	return o
}

// field is the schema of the value of a key, with what an editor shows of it.
func (g *schemas) field(f Field) object {
	var body object
	if f.Key == "phases" {
		body = ref("phases")
	} else if f.Kind == drivers.Group && len(f.Keys) > 0 && g.shared[&f.Keys[0]] != "" {
		body = ref(g.shared[&f.Keys[0]])
	} else {
		body = g.body(f)
	}
	if f.Kind == drivers.Group && mainOf(f.Keys) != nil {
		text := object{"type": "string", "description": mainOf(f.Keys).Doc}
		body = object{"oneOf": []any{text, body, object{"type": "null"}}}
	} else if nullable(f) {
		body = object{"anyOf": []any{body, object{"type": "null"}}}
	}
	if _, isRef := body["$ref"]; isRef { // what stands beside $ref is ignored in draft-07
		body = object{"allOf": []any{body}}
	}
	if f.Title != "" {
		body["title"] = f.Title
	}
	if f.Doc != "" {
		body["description"] = f.Doc
	}
	if v, ok := jsonOf(f.Kind, f.Default); ok {
		body["default"] = v
	}
	var examples []any
	for _, e := range f.Examples {
		if v, ok := jsonOf(f.Kind, e); ok {
			examples = append(examples, v)
		}
	}
	if len(examples) > 0 {
		body["examples"] = examples
	}
	return body
}

// nullable tells whether null removes a default of the field, where its schema does not say so itself.
func nullable(f Field) bool {
	switch f.Kind {
	case drivers.Text, drivers.URL, drivers.Scalar, drivers.Bool, drivers.File, drivers.TextOrBool, drivers.Tree:
		return false
	}
	return !f.Required
}

func ref(name string) object { return object{"$ref": "#/definitions/" + name} }

// body is the schema of a value of a kind.
func (g *schemas) body(f Field) object {
	list := func(item object) object { return object{"type": "array", "items": item} }
	entries := func(value object) object { return object{"type": "object", "additionalProperties": value} }
	named := func(value object) object {
		return object{"type": "object", "additionalProperties": value, "propertyNames": object{"pattern": identifier.String()}}
	}
	switch f.Kind {
	case drivers.Text, drivers.URL, drivers.TextOrBool:
		return ref("text")
	case drivers.Scalar:
		return ref("scalar")
	case drivers.Bool:
		return ref("truth")
	case drivers.Int:
		return ref("whole")
	case CountKind:
		return ref("count")
	case drivers.Duration:
		return ref("duration")
	case drivers.Size:
		return ref("size")
	case RateKind:
		if usersToo(f) {
			return ref("from")
		}
		return ref("rate")
	case SpeedKind:
		return ref("speed")
	case ShareKind:
		return ref("share")
	case SpanKind:
		return ref("span")
	case WarmupKind:
		return ref("warmup")
	case NameKind:
		return ref("name")
	case drivers.Choice:
		return object{"anyOf": []any{object{"enum": choicesOf(f)}, object{"type": "string", "pattern": placeholder}}}
	case drivers.File:
		return ref("file")
	case drivers.FileList:
		return object{"anyOf": []any{ref("file"), list(ref("file"))}}
	case drivers.Texts:
		return entries(ref("text"))
	case TextMapKind:
		return named(ref("text"))
	case VarsKind:
		return named(ref("scalar"))
	case drivers.List:
		return list(ref("scalar"))
	case drivers.Args:
		one := ref("scalar")
		if len(f.Keys) > 0 {
			typed := g.group(f.Keys, nil)
			typed["minProperties"], typed["maxProperties"] = 1, 1
			one = object{"anyOf": []any{one, typed}}
		}
		return object{"anyOf": []any{list(one), entries(one)}}
	case drivers.Group:
		return g.group(f.Keys, f.Exactly)
	case drivers.Groups:
		one := g.group(f.Keys, nil)
		if mainOf(f.Keys) != nil {
			one = object{"anyOf": []any{ref("text"), one}}
		}
		return entries(one)
	case ExpressionKind:
		return ref("expression")
	case TreeFileKind:
		return ref("file")
	case TagsKind:
		return object{"anyOf": []any{ref("expression"), list(ref("expression"))}}
	case MatrixKind:
		return object{"type": "object", "additionalProperties": object{"type": "array", "minItems": 1}, "propertyNames": object{"pattern": identifier.String()}}
	case DataTypesKind:
		return entries(object{"enum": asAny(data.Types())})
	case CaptureKind:
		return named(object{"anyOf": []any{ref("expression"), g.group(f.Keys, nil)}})
	case ExpectsKind:
		return object{"anyOf": []any{ref("expression"), list(ref("expression"))}}
	case AssertsKind:
		long := g.group(f.Keys, nil)
		return object{"anyOf": []any{ref("expression"), long, list(object{"anyOf": []any{ref("expression"), long}})}}
	case NamedKind:
		return named(g.field(*f.Item))
	case SequenceKind:
		return list(g.field(*f.Item))
	case OneOfKind:
		o := g.group(f.Keys, nil)
		o["minProperties"], o["maxProperties"] = 1, 1
		var alone []any
		for _, k := range f.Keys {
			if k.Alone {
				alone = append(alone, k.Key)
			}
		}
		if len(alone) == 0 {
			return o
		}
		return object{"oneOf": []any{object{"enum": alone}, o}}
	}
	return object{} // a Tree is anything
}

// choicesOf lists the choices as YAML reads them: 1.1 is a number there.
func choicesOf(f Field) []any {
	out := []any{}
	for _, c := range f.Choices {
		out = append(out, c)
		if v, err := strconv.ParseFloat(c, 64); err == nil {
			out = append(out, v)
		}
	}
	return out
}

// jsonOf is a default or an example as a JSON value; ok is false for kinds whose values are no scalars.
func jsonOf(kind drivers.Kind, text string) (v any, ok bool) {
	if text == "" {
		return nil, false
	}
	switch kind {
	case drivers.Bool:
		return text == "true", true
	case drivers.Int, CountKind, WarmupKind:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, true
		}
		return text, true
	case drivers.Texts, drivers.List, drivers.Args, drivers.Tree, drivers.Group, drivers.Groups, NamedKind, OneOfKind, SequenceKind, VarsKind, TextMapKind, CaptureKind, DataTypesKind, TagsKind, MatrixKind, drivers.FileList:
		return nil, false
	}
	return text, true
}

func asAny(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}
