package diag

import (
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	at := func(line, col int) Place { return Place{File: "plans/x.yaml", Line: line, Column: col} }
	for _, c := range []struct {
		name string
		f    Finding
		want string
	}{
		{
			"whole", Finding{Place: at(12, 7), EndColumn: 16, Message: `unknown key "durration"`, Hint: "did you mean duration?", Source: "      durration: 10s"},
			`plans/x.yaml:12:7: unknown key "durration"
   12 |       durration: 10s
      |       ^^^^^^^^^
      did you mean duration?
`,
		},
		{
			"one column", Finding{Place: at(1, 1), Message: "m", Source: "abc"},
			"plans/x.yaml:1:1: m\n    1 | abc\n      | ^\n",
		},
		{
			"warning with notes", Finding{Place: at(1, 2), Severity: Warning, Message: "m", Source: "abc", Notes: []string{"one", "two\nlines"}},
			"plans/x.yaml:1:2: warning: m\n    1 | abc\n      |  ^\n      one\n      two\n      lines\n",
		},
		{
			"wide text before", Finding{Place: at(3, 5), EndColumn: 7, Message: "m", Source: "日本 =xx"},
			"plans/x.yaml:3:5: m\n    3 | 日本 =xx\n      |      " + " ^^\n",
		},
		{
			"wide text meant", Finding{Place: at(3, 1), EndColumn: 3, Message: "m", Source: "日本"},
			"plans/x.yaml:3:1: m\n    3 | 日本\n      | ^^^^\n",
		},
		{
			"combining marks", Finding{Place: at(3, 4), EndColumn: 5, Message: "m", Source: "e\u0301 x"},
			"plans/x.yaml:3:4: m\n    3 | e\u0301 x\n      |   ^\n",
		},
		{
			"tab before", Finding{Place: at(3, 3), EndColumn: 4, Message: "m", Source: "a\tb"},
			"plans/x.yaml:3:3: m\n    3 | a\tb\n      |  \t^\n",
		},
		{
			"behind the end", Finding{Place: at(3, 4), Message: "m", Source: "abc"},
			"plans/x.yaml:3:4: m\n    3 | abc\n      |    ^\n",
		},
		{
			"far behind the end", Finding{Place: at(3, 40), Message: "m", Source: "abc"},
			"plans/x.yaml:3:40: m\n    3 | abc\n",
		},
		{
			"control characters", Finding{Place: at(3, 2), Message: "m\x1b[31m", Source: "a\x1bb\u202e"},
			"plans/x.yaml:3:2: m�[31m\n    3 | a�b�\n      |  ^\n",
		},
		{"no line", Finding{Place: Place{File: "x"}, Message: "m", Hint: "h"}, "x: m\n      h\n"},
		{"no place", Finding{Message: "m"}, "m\n"},
	} {
		if got := c.f.Render(Style{}); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestLongLinesAreShortened(t *testing.T) {
	long := strings.Repeat("a", 300) + "HERE" + strings.Repeat("b", 300)
	for _, c := range []struct {
		line     string
		col, end int
		under    string
	}{
		{long, 301, 305, "HERE"},
		{long, 1, 5, "aaaa"},
		{long, 601, 605, "bbbb"},
		{strings.Repeat("日", 300) + "HERE", 301, 305, "HERE"},
		{strings.Repeat("\t", 50) + "HERE" + strings.Repeat(" x", 50), 51, 55, "HERE"},
	} {
		text, caret := excerpt(c.line, c.col, c.end)
		if spread([]rune(text)) > excerptWidth+2 {
			t.Errorf("%d columns are shown", spread([]rune(text)))
		}
		// The carets are under the text when both are laid out in columns.
		i := strings.IndexByte(caret, '^')
		if i < 0 {
			t.Fatalf("no caret under %q", text)
		}
		before := spread([]rune(caret[:i]))
		var under strings.Builder
		col := 0
		for _, r := range text {
			if col >= before && col < before+spread([]rune(caret[i:])) {
				under.WriteRune(r)
			}
			col += columns(r)
		}
		if under.String() != c.under {
			t.Errorf("the carets are under %q, want %q:\n%s\n%s", under.String(), c.under, text, caret)
		}
	}
}

// What is meant may be longer than what fits.
func TestLongMarksAreCut(t *testing.T) {
	text, caret := excerpt(strings.Repeat("a", 1000), 1, 1001)
	if len([]rune(text)) != len([]rune(caret))+1 || !strings.HasSuffix(text, "…") {
		t.Errorf("%q\n%q", text, caret)
	}
}

func TestColourIsOnlyAdded(t *testing.T) {
	f := Finding{Place: Place{File: "x", Line: 1, Column: 2}, Severity: Warning, Message: "m", Hint: "h", Source: "abc"}
	coloured := f.Render(Colour)
	plain := coloured
	for _, code := range []string{Colour.Place, Colour.Error, Colour.Warning, Colour.Source, Colour.Hint, Colour.Reset} {
		plain = strings.ReplaceAll(plain, code, "")
	}
	if coloured == plain || plain != f.Render(Style{}) {
		t.Errorf("%q", coloured)
	}
}

func TestOneLine(t *testing.T) {
	fs := Findings{
		{Place: Place{File: "x", Line: 2, Column: 1}, Message: "b", Hint: "do\nthis"},
		{Place: Place{File: "x", Line: 1, Column: 9}, Message: "a", Severity: Warning, Source: "s"},
		{Place: Place{File: "a"}, Message: "first"},
		{Place: Place{File: "x", Line: 2, Column: 1}, Message: "a"},
	}
	fs.Sort()
	const want = "a: first\nx:1:9: warning: a\nx:2:1: b: do this\nx:2:1: a\n"
	if got := fs.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !fs.HasErrors() || fs[1:2].HasErrors() {
		t.Error("HasErrors counts warnings, or no errors")
	}
}
