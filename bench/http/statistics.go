package main

import (
	"math"
	"slices"
	"time"
)

// lateness is how late requests reached the server against an even schedule.
type lateness struct {
	p50, p99 time.Duration
}

// latenessOf compares sorted arrivals with a schedule of one each 1/rate seconds. The server does not know when the
// schedule began, so its beginning is taken from the arrivals: the one that makes a hundredth of them early, and the rest
// late. What all requests have in common, such as the way to the server, does not count as lateness then.
func latenessOf(arrivals []time.Duration, rate float64) lateness {
	if len(arrivals) == 0 {
		return lateness{}
	}
	off := make([]float64, len(arrivals))
	for k, at := range arrivals {
		off[k] = float64(at) - float64(k)/rate*1e9
	}
	slices.Sort(off)
	begin := quantile(off, 0.01)
	late := func(q float64) time.Duration { return time.Duration(quantile(off, q) - begin) }
	return lateness{late(0.5), late(0.99)}
}

// quantile is the nearest rank of sorted values.
func quantile(sorted []float64, q float64) float64 {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// spread is a median and the range around it.
type spread struct {
	median, low, high float64
}

// spreadOf takes at least one value.
func spreadOf(values []float64) spread {
	v := slices.Sorted(slices.Values(values))
	middle := len(v) / 2
	s := spread{v[middle], v[0], v[len(v)-1]}
	if len(v)%2 == 0 {
		s.median = (v[middle-1] + v[middle]) / 2
	}
	return s
}
