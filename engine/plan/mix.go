package plan

import "slices"

// Mix chooses one of several parts for each iteration, so that every cycle of iterations has exactly the shares that the
// weights say, as evenly spread as they can be. What is chosen depends on the number of the iteration alone, so every
// target gets the same.
type Mix struct {
	Branches []*Part
	Weights  []int
	cycle    []turn
	perCycle []int64 // by branch: how often it has its turn in a cycle
	// stride is how many iterations a cycle of the mixes before it takes. A second mix begins each of them one turn further
	// than the last, so that all combinations occur in their shares.
	stride int64
}

// turn is one position of a cycle: the branch that has its turn, and for how many times it had it before in the cycle.
type turn struct {
	branch int
	rank   int64
}

// maxCycle bounds the sum of the weights, without their common divisor.
const maxCycle = 100_000

// NewMix makes a mix of branches with weights of at least 1. It returns nil when a cycle is longer than 100 000 iterations.
func NewMix(branches []*Part, weights []int) *Mix { return newMix(branches, weights, 0) }

// newMix makes the mix of branches with weights of at least 1. It returns nil when the cycle is too long.
//
// The order within a cycle is that of smooth weighted round robin: each position, every branch gains its weight, and the
// one that has most is taken and pays the sum of all weights (the balancing of nginx, since 1.3.1).
func newMix(branches []*Part, weights []int, stride int64) *Mix {
	divisor := 0
	for _, w := range weights {
		divisor = gcd(divisor, w)
	}
	m := &Mix{Branches: branches, Weights: weights, stride: stride, perCycle: make([]int64, len(weights))}
	share := make([]int, len(weights))
	total := 0
	for i, w := range weights {
		share[i] = w / divisor
		if total += share[i]; total > maxCycle {
			return nil
		}
	}
	credit := make([]int, len(weights))
	for range total {
		for i := range credit {
			credit[i] += share[i]
		}
		best := slices.Index(credit, slices.Max(credit))
		credit[best] -= total
		m.cycle = append(m.cycle, turn{best, m.perCycle[best]})
		m.perCycle[best]++
	}
	return m
}

// Cycle is after how many iterations the choices repeat.
func (m *Mix) Cycle() int64 { return int64(len(m.cycle)) }

// At returns the branch of the k-th iteration, and how many times that branch was chosen before.
func (m *Mix) At(k int64) (branch int, visits int64) {
	if m.stride > 0 {
		k = k/m.stride + k%m.stride
	}
	n := int64(len(m.cycle))
	t := m.cycle[k%n]
	return t.branch, k/n*m.perCycle[t.branch] + t.rank
}

// Share is the part of iterations that take a branch.
func (m *Mix) Share(branch int) float64 {
	return float64(m.perCycle[branch]) / float64(len(m.cycle))
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
