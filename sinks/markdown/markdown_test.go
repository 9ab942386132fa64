package markdown

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/planrun/planrun/sinks"
	"github.com/planrun/planrun/sinks/digest"
	"github.com/planrun/planrun/sinks/sinktest"
)

var _ sinks.Sink = (*Sink)(nil)

var (
	spans   = regexp.MustCompile("``+.*?``+|`[^`]*`")
	escaped = regexp.MustCompile(`\\.`)
	tags    = regexp.MustCompile(`<(br|details|summary|/details|/summary)>`)
	mention = regexp.MustCompile(`[@#][\pL\pN]`)
)

// intact checks that tables have as many fields in each row as in their head, and that nothing from outside means anything.
func intact(t *testing.T, out []byte) {
	if len(out) > DefaultLimit {
		t.Errorf("%d bytes", len(out))
	}
	if !utf8.Valid(out) {
		t.Error("it is not UTF-8")
	}
	fields, open := 0, 0
	for n, line := range strings.Split(string(out), "\n") {
		if i := strings.IndexFunc(line, unicode.IsControl); i >= 0 {
			t.Errorf("line %d has a control character: %q", n+1, line)
		}
		bare := escaped.ReplaceAllString(line, "")
		if strings.HasPrefix(line, "|") {
			if got := strings.Count(bare, "|"); fields == 0 {
				fields = got
			} else if got != fields {
				t.Errorf("line %d has %d pipes, the table %d: %s", n+1, got, fields, line)
			}
		} else {
			fields = 0
		}
		bare = spans.ReplaceAllString(bare, "")
		open += strings.Count(bare, "<details>") - strings.Count(bare, "</details>")
		bare = tags.ReplaceAllString(bare, "")
		if strings.ContainsAny(bare, "<`") {
			t.Errorf("line %d has a tag or half a code span: %s", n+1, line)
		}
		if m := mention.FindString(strings.TrimLeft(bare, "#")); m != "" {
			t.Errorf("line %d refers to %s: %s", n+1, m, line)
		}
	}
	if open != 0 {
		t.Errorf("%d details are not closed", open)
	}
}

func TestGolden(t *testing.T) {
	sinktest.Render(t, New(Options{Results: "results/x.msgpack"}), ".md", intact)
}

// TestAnyLimitIsKept leaves out more and more, and says so.
func TestAnyLimitIsKept(t *testing.T) {
	for _, c := range sinktest.Cases() {
		run := c.Open(t)
		var whole bytes.Buffer
		if err := New(Options{Limit: 1 << 30}).Write(&whole, run); err != nil {
			t.Fatal(err)
		}
		for limit := 2000; limit < whole.Len()+1000; limit = limit*5/4 + 1 {
			var b bytes.Buffer
			if err := New(Options{Limit: limit}).Write(&b, run); err != nil {
				t.Fatal(err)
			}
			if b.Len() > limit {
				t.Errorf("%s, limit %d: %d bytes", c.Name, limit, b.Len())
			}
			if less := b.Len() < whole.Len(); less != strings.Contains(b.String(), "rows did not fit here") {
				t.Errorf("%s, limit %d: %d bytes of %d, and it says otherwise", c.Name, limit, b.Len(), whole.Len())
			}
			intact(t, b.Bytes()[:min(b.Len(), DefaultLimit)])
			if !strings.HasPrefix(b.String(), whole.String()[:100]) {
				t.Errorf("%s, limit %d: the verdict is not first", c.Name, limit)
			}
		}
	}
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a|b": `a\|b`, "`x`": "\\`x\\`", "<img>": "&lt;img&gt;", "a&b": "a&amp;b", "@team": "@\u200bteam", "#12": "#\u200b12",
		"a @ b": "a @ b", "# x": "# x", "GH-12": "GH-\u200b12", "!3": "!\u200b3", "a_b*c": `a\_b\*c`, "[x](y)": `\[x\](y)`, `\|`: `\\\|`, "$a$": `\$a\$`,
		"94.14%": "94.14%", "-1": "-1",
	} {
		if got := escape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"- a": `\- a`, "1. a": `1\. a`, "12) a": `12\) a`, "# a": `\# a`, "a": "a", "": "", "30 Nov": "30 Nov"} {
		if got := paragraph(in); got != want {
			t.Errorf("paragraph %q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"a": "`a`", "a|b": "`a\\|b`", "a`b": "``a`b``", "`a": "`` `a ``", "": "", "``": "``` `` ```"} {
		if got := code(in, true); got != want {
			t.Errorf("code %q: %q, want %q", in, got, want)
		}
	}
}

func TestTrend(t *testing.T) {
	trend := &digest.Trend{}
	for _, run := range sinktest.Trend(t) {
		trend.Add(run)
	}
	var b bytes.Buffer
	if err := New(Options{}).WriteTrend(&b, trend); err != nil {
		t.Fatal(err)
	}
	intact(t, b.Bytes())
	sinktest.Golden(t, "testdata/trend.md", b.Bytes())
}
