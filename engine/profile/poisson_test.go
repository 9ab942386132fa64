package profile

import (
	"math"
	"slices"
	"testing"
	"time"
)

// The seeds are fixed, so what these tests compute is always the same; the limits are those that a right generator would
// pass for all but about one seed in a thousand.

func TestPoissonGapsAreExponential(t *testing.T) {
	const rate = 100.0
	a, err := Poisson([]Segment{{rate, rate, 100 * time.Second}}, 7)
	if err != nil {
		t.Fatal(err)
	}
	gaps := make([]float64, a.Count())
	previous := time.Duration(0)
	for k := range a.Count() {
		gaps[k] = (a.At(k) - previous).Seconds()
		previous = a.At(k)
	}
	// Each gap must not depend on the one before.
	correlation := 0.0
	for i := range gaps[1:] {
		correlation += (gaps[i]*rate - 1) * (gaps[i+1]*rate - 1)
	}
	n := float64(len(gaps))
	if r := correlation / n; math.Abs(r) > 3.3/math.Sqrt(n) {
		t.Errorf("neighbouring gaps are correlated by %v", r)
	}
	// Kolmogorov-Smirnov against 1 - exp(-rate x).
	slices.Sort(gaps)
	worst := 0.0
	for i, gap := range gaps {
		p := 1 - math.Exp(-rate*gap)
		worst = max(worst, math.Abs(p-float64(i)/n), math.Abs(p-float64(i+1)/n))
	}
	if worst > 1.95/math.Sqrt(n) {
		t.Errorf("gaps are off the exponential distribution by %v, n = %v", worst, n)
	}
}

// The number of arrivals in any part is Poisson distributed: its variance over seeds is its mean.
func TestPoissonCounts(t *testing.T) {
	list := []Segment{{0, 40, 5 * time.Second}, {40, 40, 5 * time.Second}, {40, 10, 4 * time.Second}}
	const seeds = 2000
	for _, part := range []struct{ from, to time.Duration }{{0, 14 * time.Second}, {0, 5 * time.Second}, {3 * time.Second, 4 * time.Second}, {9 * time.Second, 14 * time.Second}} {
		want := integral(list, part.to) - integral(list, part.from)
		sum, squares := 0.0, 0.0
		for seed := range uint64(seeds) {
			a, err := Poisson(list, seed)
			if err != nil {
				t.Fatal(err)
			}
			n := float64(a.Before(part.to) - a.Before(part.from))
			sum += n
			squares += n * n
		}
		mean := sum / seeds
		variance := squares/seeds - mean*mean
		if math.Abs(mean-want) > 3.3*math.Sqrt(want/seeds) {
			t.Errorf("%v to %v: %v arrivals at the mean, want %v", part.from, part.to, mean, want)
		}
		if math.Abs(variance/mean-1) > 3.3*math.Sqrt(2.0/seeds) {
			t.Errorf("%v to %v: variance %v, mean %v", part.from, part.to, variance, mean)
		}
	}
}

// Points do not depend on how many there are, nor on the size of the blocks.
func TestPointsByBlock(t *testing.T) {
	small := newPoints(3, 1e5)
	large := newPoints(3, mostBlocks*64)
	if small.shift == large.shift {
		t.Fatalf("both have blocks of %d", 1<<small.shift)
	}
	if len(large.starts) > mostBlocks {
		t.Errorf("%d blocks", len(large.starts))
	}
	for k := range int64(1e5) {
		if a, b := small.at(k), large.at(k); math.Abs(a-b) > 1e-9*a {
			t.Fatalf("point %d is at %v and %v", k, a, b)
		}
	}
}

// Points never decrease, whatever the sums of floating point do.
func TestPointsIncrease(t *testing.T) {
	p := newPoints(11, 5e5)
	previous := 0.0
	for k := range int64(5e5) {
		at := p.at(k)
		if at < previous {
			t.Fatalf("point %d is at %v, the one before at %v", k, at, previous)
		}
		previous = at
	}
}
