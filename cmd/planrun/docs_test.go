package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/sql/sqltest"
	"github.com/planrun/planrun/engine/expression"
)

// pages are the pages of the manual whose examples are run here.
var pages = []string{"plan.md", "http.md", "grpc.md", "sql.md", "download.md", "lab.md", "judgement.md", "expressions.md"}

// block is a fenced block of a page. What stands behind the language says how it is tried:
//
//	yaml               a plan, which is run and passes
//	yaml exit=1        ends with this exit code
//	yaml says=TEXT     says this on standard error; the last of them, as it goes to the end of the line
//	yaml validate      is validated only, as its systems are the reader's
//	yaml fragment      is part of a plan, and not tried
//	yaml env=A,B       needs these systems, by the names of variables
//	any file=PATH      a file that the plans of the page need
type block struct {
	line           int
	language, text string
	exit           int
	says, file     string
	validate, part bool
	env            []string
}

func blocksOf(t *testing.T, page string) []block {
	t.Helper()
	all, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var list []block
	var b *block
	for i, line := range strings.Split(string(all), "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && b != nil:
			list = append(list, *b)
			b = nil
		case fence:
			b = &block{line: i + 1}
			info, b.says, _ = strings.Cut(info, "says=")
			words := strings.Fields(info)
			for n, word := range words {
				key, value, _ := strings.Cut(word, "=")
				switch {
				case n == 0:
					b.language = word
				case key == "exit":
					b.exit = atoi(t, value)
				case key == "file":
					b.file = value
				case key == "env":
					b.env = strings.Split(value, ",")
				case word == "validate":
					b.validate = true
				case word == "fragment":
					b.part = true
				default:
					t.Fatalf("%s:%d: unknown word %q", page, i+1, word)
				}
			}
		case b != nil:
			b.text += line + "\n"
		}
	}
	if b != nil {
		t.Fatalf("%s:%d: the block has no end", page, b.line)
	}
	return list
}

// systems starts what examples name by variables.
var systems = map[string]func(*testing.T) string{
	"POSTGRES": func(t *testing.T) string { return sqltest.StartPostgres(t, sqltest.Options{}).PostgresURL() },
	"MARIADB":  func(t *testing.T) string { return sqltest.StartMariaDB(t, sqltest.Options{}).MySQLURL() },
	"SQLSERVER": func(t *testing.T) string {
		return sqltest.StartTDS(t, func(r sqltest.TDSRequest) sqltest.TDSAnswer {
			if len(r.Args) != 1 || !strings.HasPrefix(r.Text, "SELECT @p1 + 1") {
				return sqltest.TDSAnswer{Error: &sqltest.TDSError{Number: 102, Class: 15, Message: "Incorrect syntax: " + r.Text}}
			}
			n, _ := r.Args[0].(int64)
			return sqltest.TDSAnswer{Sets: []sqltest.TDSSet{{Columns: []string{"next"}, Rows: [][]any{{n + 1}}}}}
		}).URL()
	},
}

func TestExamplesOfTheManual(t *testing.T) {
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			list := blocksOf(t, filepath.Join("../../docs", page))
			tried := 0
			for _, b := range list {
				if b.language != "yaml" || b.part || b.file != "" {
					continue
				}
				tried++
				t.Run(strconv.Itoa(b.line), func(t *testing.T) { try(t, b, list) })
			}
			if tried == 0 {
				t.Error("the page has no example")
			}
		})
	}
}

// try runs one example in a folder of its own.
func try(t *testing.T, b block, all []block) {
	args := []string{"--quiet", "plan.yaml"}
	if b.validate {
		args = []string{"validate", "plan.yaml"}
	}
	p := newPlanrun(t, args...)
	p.write(t, "plan.yaml", b.text)
	for _, other := range all {
		if other.file == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Join(p.dir, filepath.Dir(other.file)), 0o755); err != nil {
			t.Fatal(err)
		}
		p.write(t, other.file, other.text)
	}
	p.Env = p.Environ()
	for _, name := range b.env {
		p.Env = append(p.Env, name+"="+systems[name](t))
	}
	if code := p.runCalmly(t); code != b.exit {
		t.Errorf("exit %d, want %d\n%s\n%s", code, b.exit, p.stdout.String(), p.stderr.String())
	}
	contains(t, p.stderr.String(), b.says)
	if b.exit == 0 && strings.Contains(p.stderr.String(), "plan.yaml:") {
		t.Errorf("an example of the manual has no findings:\n%s", p.stderr.String())
	}
}

