package profile

import "math"

// points are those of a Poisson process of rate 1: sums of gaps that are exponentially distributed with mean 1. They
// are not kept, but computed anew from a counter-based generator whenever one is asked for; sums are kept at the start of
// each block of points only.
type points struct {
	seed   uint64
	shift  uint      // a block has 1 << shift points
	starts []float64 // sum of the gaps before each block
}

const (
	smallestBlock = 6       // 64 points
	mostBlocks    = 1 << 20 // 8 MiB
	// product is how many draws are multiplied before a logarithm is taken: the sum of -log(u) is -log of the product
	// of u, at a fraction of the cost. The smallest draw is 2^-41, so that 16 of them are far from underflow.
	product = 16
)

// newPoints makes the points up to total, and as many more as complete the last block.
func newPoints(seed uint64, total float64) *points {
	// Seeds that are close must not give sequences that are shifts of one another.
	p := &points{seed: mix(seed), shift: smallestBlock}
	for total > mostBlocks/2*float64(int64(1)<<p.shift) {
		p.shift++
	}
	p.starts = make([]float64, 1, int(total/float64(int64(1)<<p.shift)*1.1)+2)
	for sum := 0.0; sum < total; {
		block := int64(len(p.starts) - 1)
		sum = p.at((block+1)<<p.shift - 1)
		p.starts = append(p.starts, sum)
	}
	return p
}

// at returns point k: the sum of the gaps 0 to k. k is at most the last of the block after the last start.
func (p *points) at(k int64) float64 {
	block := k >> p.shift
	sum := 0.0
	i := block << p.shift
	for ; i+product <= k; i += product {
		sum -= math.Log(p.multiply(i, i+product))
	}
	sum -= math.Log(p.multiply(i, k+1))
	return p.starts[block] + sum
}

// multiply returns the product of the draws from (included) to (excluded).
func (p *points) multiply(from, to int64) float64 {
	u := 1.0
	for i := from; i < to; i++ {
		// 40 bits and a half, in (0, 1). Fewer bits than a float64 has keep every gap far above what the logarithm is
		// wrong by, so that points never decrease.
		u *= (float64(mix(p.seed+uint64(i)*golden)>>24) + 0.5) * 0x1p-40
	}
	return u
}

// before returns how many points are below mass, which is at most the total that p was made for.
func (p *points) before(mass float64) int64 {
	// The first block whose end is not below mass holds the answer.
	low, high := 0, len(p.starts)-1
	for low < high {
		if middle := (low + high) / 2; p.starts[middle+1] < mass {
			low = middle + 1
		} else {
			high = middle
		}
	}
	first := int64(low) << p.shift
	from, to := first, first+int64(1)<<p.shift
	if low == len(p.starts)-1 { // there is no block after the last start
		return first
	}
	for from < to {
		if middle := (from + to) / 2; p.at(middle) < mass {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}

// mix and golden make SplitMix64 a function of an index (Steele, Lea and Flood 2014).
func mix(z uint64) uint64 {
	z += golden
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

const golden = 0x9e3779b97f4a7c15
