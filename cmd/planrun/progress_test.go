package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// TestProgress walks through a run by a clock of its own.
func TestProgress(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pr := trackProgress([]result.Cell{
		{Scenario: "http", Phase: "sequential", Target: "direct", Rounds: 2, Stages: []result.Stage{{Kind: "hold"}}},
		{Scenario: "http", Phase: "sequential", Target: "hybrid", Rounds: 2, Stages: []result.Stage{{Kind: "hold"}}},
		{Scenario: "http", Phase: "load", Target: "direct", Rounds: 1, Stages: []result.Stage{{Kind: "ramp", Length: 10 * time.Second}, {Kind: "hold", Length: 50 * time.Second}}},
		{Scenario: "http", Phase: "search", Target: "direct", Rounds: 1, Kind: "capacity"},
	}, func() time.Time { return at })
	expect := func(want string) {
		t.Helper()
		if got := pr.state().line(); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
	expect("0/6 rounds, at least 1m0s left; between rounds")
	pr.watch(&result.Round{Cell: 0})
	at = at.Add(2 * time.Second)
	h := new(record.Histogram)
	for i := range int64(100) {
		h.Record(1_234_567 * (i + 1))
	}
	pr.watch(&result.Interval{OK: 40, Failed: 3, Dropped: 2, InFlight: 7, MaxLag: 12*time.Millisecond + 300*time.Microsecond, Latency: h})
	expect("0/6 rounds, at least 1m0s left; http.sequential.direct round 1/2, 2s, 43 iterations; " +
		"43/s, p50 61.7ms, p99 122ms, 3 failed, 2 dropped, 7 in flight, generator 12ms late")
	at = at.Add(2 * time.Second)
	pr.watch(&result.RoundEnd{Cell: 0})
	// The other target is expected to take as long; the search tells nobody how long it takes.
	expect("1/6 rounds, at least 1m12s left; between rounds")
	at = at.Add(time.Second)
	pr.watch(&result.Round{Cell: 1})
	at = at.Add(3 * time.Second)
	pr.watch(&result.Interval{BytesIn: 12_345_678})
	expect("1/6 rounds, at least 1m14s left; http.sequential.hybrid round 1/2, 3s of 4s; 12.3 MB/s, 0 in flight")
	pr.watch(&result.RoundEnd{Cell: 1})
	for _, cell := range []int{1, 0} {
		pr.watch(&result.Round{Cell: cell, Round: 1})
		pr.watch(&result.RoundEnd{Cell: cell, Round: 1})
	}
	pr.watch(&result.Round{Cell: 3})
	pr.watch(&result.RoundEnd{Cell: 3})
	pr.watch(&result.Round{Cell: 2})
	at = at.Add(15 * time.Second)
	s := pr.state()
	if s.phase != 2 || s.phases != 3 || s.phaseRounds != 1 || s.done != 5 || !strings.HasPrefix(s.left, "about 45s") {
		t.Errorf("%+v", s)
	}
	if got := s.roundShare(); got != 0.25 {
		t.Errorf("the round is at %v", got)
	}
	if got := s.runShare(); got != 5.25/6 {
		t.Errorf("the run is at %v", got)
	}
}

// TestRampThatEndsIsDone has a log without a terminal: a phase with a ramp that ends on time is done, and nothing in the log
// reads like a failure, nor moves a cursor. What is over before the first line has none.
func TestRampThatEndsIsDone(t *testing.T) {
	for length, want := range map[time.Duration]string{
		25 * time.Second: `planrun: 0/1 rounds, about 15s left; s.load.a, 10s of 25s; 100/s, 3 in flight
planrun: 0/1 rounds, about 5s left; s.load.a, 20s of 25s; 100/s, 3 in flight
planrun: 1/1 rounds; done
`,
		5 * time.Second: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			pl := &plan.Plan{Targets: []plan.Target{{Name: "a"}}, Scenarios: []*plan.Scenario{{Name: "s", Phases: []*plan.Phase{{
				Name: "load", Kind: plan.RampAndHold, Open: true, Rounds: 1, Stages: []plan.Stage{
					{Name: "ramp", Ramp: true, To: 100, Length: length - 2*time.Second}, {From: 100, To: 100, Length: 2 * time.Second, Judged: true},
				},
			}}}}}
			var log bytes.Buffer
			p := &program{stderr: &log}
			pr := p.newProgress(pl)
			pr.watch(&result.Round{})
			for second := range int(length / time.Second) {
				time.Sleep(time.Second)
				pr.watch(&result.Interval{Second: second, OK: 100, InFlight: 3})
			}
			pr.watch(&result.RoundEnd{Length: length})
			pr.close()
			if log.String() != want {
				t.Errorf("after %v the log is\n%swant\n%s", length, log.String(), want)
			}
		})
	}
}

// TestBarsFit has long names and every width.
func TestBarsFit(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := state{
		running: true, done: 3, rounds: 100, left: "at least 1h20m left", phase: 2, phases: 12, phaseName: strings.Repeat("very_long_", 20), target: "测试测试",
		round: 3, of: 10, elapsed: time.Second, expected: time.Minute, figures: []string{"1000/s", "p50 12ms", "p99 40ms", "3 failed", "25 in flight", "generator 3ms late"},
	}
	for columns := 20; columns < 200; columns++ {
		b := &bars{out: f, fixed: columns}
		for _, text := range []string{s.head(), s.phaseText(), s.roundText()} {
			taken := len(label) + b.barWidth() + 2
			if got := taken + runewidth.StringWidth(b.fit(text, taken)); got > columns && columns >= 24 {
				t.Errorf("%d columns: %d are written", columns, got)
			}
		}
		if got := runewidth.StringWidth(b.figures(&s)); got > columns {
			t.Errorf("%d columns: the figures take %d", columns, got)
		}
	}
	if got := (&bars{out: f, fixed: 60}).figures(&s); got != "      1000/s, p50 12ms, p99 40ms, 3 failed, 25 in flight" {
		t.Errorf("%q", got)
	}
}
