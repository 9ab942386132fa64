package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

func known(values ...float64) []Value {
	var v []Value
	for _, x := range values {
		v = append(v, Value{x, true})
	}
	return v
}

func TestPooledDifferences(t *testing.T) {
	tests := []struct {
		name               string
		reference, other   float64
		absolute, relative float64
		better             Better
		finding            Finding
	}{
		{"a slower route", 13e6, 24e6, 11e6, 11. / 13, Less, Worsened},
		{"a faster route", 24e6, 13e6, -11e6, -11. / 24, Less, Improved},
		// 27 to 20 is 26 % less. Divided by the wrong side it would be 35 %.
		{"less throughput", 27e6, 20e6, -7e6, -7. / 27, More, Worsened},
		{"more throughput", 20e6, 27e6, 7e6, 7. / 20, More, Improved},
		{"equal", 5, 5, 0, 0, Less, Same},
		{"neither way is better", 5, 6, 1, .2, Neither, Unknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, ok := Of(Side{Pooled: Value{test.reference, true}}, Side{Pooled: Value{test.other, true}})
			if !ok || d.Absolute.Value != test.absolute || math.Abs(d.Relative.Value-test.relative) > 1e-12 {
				t.Errorf("got %+v, %v", d, ok)
			}
			if d.Absolute.Interval || d.Relative.Interval || d.Pairs != 0 {
				t.Errorf("pooled values have no interval: %+v", d)
			}
			if f := d.Finding(test.better); f != test.finding {
				t.Errorf("finding %d, want %d", f, test.finding)
			}
		})
	}
}

func TestNoData(t *testing.T) {
	some, none := Side{Pooled: Value{5, true}}, Side{}
	for _, pair := range [][2]Side{{some, none}, {none, some}, {none, none}} {
		if d, ok := Of(pair[0], pair[1]); ok || d.Absolute.Known || d.Finding(Less) != Unknown {
			t.Errorf("got %+v, %v", d, ok)
		}
	}
	if d, ok := Of(Side{Pooled: Value{0, true}}, some); !ok || d.Relative.Known || d.Absolute.Value != 5 {
		t.Errorf("a reference of 0 has no relative difference: %+v, %v", d, ok)
	}
}

func TestPairsCancelWhatDisturbsBoth(t *testing.T) {
	// The rounds differ far more from each other than the targets do.
	reference := Side{Pooled: Value{60, true}, Rounds: known(10, 30, 50, 70, 90, 110)}
	other := Side{Pooled: Value{65, true}, Rounds: known(15, 34.9, 55, 75.2, 95, 115)}
	d, ok := Of(reference, other)
	if !ok || d.Pairs != 6 || !d.Absolute.Interval {
		t.Fatalf("got %+v, %v", d, ok)
	}
	if math.Abs(d.Absolute.Value-5) > 1e-9 || math.Abs(d.Absolute.Low-4.9) > 1e-9 || math.Abs(d.Absolute.High-5.2) > 1e-9 {
		t.Errorf("got %+v", d.Absolute)
	}
	if d.Finding(Less) != Worsened || d.Finding(More) != Improved {
		t.Errorf("findings %d, %d", d.Finding(Less), d.Finding(More))
	}
	// Relative differences have an interval of their own: from 5/110 to 5/10.
	if r := d.Relative; !r.Interval || math.Abs(r.Low-5./110) > 1e-9 || math.Abs(r.High-.5) > 1e-9 || r.Value < r.Low || r.Value > r.High {
		t.Errorf("got %+v", r)
	}

	same, _ := Of(reference, Side{Pooled: Value{60, true}, Rounds: known(11, 29, 51, 69, 91, 109)})
	if same.Finding(Less) != Same {
		t.Errorf("an interval on both sides of 0 shows no difference: %+v", same)
	}
}

func TestRoundsWithoutDataFormNoPairs(t *testing.T) {
	reference := Side{Pooled: Value{60, true}, Rounds: known(10, 30, 50, 70, 90, 110)}
	other := Side{Pooled: Value{65, true}, Rounds: known(15, 35, 55, 75, 95, 115)}
	other.Rounds[2] = Value{}
	d, ok := Of(reference, other)
	if !ok || d.Pairs != 5 || d.Absolute.Interval || d.Absolute.Value != 5 {
		t.Errorf("got %+v, %v", d, ok)
	}
}

