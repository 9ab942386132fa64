package plan

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/engine/diag"
)

// What would keep the parser busy, or grow without bound when it is walked, is refused early. The bound is generous: the
// refusals take milliseconds, and what they prevent takes minutes.
func TestHostileText(t *testing.T) {
	bomb := "a0: &a0 x\n"
	for i := range 12 {
		bomb += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
	}
	block := &strings.Builder{}
	for i := range 1400 {
		fmt.Fprintf(block, "%sa:\n", strings.Repeat(" ", i))
	}
	for name, c := range map[string]struct{ text, want string }{
		"large":               {strings.Repeat("#\n", 25<<20), "larger than 1 MiB"},
		"alias bomb":          {bomb, "expands to too many values"},
		"brackets":            {strings.Repeat("[", 50_000), "nested deeper"},
		"braces":              {strings.Repeat("{a: ", 50_000), "nested deeper"},
		"brackets over lines": {strings.Repeat("[\n", 50_000), "nested deeper"},
		"dashes":              {strings.Repeat("- ", 100_000), "nested deeper"},
		"question marks":      {strings.Repeat("? ", 100_000), "nested deeper"},
		"tags on a line":      {strings.Repeat("! ", 100_000), "nested deeper"},
		"block":               {block.String(), "nested deeper"},
		"keys":                {strings.Repeat("a: 1\n", 200_000), "more than 10000 keys"},
		"tags":                {strings.Repeat("- !\n", 100_000), "tag"},
		"items":               {strings.Repeat("- 1\n", 200_000), "words of YAML"},
		"tabs":                {"a: \"" + strings.Repeat("\t", 1_000_000) + "\"", "tabs"},
		"not UTF-8":           {"plan: \xff\n", "UTF-8"},
		"UTF-16":              {"\xff\xfep\x00", "UTF-16"},
		"NUL":                 {"plan: a\x00b\n", "control character"},
	} {
		t.Run(name, func(t *testing.T) {
			start, text := time.Now(), []byte(c.text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, found := Parse("x.yaml", text, Options{Drivers: fakes()})
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 200<<20 {
				t.Errorf("refused after %d MB were allocated", used>>20)
			}
			if p != nil || !strings.Contains(found.String(), c.want) {
				t.Errorf("want a finding with %q, got %.300s", c.want, found)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("refused after %v", took)
			}
			if len(found) > 200 {
				t.Errorf("%d findings", len(found))
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		for _, file := range fixtures(&testing.T{}, pattern) {
			text, _, _ := readFixture(&testing.T{}, file)
			f.Add([]byte(text))
		}
	}
	f.Add([]byte("a: &a\n  <<: *a\n"))
	f.Add([]byte("checks: !x y"))
	f.Fuzz(func(t *testing.T, text []byte) {
		opt := Options{Drivers: fakes(), Sinks: []string{"csv"}, Env: func(string) (string, bool) { return "", false }}
		p, found := Parse("testdata/x.yaml", text, opt)
		if (p == nil) != found.HasErrors() {
			t.Fatalf("plan %v with %v", p, found)
		}
		for _, x := range found {
			if x.Message == "" || strings.Contains(x.Message, "\n") {
				t.Fatalf("message %q", x.Message)
			}
			if x.File == "testdata/x.yaml" && (x.Line > strings.Count(string(text), "\n")+strings.Count(string(text), "\r")+1) {
				t.Fatalf("%v is behind the end", x)
			}
			x.Render(diag.Colour)
		}
		if p == nil {
			return
		}
		if len(p.Targets) == 0 || len(p.Scenarios) == 0 || p.Reference >= len(p.Targets) {
			t.Fatal(dump(p))
		}
		for _, s := range p.everyFlow() {
			if len(s.Steps) == 0 {
				t.Fatal("a scenario that calls nothing")
			}
			for _, st := range s.Steps {
				if len(st.Actions) != len(p.Targets) {
					t.Fatal("a step without an action for each target")
				}
				for _, a := range st.Actions {
					if a.Call == nil {
						t.Fatal("a step that is not prepared")
					}
				}
			}
		}
		dump(p)
	})
}
