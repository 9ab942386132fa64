package ci

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/sinktest"
)

// pipeline is an environment and what it gathers.
type pipeline struct {
	env             map[string]string
	out             bytes.Buffer
	summary, output string
}

func newPipeline(t *testing.T, system string) *pipeline {
	dir := t.TempDir()
	p := &pipeline{summary: filepath.Join(dir, "summary"), output: filepath.Join(dir, "output")}
	switch system {
	case "github":
		p.env = map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": p.summary, "GITHUB_OUTPUT": p.output}
	case "azure":
		p.env = map[string]string{"TF_BUILD": "True", "AGENT_TEMPDIRECTORY": dir}
	}
	return p
}

func (p *pipeline) get(name string) string { return p.env[name] }

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	githubLine = regexp.MustCompile(`^::(error|warning) file=[^:,\n]*,line=\d+,col=\d+(,endColumn=\d+)?,title=[^:,\n]*::[^\n]*$`)
	azureLine  = regexp.MustCompile(`^##vso\[(task\.logissue type=(error|warning);sourcepath=[^;\]]*;linenumber=\d+;columnnumber=\d+;code=planrun;|task\.uploadsummary|task\.setvariable variable=planrun\.\w+;isOutput=true;|task\.complete result=SucceededWithIssues;)\][^\n]*$`)
	delimiter  = regexp.MustCompile(`planrun_[A-Z2-7]{26}`)
	temporary  = regexp.MustCompile(`(?m)uploadsummary\].*$`)
)

// TestGolden has every case on both systems: what is printed, and what the step gives out.
func TestGolden(t *testing.T) {
	for _, system := range []string{"github", "azure"} {
		for _, c := range sinktest.Cases() {
			t.Run(system+"/"+c.Name, func(t *testing.T) {
				p := newPipeline(t, system)
				s := New(p.get, &p.out)
				run := c.Open(t)
				if err := s.Plan(run, "results/x.msgpack", []string{"report.html"}); err != nil {
					t.Fatal(err)
				}
				exit := 1
				if run.End != nil {
					exit = run.End.Exit
				}
				if err := s.Close(exit); err != nil {
					t.Fatal(err)
				}
				text := p.out.String()
				form := githubLine
				if system == "azure" {
					form = azureLine
				}
				lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
				annotations := 0
				for _, line := range lines {
					if line != "" && !form.MatchString(line) {
						t.Errorf("no command of its kind: %s", line)
					}
					if strings.Contains(line, "logissue") || strings.HasPrefix(line, "::") {
						annotations++
					}
				}
				if annotations > mostAnnotations {
					t.Errorf("%d annotations", annotations)
				}
				text = temporary.ReplaceAllString(text, "uploadsummary]FILE")
				if system == "github" {
					text += "-- outputs --\n" + delimiter.ReplaceAllString(read(t, p.output), "DELIMITER")
					if s := read(t, p.summary); !strings.Contains(s, "## ") || len(s) > 1<<20 {
						t.Errorf("the summary has %d bytes", len(s))
					}
				}
				sinktest.Golden(t, filepath.Join("testdata", c.Name+"."+system+".txt"), []byte(text))
			})
		}
	}
}

func TestNowhere(t *testing.T) {
	for _, env := range []map[string]string{nil, {"CI": "true"}, {"GITLAB_CI": "true"}, {"GITHUB_ACTIONS": "false"}} {
		s := New(func(name string) string { return env[name] }, nil)
		if s != nil {
			t.Errorf("%v: there is a session", env)
		}
		if err := s.Plan(nil, "", nil); err != nil {
			t.Error(err)
		}
		if err := s.Close(0); err != nil {
			t.Error(err)
		}
	}
}

