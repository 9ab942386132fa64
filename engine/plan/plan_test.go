package plan

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/secret"
)

var update = flag.Bool("update", false, "write what plans come to into their fixtures")

// A fixture is a plan, a line "-- want --", and what it comes to: the findings as people see them, and for good plans the
// decoded model. Comments "#! set: vars.x=1", "#! only: http", "#! env: NAME=value" and "#! no-lab" are its command line.
const separator = "-- want --\n"

func fixtures(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures in %s: %v", pattern, err)
	}
	return files
}

func readFixture(t *testing.T, file string) (text, want string, opt Options) {
	t.Helper()
	all, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, want, _ = strings.Cut(string(all), separator)
	env := map[string]string{}
	opt = Options{Drivers: fakes(), Sinks: []string{"csv", "markdown"}, Env: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}
	for line := range strings.Lines(text) {
		option, ok := strings.CutPrefix(strings.TrimSpace(line), "#! ")
		if !ok {
			continue
		}
		key, value, _ := strings.Cut(option, ": ")
		switch key {
		case "set":
			opt.Set = append(opt.Set, value)
		case "only":
			opt.Only = append(opt.Only, value)
		case "env":
			k, v, _ := strings.Cut(value, "=")
			env[k] = v
		case "vars":
			opt.VarFiles = append(opt.VarFiles, value)
		case "environment":
			opt.Environment = value
		case "no-lab":
			opt.NoLab = true
		case "lab-only":
			opt.LabOnly = true
		case "lab":
			opt.Lab = map[string]map[string]string{"direct": {"api": "https://127.0.0.1:4000"}, "hybrid": {"api": "https://127.0.0.1:4001"}}
			opt.Roots = []byte("PEM")
		default:
			t.Fatalf("%s: unknown option %q", file, option)
		}
	}
	return text, want, opt
}

func compareFixture(t *testing.T, file, text, want, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text+separator+got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

func render(found diag.Findings) string {
	var b strings.Builder
	found.Write(&b, diag.Style{})
	return b.String()
}

func TestGood(t *testing.T) {
	for _, file := range fixtures(t, "testdata/good/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, want, opt := readFixture(t, file)
			p, found := Parse(file, []byte(text), opt)
			got := render(found)
			if p == nil {
				t.Fatalf("no plan:\n%s", got)
			}
			compareFixture(t, file, text, want, got+dump(p))
		})
	}
}

func TestBad(t *testing.T) {
	for _, file := range fixtures(t, "testdata/bad/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, want, opt := readFixture(t, file)
			p, found := Parse(file, []byte(text), opt)
			if p != nil || !found.HasErrors() {
				t.Fatalf("a plan that has to be refused is accepted:\n%s", dump(p))
			}
			compareFixture(t, file, text, want, render(found))
		})
	}
}

// The same plan with the line breaks of Windows, and with a byte order mark, is the same plan.
func TestLineBreaks(t *testing.T) {
	for _, file := range fixtures(t, "testdata/good/*.yaml") {
		text, _, opt := readFixture(t, file)
		p, _ := Parse(file, []byte(text), opt)
		for name, other := range map[string]string{"CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "BOM": "\ufeff" + text} {
			q, found := Parse(file, []byte(other), opt)
			if q == nil {
				t.Errorf("%s with %s: %v", file, name, found)
				continue
			}
			if d := cmp.Diff(dump(p), dump(q)); d != "" {
				t.Errorf("%s with %s (-want +got):\n%s", file, name, d)
			}
		}
	}
}

// Findings stand at the same places whatever the line breaks are.
func TestLineBreaksOfFindings(t *testing.T) {
	for _, file := range fixtures(t, "testdata/bad/*.yaml") {
		text, _, opt := readFixture(t, file)
		_, want := Parse(file, []byte(text), opt)
		_, got := Parse(file, []byte(strings.ReplaceAll(text, "\n", "\r\n")), opt)
		if d := cmp.Diff(render(want), render(got)); d != "" {
			t.Errorf("%s (-LF +CRLF):\n%s", file, d)
		}
	}
}

// Findings speak of plans, and never of what they are made of in the program.
func TestFindingsSpeakOfPlans(t *testing.T) {
	files := fixtures(t, "testdata/bad/*.yaml")
	if len(files) < 120 {
		t.Errorf("only %d bad plans", len(files))
	}
	inner := regexp.MustCompile(`\b(u?int(8|16|32|64)|float(32|64)|struct|interface|slice|nil pointer|map\[|\[\]string|strconv|reflect|runtime|goroutine|panic|token\.|ast\.|yaml\.|expr\.|plan\.[A-Z]|drivers\.)|%!|<nil>|0x[0-9a-f]{6}`)
	for _, file := range files {
		text, _, opt := readFixture(t, file)
		_, found := Parse(file, []byte(text), opt)
		for _, f := range found {
			said := f.Message + " " + f.Hint + " " + strings.Join(f.Notes, " ")
			if m := inner.FindString(said); m != "" && !strings.Contains(text, m) {
				t.Errorf("%s says %q", f, m)
			}
			if f.Message == "" || strings.HasSuffix(f.Message, ".") || f.Message[0] >= 'A' && f.Message[0] <= 'Z' && !strings.HasPrefix(f.Message, "YAML") && !strings.Contains(text, strings.Fields(f.Message)[0]) {
				t.Errorf("%s: a finding begins in lower case and has no full stop", f)
			}
			// Carets stand within their line, under something; a single one may stand where something is missing.
			if line := []rune(f.Source); f.Line > 0 && f.EndColumn > f.Column+1 && !strings.Contains(f.Source, secret.Shown) {
				if f.EndColumn > len(line)+1 || strings.TrimSpace(string(line[f.Column-1:min(f.EndColumn-1, len(line))])) == "" {
					t.Errorf("%s: the caret stands from %d to %d under %q", f, f.Column, f.EndColumn, f.Source)
				}
			}
		}
	}
}
