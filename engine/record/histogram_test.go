package record

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestBucketsCoverAllValuesWithoutGaps(t *testing.T) {
	for b := range buckets - 1 {
		edge := upperEdge(b)
		if bucketOf(edge) != b || bucketOf(edge+1) != b+1 {
			t.Fatalf("bucket %d ends at %d, which is in %d; the next value is in %d", b, edge, bucketOf(edge), bucketOf(edge+1))
		}
	}
	if bucketOf(math.MaxInt64) != buckets-1 || upperEdge(buckets-1) != math.MaxInt64 {
		t.Errorf("the last bucket ends at %d", upperEdge(buckets-1))
	}
}

// exact is the nearest rank by definition, in whole numbers: p in thousandths of a per cent.
func exact(sorted []int64, p int64) int64 {
	n := int64(len(sorted))
	r := (p*n + 99_999) / 100_000
	return sorted[max(r, 1)-1]
}

func TestQuantilesAgainstExactValues(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	distributions := map[string]func() int64{
		"log-normal": func() int64 { return int64(math.Exp(random.NormFloat64() + 14)) },
		"uniform":    func() int64 { return random.Int64N(1e9) },
		"small":      func() int64 { return random.Int64N(400) },
		"huge":       func() int64 { return math.MaxInt64 - random.Int64N(1<<60) },
		"two peaks":  func() int64 { return 1e6 + random.Int64N(2)*1e9 + random.Int64N(1000) },
	}
	for name, draw := range distributions {
		for _, n := range []int{1, 2, 3, 8, 50, 100, 1000, 20000} {
			h, s := new(Histogram), new(Series)
			var values []int64
			for range n {
				v := draw()
				values = append(values, v)
				h.Record(v)
				s.Add(v)
			}
			slices.Sort(values)
			for _, p := range []int64{0, 1, 50_000, 75_000, 90_000, 95_000, 98_100, 99_000, 99_900, 99_990, 100_000} {
				want := exact(values, p)
				if got, ok := s.Percentile(float64(p) / 1000); !ok || got != want {
					t.Fatalf("%s, n = %d: series p%v = %d, want %d", name, n, float64(p)/1000, got, want)
				}
				got, ok := h.Quantile(float64(p) / 100_000)
				if !ok || got < want || float64(got-want) > float64(want)/256 {
					t.Fatalf("%s, n = %d: histogram p%v = %d, want %d and at most 0.4 %% more", name, n, float64(p)/1000, got, want)
				}
			}
			for range 50 {
				v := values[random.IntN(n)] + random.Int64N(3) - 1
				want := int64(0)
				for _, x := range values {
					if x <= v {
						want++
					}
				}
				if got := s.CountAtMost(v); got != want {
					t.Fatalf("%s: %d at most %d, want %d", name, got, v, want)
				}
				low := int64(0)
				for _, x := range values {
					if x <= v-v/256 {
						low++
					}
				}
				if got := h.CountAtMost(v); got > want || got < low {
					t.Fatalf("%s: histogram says %d at most %d, want %d to %d", name, got, v, low, want)
				}
			}
		}
	}
}

func TestRank(t *testing.T) {
	tests := []struct {
		q    float64
		n    int64
		want int64
	}{
		{.5, 1, 1}, {.5, 2, 1}, {.5, 3, 2}, {.99, 3, 3}, {.999, 1000, 999}, {.999, 1001, 1000}, {.95, 20, 19}, {.95, 21, 20},
		{.981, 50, 50}, {.98, 50, 49}, {.07, 100, 7}, {.29, 100, 29}, {.57, 100, 57}, {.9999, 10_000, 9999},
		{.99, 1e15, 99e13}, {0, 10, 1}, {1, 10, 10}, {-1, 10, 1}, {2, 10, 10}, {1e-9, 10, 1},
	}
	for _, test := range tests {
		if got := rank(test.q, test.n); got != test.want {
			t.Errorf("rank of %v of %d: %d, want %d", test.q, test.n, got, test.want)
		}
	}
}

func TestEmptyHistogramIsNoData(t *testing.T) {
	var h Histogram
	h.RecordN(5, 0)
	h.RecordN(5, -1)
	for name, f := range map[string]func() (int64, bool){
		"min": h.Min, "max": h.Max, "quantile": func() (int64, bool) { return h.Quantile(.5) },
	} {
		if v, ok := f(); v != 0 || ok {
			t.Errorf("%s: %d, %v", name, v, ok)
		}
	}
	if v, ok := h.Mean(); v != 0 || ok {
		t.Errorf("mean: %v, %v", v, ok)
	}
	h.Record(1)
	if _, ok := h.Quantile(math.NaN()); ok {
		t.Error("there is no quantile of NaN")
	}
}

func TestSumsAreExactBeyond64Bits(t *testing.T) {
	h := new(Histogram)
	for range 5 {
		h.Record(math.MaxInt64)
	}
	h.RecordN(math.MaxInt64, 5)
	if m, _ := h.Mean(); m != math.MaxInt64 {
		t.Errorf("mean %v", m)
	}
	var s Series
	for range 10 {
		s.Add(math.MaxInt64)
	}
	s.Add(0)
	if m, _ := s.Mean(); math.Abs(m/math.MaxInt64-10./11) > 1e-15 {
		t.Errorf("mean %v", m)
	}
}

