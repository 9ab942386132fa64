package result

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
)

const ms = 1_000_000

func sample(stage, step int16, due, end int64) record.Sample {
	return record.Sample{
		Due: due, Start: due, End: end, Stage: stage, Step: step,
		DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1,
	}
}

// staged is a cell of two rounds, each with a ramp and two judged holds around one that is not, and of two steps.
func staged(samples bool) []Frame {
	frames := []Frame{
		&Header{Version: 1, Targets: []Target{{Name: "t"}}, Samples: samples},
		&Cell{Scenario: "s", Phase: "p", Target: "t", Steps: []Step{{Name: "a"}, {Name: "b"}}, Stages: []Stage{
			{Name: "ramp", Kind: "ramp", Length: time.Second},
			{Name: "hold", Kind: "hold", Judged: true, Start: 1 * time.Second, Length: time.Second},
			{Name: "hold_2", Kind: "hold", Start: 2 * time.Second, Length: time.Second},
			{Name: "hold_3", Kind: "hold", Judged: true, Start: 3 * time.Second, Length: time.Second},
		}},
	}
	for round := range 2 {
		frames = append(frames, &Round{Round: round})
		b := &Block{Round: round}
		for stage := range int16(4) {
			for i := range int64(10) {
				due := int64(stage)*1000*ms + i*100*ms
				whole := int64(stage+1) * 10 * ms
				b.Samples = append(b.Samples,
					sample(stage, 0, due, due+whole/4), sample(stage, 1, due+whole/4, due+whole), sample(stage, record.Whole, due, due+whole))
			}
		}
		if samples {
			frames = append(frames, b)
		} else {
			for stage := range 4 {
				for step := range 3 {
					x := &Summary{Round: round, Stage: stage, Step: step - 1, Stats: record.NewStats(record.NewBudget(0))}
					for i := range b.Samples {
						if s := &b.Samples[i]; int(s.Stage) == x.Stage && int(s.Step) == x.Step {
							x.Stats.Add(round, s)
						}
					}
					frames = append(frames, x)
				}
			}
		}
		frames = append(frames, &RoundEnd{Round: round, Length: 4 * time.Second})
	}
	return append(frames, &End{Outcome: Passed})
}

func load(t *testing.T, frames ...Frame) *Run {
	t.Helper()
	run, err := Load(bytes.NewReader(stream(t, frames...)))
	if err != nil || run.Cut != nil {
		t.Fatal(err, run.Cut)
	}
	return run
}

func TestSelections(t *testing.T) {
	for _, samples := range []bool{true, false} {
		c := load(t, staged(samples)...).Cells[0]
		tests := []struct {
			name               string
			round, stage, step int
			n                  int64
			low, high          int64 // ms
			length             time.Duration
		}{
			{"judged", Pooled, Judged, record.Whole, 40, 20, 40, 4 * time.Second},
			{"every", Pooled, Every, record.Whole, 80, 10, 40, 8 * time.Second},
			{"ramps", Pooled, Ramps, record.Whole, 20, 10, 10, 2 * time.Second},
			{"a stage", Pooled, 2, record.Whole, 20, 30, 30, 2 * time.Second},
			{"a round", 1, Judged, record.Whole, 20, 20, 40, 2 * time.Second},
			{"a stage of a round", 0, 3, record.Whole, 10, 40, 40, time.Second},
			{"a step", Pooled, Judged, 1, 40, 15, 30, 4 * time.Second},
			{"a step of a stage of a round", 1, 1, 0, 10, 5, 5, time.Second},
		}
		for _, test := range tests {
			s := c.Stats(test.round, test.stage, test.step)
			low, _ := s.Latency().Min()
			high, _ := s.Latency().Max()
			if s.OK != test.n || s.Latency().Count() != test.n || low != test.low*ms || high != test.high*ms || s.Length != test.length {
				t.Errorf("samples %v: %s: %d of %d to %d ms, length %v", samples, test.name, s.OK, low/ms, high/ms, s.Length)
			}
			if again := c.Stats(test.round, test.stage, test.step); again != s {
				t.Errorf("%s: computed twice", test.name)
			}
		}
		for _, none := range [][3]int{{2, Judged, -1}, {Pooled, 4, -1}, {Pooled, -9, -1}, {-5, 0, -1}, {Pooled, Judged, 2}, {Pooled, Judged, -7}} {
			if s := c.Stats(none[0], none[1], none[2]); s.Due() != 0 || s.OK != 0 {
				t.Errorf("%v: %d samples", none, s.OK)
			}
		}
	}
}

