package result

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
)

// example is a stream with every kind of frame and field in it. Blocks have n samples.
func example(n int) []Frame {
	random := rand.New(rand.NewPCG(1, 2))
	block := func(cell, round int) *Block {
		b := &Block{Cell: cell, Round: round}
		for i := range n {
			s := record.Sample{
				Due: int64(i) * 1e7, Step: record.Whole, Stage: int16(i % 2), Iteration: int64(i), User: int32(i % 3),
				DNS: -1, Connect: -1, TLS: -1, Wait: 1500, TTFB: 1e6 + random.Int64N(1e6), Transfer: random.Int64N(1e4),
				BytesIn: 8192, BytesOut: 17, Status: 200,
			}
			s.Lag = random.Int64N(30e3)
			s.Start = s.Due + s.Lag
			s.End = s.Start + s.Wait + s.TTFB + s.Transfer + random.Int64N(5000)
			if i%5 == 4 {
				s.Paused = 2000
				s.End += s.Paused
			}
			switch {
			case i == 0:
				s.Flags, s.DNS, s.Connect, s.TLS = record.Opened, 0, 2e6, 3e6
				s.End += 5e6
			case i%10 == 3:
				s.Status, s.Failure, s.TTFB = 503, drivers.Status, -1
			case i%10 == 7:
				s = record.Sample{Due: s.Due, Start: s.Due + 3e9, End: s.Due + 3e9, Lag: 2e9, Stage: s.Stage, Step: record.Whole,
					DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1, Flags: record.Dropped, Iteration: s.Iteration}
			}
			b.Samples = append(b.Samples, s)
		}
		return b
	}
	h := new(record.Histogram)
	for i := range int64(n) {
		h.Record(1e6 + i*1e5)
	}
	stages := []Stage{
		{Name: "ramp", Kind: "ramp", Length: 2 * time.Second, To: 100},
		{Kind: "hold", Judged: true, Start: 2 * time.Second, Length: 5 * time.Second, From: 100, To: 100},
	}
	cell := func(target string) *Cell {
		return &Cell{
			Scenario: "http", ScenarioTitle: "HTTP requests", Phase: "load", PhaseTitle: "Load", Kind: "ramp-and-hold",
			Target: target, Rounds: 2, Open: true, Shape: "0 to 100/s in 2 s, hold 5 s", Timeout: 15 * time.Second,
			Steps: []Step{{Name: "get", Driver: "http", Around: "all"}}, Stages: stages,
		}
	}
	return []Frame{
		&Header{
			Version: Version, Tool: "1.2.3", Plan: "hybrid", Description: "What it costs", File: "plans/hybrid.yaml",
			Text: []byte("plan: hybrid\n"), Hash: "c0ffee", Start: time.Date(2026, 11, 30, 15, 4, 5, 678, time.UTC),
			Seed: 1<<64 - 1, Targets: []Target{{Name: "direct", Lab: true}, {Name: "hybrid"}}, Reference: 1,
			Environment: map[string]string{"os": "linux", "cpus": "2"}, Settings: map[string]string{"vars.x": "1"}, Samples: true,
			Assertions: []Assertion{
				{Text: "p50 < 2s", Place: "plans/hybrid.yaml:3:4", Scenario: "http", Phase: "load", Severity: "warn", Window: time.Second, Abort: true, After: time.Minute},
				{Text: "ok > 5"},
			},
			Vars: map[string]string{"x": "64MiB"}, Against: "baselines/v4.2.msgpack", Strict: true,
		},
		cell("direct"), cell("hybrid"),
		&Round{Cell: 0, Round: 0, Release: time.Second},
		block(0, 0),
		&Interval{Cell: 0, Round: 0, Second: 0, OK: 8, Failed: 1, Dropped: 1, InFlight: 3, BytesIn: 65536, MaxLag: time.Millisecond, Latency: h, Probe: h},
		&Interval{Cell: 0, Round: 0, Second: 1},
		&Example{Cell: 0, Round: 0, Step: record.Whole, Failure: drivers.Status, At: 30 * time.Millisecond, Text: "503 <b>|`busy`\n"},
		&RoundEnd{
			Cell: 0, Round: 0, Length: 7100 * time.Millisecond, Opened: 3, MaxInFlight: 4, Backlogged: 5, Protocols: []string{"HTTP/2"}, Lost: 2,
			Stopped: 5 * time.Second, Probe: h, CPU: 3 * time.Second, Cores: 2, GC: time.Millisecond, GCLongest: 200 * time.Microsecond,
			ClockStep: -time.Second, Aborted: "plans/hybrid.yaml:3:4", Notes: []string{"a", "b"},
			Addresses: []drivers.Address{{Addr: "127.0.0.1:80", Opened: 3}, {Addr: "/run/app.sock", Failed: 1}}, MoreAddresses: 7,
		},
		&Round{Cell: 1, Round: 0, Release: 9 * time.Second},
		block(1, 0),
		&RoundEnd{Cell: 1, Round: 0, Length: 7 * time.Second},
		&Round{Cell: 1, Round: 1, Release: 17 * time.Second},
		block(1, 1),
		&Interval{Cell: 1, Round: 1, Second: 2, OK: 1},
		&Example{Cell: 1, Round: 1, Failure: drivers.Timeout, Text: "no answer within 15 s"},
		&RoundEnd{Cell: 1, Round: 1, Length: 3 * time.Second, Interrupted: true},
		&Cell{Kind: "capacity", Rounds: 2, Open: true},
		&Round{Cell: 2, Round: 0},
		&Trial{Cell: 2, Round: 0, Stage: 0, Rate: 500, Length: 10 * time.Second},
		&TrialEnd{Cell: 2, Stage: 0, Outcome: Inconclusive, Reason: "too late"},
		&Capacity{Cell: 2, Round: 0, Outcome: Inconclusive, Confirmed: -1, Above: -1, Reason: "too late"},
		&Round{Cell: 2, Round: 1, Release: 30 * time.Second},
		&Trial{Cell: 2, Round: 1, Stage: 1, Rate: 500, Length: 10 * time.Second},
		&TrialEnd{Cell: 2, Stage: 1, Outcome: Passed, Reason: "p95 = 20 ms"},
		&Trial{Cell: 2, Round: 1, Stage: 2, Rate: 1000, Start: 12 * time.Second, Length: 10 * time.Second},
		&TrialEnd{Cell: 2, Stage: 2, Outcome: Failed, Reason: "p95 = 2 s"},
		&Capacity{Cell: 2, Round: 1, Outcome: Passed, Held: 500, Confirmed: 1, Failed: 1000, Above: 2, InFlight: 10.5, Reason: "p95 was 2 s"},
		&Verdict{
			Assertion: "p50 < 2s", Place: "plans/hybrid.yaml:3:4", Implied: true, Severity: "warn", Scenario: "http", Phase: "load",
			Stage: "hold", Step: "get", Target: "direct", Outcome: Passed, Value: "1.5 ms", Limit: "2 s", N: 8, Detail: []string{"p50 = 1.5 ms"},
			Interval: "1.4 ms to 1.6 ms", Window: "10 s to 20 s",
		},
		&End{Outcome: Failed, Exit: 1, Interrupted: true, At: 20 * time.Second, Notes: []string{"the disk was full"}},
	}
}

