package record

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// collect reads all that a series knows.
func collect(s *Series) (values []int64) {
	for v, n := range s.Values() {
		for range n {
			values = append(values, v)
		}
	}
	return values
}

func TestFewSamples(t *testing.T) {
	const ms = 1_000_000
	var s Series
	for _, v := range []int64{100 * ms, 10 * ms, 20 * ms} {
		s.Add(v)
	}
	for p, want := range map[float64]int64{50: 20 * ms, 99: 100 * ms, 33.3: 10 * ms, 0: 10 * ms, 100: 100 * ms} {
		if got, ok := s.Percentile(p); !ok || got != want {
			t.Errorf("p%v = %d, want %d", p, got, want)
		}
	}
	if m, _ := s.Mean(); math.Abs(m-130*ms/3.) > 1e-6 {
		t.Errorf("mean %v", m)
	}
	// ((100 - 43.3)^2 + (10 - 43.3)^2 + (20 - 43.3)^2) / 2 is the square of 49.329.
	if d, ok := s.Stddev(); !ok || math.Abs(d/ms-49.3288) > 1e-4 {
		t.Errorf("stddev %v", d)
	}
}

func TestEmptySeriesIsNoData(t *testing.T) {
	var s Series
	for name, f := range map[string]func() (float64, bool){
		"mean": s.Mean, "stddev": s.Stddev,
		"min": func() (float64, bool) { v, ok := s.Min(); return float64(v), ok },
		"max": func() (float64, bool) { v, ok := s.Max(); return float64(v), ok },
		"p50": func() (float64, bool) { v, ok := s.Percentile(50); return float64(v), ok },
	} {
		if v, ok := f(); v != 0 || ok {
			t.Errorf("%s: %v, %v", name, v, ok)
		}
	}
	if s.CountAtMost(math.MaxInt64) != 0 || len(collect(&s)) != 0 {
		t.Error("it has values")
	}
	s.Add(3)
	if _, ok := s.Stddev(); ok {
		t.Error("one value has a deviation")
	}
	if _, ok := s.Percentile(math.NaN()); ok {
		t.Error("there is no percentile of NaN")
	}
}

func TestEqualValuesTakeNoRoom(t *testing.T) {
	b := NewBudget(0)
	s := NewSeries(b)
	for range 2 * ExactLimit {
		s.Add(0)
	}
	if !s.Exact() || s.values != nil || s.Count() != 2*ExactLimit {
		t.Errorf("exact %v, %d stored of %d", s.Exact(), len(s.values), s.Count())
	}
	if p, ok := s.Percentile(99); p != 0 || !ok || s.CountAtMost(0) != 2*ExactLimit {
		t.Errorf("p99 %d, %v", p, ok)
	}
	if d, ok := s.Stddev(); d != 0 || !ok {
		t.Errorf("stddev %v, %v", d, ok)
	}
	s.Add(1)
	if s.Exact() || s.Count() != 2*ExactLimit+1 || s.CountAtMost(0) != 2*ExactLimit {
		t.Error("another value is not counted right")
	}
}

func TestBeyondTheLimitNothingIsLost(t *testing.T) {
	var s Series
	const n = ExactLimit + 1000
	sum := 0.
	for i := range int64(n) {
		if i == ExactLimit && !s.Exact() {
			t.Fatal("not exact at the limit")
		}
		s.Add(i)
		sum += float64(i)
	}
	if s.Exact() || s.values != nil {
		t.Error("still exact")
	}
	if low, _ := s.Min(); low != 0 || s.Count() != n || s.Sum() != sum {
		t.Errorf("min %d, count %d, sum %v", low, s.Count(), s.Sum())
	}
	if high, _ := s.Max(); high != n-1 {
		t.Errorf("max %d", high)
	}
	if p, _ := s.Percentile(50); p < n/2-1 || float64(p) > n/2*(1+1./256) {
		t.Errorf("p50 %d", p)
	}
	// Of 0..n-1, the variance is n(n+1)/12.
	if d, _ := s.Stddev(); math.Abs(d/math.Sqrt(float64(n)*(n+1)/12)-1) > 1e-9 {
		t.Errorf("stddev %v", d)
	}
}

func TestBudgetIsSharedAndGivenBack(t *testing.T) {
	b := NewBudget(1200)
	first, second := NewSeries(b), NewSeries(b)
	for i := range int64(600) {
		first.Add(i)
		second.Add(i)
	}
	if first.Exact() && second.Exact() {
		t.Error("both are exact")
	}
	if !first.Exact() && !second.Exact() {
		t.Error("neither is exact")
	}
	for _, s := range []*Series{first, second} {
		if s.Count() != 600 {
			t.Errorf("%d values", s.Count())
		}
		s.Release()
	}
	if left := b.left.Load(); left != 1200 {
		t.Errorf("%d are left of 1200", left)
	}
}