// TestLengthDoesNotLeak asks for selections that have the same samples and different lengths, in turn.
func TestLengthDoesNotLeak(t *testing.T) {
	frames := staged(true)[:3]
	frames = append(frames, &Block{Samples: []record.Sample{sample(1, record.Whole, 0, 5)}}, &RoundEnd{Length: 4 * time.Second}, &End{})
	c := load(t, frames...).Cells[0]
	for range 2 {
		for stage, want := range map[int]time.Duration{1: time.Second, Judged: 2 * time.Second, Every: 4 * time.Second} {
			if s := c.Stats(Pooled, stage, record.Whole); s.Length != want || s.OK != 1 {
				t.Errorf("stage %d: length %v, %d samples", stage, s.Length, s.OK)
			}
		}
	}
	if a, b := c.Stats(0, 1, record.Whole), c.Stats(Pooled, 1, record.Whole); a != b {
		t.Error("the only round is not shared with all rounds")
	}
}

func TestOneStepIsTheIterations(t *testing.T) {
	c := load(t,
		&Header{Version: 1, Samples: true},
		&Cell{Steps: []Step{{Driver: "http"}}},
		&Round{},
		&Block{Samples: []record.Sample{sample(0, record.Whole, 0, 5)}},
		&End{},
	).Cells[0]
	if s := c.Stats(Pooled, Judged, 0); s.OK != 1 || s != c.Stats(Pooled, Judged, record.Whole) {
		t.Errorf("%d samples", s.OK)
	}
}

func TestLengthOfWhatWasCutShort(t *testing.T) {
	start := []Frame{
		&Header{Version: 1, Samples: true},
		&Cell{Stages: []Stage{
			{Kind: "ramp", Length: time.Second},
			{Kind: "hold", Judged: true, Start: time.Second, Length: 10 * time.Second},
			{Kind: "hold", Judged: true, Start: 11 * time.Second, Length: 10 * time.Second},
		}},
		&Round{},
		&Block{Samples: []record.Sample{sample(1, record.Whole, 2900*ms, 3000*ms)}},
	}
	tests := []struct {
		name string
		last Frame
		want time.Duration
	}{
		{"to the end", &RoundEnd{Length: 3 * time.Second}, 20 * time.Second},
		{"interrupted", &RoundEnd{Length: 4 * time.Second, Interrupted: true}, 3 * time.Second},
		{"interrupted in the ramp", &RoundEnd{Length: time.Millisecond, Interrupted: true}, 0},
		{"interrupted in the second hold", &RoundEnd{Length: 13 * time.Second, Interrupted: true}, 12 * time.Second},
		{"crashed after the sample", &Example{}, 2 * time.Second},
		{"crashed after an interval", &Interval{Second: 5}, 4 * time.Second},
	}
	for _, test := range tests {
		c := load(t, append(start[:4:4], test.last, &End{})...).Cells[0]
		if s := c.Stats(Pooled, Judged, record.Whole); s.Length != test.want {
			t.Errorf("%s: %v, want %v", test.name, s.Length, test.want)
		}
	}
}

