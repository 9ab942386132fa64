package terminal

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/planrun/planrun/sinks"
	"github.com/planrun/planrun/sinks/digest"
	"github.com/planrun/planrun/sinks/sinktest"
)

var _ sinks.Sink = (*Sink)(nil)

// plainText checks what every output must be: UTF-8 without control characters, and lines that are not too wide.
func plainText(limit int) func(t *testing.T, out []byte) {
	return func(t *testing.T, out []byte) {
		if !utf8.Valid(out) {
			t.Error("it is not UTF-8")
		}
		for n, line := range strings.Split(string(out), "\n") {
			if i := strings.IndexFunc(line, unicode.IsControl); i >= 0 {
				t.Errorf("line %d has a control character: %q", n+1, line)
			}
			if w := width(line); w > limit {
				t.Errorf("line %d is %d columns wide: %s", n+1, w, line)
			}
			if line != strings.TrimRight(line, " ") {
				t.Errorf("line %d ends in blanks: %q", n+1, line)
			}
		}
	}
}

func TestWide(t *testing.T) {
	sinktest.Render(t, New(Options{Width: 160}), ".160.txt", plainText(160))
}

func TestNarrow(t *testing.T) {
	sinktest.Render(t, New(Options{Width: 60}), ".60.txt", plainText(60))
}

func TestAnyWidthIsKept(t *testing.T) {
	for _, c := range sinktest.Cases() {
		run := c.Open(t)
		for w := minWidth; w <= 200; w += 7 {
			var b bytes.Buffer
			if err := New(Options{Width: w}).Write(&b, run); err != nil {
				t.Fatal(err)
			}
			for n, line := range strings.Split(b.String(), "\n") {
				// Columns of figures are never cut; one of them and a long label may be wider than a narrow terminal.
				if got := width(line); got > max(w, 60) {
					t.Errorf("%s, width %d: line %d is %d wide: %s", c.Name, w, n+1, got, line)
				}
			}
		}
	}
}

// TestColorsChangeNothingElse takes the colours out again.
func TestColorsChangeNothingElse(t *testing.T) {
	files := []File{{"results", "results/x.msgpack"}, {"csv", "results/x.csv"}}
	for _, c := range sinktest.Cases() {
		run := c.Open(t)
		var colored, plain bytes.Buffer
		New(Options{Color: true, Files: files}).Write(&colored, run)
		New(Options{Files: files}).Write(&plain, run)
		if !strings.Contains(colored.String(), "\x1b[") {
			t.Errorf("%s: there are no colours", c.Name)
		}
		if visible.Replace(colored.String()) != plain.String() {
			t.Errorf("%s: the text differs", c.Name)
		}
		if !strings.Contains(plain.String(), "\nresults results/x.msgpack\ncsv results/x.csv\n") {
			t.Errorf("%s: the files are not named", c.Name)
		}
	}
}

func TestVerdictComesLast(t *testing.T) {
	want := map[string]string{
		"study": "passed: 4 assertions held", "stages": "failed: 2 of 4 assertions, 1 warning",
		"nodata": "failed: 2 of 3 assertions, for want of data", "inconclusive": "inconclusive: 1 of 2 assertions can't be trusted",
		"interrupted": "interrupted: so far 1 assertion held", "cut": "incomplete: the run did not get to its end",
		"empty": "inconclusive: can't reach http://127.0.0.1:1: connection refused",
	}
	for _, c := range sinktest.Cases() {
		line, ok := want[c.Name]
		if !ok {
			continue
		}
		var b bytes.Buffer
		New(Options{}).Write(&b, c.Open(t))
		if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); lines[len(lines)-1] != line {
			t.Errorf("%s: %q, want %q", c.Name, lines[len(lines)-1], line)
		}
	}
}

func TestWrap(t *testing.T) {
	tests := []struct {
		in   string
		want string
	}{
		{"short", "  short\n"},
		{strings.Repeat("ab ", 20), "  " + strings.TrimRight(strings.Repeat("ab ", 13), " ") + "\n    " + strings.TrimRight(strings.Repeat("ab ", 7), " ") + "\n"},
		{strings.Repeat("x", 80), "  " + strings.Repeat("x", 38) + "\n    " + strings.Repeat("x", 36) + "\n    xxxxxx\n"},
		{strings.Repeat("数", 25), "  " + strings.Repeat("数", 19) + "\n    " + strings.Repeat("数", 6) + "\n"},
		{strings.Repeat("x", 32) + ", n = 50", "  " + strings.Repeat("x", 32) + ",\n    n = 50\n"},
		{"= =  = a", "  = =  = a\n"},
		{"", "\n"},
	}
	for _, test := range tests {
		var b bytes.Buffer
		p := New(Options{Width: 40}).printer(&b)
		p.wrap(2, 4, test.in)
		p.out.Flush()
		if got := strings.ReplaceAll(b.String(), "  \n", "\n"); got != test.want {
			t.Errorf("%q:\n%s\nwant\n%s", test.in, got, test.want)
		}
	}
}

func TestWriteErrorsAreReturned(t *testing.T) {
	full := errors.New("no space left on device")
	r, w := io.Pipe()
	r.CloseWithError(full)
	if err := New(Options{}).Write(w, sinktest.Cases()[0].Open(t)); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

// TestLargeFiguresStayInLine has a million calls of minutes beside one of a moment, and nobody to move a cursor for.
func TestLargeFiguresStayInLine(t *testing.T) {
	row := func(name, count, time string) digest.Detail {
		d := digest.Detail{Scenario: "s", Phase: name, Target: "a", Unit: "ms"}
		for _, column := range digest.Columns {
			switch column {
			case "count", "ok", "failed", "dropped", "opened":
				d.Values = append(d.Values, count)
			default:
				d.Values = append(d.Values, time)
			}
		}
		return d
	}
	var b bytes.Buffer
	p := New(Options{Width: 400}).printer(&b)
	p.scenario([]digest.Detail{row("a_long_name", "1", "0.4"), row("x", "1234567", "100000"), row("y", "", "")})
	p.out.Flush()
	if strings.ContainsAny(b.String(), "\x1b\r\b") {
		t.Errorf("it has more than text:\n%q", b.String())
	}
	lines := strings.Split(strings.Trim(b.String(), "\n"), "\n")[1:]
	if len(lines) != 4 {
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	for _, column := range digest.Columns {
		end := strings.Index(lines[0], column) + len(column)
		for _, line := range lines[1:] {
			if len(line) < end || line[end-1] == ' ' || len(line) > end && line[end] != ' ' {
				t.Errorf("below %q ends no figure:\n%s", column, strings.Join(lines, "\n"))
				break
			}
		}
	}
}