// The tables are those of the drivers and of the expression language. UPDATE_DOCS=1 writes them.
func TestTablesOfTheManual(t *testing.T) {
	seen := map[string]bool{}
	for _, page := range pages {
		path := filepath.Join("../../docs", page)
		all, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fresh := generated.ReplaceAllStringFunc(string(all), func(old string) string {
			m := generated.FindStringSubmatch(old)
			seen[m[1]+" "+m[2]] = true
			if table, ok := languageTables[m[1]]; ok {
				return fmt.Sprintf("<!-- %s %s -->\n%s<!-- end -->", m[1], m[2], table())
			}
			driver, ok := allDrivers()[m[2]]
			if !ok {
				t.Fatalf("%s: there is no driver %s", page, m[2])
			}
			table := fieldTable(driver.Fields())
			if m[1] == "answer" {
				table = nameTable(driver.Answer())
			}
			return fmt.Sprintf("<!-- %s %s -->\n%s<!-- end -->", m[1], m[2], table)
		})
		if os.Getenv("UPDATE_DOCS") != "" {
			if err := os.WriteFile(path, []byte(fresh), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if diff := cmp.Diff(fresh, string(all)); diff != "" {
			t.Errorf("docs/%s is stale; UPDATE_DOCS=1 go test ./cmd/planrun -run Manual writes it (-want +got):\n%s", page, diff)
		}
	}
	for kind := range languageTables {
		if !seen[kind+" language"] {
			t.Errorf("no page has the table of %s", kind)
		}
	}
	for name := range allDrivers() {
		for _, table := range []string{"fields", "answer"} {
			if !seen[table+" "+name] {
				t.Errorf("no page has the table of %s of %s", table, name)
			}
		}
	}
}

var generated = regexp.MustCompile(`(?s)<!-- (fields|answer|metrics|groups|functions) (\w+) -->\n.*?<!-- end -->`)

// languageTables are the tables of the expression language.
var languageTables = map[string]func() string{
	"metrics": func() string {
		var b strings.Builder
		b.WriteString("| metric | unit | is |\n|---|---|---|\n")
		for _, m := range expression.Metrics {
			forms := strings.Split(m.Form, ", ")
			if m.Form == "" {
				forms = []string{m.Name}
			}
			doc := m.Doc
			if m.Grouped {
				doc += " Of the latency of what succeeded, or of a group in front."
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.Join(forms, "`, `"), m.Dim, cell(doc))
		}
		return b.String()
	},
	"groups": func() string {
		var b strings.Builder
		b.WriteString("| group | is |\n|---|---|\n")
		for _, g := range expression.Groups {
			fmt.Fprintf(&b, "| `%s` | %s |\n", g.Name, cell(g.Doc))
		}
		return b.String()
	},
	"functions": func() string {
		var b strings.Builder
		b.WriteString("| function | is |\n|---|---|\n")
		for _, f := range expression.Functions() {
			fmt.Fprintf(&b, "| `%s` | %s |\n", f.Form, cell(f.Doc))
		}
		return b.String()
	},
}

func fieldTable(fields []drivers.Field) string {
	var b strings.Builder
	b.WriteString("| key | is | default |\n|---|---|---|\n")
	var walk func(prefix string, fields []drivers.Field)
	walk = func(prefix string, fields []drivers.Field) {
		for _, f := range fields {
			doc := f.Doc
			if len(f.Choices) > 0 {
				doc += " One of `" + strings.Join(f.Choices, "`, `") + "`."
			}
			if len(f.Examples) > 0 {
				doc += " For example `" + strings.Join(f.Examples, "`, `") + "`."
			}
			def := f.Default
			if def != "" {
				def = "`" + def + "`"
			}
			fmt.Fprintf(&b, "| `%s%s` | %s | %s |\n", prefix, f.Key, cell(doc), def)
			walk(prefix+f.Key+".", f.Fields)
		}
	}
	walk("", fields)
	return b.String()
}

func nameTable(names []drivers.Name) string {
	var b strings.Builder
	b.WriteString("| name | is |\n|---|---|\n")
	for _, n := range names {
		fmt.Fprintf(&b, "| `%s` | %s |\n", n.Name, cell(n.Doc))
	}
	return b.String()
}

// cell makes text one that a table can hold.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