// summary is one with everything in it.
func summary() *Summary {
	x := &Summary{Stats: record.NewStats(record.NewBudget(0)), Step: record.Whole}
	for i := range int64(100) {
		s := sample(0, record.Whole, i*ms, i*ms+5*ms+i*i*1000)
		s.Start += i * 10
		s.Lag, s.TTFB, s.Connect, s.BytesIn, s.BytesOut, s.Status = i, 4*ms, i%3-1, 10, 1, 200
		switch {
		case i%7 == 0:
			s.Failure, s.Status = drivers.Failures[i%int64(len(drivers.Failures))], 503
		case i%11 == 0:
			s.Flags = record.Dropped
		case i%13 == 0:
			s.Flags = record.Opened
		}
		x.Stats.Add(0, &s)
	}
	return x
}

func TestSummariesTellAll(t *testing.T) {
	x := summary()
	want := x.Stats
	got := load(t, &Header{Version: 1}, &Cell{}, &Round{}, x, &End{}).Cells[0].Stats(Pooled, Judged, record.Whole)
	if got.OK != want.OK || got.Failed != want.Failed || got.Dropped != want.Dropped || got.DroppedByLag != want.DroppedByLag ||
		got.Failures != want.Failures || got.BytesIn != want.BytesIn || got.BytesOut != want.BytesOut || got.BytesInOK != want.BytesInOK ||
		got.Opened != want.Opened || got.Statuses[200] != want.Statuses[200] || got.Statuses[503] != want.Statuses[503] ||
		got.Active() != want.Active() {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for name, pair := range map[string][2]*record.Series{
		"latency": {got.Latency(), want.Latency()}, "all": {got.All(), want.All()}, "failed": {got.FailedLatency(), want.FailedLatency()},
		"service": {got.Service(), want.Service()}, "lag": {got.Lag, want.Lag}, "ttfb": {got.TTFB, want.TTFB},
		"connect": {got.Connect, want.Connect}, "dns": {got.DNS, want.DNS},
		"without lag": {got.WithoutLag().Latency(), want.WithoutLag().Latency()},
	} {
		a, b := pair[0], pair[1]
		meanA, _ := a.Mean()
		meanB, _ := b.Mean()
		devA, _ := a.Stddev()
		devB, _ := b.Stddev()
		if a.Count() != b.Count() || meanA != meanB || devA < devB*(1-1e-12) || devA > devB*(1+1e-12) ||
			!bytes.Equal(a.Histogram().Append(nil), b.Histogram().Append(nil)) {
			t.Errorf("%s: %d values, mean %v, stddev %v; want %d, %v, %v", name, a.Count(), meanA, devA, b.Count(), meanB, devB)
		}
	}
}

func TestSummariesDoNotCountBesideSamples(t *testing.T) {
	s := sample(0, record.Whole, 0, 5)
	c := load(t, &Header{Version: 1, Samples: true}, &Cell{}, &Round{}, &Block{Samples: []record.Sample{s}}, summary(), &End{}).Cells[0]
	if n := c.Stats(Pooled, Judged, record.Whole).Due(); n != 1 {
		t.Errorf("%d samples", n)
	}
}

func TestEachReadsTheBlocksAgain(t *testing.T) {
	whole := stream(t, example(5000)...)
	for _, cut := range []int{len(whole), len(whole) * 2 / 3, len(whole) / 3} {
		path := filepath.Join(t.TempDir(), "run.msgpack")
		if err := os.WriteFile(path, whole[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		run, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if (run.Cut == nil) != (cut == len(whole)) {
			t.Errorf("cut %v", run.Cut)
		}
		// What comes later is not the run that was read.
		if err := os.WriteFile(path, whole, 0o666); err != nil {
			t.Fatal(err)
		}
		var n, due int64
		if err := run.Each(func(b *Block) error {
			n += int64(len(b.Samples))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, c := range run.Cells {
			due += c.Stats(Pooled, Every, record.Whole).Due()
		}
		if n != due || n == 0 {
			t.Errorf("%d samples in blocks, %d in statistics", n, due)
		}
		stop := os.ErrClosed
		if err := run.Each(func(*Block) error { return stop }); err != stop {
			t.Errorf("got %v", err)
		}
	}
	if err := load(t, staged(true)...).Each(nil); err == nil {
		t.Error("there is no file")
	}
}

// TestAddAsItRuns builds a run frame by frame, as the live view does, and asks in between.
func TestAddAsItRuns(t *testing.T) {
	run := NewRun()
	frames := staged(true)
	for _, f := range frames {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
		if len(run.Cells) > 0 {
			c := run.Cells[0]
			s := c.Stats(Pooled, Judged, record.Whole)
			if want := int64(0); len(c.Rounds) == 0 && s.OK != want {
				t.Errorf("%d samples before the first round", s.OK)
			}
			s.All()
		}
	}
	if n := run.Cells[0].Stats(Pooled, Judged, record.Whole).OK; n != 40 {
		t.Errorf("%d samples", n)
	}
	if run.End == nil || run.Find("s", "p", "t") != run.Cells[0] || run.Find("s", "p", "x") != nil {
		t.Error("the run is not complete")
	}
}

func TestConcurrentReaders(t *testing.T) {
	run := load(t, staged(true)...)
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for _, stage := range []int{Judged, Every, Ramps, 0, 1} {
				s := run.Cells[0].Stats(Pooled, stage, record.Whole)
				s.All().Percentile(50)
				s.WithoutLag().Latency().Percentile(99)
			}
		})
	}
	readers.Wait()
}

func TestCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results", "deep")
	start := time.Date(2026, 11, 30, 17, 4, 5, 0, time.FixedZone("", 3600))
	seen := map[string]bool{}
	for range 20 {
		f, path, err := Create(dir, "Hybrid: a/b", start)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if !regexp.MustCompile(`^hybrid-a-b-20261130T160405Z-[0-9a-f]{4}\.msgpack$`).MatchString(filepath.Base(path)) || seen[path] {
			t.Errorf("path %s", path)
		}
		seen[path] = true
	}
	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o666)
	if _, _, err := Create(file, "x", start); err == nil {
		t.Error("a file is no directory")
	}
}