// write writes frames as the methods of Writer do.
func write(t testing.TB, w *Writer, frames ...Frame) {
	t.Helper()
	for _, f := range frames {
		err := w.Frame(f)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

func stream(t testing.TB, frames ...Frame) []byte {
	var b bytes.Buffer
	write(t, NewWriter(&b), frames...)
	return b.Bytes()
}

// read reads frames until an error, with blocks copied.
func read(b []byte) ([]Frame, error) {
	r, err := NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	var frames []Frame
	for {
		f, err := r.Next()
		if err != nil {
			return frames, err
		}
		if b, ok := f.(*Block); ok {
			f = &Block{b.Cell, b.Round, append([]record.Sample(nil), b.Samples...)}
		}
		frames = append(frames, f)
	}
}

// histograms compares histograms by their wire form, which has all that they know.
var histograms = cmp.Comparer(func(a, b *record.Histogram) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.Append(nil), b.Append(nil))
})

func TestRoundTrip(t *testing.T) {
	want := example(50)
	got, err := read(stream(t, want...))
	if err != io.EOF {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, histograms); d != "" {
		t.Error(d)
	}
}

// TestFieldsAreCovered makes sure that a field that is added to the model is added to the example, and so to the format.
func TestFieldsAreCovered(t *testing.T) {
	seen := map[string]bool{}
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			visit(v.Elem())
		case reflect.Slice:
			for i := range v.Len() {
				visit(v.Index(i))
			}
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() || v.Type() == reflect.TypeFor[record.Histogram]() {
				return
			}
			for i := range v.NumField() {
				name := v.Type().Name() + "." + v.Type().Field(i).Name
				seen[name] = seen[name] || !v.Field(i).IsZero()
				visit(v.Field(i))
			}
		}
	}
	for _, f := range example(50) {
		visit(reflect.ValueOf(f))
	}
	for name, set := range seen {
		if !set {
			t.Errorf("the example leaves %s at zero", name)
		}
	}
}

func TestEveryCutLeavesWhatCameBefore(t *testing.T) {
	frames := example(10)
	whole := stream(t, frames...)
	ends := []int{}
	for i := range frames {
		ends = append(ends, len(stream(t, frames[:i+1]...)))
	}
	compared := 0
	for cut := range whole {
		complete := 0
		for complete < len(ends) && ends[complete] <= cut {
			complete++
		}
		got, err := read(whole[:cut])
		if complete == 0 {
			if err == nil || len(got) > 0 {
				t.Fatalf("cut at %d: got %d frames, error %v", cut, len(got), err)
			}
			continue
		}
		var c *Cut
		if !errors.As(err, &c) {
			t.Fatalf("cut at %d: error %v", cut, err)
		}
		if c.Offset != int64(ends[complete-1]) {
			t.Fatalf("cut at %d is said to be at %d", cut, c.Offset)
		}
		if len(got) != complete {
			t.Fatalf("cut at %d: %d frames, want %d", cut, len(got), complete)
		}
		if compared == complete {
			continue // the same frames as a byte before
		}
		compared = complete
		if d := cmp.Diff(frames[:complete], got, histograms); d != "" {
			t.Fatalf("cut at %d: %s", cut, d)
		}
		run, err := Load(bytes.NewReader(whole[:cut]))
		if err != nil || run.Cut == nil || run.End != nil {
			t.Fatalf("cut at %d: run %v, error %v", cut, run, err)
		}
	}
}

func TestEveryFlippedByteIsNoticed(t *testing.T) {
	whole := stream(t, example(10)...)
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0x55
		if _, err := read(b); err == nil || err == io.EOF {
			t.Fatalf("byte %d: error %v", i, err)
		}
	}
}
