package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

// TestConsole keeps messages above what is drawn again and again.
func TestConsole(t *testing.T) {
	var out bytes.Buffer
	c := &console{out: &out, size: func() (int, int) { return 20, 10 }}
	draw := func(text string) string {
		out.Reset()
		c.ReadFrom(strings.NewReader(text))
		c.Flush(0)
		return out.String()
	}
	if got, want := draw("a\nb\n"), "\r\x1b[Ka\x1b[K\nb\x1b[K\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.Write([]byte("planrun: interrupted: waiting\n"))
	if got, want := draw("c\nd\n"), "\r\x1b[K\x1b[2Aplanrun:\x1b[K\ninterrupted: waiting\x1b[K\nc\x1b[K\nd\x1b[K\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := draw("e\n"), "\r\x1b[K\x1b[2Ae\x1b[K\n\x1b[K\n\x1b[1A"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if strings.Contains(draw("f\n"), "\x1b[J") {
		t.Error("the rest of the screen is erased at once")
	}
	out.Reset()
	c.Write([]byte("last\n"))
	c.end()
	if got, want := out.String(), "\r\x1b[K\x1b[1Alast\x1b[K\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := draw("g\n"); got != "" {
		t.Errorf("%q is drawn after the end", got)
	}
	if _, err := c.Write([]byte("x\n")); err == nil {
		t.Error("a message is taken in that nobody will see")
	}
}

func TestWrapped(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("word ", 30), strings.Repeat("x", 90), "测试测试测试 测试测试测试", "  indented " + strings.Repeat("y", 50)} {
		for columns := 2; columns < 40; columns++ {
			got := wrapped(text, columns)
			for line := range strings.Lines(got) {
				if w := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); w > columns {
					t.Errorf("%q at %d columns: %q takes %d", text, columns, line, w)
				}
			}
			bare := strings.NewReplacer(" ", "", "\n", "")
			if bare.Replace(got) != bare.Replace(text) {
				t.Errorf("%q at %d columns: %q", text, columns, got)
			}
		}
	}
}

// TestMessageLines has the program's name before each line, and lets those that go on with another be.
func TestMessageLines(t *testing.T) {
	var out bytes.Buffer
	p := &program{stderr: &out}
	p.message("%s", "one\ntwo\n  of two")
	if got, want := out.String(), "planrun: one\nplanrun: two\n  of two\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
