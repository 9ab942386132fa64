package expression

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/planrun/planrun/engine/quantity"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// names is a plan for tests.
type names struct{}

var kinds = map[string]Kind{
	"http": Scenario, "sql": Scenario, "single": Phase, "sequential": Phase, "load": Phase, "hold_2": Stage,
	"direct": Target, "hybrid": Target, "login": Step, "pay": Step, "buy": Step,
}

func (names) Kind(name string) (Kind, bool) { k, ok := kinds[name]; return k, ok }

func (names) Within(inner, outer string) bool { return inner == "pay" && outer == "buy" }

func (names) All() []string {
	var all []string
	for n := range kinds {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

func (names) Root(name string) Root {
	if name != "vars" {
		return nil
	}
	return func(path []string) (any, int, error) {
		vars := map[string]any{
			"limit": "30ms", "factor": 1.5, "users": int64(50), "title": "hello", "strict": true, "empty": nil,
			"api": map[string]any{"limit": "20ms", "list": []any{int64(1)}},
		}
		if len(path) == 0 {
			return vars, 0, nil
		}
		if v, ok := vars[path[0]]; ok {
			return v, 1, nil
		}
		if path[0] == "broken" {
			return nil, 0, errors.New("vars can't be read")
		}
		return nil, 0, &NameError{Index: 0, Message: "unknown variable " + path[0], Hint: "did you mean limit?"}
	}
}

// TestAssertions runs the files of testdata/assertion. A line with > begins a case, further lines with > continue its
// text; a line with ? evaluates it with data, "?" alone without any. Everything else is expected output, rewritten by
// -update; lines with # are comments.
func TestAssertions(t *testing.T) {
	runFiles(t, "testdata/assertion/*.txt", func(src string, inputs []string) string {
		var b strings.Builder
		a, errs := ParseAssertion(src, names{})
		printErrors(&b, src, errs)
		if a == nil {
			return b.String()
		}
		for _, address := range a.Addresses() {
			written := string([]rune(src)[address.Offset : address.Offset+address.Length])
			if strings.Join(strings.Fields(written), " ") != address.Text {
				t.Errorf("%s: address %s is placed at %q", src, address.Text, written)
			}
			fmt.Fprintf(&b, "reads %s, %s\n", address, address.Metric.Dim)
		}
		for _, input := range inputs {
			fmt.Fprintf(&b, "? %s\n", input)
			data := map[string]float64{}
			for _, pair := range strings.Split(input, ", ") {
				name, value, ok := strings.Cut(pair, " = ")
				if !ok {
					continue
				}
				v, err := quantity.Parse(strings.TrimPrefix(value, "-"))
				if err != nil {
					t.Fatalf("%s: %v", input, err)
				}
				data[name] = v.F
				if value[0] == '-' {
					data[name] = -v.F
				}
			}
			j := a.Judge(func(i int) (float64, bool) {
				v, ok := data[a.Addresses()[i].Text]
				return v, ok
			})
			fmt.Fprintf(&b, "%s: %s against %s\n", j.Truth, j.Value, j.Limit)
			if len(j.Missing) > 0 {
				fmt.Fprintf(&b, "  missing %v\n", j.Missing)
			}
			for _, v := range j.Values {
				fmt.Fprintf(&b, "  %s\n", v)
			}
			for _, w := range j.Why {
				fmt.Fprintf(&b, "  why %s\n", w)
			}
			if j.Truth != True {
				for _, line := range j.Tree {
					fmt.Fprintf(&b, "  | %s\n", line)
				}
			}
		}
		return b.String()
	})
}

func TestReads(t *testing.T) {
	a, errs := ParseAssertion("failed.p95 < 1s\n  or hybrid.within(1s) > 99%", names{})
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	if a.Reads("failed", "error_rate", "p95") || !a.Reads("error_rate", "within") || !a.Reads("p") {
		t.Error("p95 of the failed is a percentile, and within is within")
	}
	if got := a.String(); got != "failed.p95 < 1s or hybrid.within(1s) > 99%" {
		t.Error(got)
	}
}

func TestReserved(t *testing.T) {
	for name, want := range map[string]string{
		"http": "", "direct": "", "target": "", "hold_2": "", "p": "p is a function of assertions", "p95": "p95 is a metric",
		"p123": "p123 is a metric", "count": "count is a metric", "ttfb": "ttfb stands before metrics",
		"ramp": "ramp has a meaning of its own in assertions", "vars": "vars has a meaning of its own in expressions",
		"change": "change is a function of assertions", "not": "not is a word of the expression language",
	} {
		if got := Reserved(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// Every metric of the catalogue can be written, and compared with a limit of its dimension.
func TestCatalogue(t *testing.T) {
	limits := [...]string{quantity.Number: "3", quantity.Time: "3ms", quantity.Share: "3%", quantity.Size: "3B", quantity.Speed: "3MB/s", quantity.Rate: "3/s"}
	for _, m := range Metrics {
		forms := []string{m.Name}
		if m.Form != "" {
			forms = strings.Split(m.Form, ", ")
		}
		for _, form := range forms {
			all := []string{form, "hybrid.load." + form, "change(direct." + form + ")"}
			if m.Grouped {
				for _, g := range Groups {
					all = append(all, g.Name+"."+form)
				}
			}
			for _, text := range all {
				limit := limits[m.Dim]
				if strings.HasPrefix(text, "change") {
					limit = "3%"
				}
				if _, errs := ParseAssertion(text+" < "+limit, names{}); len(errs) > 0 {
					t.Errorf("%s < %s: %v", text, limit, errs[0])
				}
			}
		}
	}
}

func printErrors(b *strings.Builder, src string, errs []*Error) {
	lines := strings.Split(src, "\n")
	for _, e := range errs {
		line, column := 0, e.Offset
		for line < len(lines)-1 && column > utf8.RuneCountInString(lines[line]) {
			column -= utf8.RuneCountInString(lines[line]) + 1
			line++
		}
		fmt.Fprintf(b, "  %s%s\n", strings.Repeat(" ", column), strings.Repeat("^", max(1, e.Length)))
		if line > 0 {
			fmt.Fprintf(b, "line %d: ", line+1)
		}
		fmt.Fprintf(b, "error: %s\n", e.Message)
		if e.Hint != "" {
			fmt.Fprintf(b, "hint: %s\n", e.Hint)
		}
	}
}

// runFiles runs every case of the files through run and compares, or rewrites, what stands below it.
func runFiles(t *testing.T, pattern string, run func(src string, inputs []string) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for _, block := range strings.Split(strings.TrimSpace(string(old)), "\n\n") {
				var source, inputs []string
				var expected strings.Builder
				for _, line := range strings.Split(block, "\n") {
					switch {
					case strings.HasPrefix(line, "#"):
						out.WriteString(line + "\n")
					case strings.HasPrefix(line, "> "):
						source = append(source, line[2:])
					case line == ">":
						source = append(source, "")
					default:
						if strings.HasPrefix(line, "?") {
							inputs = append(inputs, strings.TrimSpace(line[1:]))
							line = strings.Replace(line, "?", "? ", 1)
							line = "? " + strings.TrimSpace(line[1:])
						}
						expected.WriteString(line + "\n")
					}
				}
				if len(source) > 0 {
					got := run(strings.Join(source, "\n"), inputs)
					for _, s := range source {
						out.WriteString(strings.TrimSpace("> "+s) + "\n")
					}
					out.WriteString(got)
					if !*update && got != expected.String() {
						t.Errorf("> %s\ngot:\n%swant:\n%s", strings.Join(source, "\n> "), got, expected.String())
					}
				}
				out.WriteString("\n")
			}
			if *update {
				if err := os.WriteFile(file, []byte(strings.TrimRight(out.String(), "\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Metrics are compared by the comparison that they stand in.
func TestCompared(t *testing.T) {
	for src, want := range map[string]string{
		"a.p95 < 2 * b.p95":                            "a.p95 b.p95",
		"a.p95 < 1s and b.p95 < 2s":                    "a.p95 | b.p95",
		"not (a.p95 - b.p95 < 1s) or a.count == 0":     "a.p95 b.p95 | a.count",
		"b.p50 < a.p50 * 3 and a.mean == b.mean + 1ms": "b.p50 a.p50 | a.mean b.mean",
	} {
		src = strings.NewReplacer("a.", "direct.", "b.", "hybrid.").Replace(src)
		a, errs := ParseAssertion(src, names{})
		if len(errs) > 0 {
			t.Fatal(src, errs[0].Message)
		}
		var groups []string
		for _, g := range a.Compared() {
			var read []string
			for _, ad := range g {
				read = append(read, ad.Text)
			}
			groups = append(groups, strings.Join(read, " "))
		}
		got := strings.NewReplacer("direct.", "a.", "hybrid.", "b.").Replace(strings.Join(groups, " | "))
		if got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
}
