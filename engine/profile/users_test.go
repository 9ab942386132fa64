package profile

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestSpans(t *testing.T) {
	s := time.Second
	ms := time.Millisecond
	rampHoldRamp := []Segment{{0, 50, 10 * s}, {50, 50, 60 * s}, {50, 0, 10 * s}}
	tests := []struct {
		name     string
		segments []Segment
		most     int
		user     int
		want     []Span
	}{
		{"a hold has all from the start", []Segment{{50, 50, 10 * s}}, 50, 0, []Span{{0, 10 * s}}},
		{"the last of a hold too", []Segment{{50, 50, 10 * s}}, 50, 49, []Span{{0, 10 * s}}},
		{"one more than a hold has", []Segment{{50, 50, 10 * s}}, 50, 50, nil},
		{"a ramp begins with user 0", rampHoldRamp, 50, 0, []Span{{100 * ms, 79900 * ms}}},
		{"one each 200 ms", rampHoldRamp, 50, 1, []Span{{300 * ms, 79700 * ms}}},
		{"the last comer leaves first", rampHoldRamp, 50, 49, []Span{{9900 * ms, 70100 * ms}}},
		{"twice up", []Segment{{0, 10, 10 * s}, {10, 0, 10 * s}, {0, 10, 10 * s}}, 10, 9, []Span{{9500 * ms, 10500 * ms}, {29500 * ms, 30 * s}}},
		{"and the first of them", []Segment{{0, 10, 10 * s}, {10, 2, 8 * s}, {2, 10, 8 * s}}, 10, 0, []Span{{500 * ms, 26 * s}}},
		{"jumps", []Segment{{10, 10, s}, {5, 5, s}, {10, 10, s}}, 10, 7, []Span{{0, s}, {2 * s, 3 * s}}},
		{"jumps past a user who stays", []Segment{{10, 10, s}, {5, 5, s}, {10, 10, s}}, 10, 4, []Span{{0, 3 * s}}},
		{"no length", []Segment{{10, 10, 0}}, 0, 0, nil},
		{"nothing", nil, 0, 0, nil},
		{"below 0", []Segment{{10, 10, s}}, 10, -1, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u, err := NewUsers(test.segments)
			if err != nil {
				t.Fatal(err)
			}
			if u.Max() != test.most {
				t.Errorf("at most %d users, want %d", u.Max(), test.most)
			}
			if got := u.Spans(test.user); !slices.Equal(got, test.want) {
				t.Errorf("user %d works %v, want %v", test.user, got, test.want)
			}
		})
	}
}

func TestUsersAt(t *testing.T) {
	u, err := NewUsers([]Segment{{0, 50, 10 * time.Second}, {50, 50, time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[time.Duration]int{
		-1:                     0,
		0:                      0,
		99 * time.Millisecond:  0,
		101 * time.Millisecond: 1,
		5 * time.Second:        25,
		10 * time.Second:       50,
		70*time.Second - 1:     50,
		70 * time.Second:       0,
		math.MaxInt64:          0,
	} {
		if got := u.At(at); got != want {
			t.Errorf("%d users at %v, want %d", got, at, want)
		}
	}
}
