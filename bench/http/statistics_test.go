package main

import (
	"testing"
	"time"
)

func TestLatenessOf(t *testing.T) {
	const rate = 100.0
	const n = 1000
	ms := time.Millisecond
	begin := 3 * time.Second
	tests := []struct {
		name     string
		late     func(k int) time.Duration
		p50, p99 time.Duration
	}{
		{"on time", func(int) time.Duration { return 0 }, 0, 0},
		{"all by the same", func(int) time.Duration { return 2 * ms }, 0, 0},
		{"half of them", func(k int) time.Duration { return time.Duration(k%2) * ms }, 0, ms},
		{"most of them", func(k int) time.Duration { return time.Duration(min(k%5, 1)) * ms }, ms, ms},
		{"one in fifty", func(k int) time.Duration { return time.Duration(k%50/49) * 9 * ms }, 0, 9 * ms},
		{"more and more", func(k int) time.Duration { return time.Duration(k) * ms / 10 }, 49 * ms, 98 * ms},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			arrivals := make([]time.Duration, n)
			for k := range arrivals {
				arrivals[k] = begin + time.Duration(k)*time.Second/rate + test.late(k)
			}
			got := latenessOf(arrivals, rate)
			if off(got.p50, test.p50) > ms/100 || off(got.p99, test.p99) > ms/100 {
				t.Errorf("p50 %v, p99 %v; want %v and %v", got.p50, got.p99, test.p50, test.p99)
			}
		})
	}
	if got := latenessOf(nil, rate); got != (lateness{}) {
		t.Errorf("of nothing: %v", got)
	}
}

func off(a, b time.Duration) time.Duration { return max(a-b, b-a) }

func TestSpreadOf(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{3, 1, 2}, spread{2, 1, 3}},
		{[]float64{4, 1, 3, 2}, spread{2.5, 1, 4}},
	} {
		if got := spreadOf(test.values); got != test.want {
			t.Errorf("%v: %v, want %v", test.values, got, test.want)
		}
	}
}
