package junit

import (
	"bytes"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks"
	"github.com/planrun/planrun/sinks/sinktest"
)

var _ sinks.Sink = (*Sink)(nil)

// sound checks what every reader takes for granted: XML without characters that it forbids, unique cases, and counts that
// add up.
func sound(t *testing.T, out []byte) {
	if !utf8.Valid(out) {
		t.Error("it is not UTF-8")
	}
	for _, r := range string(out) {
		if r < ' ' && r != '\n' || r == 0xfffe || r == 0xffff {
			t.Errorf("it has the character %U", r)
		}
	}
	var all suites
	if err := xml.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	seen := map[[2]string]bool{}
	tests, failures, errors := 0, 0, 0
	for _, g := range all.Suites {
		if g.Tests != len(g.Cases) || g.Tests == 0 {
			t.Errorf("suite %s has %d cases and says %d", g.Name, len(g.Cases), g.Tests)
		}
		if g.Timestamp == "" {
			t.Errorf("suite %s has no time", g.Name)
		}
		for _, c := range g.Cases {
			key := [2]string{c.Class, c.Name}
			if seen[key] || c.Class == "" || c.Name == "" {
				t.Errorf("case %q occurs twice, or is without a name", key)
			}
			seen[key] = true
			tests++
			if c.Failure != nil {
				failures++
			}
			if c.Error != nil {
				errors++
			}
		}
	}
	if tests == 0 || all.Tests != tests || all.Failures != failures || all.Errors != errors {
		t.Errorf("it says %d tests, %d failures, %d errors, and has %d, %d, %d", all.Tests, all.Failures, all.Errors, tests, failures, errors)
	}
}

func TestGolden(t *testing.T) {
	sinktest.Render(t, New(Options{}), ".xml", sound)
}

// TestSchema asks xmllint where it is installed; the rules that matter most are checked without it as well.
func TestSchema(t *testing.T) {
	path, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("xmllint is not installed")
	}
	for _, c := range sinktest.Cases() {
		var b bytes.Buffer
		if err := New(Options{Strict: true}).Write(&b, c.Open(t)); err != nil {
			t.Fatal(err)
		}
		sound(t, b.Bytes())
		file := filepath.Join(t.TempDir(), c.Name+".xml")
		if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(path, "--noout", "--nonet", "--schema", "testdata/strict.xsd", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", c.Name, err, out)
		}
	}
}

// TestNeverGreenByMistake compares with how the run ended: what did not pass has a failure or an error.
func TestNeverGreenByMistake(t *testing.T) {
	for _, c := range sinktest.Cases() {
		run := c.Open(t)
		var b bytes.Buffer
		if err := New(Options{}).Write(&b, run); err != nil {
			t.Fatal(err)
		}
		var all suites
		if err := xml.Unmarshal(b.Bytes(), &all); err != nil {
			t.Fatal(err)
		}
		good := run.End != nil && run.End.Outcome == result.Passed && !run.End.Interrupted
		if green := all.Failures+all.Errors == 0; green != good {
			t.Errorf("%s: passed is %v, and the report says %v", c.Name, good, green)
		}
	}
}

func TestOutcomes(t *testing.T) {
	for _, x := range []struct {
		verdict result.Verdict
		want    string
	}{
		{result.Verdict{Assertion: "p50 < 2s", Outcome: result.Passed}, ""},
		{result.Verdict{Assertion: "p50 < 2s", Outcome: result.Failed, Value: "3s", Limit: "2s", N: 5}, "failure assertion failed: 3s, limit 2s, n = 5"},
		{result.Verdict{Assertion: "p50 < 2s", Outcome: result.NoData, Limit: "2s", Detail: []string{"none of 5 succeeded"}}, "failure no data no data: none of 5 succeeded"},
		{result.Verdict{Assertion: "p50 < 2s", Outcome: result.Inconclusive, Value: "3s"}, "error inconclusive inconclusive: 3s"},
		{result.Verdict{Assertion: "p50 < 2s", Outcome: result.Failed, Severity: "warn"}, "out"},
		{result.Verdict{Outcome: result.Failed}, "failure assertion failed"},
	} {
		c := New(Options{}).testcase(&result.Run{}, x.verdict)
		got := ""
		switch {
		case c.Failure != nil:
			got = "failure " + c.Failure.Type + " " + c.Failure.Message
		case c.Error != nil:
			got = "error " + c.Error.Type + " " + c.Error.Message
		case c.Out != nil:
			got = "out"
		}
		if got != x.want || c.Name == "" {
			t.Errorf("%+v: %q, want %q; named %q", x.verdict, got, x.want, c.Name)
		}
	}
}

func TestPlace(t *testing.T) {
	for in, want := range map[string][2]string{
		"plans/a.yaml:12:9": {"plans/a.yaml", "12"}, `C:\plans\a.yaml:3:1`: {`C:\plans\a.yaml`, "3"}, "": {"", ""}, "x": {"", ""},
	} {
		if file, line := place(in); file != want[0] || line != want[1] {
			t.Errorf("%s: %s %s", in, file, line)
		}
	}
	for _, strict := range []bool{false, true} {
		c := New(Options{Strict: strict}).testcase(&result.Run{}, result.Verdict{Assertion: "a", Place: "p.yaml:1:2", Outcome: result.Passed})
		if (c.File == "") != strict {
			t.Errorf("strict %v: file %q", strict, c.File)
		}
	}
	if !strings.Contains(explain(result.Verdict{Assertion: "a", Place: "p.yaml:1:2"}), "p.yaml:1:2") {
		t.Error("the text of a failure does not say where the assertion is")
	}
}
