package plan_test

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/download"
	"github.com/planrun/planrun/drivers/grpc"
	"github.com/planrun/planrun/drivers/http"
	"github.com/planrun/planrun/drivers/sql"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/plan"
)

// shipped are the drivers that planrun comes with.
func shipped() map[string]drivers.Driver {
	return map[string]drivers.Driver{"http": http.New(), "sql": sql.New(), "download": download.New(), "grpc": grpc.New()}
}

// kinds are the reports that planrun comes with.
var kinds = []string{"csv", "html", "json", "junit", "markdown", "prometheus", "xunit"}

// schema.json is made from the tables: go test ./engine/plan -run SchemaFile -update
func TestSchemaFile(t *testing.T) {
	const file = "../../schema.json"
	got := plan.Schema(shipped(), kinds...)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("schema.json is stale; run go test ./engine/plan -run SchemaFile -update")
	}
}

func TestDriversTablesAreComplete(t *testing.T) {
	for name, d := range shipped() {
		mains := 0
		var walk func(path string, fields []drivers.Field)
		walk = func(path string, fields []drivers.Field) {
			seen := map[string]bool{}
			for _, f := range fields {
				if f.Key == "" || f.Title == "" || !strings.HasSuffix(f.Doc, ".") || seen[f.Key] {
					t.Errorf("%s.%s: no title, no sentence, or twice", path, f.Key)
				}
				seen[f.Key] = true
				if f.Main && path == name {
					mains++
				}
				walk(path+"."+f.Key, f.Fields)
			}
		}
		walk(name, d.Fields())
		if mains != 1 {
			t.Errorf("%s has %d main fields", name, mains)
		}
	}
}

// The study of a hybrid connection, with the drivers that run it.
func TestHybridStudy(t *testing.T) {
	all, err := os.ReadFile("testdata/good/hybrid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(all), "-- want --")
	opt := plan.Options{Drivers: shipped(), Sinks: []string{"csv", "markdown"}, Env: func(string) (string, bool) { return "", false }}
	for range 2 { // first with placeholders for the lab, then with addresses
		p, found := plan.Parse("testdata/good/hybrid.yaml", []byte(text), opt)
		if p == nil || len(found) > 0 {
			var b strings.Builder
			found.Write(&b, diag.Style{})
			t.Fatal(b.String())
		}
		if p.Lab == nil || len(p.Scenarios) != 3 || len(p.Assertions) != 3 {
			t.Errorf("%d scenarios, %d assertions, lab %v", len(p.Scenarios), len(p.Assertions), p.Lab)
		}
		for _, s := range p.Scenarios {
			a := s.Steps[0].Actions
			if len(a) != 2 || a[0].Call.Endpoint().Key == "" {
				t.Errorf("scenario %s: %v", s.Name, a)
			}
			if a[0].Call.Endpoint().Key == a[1].Call.Endpoint().Key {
				t.Errorf("scenario %s: the endpoints of both routes are alike", s.Name)
			}
		}
		opt.Lab = map[string]map[string]string{
			"direct": {"api": "http://127.0.0.1:4000", "db": "postgres://127.0.0.1:4001/lab"},
			"hybrid": {"api": "http://127.0.0.1:4002", "db": "postgres://127.0.0.1:4003/lab"},
		}
	}
}

// The reference in docs/plan.md is made from the tables: go test ./engine/plan -run Reference -update
func TestReferenceIsFresh(t *testing.T) {
	const file, mark = "../../docs/plan.md", "<!-- From here on made from the tables: go test ./engine/plan -run Reference -update -->\n"
	all, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, old, ok := strings.Cut(string(all), mark)
	if !ok {
		t.Fatal("docs/plan.md has no mark for the reference")
	}
	want := string(plan.Reference(shipped(), kinds...))
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(text+mark+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != want {
		t.Error("docs/plan.md is stale; run go test ./engine/plan -run Reference -update")
	}
	// Every link leads to a heading, and no heading is there twice.
	headings := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(want, -1) {
		id := regexp.MustCompile(`[^a-z0-9_ -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		id = strings.ReplaceAll(id, " ", "-")
		if headings[id] {
			t.Errorf("two sections are called %s", m[1])
		}
		headings[id] = true
	}
	links := regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(want, -1)
	for _, m := range links {
		if !headings[m[1]] {
			t.Errorf("#%s leads nowhere", m[1])
		}
	}
	if len(links) < 20 {
		t.Errorf("only %d links", len(links))
	}
}

// What an argument's type doesn't allow is told where it stands, before anything is sent.
func TestTypedArguments(t *testing.T) {
	const text = `scenarios:
  since:
    sql:
      dsn: sqlite:x.db
      query: SELECT :a, :b, :c, :d, :e, :f
      args:
        a: {time: 2026-01-31T12:00:00}
        b: {tme: 2026-01-31T12:00:00Z}
        c: {date: 2026-02-30}
        d: [2026-01-31]
        e: {}
        f: 2026-01-31T12:00:00Z
    phases: [single]
  list:
    sql:
      dsn: mysql://app@db.test/x
      query: SELECT ?, ?
      args:
        - {datetime: 2026-01-31 12:00:00}
        - {datetime: 2026-01-31}
    phases: [single]
`
	_, found := plan.Parse("x.yaml", []byte(text), plan.Options{Drivers: shipped(), Env: func(string) (string, bool) { return "", false }})
	var b strings.Builder
	found.Write(&b, diag.Style{})
	for _, want := range []string{
		`x.yaml:8:13: unknown key "tme"`, "did you mean time?",
		"x.yaml:10:12: expected a value, not a list",
		`x.yaml:20:22: "2026-01-31" is not a time without an offset: write it as in 2026-01-31T12:00:00, or date: for a date`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %s in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "the query names") {
		t.Errorf("what follows from a wrong argument is told as well:\n%s", b.String())
	}
	fixed := strings.NewReplacer("tme", "time", "[2026-01-31]", "1").Replace(text)
	_, found = plan.Parse("x.yaml", []byte(fixed), plan.Options{Drivers: shipped(), Env: func(string) (string, bool) { return "", false }})
	b.Reset()
	found.Write(&b, diag.Style{})
	for _, want := range []string{
		`x.yaml:7:19: "2026-01-31T12:00:00" is not a time with an offset`,
		`x.yaml:9:19: "2026-02-30" is not a date`,
		"x.yaml:11:9: an argument has one type",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %s in\n%s", want, b.String())
		}
	}
}
