package profile

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestCounts(t *testing.T) {
	second := time.Second
	tests := []struct {
		name     string
		segments []Segment
		want     int64
	}{
		{"ramp then hold", []Segment{{0, 100, 10 * second}, {100, 100, 10 * second}}, 1500},
		{"ramp alone", []Segment{{0, 100, 10 * second}}, 500},
		{"a rate that is not whole", []Segment{{1.5, 1.5, 10 * second}}, 15},
		{"below one a second", []Segment{{0.2, 0.2, 10 * second}}, 2},
		{"by the minute", []Segment{{6.0 / 60, 6.0 / 60, 10 * second}}, 1},
		{"falling", []Segment{{100, 1, 10 * second}}, 505},
		{"falling to nothing", []Segment{{100, 0, 10 * second}}, 500},
		{"not a whole second", []Segment{{10, 10, 2500 * time.Millisecond}}, 25},
		{"a half is rounded down", []Segment{{1, 1, 2500 * time.Millisecond}}, 2},
		{"a half, by thirds", []Segment{{1. / 3, 1. / 3, 7500 * time.Millisecond}}, 2},
		{"a half at a border comes after it", []Segment{{1, 1, 2500 * time.Millisecond}, {1, 1, 2500 * time.Millisecond}}, 5},
		{"nothing", nil, 0},
		{"no length", []Segment{{100, 100, 0}}, 0},
		{"a pause", []Segment{{10, 10, second}, {0, 0, second}, {10, 10, second}}, 20},
		{"many small pieces", slices.Repeat([]Segment{{0.1, 0.1, 10 * time.Millisecond}}, 10_000), 10},
		{"up and down in one", []Segment{{0, 600, 30 * second}, {600, 600, 120 * second}, {600, 0, 30 * second}}, 90_000},
		{"long", []Segment{{20_000, 20_000, 10 * time.Hour}}, 720_000_000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, err := Even(test.segments)
			if err != nil {
				t.Fatal(err)
			}
			if a.Count() != test.want {
				t.Errorf("%d arrivals, want %d", a.Count(), test.want)
			}
			if got := a.Before(a.Length()); got != test.want {
				t.Errorf("%d arrivals before the end, want %d", got, test.want)
			}
		})
	}
}

func TestAt(t *testing.T) {
	ms := time.Millisecond
	tests := []struct {
		name     string
		segments []Segment
		k        int64
		want     time.Duration
	}{
		{"a hold begins after half a gap", []Segment{{10, 10, time.Second}}, 0, 50 * ms},
		{"and goes on in gaps", []Segment{{10, 10, time.Second}}, 9, 950 * ms},
		{"a ramp: t^2 / 2 = 1/2", []Segment{{0, 1, time.Second}, {1, 1, time.Second}}, 0, time.Second},
		{"a ramp: 4.5 t^2 = 4 + 1/2", []Segment{{0, 90, 10 * time.Second}}, 4, time.Second},
		{"a fall: 10 t - t^2 / 2 = 9 + 1/2", []Segment{{10, 0, 10 * time.Second}}, 9, time.Second},
		{"across a border, the gap is that of the rate", []Segment{{10, 10, time.Second}, {10, 10, time.Second}}, 10, 1050 * ms},
		{"after a pause", []Segment{{10, 10, time.Second}, {0, 0, time.Second}, {10, 10, time.Second}}, 10, 2050 * ms},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, err := Even(test.segments)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.At(test.k); got != test.want {
				t.Errorf("arrival %d is due at %v, want %v", test.k, got, test.want)
			}
		})
	}
}

