package profile

import (
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
		{"nothing", nil, 0},
		{"no length", []Segment{{100, 100, 0}}, 0},
		{"a pause", []Segment{{10, 10, second}, {0, 0, second}, {10, 10, second}}, 20},
		{"many small pieces", slivers(10_000, Segment{0.1, 0.1, 10 * time.Millisecond}), 10},
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

func slivers(n int, s Segment) []Segment {
	segments := make([]Segment, n)
	for i := range segments {
		segments[i] = s
	}
	return segments
}