func TestCriticalRanks(t *testing.T) {
	// Two-sided 5 %, from the tables of the signed-rank test (e.g. McCornack, JASA 60 (1965)).
	want := map[int]int{6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 13: 17, 14: 21, 15: 25, 20: 52, 25: 89, 30: 137, 50: 434, 100: 1955}
	for n, t0 := range want {
		if got := criticalRank(n); got != t0 {
			t.Errorf("n = %d: got %d, want %d", n, got, t0)
		}
	}
	// The approximation continues where exact values end.
	if a, b := criticalRank(exactPairs), criticalRank(exactPairs+1); b <= a || b > a+exactPairs/2 {
		t.Errorf("from %d to %d", a, b)
	}
}

func TestSignedRankByHand(t *testing.T) {
	// The Walsh averages of 1, 2, 4 are 1, 1.5, 2, 2.5, 3, 4.
	if e, _, _, ok := SignedRank([]float64{4, 1, 2}); e != 2.25 || ok {
		t.Errorf("got %v, %v", e, ok)
	}
	if _, _, _, ok := SignedRank(nil); ok {
		t.Error("nothing has an interval")
	}
	e, low, high, ok := SignedRank([]float64{3, 3, 3, 3, 3, 3})
	if e != 3 || low != 3 || high != 3 || !ok {
		t.Errorf("got %v, %v to %v, %v", e, low, high, ok)
	}
}

// TestCoverage draws pairs with a known difference and counts how often the interval holds it: at least 95 % by theory,
// whatever the noise. The seed is fixed.
func TestCoverage(t *testing.T) {
	noises := map[string]func(*rand.Rand) float64{
		"normal":  (*rand.Rand).NormFloat64,
		"uniform": func(r *rand.Rand) float64 { return r.Float64() - .5 },
		"heavy tails": func(r *rand.Rand) float64 {
			return r.ExpFloat64() * r.ExpFloat64() * float64(1-2*r.IntN(2))
		},
	}
	for name, noise := range noises {
		for _, n := range []int{6, 10, 25} {
			random := rand.New(rand.NewPCG(7, uint64(n)))
			const runs, truth = 2000, 3.0
			held, wide := 0, 0.0
			values := make([]float64, n)
			for range runs {
				for i := range values {
					values[i] = truth + noise(random)
				}
				_, low, high, ok := SignedRank(values)
				if !ok {
					t.Fatal("no interval")
				}
				wide += (high - low) / runs
				if low <= truth && truth <= high {
					held++
				}
			}
			// Three standard errors below 95 % are 93.54 %; exactly, six values have 96.9 %.
			if share := float64(held) / runs; share < .9354 || share > .98 {
				t.Errorf("%s, %d values: the interval held the truth in %.1f %%", name, n, 100*share)
			}
			if !(wide > 0) {
				t.Errorf("%s, %d values: width %v", name, n, wide)
			}
		}
	}
}

// TestSameIsNotCalledDifferent compares a server with itself, and with one that is a fifth slower.
func TestSameIsNotCalledDifferent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	claims, found := 0, 0
	const runs = 500
	for range runs {
		var a, b, c Side
		for range 20 {
			shared := 10 + random.Float64()*5 // the machine's mood, which each pair shares
			a.Rounds = append(a.Rounds, known(shared+random.NormFloat64()*.3)...)
			b.Rounds = append(b.Rounds, known(shared+random.NormFloat64()*.3)...)
			c.Rounds = append(c.Rounds, known(1.2*shared+random.NormFloat64()*.3)...)
		}
		a.Pooled, b.Pooled, c.Pooled = Value{12, true}, Value{12, true}, Value{14, true}
		if d, _ := Of(a, b); d.Finding(Less) != Same {
			claims++
		}
		if d, _ := Of(a, c); d.Finding(Less) == Worsened && d.Relative.Low < .2 && .2 < d.Relative.High {
			found++
		}
	}
	if claims > runs*7/100 {
		t.Errorf("%d of %d comparisons of equals claim a difference", claims, runs)
	}
	if found < runs*93/100 {
		t.Errorf("only %d of %d comparisons find a fifth", found, runs)
	}
}

func FuzzSignedRank(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, -4.0, 5.0, 1e300)
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g float64) {
		for _, v := range []float64{a, b, c, d, e, g} {
			if math.IsNaN(v) || math.Abs(v) > 1e300 {
				t.Skip()
			}
		}
		estimate, low, high, ok := SignedRank([]float64{a, b, c, d, e, g})
		if !ok || !(low <= estimate && estimate <= high) {
			t.Errorf("%v, %v to %v, %v", estimate, low, high, ok)
		}
	})
}