func TestMergedSeries(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9))
	kinds := map[string]func(*Series){
		"empty":    func(*Series) {},
		"constant": func(s *Series) { s.Add(7); s.Add(7); s.Add(7) },
		"same":     func(s *Series) { s.Add(7) },
		"other":    func(s *Series) { s.Add(9e6); s.Add(9e6) },
		"exact": func(s *Series) {
			for range 100 {
				s.Add(random.Int64N(1e9))
			}
		},
		"histogram": func(s *Series) {
			s.budget = NewBudget(0)
			for range 100 {
				s.Add(1e9 + random.Int64N(1e9))
			}
		},
	}
	for left, fillLeft := range kinds {
		for right, fillRight := range kinds {
			var a, b, all Series
			fillLeft(&a)
			fillRight(&b)
			before := b.Histogram().Append(nil)
			for _, s := range []*Series{&a, &b} {
				for v, n := range s.Values() {
					for range n {
						all.Add(v)
					}
				}
			}
			exact := a.Exact() && b.Exact()
			wantSquares := all.m2
			if !exact {
				// Deviations are kept exactly even where values are not.
				n, m := float64(a.count), float64(b.count)
				d := b.mean - a.mean
				wantSquares = a.m2 + b.m2
				if n+m > 0 {
					wantSquares += d * d * n * m / (n + m)
				}
			}
			a.Merge(&b)
			name := left + " + " + right
			if a.Exact() != exact {
				t.Errorf("%s: exact is %v", name, a.Exact())
			}
			if got, want := a.Histogram().Append(nil), all.Histogram().Append(nil); exact && !bytes.Equal(got, want) {
				t.Errorf("%s: the values differ", name)
			}
			if a.Count() != all.Count() {
				t.Errorf("%s: %d values of %d", name, a.Count(), all.Count())
			}
			if math.Abs(a.m2-wantSquares) > 1e-9*(1+wantSquares) {
				t.Errorf("%s: squares %v, want %v", name, a.m2, wantSquares)
			}
			for _, p := range []float64{1, 50, 99} {
				x, _ := a.Percentile(p)
				if y, _ := all.Percentile(p); math.Abs(float64(x-y)) > float64(y)/256 {
					t.Errorf("%s: p%v %d, want %d", name, p, x, y)
				}
			}
			if !bytes.Equal(before, b.Histogram().Append(nil)) {
				t.Errorf("%s: the right one changed", name)
			}
		}
	}
}

func TestReadersSortOnce(t *testing.T) {
	var s Series
	for i := range int64(10_000) {
		s.Add(i * 7919 % 10_007)
	}
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			if p, _ := s.Percentile(0); p != 0 {
				t.Errorf("min %d", p)
			}
			if n := s.CountAtMost(10_007); n != 10_000 {
				t.Errorf("%d values", n)
			}
		})
	}
	readers.Wait()
}

func TestSeriesOfAHistogram(t *testing.T) {
	var s Series
	for i := range int64(1000) {
		s.Add(i * i)
	}
	h, err := DecodeHistogram(s.Histogram().Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	c := SeriesOf(h, s.Squares())
	if c.Count() != 1000 || c.Sum() != s.Sum() || c.Exact() {
		t.Errorf("%d values, sum %v", c.Count(), c.Sum())
	}
	x, _ := s.Stddev()
	if y, _ := c.Stddev(); x != y {
		t.Errorf("stddev %v, want %v", y, x)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), -1} {
		if d, ok := SeriesOf(h, bad).Stddev(); !ok || d != 0 {
			t.Errorf("squares %v: stddev %v", bad, d)
		}
	}
	if SeriesOf(nil, 0).Count() != 0 {
		t.Error("a series of nothing has values")
	}
}

func TestMemoryStaysFlatBeyondTheLimit(t *testing.T) {
	s := NewSeries(NewBudget(1000))
	fill := func() {
		for i := range int64(200_000) {
			s.Add(i % 50_000)
		}
	}
	fill()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fill()
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<10 {
		t.Errorf("%d bytes more", grown)
	}
}

func BenchmarkSeriesAdd(b *testing.B) {
	s := NewSeries(NewBudget(0))
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		s.Add(i & 0xfffff)
	}
}
