package plan

import "testing"

func TestMixHasExactShares(t *testing.T) {
	for _, weights := range [][]int{{1}, {7, 3}, {5, 1, 1}, {70, 20, 10}, {1, 1, 1, 1}, {997, 3}} {
		total := 0
		for _, w := range weights {
			total += w
		}
		m := newMix(make([]*Part, len(weights)), weights, 0)
		for cycle := range int64(3) {
			visits := make([]int64, len(weights))
			for k := range m.Cycle() {
				b, before := m.At(cycle*m.Cycle() + k)
				if want := cycle*m.perCycle[b] + visits[b]; before != want {
					t.Fatalf("%v: iteration %d is visit %d of branch %d, want %d", weights, k, before, b, want)
				}
				visits[b]++
			}
			for i, w := range weights {
				if visits[i]*int64(total) != int64(w)*m.Cycle() {
					t.Errorf("%v: branch %d had %d of %d turns", weights, i, visits[i], m.Cycle())
				}
			}
		}
	}
}

// With 5:1:1 the branch of weight 5 never has its turn more often than three times in a row.
func TestMixIsSmooth(t *testing.T) {
	m := newMix(make([]*Part, 3), []int{5, 1, 1}, 0)
	row, longest := 0, 0
	for k := range int64(70) {
		if b, _ := m.At(k); b == 0 {
			row++
			longest = max(longest, row)
		} else {
			row = 0
		}
	}
	if longest > 4 {
		t.Errorf("%d in a row", longest)
	}
}

func TestTwoMixesMeetInAllCombinations(t *testing.T) {
	for _, weights := range [][]int{{3, 1}, {1, 1}, {2, 1}, {3, 2}} {
		first := newMix(make([]*Part, 2), []int{1, 1}, 0)
		second := newMix(make([]*Part, 2), weights, first.Cycle())
		seen := map[[2]int]int{}
		for k := range first.Cycle() * second.Cycle() {
			a, _ := first.At(k)
			b, _ := second.At(k)
			seen[[2]int{a, b}]++
		}
		for a := range 2 {
			for b, w := range weights {
				if seen[[2]int{a, b}]*(weights[0]+weights[1]) != w*int(second.Cycle()) {
					t.Errorf("%v: %d and %d met %d times in %d cycles", weights, a, b, seen[[2]int{a, b}], first.Cycle())
				}
			}
		}
	}
}

func TestMixRefusesEndlessCycles(t *testing.T) {
	if newMix(make([]*Part, 2), []int{1_000_003, 2}, 0) != nil {
		t.Error("a cycle of a million turns")
	}
}
