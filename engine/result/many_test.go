package result

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/planrun/planrun/engine/record"
)

// More than a million samples of a cell are all counted and summed, their bytes as well; only percentiles are then those of
// a histogram. Neither writing nor reading them takes memory in proportion.
func TestMoreThanAMillionSamples(t *testing.T) {
	const total = 1_200_000
	path := filepath.Join(t.TempDir(), "many.msgpack")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter(f)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(w.Header(&Header{Plan: "many", Targets: []Target{{Name: "a"}}, Samples: true}))
	_, err = w.Cell(&Cell{Scenario: "s", Phase: "p", Target: "a", Rounds: 1, Stages: []Stage{{Kind: "hold", Judged: true}}})
	check(err)
	check(w.Round(&Round{}))
	block := Block{Samples: make([]record.Sample, 4000)}
	var before, after runtime.MemStats
	for n := 0; n < total; n += len(block.Samples) {
		for i := range block.Samples {
			k := int64(n + i)
			block.Samples[i] = record.Sample{
				Due: k * 1000, Start: k * 1000, End: k*1000 + k%1000 + 1, Iteration: k, Step: record.Whole, BytesIn: 7,
				DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1,
			}
		}
		if n == 100_000 {
			runtime.ReadMemStats(&before)
		}
		check(w.Block(&block))
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 1<<20 {
		t.Errorf("writing the last 1.1 million samples allocated %d bytes", grown)
	}
	check(w.RoundEnd(&RoundEnd{}))
	check(w.End(&End{Outcome: Passed}))
	check(f.Close())

	run, err := Open(path)
	check(err)
	s := run.Cells[0].Stats(Pooled, Judged, record.Whole)
	if s.OK != total || s.BytesIn != 7*total {
		t.Errorf("%d samples of %d bytes, want %d of 7 each", s.OK, s.BytesIn, total)
	}
	if mean, _ := s.Latency().Mean(); mean != 500.5 {
		t.Errorf("the mean is %v, want 500.5", mean)
	}
	p50, _ := s.Latency().Percentile(50)
	if p50 < 500 || p50 > 502 {
		t.Errorf("p50 is %d, want 500 and at most 0.4 %% more", p50)
	}
	most, _ := s.Latency().Max()
	if most != 1000 {
		t.Errorf("the maximum is %d", most)
	}
}