// TestWorstFirst has two plans with more to say than is shown.
func TestWorstFirst(t *testing.T) {
	p := newPipeline(t, "github")
	s := New(p.get, &p.out)
	var run *result.Run
	for _, c := range sinktest.Cases() {
		if c.Name == "one" {
			run = c.Open(t)
		}
	}
	run.Verdicts = nil
	for i := range 8 {
		run.Verdicts = append(run.Verdicts,
			result.Verdict{Assertion: fmt.Sprintf("warned %d", i), Severity: "warn", Outcome: result.Failed},
			result.Verdict{Assertion: fmt.Sprintf("failed %d", i), Outcome: result.Failed},
		)
	}
	for range 2 {
		if err := s.Plan(run, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	if len(lines) != mostAnnotations {
		t.Fatalf("%d annotations", len(lines))
	}
	for i, line := range lines {
		if warning := strings.HasPrefix(line, "::warning "); warning != (i >= 8) {
			t.Errorf("annotation %d is %s", i, line)
		}
	}
	if s.failed != 16 {
		t.Errorf("%d failed", s.failed)
	}
}

// TestSummaryLimit fills the file that other steps' tools share.
func TestSummaryLimit(t *testing.T) {
	run := sinktest.Cases()[0].Open(t)
	p := newPipeline(t, "github")
	for _, before := range []int{0, githubSummary - leastSummary - 100, githubSummary, 2 << 20} {
		if err := os.WriteFile(p.summary, bytes.Repeat([]byte("x"), before), 0o666); err != nil {
			t.Fatal(err)
		}
		err := New(p.get, &p.out).Plan(run, "", nil)
		got := len(read(t, p.summary))
		if before < githubSummary-leastSummary && (err != nil || got <= before || got > githubSummary) {
			t.Errorf("%d bytes before, %d after: %v", before, got, err)
		}
		if before >= githubSummary && (err == nil || got != before) {
			t.Errorf("%d bytes before, %d after, and no error", before, got)
		}
	}
	// What can't be written is an error, not a crash.
	p.env["GITHUB_STEP_SUMMARY"], p.env["GITHUB_OUTPUT"] = filepath.Join(t.TempDir(), "no", "such"), t.TempDir()
	s := New(p.get, &p.out)
	if s.Plan(run, "", nil) == nil || s.Close(0) == nil {
		t.Error("nobody says that nothing was written")
	}
}

func TestWarningsOnly(t *testing.T) {
	for _, x := range []struct {
		warn bool
		exit int
		want bool
	}{{true, 0, true}, {false, 0, false}, {true, 1, false}} {
		p := newPipeline(t, "azure")
		s := New(p.get, &p.out)
		s.warned = x.warn
		if err := s.Close(x.exit); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(p.out.String(), "SucceededWithIssues"); got != x.want {
			t.Errorf("%+v: %s", x, p.out.String())
		}
	}
}

func TestFile(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	if err := os.Mkdir("sub", 0o777); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": root}
	s := New(func(name string) string { return env[name] }, nil)
	if got := s.file("plans/a.yaml"); got != "plans/a.yaml" {
		t.Error(got)
	}
	t.Chdir(filepath.Join(root, "sub"))
	if got := s.file("plans/a.yaml"); got != "sub/plans/a.yaml" {
		t.Error(got)
	}
	if got := s.file("../plans/a.yaml"); got != "plans/a.yaml" {
		t.Error(got)
	}
}

func TestGuard(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n": "plain\n", "::error::x\n": ":\u200b:error::x\n", "  ::set-env name=a::b\n": "  :\u200b:set-env name=a::b\n",
		"a ::error::\n": "a ::error::\n", "x ##vso[task.x]\n": "x #\u200b#vso[task.x]\n", "##VSO[task.x]\n": "#\u200b#VSO[task.x]\n",
		"##[error]x\n": "#\u200b#[error]x\n", "## heading\n": "## heading\n", "a\r::error::x\n": "a\r:\u200b:error::x\n", "no end ::": "no end ::",
		"###[x": "##\u200b#[x", "\n\n::a\n": "\n\n:\u200b:a\n", "": "",
	} {
		// In one piece, and a byte at a time.
		for _, size := range []int{max(1, len(in)), 1} {
			var b bytes.Buffer
			g := NewGuard(&b)
			for i := 0; i < len(in); i += size {
				if n, err := g.Write([]byte(in[i:min(len(in), i+size)])); err != nil || n == 0 {
					t.Fatal(n, err)
				}
			}
			if err := g.Flush(); err != nil {
				t.Fatal(err)
			}
			if b.String() != want {
				t.Errorf("%q in pieces of %d: %q, want %q", in, size, b.String(), want)
			}
		}
	}
}

func TestEscapes(t *testing.T) {
	a := annotation{file: "a,b:c%.yaml", line: "1", column: "2", title: "p50 < 1s, or: 5%", text: "100%\r\nline; ]"}
	if got, want := (&github{}).annotation(a), "::error file=a%2Cb%3Ac%25.yaml,line=1,col=2,title=p50 < 1s%2C or%3A 5%25::100%25%0D%0Aline; ]"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	a.file = "a;b].yaml"
	if got, want := (&azure{}).annotation(a), "##vso[task.logissue type=error;sourcepath=a%3Bb%5D.yaml;linenumber=1;columnnumber=2;code=planrun;]p50 < 1s, or: 5%AZP25: 100%AZP25%0D%0Aline; ]"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestFinding(t *testing.T) {
	f := Finding{File: "a.yaml", Line: 3, Column: 7, EndColumn: 12, Message: `unknown key "durration"`, Detail: "did you mean duration?\n::error::x"}
	for system, want := range map[string]string{
		"github": `::error file=a.yaml,line=3,col=7,endColumn=12,title=plan::unknown key "durration"%0Adid you mean duration? ::error::x`,
		"azure":  `##vso[task.logissue type=error;sourcepath=a.yaml;linenumber=3;columnnumber=7;code=planrun;]plan: unknown key "durration"%0Adid you mean duration? ::error::x`,
	} {
		p := newPipeline(t, system)
		s := New(p.get, &p.out)
		for range 2 * mostAnnotations {
			if err := s.Finding(f); err != nil {
				t.Fatal(err)
			}
		}
		if got := p.out.String(); got != strings.Repeat(want+"\n", mostAnnotations) {
			t.Errorf("%s", got)
		}
	}
	f.Warning, f.Column, f.Line, f.EndColumn = true, 0, 0, 0
	p := newPipeline(t, "github")
	if err := New(p.get, &p.out).Finding(f); err != nil || !strings.HasPrefix(p.out.String(), "::warning file=a.yaml,title=plan::") {
		t.Errorf("%s %v", p.out.String(), err)
	}
}
