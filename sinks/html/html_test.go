package html

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html/template"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks"
	"github.com/planrun/planrun/sinks/digest"
	"github.com/planrun/planrun/sinks/sinktest"
)

var _ sinks.Sink = (*Sink)(nil)

var (
	addresses = regexp.MustCompile(`(?:src|href|action|data|poster|srcset|xlink:href)\s*=\s*"([^"]*)"|url\(|@import`)
	handlers  = regexp.MustCompile(`<[^>]*\son[a-z]+\s*=`)
	pictures  = regexp.MustCompile(`(?s)<svg .*?</svg>`)
	pixels    = regexp.MustCompile(`NaN|Inf`)
)

// offline checks that a page asks nobody for anything, runs nothing, and that its pictures are sound.
func offline(t *testing.T, out []byte) {
	if !utf8.Valid(out) {
		t.Error("it is not UTF-8")
	}
	text := string(out)
	for _, m := range addresses.FindAllStringSubmatch(text, -1) {
		if m[1] != "data:," {
			t.Errorf("it refers to something: %s", m[0])
		}
	}
	if m := handlers.FindString(text); m != "" {
		t.Errorf("it has a handler: %s", m)
	}
	for _, tag := range []string{"<script", "<iframe", "<img", "<object", "<embed", "<form"} {
		if strings.Contains(strings.ToLower(text), tag) {
			t.Errorf("it has %s", tag)
		}
	}
	for _, svg := range pictures.FindAllString(text, -1) {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("a picture is no XML: %v\n%s", err, svg)
				break
			}
		}
		if m := pixels.FindString(svg); m != "" {
			t.Errorf("a picture has %s in it", m)
		}
	}
	if len(out) > 400_000 {
		t.Errorf("%d bytes", len(out))
	}
}

// plain leaves out the style sheet, so that golden files hold what changes with the run.
type plain struct{ *Sink }

var sheet = regexp.MustCompile(`(?s)<style>.*?</style>`)

func (p plain) Write(w io.Writer, run *result.Run) error {
	var b bytes.Buffer
	if err := p.Sink.Write(&b, run); err != nil {
		return err
	}
	_, err := w.Write(sheet.ReplaceAll(b.Bytes(), []byte("<style></style>")))
	return err
}

func TestGolden(t *testing.T) {
	s := New(Options{Results: "results/x.msgpack"})
	sinktest.Render(t, plain{s}, ".html", nil)
	for _, c := range sinktest.Cases() {
		var b bytes.Buffer
		if err := s.Write(&b, c.Open(t)); err != nil {
			t.Fatal(err)
		}
		offline(t, b.Bytes())
	}
}

// TestSizeWithoutData is what a page of the smallest run weighs.
func TestSizeWithoutData(t *testing.T) {
	for _, c := range sinktest.Cases() {
		if c.Name != "empty" {
			continue
		}
		var b bytes.Buffer
		if err := New(Options{}).Write(&b, c.Open(t)); err != nil {
			t.Fatal(err)
		}
		if b.Len() > 300_000 {
			t.Errorf("%d bytes", b.Len())
		}
	}
}

// TestVerdictIsFirst looks for what a reader looks for first.
func TestVerdictIsFirst(t *testing.T) {
	for _, c := range sinktest.Cases() {
		var b bytes.Buffer
		if err := New(Options{}).Write(&b, c.Open(t)); err != nil {
			t.Fatal(err)
		}
		body := b.String()[strings.Index(b.String(), "<body>"):]
		verdict := strings.Index(body, `<p class="line">`)
		for _, later := range []string{"<table", "<svg", "<h2"} {
			if at := strings.Index(body, later); at >= 0 && at < verdict {
				t.Errorf("%s: %s comes before the verdict", c.Name, later)
			}
		}
	}
}

func TestAxis(t *testing.T) {
	a := newAxis(1, 13e6, 605e6, 0, 100)
	if a.log && a.high != 605e6 || !a.log && a.high < 605e6 {
		t.Errorf("%+v does not reach the greatest value", a)
	}
	for _, high := range []float64{0, 1, 3, 605, 1e9, 1e15} {
		a := newAxis(1, 0, high, 200, 20)
		ticks := a.ticks(5)
		if len(ticks) < 2 || len(ticks) > 7 {
			t.Errorf("up to %v: ticks %v", high, ticks)
		}
		if at := a.at(high); at < 20 || at > 200 {
			t.Errorf("%v lies at %v", high, at)
		}
	}
	for _, low := range []float64{1e-3, 1, 5e5} {
		a := newAxis(1, low, 1e9, 200, 20)
		if !a.log {
			t.Errorf("from %v to 1e9 it is not logarithmic", low)
		}
		if n := len(a.ticks(5)); n < 2 || n > 6 {
			t.Errorf("from %v: %d ticks", low, n)
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
	offline(t, b.Bytes())
	sinktest.Golden(t, "testdata/trend.html", sheet.ReplaceAll(b.Bytes(), []byte("<style></style>")))
}

// TestLoadAsExecuted looks for what ran: each phase's load, each target, the version, and what was asked on the command line.
func TestLoadAsExecuted(t *testing.T) {
	for _, c := range sinktest.Cases() {
		if c.Name == "many" || c.Name == "hostile" {
			continue
		}
		run := c.Open(t)
		run.Settings = map[string]string{"vars.size": "8MiB"}
		var b bytes.Buffer
		if err := New(Options{}).Write(&b, run); err != nil {
			t.Fatal(err)
		}
		want := []string{"planrun " + run.Tool, "set: vars.size", "8MiB"}
		for _, x := range run.Cells {
			want = append(want, template.HTMLEscapeString(x.Shape), x.Target)
		}
		for _, text := range want {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%s: %q is missing", c.Name, text)
			}
		}
	}
}

// A chart of failures alone explains neither bytes nor latencies.
func TestCaptionOfFailures(t *testing.T) {
	run := result.NewRun()
	frames := []result.Frame{
		&result.Header{Version: 1},
		&result.Cell{Scenario: "s", Phase: "p", Target: "a", Kind: "sequential", Rounds: 1},
		&result.Round{},
	}
	for second := range 4 {
		frames = append(frames, &result.Interval{Second: second, Failed: 5})
	}
	for _, f := range append(frames, &result.RoundEnd{}) {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	if c, ok := over([]series{{cell: run.Cells[0]}}); !ok || !strings.Contains(c.Caption, "Failures are counted") || strings.Contains(c.Caption, "Bytes are") {
		t.Errorf("the caption is of another chart: %q", c.Caption)
	}
}
