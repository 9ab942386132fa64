package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compileSchema(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance is a node as an editor sees it: plain scalars that YAML and the plan read alike are typed.
func instance(n *node) any {
	switch n.shape {
	case mapping:
		o := object{}
		for _, p := range n.pairs {
			o[p.key.text] = instance(p.value)
		}
		return o
	case sequence:
		a := []any{}
		for _, it := range n.items {
			a = append(a, instance(it))
		}
		return a
	case null, empty:
		return nil
	}
	if n.style == plain {
		if n.text == "true" || n.text == "false" {
			return n.text == "true"
		}
		if meant, doubtful := number(n.text); meant != "" && !doubtful {
			return json.Number(meant)
		}
	}
	return n.text
}

func TestSchemaIsWellFormed(t *testing.T) {
	compileSchema(t, Schema(fakes()))
	if a, b := Schema(fakes()), Schema(fakes()); !bytes.Equal(a, b) {
		t.Error("the schema differs from call to call")
	}
}

// everyField calls visit for each field of the tables, once for those that hold themselves.
func everyField(fields []Field, visit func(path string, x Field)) {
	seen := map[*Field]bool{}
	var walk func(path string, fields []Field)
	walk = func(path string, fields []Field) {
		if len(fields) == 0 || seen[&fields[0]] {
			return
		}
		seen[&fields[0]] = true
		for _, x := range fields {
			visit(path, x)
			walk(path+"."+x.Key, x.Keys)
			if x.Item != nil {
				walk(path+"."+x.Key+"[]", []Field{*x.Item})
			}
		}
	}
	walk("", fields)
}

func TestSchemaDocumentsEveryKey(t *testing.T) {
	everyField(newFormat(nil, []string{"csv", "markdown"}).plan, func(path string, x Field) {
		if x.Key != "" && (x.Title == "" || x.Doc == "" || !strings.HasSuffix(x.Doc, ".")) {
			t.Errorf("%s.%s has no title, or no sentence that says what it is", path, x.Key)
		}
	})
}

// The defaults and examples that the tables show are read by the decoder.
func TestExamplesAreRead(t *testing.T) {
	f := newFormat(nil, []string{"csv", "markdown"})
	b := &binder{format: f, scope: nil}
	everyField(f.plan, func(path string, x Field) {
		for _, text := range append(x.Examples, x.Default) {
			if text == "" || strings.Contains(text, "<") && x.Kind != AssertsKind {
				continue
			}
			b.source = newSource("example", text)
			b.simple(&node{shape: scalar, text: text, line: 1, col: 1}, &x, nil)
			if len(b.findings) > 0 {
				t.Errorf("%s.%s: %s: %v", path, x.Key, text, b.findings)
			}
		}
	})
}

func TestSchemaAcceptsGoodPlans(t *testing.T) {
	s := compileSchema(t, Schema(fakes()))
	for _, file := range fixtures(t, "testdata/good/*.yaml") {
		text, _, opt := readFixture(t, file)
		if opt.LabOnly {
			continue // not what an editor is for
		}
		_, root := readTree(file, []byte(text))
		if err := s.Validate(instance(root)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Which of the bad plans an editor marks is kept in a file, so that a change of the schema shows.
func TestSchemaRefusesBadPlans(t *testing.T) {
	s := compileSchema(t, Schema(fakes()))
	var got strings.Builder
	for _, file := range fixtures(t, "testdata/bad/*.yaml") {
		text, _, _ := readFixture(t, file)
		verdict := "no YAML"
		if _, root := readTree(file, []byte(text)); root != nil {
			verdict = "accepted"
			if s.Validate(instance(root)) != nil {
				verdict = "refused"
			}
		}
		fmt.Fprintf(&got, "%s: %s\n", strings.TrimSuffix(filepath.Base(file), ".yaml"), verdict)
	}
	const golden = "testdata/schema.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Literals are read alike by the patterns of the schema and by the decoder.
func TestSchemaAgreesOnLiterals(t *testing.T) {
	literals := []string{
		"0", "5", "05", "5s", "1.5s", "1m30s", "90m", "1h30m15s", "30s1m", "500us", "500µs", "1 s", "-5s", "5S", "1e3", "1e3s", "0x10", "1_000", ".5s", "5.s", "s", "",
		"8KiB", "8KB", "8kB", "8B", "1.5MiB", "27MB/s", "27MB/min", "27MB", "600/s", "90/min", "1.5/s", "5/m", "5/h", "5/d", "1s..3s", "3s..1s", "1s..", "1s...3s", "0..1s",
		"10%", "1.5", "2.0", "true", "false", "yes", "True",
	}
	for _, kind := range []struct {
		field Field
		name  string
	}{
		{entry("x", CountKind, "", ""), "count"}, {entry("x", 3, "", ""), "whole"}, {entry("x", 4, "", ""), "duration"}, {entry("x", 5, "", ""), "size"},
		{entry("x", RateKind, "", ""), "rate"}, {entry("from", RateKind, "", ""), "from"}, {entry("from", RateKind, "", "").required(), "rate"}, {entry("x", SpeedKind, "", ""), "speed"}, {entry("x", ShareKind, "", ""), "share"},
		{entry("x", SpanKind, "", ""), "span"}, {entry("x", WarmupKind, "", ""), "warmup"}, {entry("x", 2, "", ""), "truth"},
	} {
		schema := compileSchema(t, must(json.Marshal(object{"$ref": "#/definitions/" + kind.name, "definitions": definitions()})))
		for _, text := range literals {
			n := &node{shape: scalar, text: text, line: 1, col: 1}
			b := &binder{source: newSource("x", text)}
			_, ok := b.simple(n, &kind.field, nil)
			valid := schema.Validate(instance(n)) == nil
			// What depends on the value and not on its form is beyond a pattern.
			if kind.name == "span" && text == "3s..1s" || kind.name == "size" && text == "1.5s" {
				continue
			}
			if ok != valid {
				t.Errorf("%q as %s: decoded %v, valid %v", text, kind.name, ok, valid)
			}
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
