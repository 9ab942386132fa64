package compare

import (
	"math"
	"slices"
)

// exactPairs is up to how many values the distribution of the signed-rank statistic is computed exactly. Beyond it the
// normal approximation misses by less than one rank in a thousand.
const exactPairs = 100

// SignedRank estimates the centre of a symmetric distribution from values drawn from it: the median of the means of all
// pairs of values, each paired with itself too (Walsh averages), and the 95 % interval that belongs to Wilcoxon's
// signed-rank test. ok is false, and there is no interval, with fewer than MinPairs values; with none the estimate is 0.
//
// Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, 3rd ed., sections 3.2 (estimate) and 3.3 (interval).
func SignedRank(values []float64) (estimate, low, high float64, ok bool) {
	n := len(values)
	if n == 0 {
		return 0, 0, 0, false
	}
	walsh := make([]float64, 0, n*(n+1)/2)
	for i, a := range values {
		for _, b := range values[i:] {
			walsh = append(walsh, a+(b-a)/2)
		}
	}
	slices.Sort(walsh)
	m := len(walsh)
	estimate = (walsh[(m-1)/2] + walsh[m/2]) / 2
	if n < MinPairs {
		return estimate, 0, 0, false
	}
	t := criticalRank(n)
	return estimate, walsh[t], walsh[m-1-t], true
}

// criticalRank returns the greatest t for which P(T <= t) <= 2.5 %, where T is the signed-rank statistic of n values:
// the sum of those of the ranks 1..n that fell to the positive side, each with a chance of one half.
func criticalRank(n int) int {
	if n > exactPairs {
		mean := float64(n) * float64(n+1) / 4
		sd := math.Sqrt(float64(n) * float64(n+1) * float64(2*n+1) / 24)
		return int(math.Floor(mean - 1.959964*sd - 0.5))
	}
	// chance[s] is the probability that the ranks so far add up to s; each further rank is in the sum or not.
	chance := make([]float64, n*(n+1)/2+1)
	chance[0] = 1
	for rank := 1; rank <= n; rank++ {
		for s := rank * (rank + 1) / 2; s >= 0; s-- {
			c := chance[s]
			if s >= rank {
				c += chance[s-rank]
			}
			chance[s] = c / 2
		}
	}
	t, below := -1, 0.0
	for below += chance[0]; below <= 0.025; below += chance[t+1] {
		t++
	}
	return t
}
