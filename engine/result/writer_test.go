package result

import (
	"bytes"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/planrun/planrun/engine/record"
)

// usual is a block as a run over HTTP gives it, at a steady rate or from users at work one call after the other.
func usual(open bool) *Block {
	random := rand.New(rand.NewPCG(1, 1))
	b := &Block{}
	free := [10]int64{}
	for i := range blockSize {
		s := record.Sample{
			Due: int64(i) * 10e6 / 7, Step: record.Whole, Iteration: int64(i), User: int32(random.IntN(10)),
			DNS: -1, Connect: -1, TLS: -1, Wait: -1, BytesIn: 8192, Status: 200,
		}
		if open {
			s.Lag = int64(random.ExpFloat64() * 3e4)
		} else {
			s.Due = free[s.User]
		}
		s.Start = s.Due + s.Lag
		s.TTFB = int64(1e6 + random.ExpFloat64()*2e6)
		s.Transfer = int64(random.ExpFloat64() * 5e4)
		s.End = s.Start + s.TTFB + s.Transfer + int64(random.ExpFloat64()*2e3)
		free[s.User] = s.End
		b.Samples = append(b.Samples, s)
	}
	return b
}

func TestSizeOfASample(t *testing.T) {
	for _, open := range []bool{true, false} {
		b := usual(open)
		size := len(stream(t, &Header{}, b)) - len(stream(t, &Header{}))
		per := float64(size) / float64(len(b.Samples))
		t.Logf("open %v: %.1f bytes a sample", open, per)
		if per > 20 {
			t.Errorf("open %v: %.1f bytes a sample", open, per)
		}
	}
}

func TestEqualColumnsCostNothing(t *testing.T) {
	b := &Block{Samples: make([]record.Sample, blockSize)}
	for i := range b.Samples {
		b.Samples[i] = sample(1, record.Whole, 0, 0)
		b.Samples[i].Status, b.Samples[i].BytesIn = 200, 8192
	}
	if n := len(stream(t, &Header{}, b)) - len(stream(t, &Header{})); n > 150 {
		t.Errorf("%d bytes", n)
	}
}

func TestWritingBlocksDoesNotAllocate(t *testing.T) {
	w := NewWriter(io.Discard)
	b := usual(true)
	w.Block(b)
	if n := testing.AllocsPerRun(20, func() { w.Block(b) }); n != 0 {
		t.Errorf("%v allocations a block", n)
	}
}

func TestReadingBlocksDoesNotAllocateForSamples(t *testing.T) {
	b := usual(true)
	var frames []Frame
	for range 64 {
		frames = append(frames, b)
	}
	r, err := NewReader(bytes.NewReader(stream(t, append([]Frame{&Header{Version: 1}}, frames...)...)))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(50, func() { r.Next() }); n > 20 {
		t.Errorf("%v allocations a block", n)
	}
}

func TestWriterIsSafeForConcurrentUse(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	write(t, w, &Header{Version: 1, Samples: true}, &Cell{}, &Round{})
	block := usual(false)
	block.Samples = block.Samples[:100]
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for i := range 20 {
				w.Block(block)
				w.Interval(&Interval{Second: i})
				w.Flush()
			}
		})
	}
	writers.Wait()
	write(t, w, &End{})
	run, err := Load(&b)
	if err != nil || run.Cut != nil {
		t.Fatal(err, run.Cut)
	}
	if n := run.Cells[0].Stats(Pooled, Judged, record.Whole).OK; n != 8000 || len(run.Cells[0].Intervals) != 80 {
		t.Errorf("%d samples, %d intervals", n, len(run.Cells[0].Intervals))
	}
}

func BenchmarkWriteSamples(b *testing.B) {
	w := NewWriter(io.Discard)
	block := usual(true)
	b.ReportAllocs()
	for b.Loop() {
		w.Block(block)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blockSize, "ns/sample")
}

func BenchmarkReadSamples(b *testing.B) {
	file := stream(b, &Header{Version: 1}, usual(true), &End{})
	b.ReportAllocs()
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(file))
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = r.Next()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blockSize, "ns/sample")
}