// No second, and no tenth of one, may hold more arrivals than the rate there says: no burst at the start, none at
// borders, no staircase.
func TestEvenHasNoBursts(t *testing.T) {
	list := []Segment{{0, 600, 30 * time.Second}, {600, 600, 20 * time.Second}, {600, 50, 10 * time.Second}, {50, 50, 5 * time.Second}, {50, 0, 5 * time.Second}}
	a, err := Even(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []time.Duration{time.Second, 100 * time.Millisecond, 7 * time.Millisecond} {
		for from := time.Duration(0); from+width <= a.Length(); from += width / 3 {
			got := float64(a.Before(from+width) - a.Before(from))
			want := integral(list, from+width) - integral(list, from)
			if math.Abs(got-want) > 1+1e-5 {
				t.Fatalf("%v arrivals in the %v from %v, the rate says %v", got, width, from, want)
			}
		}
	}
}

// The closed formula against stepping through the rate, a microsecond at a time.
func TestEvenAgreesWithNumericIntegration(t *testing.T) {
	list := []Segment{{0, 300, time.Second}, {300, 300, 500 * time.Millisecond}, {300, 0, time.Second}, {20, 90, 700 * time.Millisecond}}
	a, err := Even(list)
	if err != nil {
		t.Fatal(err)
	}
	const step = time.Microsecond
	sum, k, begin := 0.0, int64(0), time.Duration(0)
	for _, s := range list {
		for at := time.Duration(0); at < s.Length; at += step {
			rate := s.From + (s.To-s.From)*(at+step/2).Seconds()/s.Length.Seconds()
			for sum += rate * step.Seconds(); sum >= float64(k)+0.5 && k < a.Count(); k++ {
				// At the foot of a ramp the rate is so small that rounding moves the moment by more than a step.
				if due := a.At(k); max(due-begin-at, begin+at-due) > 5*step {
					t.Fatalf("arrival %d is due at %v, stepping says %v", k, due, begin+at)
				}
			}
		}
		begin += s.Length
	}
	if k != a.Count() {
		t.Errorf("stepping gives %d arrivals, count is %d", k, a.Count())
	}
}

func TestRefused(t *testing.T) {
	for name, list := range map[string][]Segment{
		"a rate below 0":       {{-1, 1, time.Second}},
		"not a number":         {{1, math.NaN(), time.Second}},
		"infinite":             {{math.Inf(1), 1, time.Second}},
		"more than one per ns": {{2e9, 1, time.Second}},
		"a length below 0":     {{1, 1, -time.Second}},
		"too long":             {{1, 1, 60 * 24 * time.Hour}, {1, 1, 60 * 24 * time.Hour}},
		"lengths overflow":     {{1, 1, math.MaxInt64}, {1, 1, math.MaxInt64}},
		"too many":             {{1e6, 1e6, time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Even(list); err == nil {
				t.Error("Even took it")
			}
			if _, err := Poisson(list, 1); err == nil {
				t.Error("Poisson took it")
			}
		})
	}
	for name, list := range map[string][]Segment{
		"users below 0":   {{-1, 1, time.Second}},
		"too many users":  {{1e7, 1, time.Second}},
		"no whole number": {{math.NaN(), 1, time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewUsers(list); err == nil {
				t.Error("NewUsers took it")
			}
		})
	}
}

func TestNothingAllocates(t *testing.T) {
	list := []Segment{{0, 1000, 10 * time.Second}, {1000, 1000, 10 * time.Second}, {1000, 0, 10 * time.Second}}
	even, _ := Even(list)
	poisson, _ := Poisson(list, 1)
	for name, a := range map[string]*Arrivals{"even": even, "poisson": poisson} {
		k := int64(0)
		if n := testing.AllocsPerRun(1000, func() { a.Before(a.At(k)); k += 17 }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func FuzzEven(f *testing.F) {
	f.Add(0.0, 100.0, int64(1e9), 100.0, 1.0, int64(1e9), int64(3))
	f.Add(1.5, 1.5, int64(1), 0.0, 0.0, int64(1e12), int64(0))
	f.Fuzz(func(t *testing.T, from1, to1 float64, length1 int64, from2, to2 float64, length2 int64, k int64) {
		list := []Segment{{from1, to1, time.Duration(length1)}, {from2, to2, time.Duration(length2)}}
		a, err := Even(list)
		if err != nil {
			return
		}
		if a.Before(a.Length()) != a.Count() || a.Count() < 0 {
			t.Fatalf("%d before the end, count is %d", a.Before(a.Length()), a.Count())
		}
		if a.Count() == 0 {
			return
		}
		k = int64(uint64(k) % uint64(a.Count()))
		at := a.At(k)
		if at < 0 || at >= a.Length() || at < a.At(k-1) || at > a.At(k+1) {
			t.Fatalf("arrival %d is due at %v, its neighbours at %v and %v", k, at, a.At(k-1), a.At(k+1))
		}
		if n := a.Before(at); n > k || a.At(n) != at || n > 0 && a.At(n-1) >= at {
			t.Fatalf("Before(%v) is %d", at, n)
		}
	})
}

func BenchmarkAt(b *testing.B) {
	list := []Segment{{0, 1000, time.Minute}, {1000, 1000, time.Hour}, {1000, 0, time.Minute}}
	even, _ := Even(list)
	poisson, _ := Poisson(list, 1)
	for name, a := range map[string]*Arrivals{"even": even, "poisson": poisson} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				a.At(int64(i) % a.Count())
			}
		})
		b.Run(name+"/before", func(b *testing.B) {
			for i := range b.N {
				a.Before(time.Duration(i) * 7919 % a.Length())
			}
		})
	}
	b.Run("poisson/drawing", func(b *testing.B) {
		for range b.N {
			Poisson(list, 1)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(poisson.Count()), "ns/arrival")
	})
}