func TestMergeIsAsRecordingAll(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	all, merged := new(Histogram), new(Histogram)
	for range 7 {
		part := new(Histogram)
		for range random.IntN(1000) {
			v := int64(random.ExpFloat64() * 1e7)
			all.Record(v)
			part.Record(v)
		}
		// Half of them went over the wire.
		if random.IntN(2) == 0 {
			var err error
			if part, err = DecodeHistogram(part.Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		merged.Merge(part)
	}
	merged.Merge(nil)
	merged.Merge(new(Histogram))
	if !bytes.Equal(all.Append(nil), merged.Append(nil)) {
		t.Error("they differ")
	}
	all.Reset()
	if all.Count() != 0 || !bytes.Equal(all.Append(nil), new(Histogram).Append(nil)) {
		t.Error("something is left after Reset")
	}
}

func TestDecodedHistogramsCanBeRead(t *testing.T) {
	h := new(Histogram)
	for v := int64(1); v < 1e12; v = v*3/2 + 1 {
		h.RecordN(v, v%7+1)
	}
	d, err := DecodeHistogram(h.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	for q := 0.; q <= 1; q += .01 {
		a, _ := h.Quantile(q)
		if b, _ := d.Quantile(q); a != b {
			t.Errorf("quantile %v: %d and %d", q, a, b)
		}
	}
	for v := int64(0); v < 1e12; v = v*2 + 1 {
		if h.CountAtMost(v) != d.CountAtMost(v) {
			t.Errorf("at most %d: %d and %d", v, h.CountAtMost(v), d.CountAtMost(v))
		}
	}
	d.Record(7)
	h.Record(7)
	if !bytes.Equal(h.Append(nil), d.Append(nil)) {
		t.Error("they differ after another value")
	}
}

func TestHostileHistograms(t *testing.T) {
	uv := func(v ...uint64) (b []byte) {
		for _, x := range v {
			b = binary.AppendUvarint(b, x)
		}
		return b
	}
	tests := map[string][]byte{
		"nothing":                       nil,
		"a head without an end":         uv(5, 1),
		"a varint without an end":       bytes.Repeat([]byte{0x80}, 8),
		"a varint of more than 64 bits": bytes.Repeat([]byte{0xff}, 20),
		"empty, but more follows":       uv(0, 1),
		"buckets missing":               uv(2, 1, 1, 0, 3, 1, 1),
		"more in buckets than counted":  uv(1, 1, 0, 0, 1, 1, 2),
		"a count that runs over":        uv(2, 1, 1, 0, 3, 1, 1, 1, math.MaxUint64),
		"a negative count":              uv(1<<63, 1, 0, 0, 1, 1, 1<<63),
		"max runs over":                 uv(1, math.MaxInt64, 1, 0, 1, 1, 1),
		"no such bucket":                uv(1, 1, 0, 0, 1, buckets, 1),
		"bucket runs over":              uv(2, 1, 1, 0, 3, 1, 1, math.MaxUint64, 1),
		"the same bucket twice":         uv(2, 1, 0, 0, 2, 1, 1, 0, 1),
		"a bucket of none":              uv(1, 1, 0, 0, 1, 0, 0, 1, 1),
		"min in another bucket":         uv(1, 2, 0, 0, 2, 1, 1),
		"max in another bucket":         uv(2, 1, 2, 0, 4, 1, 1, 1, 1),
		"a sum too small":               uv(2, 10, 0, 0, 19, 10, 2),
		"a sum too great":               uv(2, 10, 0, 1, 20, 10, 2),
	}
	for name, b := range tests {
		if h, err := DecodeHistogram(b); err == nil {
			t.Errorf("%s: %+v", name, h)
		}
	}
	if _, err := DecodeHistogram(uv(2, 10, 0, 0, 20, 10, 2)); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

func FuzzDecodeHistogram(f *testing.F) {
	h := new(Histogram)
	f.Add(h.Append(nil))
	h.RecordN(5, 3)
	h.Record(1e9)
	f.Add(h.Append(nil))
	f.Add([]byte{1, 1, 0, 0, 1, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHistogram(b)
		if err != nil {
			return
		}
		p, ok := h.Quantile(.99)
		if low, _ := h.Min(); ok && p < low {
			t.Error("p99 below min")
		}
		mean, _ := h.Mean()
		if math.IsNaN(mean) {
			t.Error("mean is not a number")
		}
		packed := h.Append(nil)
		o := new(Histogram)
		o.Merge(h)
		if !bytes.Equal(packed, o.Append(nil)) {
			t.Error("a merged copy differs")
		}
	})
}

func TestRecordDoesNotAllocate(t *testing.T) {
	h := new(Histogram)
	h.Record(1e6)
	if n := testing.AllocsPerRun(1000, func() { h.Record(1e6) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWireFormIsSmall(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	h := new(Histogram)
	for range 100_000 {
		h.Record(int64(1e6 + random.ExpFloat64()*2e6))
	}
	if n := len(h.Append(nil)); n > 4096 {
		t.Errorf("%d bytes", n)
	}
}

func BenchmarkHistogramRecord(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	values := make([]int64, 1<<16)
	for i := range values {
		values[i] = int64(math.Exp(random.NormFloat64() + 14))
	}
	h := new(Histogram)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Record(values[i&(1<<16-1)])
	}
}
