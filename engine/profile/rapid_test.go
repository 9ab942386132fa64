package profile

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// segments draws schedules of up to some ten thousand arrivals: ramps, holds, pauses, jumps, falls to 0, lengths from a
// nanosecond to minutes.
func segments() *rapid.Generator[[]Segment] {
	rate := rapid.OneOf(
		rapid.SampledFrom([]float64{0, 0, 0.1, 0.2, 1, 1.5, 10, 100, 1e4}),
		rapid.Float64Range(0, 1000),
	)
	return rapid.Custom(func(t *rapid.T) []Segment {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Segment {
			s := Segment{From: rate.Draw(t, "from")}
			s.To = s.From
			if rapid.Bool().Draw(t, "ramp") {
				s.To = rate.Draw(t, "to")
			}
			longest := 5 * time.Minute
			if top := max(s.From, s.To); top > 1 {
				longest = time.Duration(min(longest.Seconds(), 2e3/top) * float64(time.Second))
			}
			s.Length = time.Duration(rapid.OneOf(
				rapid.Int64Range(1, int64(longest)),
				rapid.Int64Range(0, 1000),
				rapid.Map(rapid.Int64Range(0, int64(longest/time.Second)), func(s int64) int64 { return s * int64(time.Second) }),
			).Draw(t, "length"))
			return s
		}), 0, 6).Draw(t, "segments")
		if len(list) > 1 && rapid.Bool().Draw(t, "joined") {
			for i := range list[1:] {
				list[i+1].From = list[i].To
			}
		}
		return list
	})
}

// integral is R(t), computed without the code under test.
func integral(segments []Segment, t time.Duration) float64 {
	sum := 0.0
	for _, s := range segments {
		if t <= 0 {
			break
		}
		part := min(t, s.Length)
		if s.Length > 0 {
			to := s.From + (s.To-s.From)*(part.Seconds()/s.Length.Seconds())
			sum += (s.From + to) / 2 * part.Seconds()
		}
		t -= part
	}
	return sum
}

// obeys checks what holds for every schedule.
func obeys(t *rapid.T, a *Arrivals) {
	if got := a.Before(a.Length()); got != a.Count() {
		t.Fatalf("%d arrivals before the end, count is %d", got, a.Count())
	}
	if got := a.Before(0); got != 0 {
		t.Fatalf("%d arrivals before the release", got)
	}
	if a.At(a.Count()) != a.Length() || a.At(math.MaxInt64) != a.Length() || a.At(-1) != 0 {
		t.Fatalf("outside of the schedule: %v, %v, %v", a.At(a.Count()), a.At(math.MaxInt64), a.At(-1))
	}
	previous := time.Duration(-1)
	n := int64(0) // how many are due before the moment at which arrival k is
	for k := range a.Count() {
		at := a.At(k)
		if at < previous || at < 0 || at >= a.Length() {
			t.Fatalf("arrival %d is due at %v, the one before at %v, the end is %v", k, at, previous, a.Length())
		}
		if at > previous {
			n = k
		}
		if got := a.Before(at); got != n {
			t.Fatalf("Before(At(%d)) is %d, want %d", k, got, n)
		}
		if got := a.Before(at + 1); got <= k {
			t.Fatalf("Before(At(%d) + 1ns) is %d", k, got)
		}
		previous = at
	}
}

func TestEvenProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := segments().Draw(t, "segments")
		a, err := Even(list)
		if err != nil {
			t.Fatal(err)
		}
		obeys(t, a)
		if total := integral(list, a.Length()); math.Abs(total-float64(a.Count())) > 0.5+halfTolerance*2 {
			t.Fatalf("%d arrivals, the integral is %v", a.Count(), total)
		}
		at := time.Duration(rapid.Int64Range(0, int64(a.Length())).Draw(t, "t"))
		if want := integral(list, at); math.Abs(want-float64(a.Before(at))) > 0.5+1e-5 {
			t.Fatalf("%d arrivals before %v, the integral is %v", a.Before(at), at, want)
		}
		// An arrival is due where the integral is k + 1/2. Times are whole nanoseconds, so it is that much off at the most.
		for k := range a.Count() {
			rate := 0.0
			for _, s := range list {
				rate = max(rate, s.From, s.To)
			}
			if got := integral(list, a.At(k)); math.Abs(got-float64(k)-0.5) > rate*2e-9+2*halfTolerance {
				t.Fatalf("arrival %d is due at %v, where the integral is %v", k, a.At(k), got)
			}
		}
	})
}

func TestPoissonProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := segments().Draw(t, "segments")
		seed := rapid.Uint64().Draw(t, "seed")
		a, err := Poisson(list, seed)
		if err != nil {
			t.Fatal(err)
		}
		obeys(t, a)
		again, _ := Poisson(list, seed)
		if a.Count() != again.Count() || a.At(a.Count()/2) != again.At(a.Count()/2) {
			t.Fatal("the same seed gave other arrivals")
		}
		total := integral(list, a.Length())
		if off := math.Abs(float64(a.Count()) - total); off > 8*math.Sqrt(total)+20 {
			t.Fatalf("%d arrivals, expected %v", a.Count(), total)
		}
	})
}

func TestUsersProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Segment {
			return Segment{
				From:   float64(rapid.IntRange(0, 20).Draw(t, "from")),
				To:     float64(rapid.IntRange(0, 20).Draw(t, "to")),
				Length: time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "length")),
			}
		}), 0, 6).Draw(t, "segments")
		u, err := NewUsers(list)
		if err != nil {
			t.Fatal(err)
		}
		var begin time.Duration
		working := 0.0 // user-seconds
		for i := range u.Max() {
			begin = -1
			spans := u.Spans(i)
			if len(spans) == 0 && u.Max() > 0 && i == 0 && u.Length() > time.Second {
				t.Fatalf("user 0 never works, though there are %d users", u.Max())
			}
			for _, s := range spans {
				if s.Start <= begin || s.Stop <= s.Start || s.Stop > u.Length() {
					t.Fatalf("user %d works %v", i, spans)
				}
				begin = s.Stop
				working += (s.Stop - s.Start).Seconds()
			}
		}
		if spans := u.Spans(u.Max()); spans != nil {
			t.Fatalf("user %d works %v, there are %d users", u.Max(), spans, u.Max())
		}
		// Between spans and At: how many are at work at some moment, away from the moments at which that changes.
		at := time.Duration(rapid.Int64Range(0, int64(u.Length())).Draw(t, "t"))
		n, close := 0, false
		for i := range u.Max() {
			for _, s := range u.Spans(i) {
				if s.Start <= at && at < s.Stop {
					n++
				}
				close = close || max(at-s.Start, s.Start-at) < 10 || max(at-s.Stop, s.Stop-at) < 10
			}
		}
		if got := u.At(at); got != n && !close {
			t.Fatalf("%d users at %v, %d have a span there", got, at, n)
		}
		// User-seconds are the integral, up to half a user more or less where the number changes.
		if want := integral(list, u.Length()); math.Abs(working-want) > 0.5*u.Length().Seconds()+1e-6 {
			t.Fatalf("%v user-seconds, the integral is %v", working, want)
		}
	})
}