func TestSlug(t *testing.T) {
	for name, want := range map[string]string{
		"hybrid": "hybrid", "Study A, the hybrid": "study-a-the-hybrid", "": "plan", "../../etc": "etc", "測試": "plan", "--a--": "a",
		"a\x00b\\c:d": "a-b-c-d",
	} {
		if got := Slug(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if n := len(Slug(string(bytes.Repeat([]byte("ab "), 100)))); n > 60 {
		t.Errorf("%d characters", n)
	}
}

// Trials of a search are counted from the release of their own round, so that those of two rounds are at the same times. What the
// probe found in one round says nothing of a trial of the other.
func TestProbeOfATrialIsThatOfItsRound(t *testing.T) {
	r := NewRun()
	add := func(f Frame) {
		t.Helper()
		if err := r.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	add(&Header{Version: Version})
	add(&Cell{Kind: "capacity", Rounds: 2})
	for round := range 2 {
		add(&Round{Round: round})
		add(&Trial{Round: round, Stage: round, Rate: 10, Length: time.Second})
		h := new(record.Histogram)
		h.RecordN(int64(round)*int64(time.Second), int64(100+round))
		add(&Interval{Round: round, Probe: h})
		add(&RoundEnd{Round: round})
	}
	for stage, want := range []int64{100, 101} {
		if got := r.Cells[0].Stats(Pooled, stage, record.Whole).Probe.Count(); got != want {
			t.Errorf("trial %d has %d moments of the probe, want %d", stage, got, want)
		}
	}
	if got := r.Cells[0].Stats(Pooled, Every, record.Whole).Probe.Count(); got != 201 {
		t.Errorf("all trials have %d moments of the probe, want 201", got)
	}
	if err := r.Add(&Cell{Kind: "capacity", Stages: []Stage{{Kind: "trial", Judged: true}}}); err == nil {
		t.Error("a search has a stage that is no trial of it")
	}
}
