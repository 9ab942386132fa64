package json

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks"
	"github.com/planrun/planrun/sinks/digest"
	"github.com/planrun/planrun/sinks/sinktest"
)

var _ sinks.Sink = (*Sink)(nil)

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("report.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("report.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestGolden(t *testing.T) {
	s := schema(t)
	sinktest.Render(t, New(), ".json", func(t *testing.T, out []byte) {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(doc); err != nil {
			t.Errorf("%v", err)
		}
		if len(out) > 0 && bytes.ContainsAny(out, "<>") {
			t.Error("it has characters that mean something inside a page")
		}
	})
}

// TestSchemaIsStrict changes a good document and expects the schema to refuse it.
func TestSchemaIsStrict(t *testing.T) {
	s := schema(t)
	for name, change := range map[string]func(map[string]any){
		"unknown key":   func(m map[string]any) { m["extra"] = 1.0 },
		"missing key":   func(m map[string]any) { delete(m, "outcome") },
		"other version": func(m map[string]any) { m["schema_version"] = 2.0 },
		"other outcome": func(m map[string]any) { m["outcome"] = "fine" },
		"text for a figure": func(m map[string]any) {
			m["cells"].([]any)[0].(map[string]any)["figures"].(map[string]any)["p50_ms"] = "13 ms"
		},
	} {
		var b bytes.Buffer
		if err := New().Write(&b, sinktest.Cases()[0].Open(t)); err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(doc); err != nil {
			t.Fatal(err)
		}
		change(doc)
		if s.Validate(doc) == nil {
			t.Errorf("%s: the schema takes it", name)
		}
	}
}

// TestFiguresAreAsInCSV compares names with the columns that the CSV has.
func TestFiguresAreAsInCSV(t *testing.T) {
	var b bytes.Buffer
	if err := New().Write(&b, sinktest.Cases()[0].Open(t)); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Cells []struct{ Figures map[string]*float64 }
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, c := range doc.Cells {
		if len(c.Figures) != len(digest.Figures) {
			t.Fatalf("%d figures, and the CSV has %d", len(c.Figures), len(digest.Figures))
		}
		for _, f := range digest.Figures {
			if _, ok := c.Figures[f.Name]; !ok {
				t.Errorf("there is no %s", f.Name)
			}
		}
	}
}

// TestVerdictsAreWhole fills every field of a verdict with a value of its own and finds each of them in the document.
func TestVerdictsAreWhole(t *testing.T) {
	var v result.Verdict
	var want []string
	fields := reflect.ValueOf(&v).Elem()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		switch f := fields.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("the " + name)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int64:
			f.SetInt(int64(1000 + i))
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{"the " + name}))
		default:
			t.Fatalf("%s is a %s", name, f.Kind())
		}
		want = append(want, fmt.Sprint(fields.Field(i)))
	}
	frames := slices.Insert(slices.Clone(sinktest.Cases()[0].Frames), 1, result.Frame(&v))
	var b bytes.Buffer
	if err := New().Write(&b, sinktest.Case{Name: "whole", Frames: frames}.Open(t)); err != nil {
		t.Fatal(err)
	}
	var doc struct{ Verdicts []map[string]any }
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range doc.Verdicts[0] {
		got = append(got, fmt.Sprint(x))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("of a verdict the document has\n%q, and the results\n%q", got, want)
	}
}
