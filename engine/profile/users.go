package profile

import (
	"math"
	"time"
)

// Users is how many users are at work over time, in a closed model. It is immutable and safe for concurrent use.
//
// The number of users u(t) is piecewise linear, and user i, from 0, is at work while u(t) > i + 1/2. So a hold of 50 has
// users 0 to 49; a ramp from 0 to 50 in 10 s starts one each 200 ms, the first after 100 ms; a ramp down ends the last
// comer first.
type Users struct {
	segments []Segment
	length   time.Duration
	most     int
}

// Span is when a user is at work: it begins iterations from Start on, and none at Stop or later. An iteration under way
// at Stop is finished.
type Span struct {
	Start, Stop time.Duration
}

// NewUsers puts the segments, whose From and To are numbers of users, one after the other.
func NewUsers(segments []Segment) (*Users, error) {
	if err := check(segments, "a number of users", maxUsers); err != nil {
		return nil, err
	}
	u := &Users{}
	for _, s := range segments {
		if s.Length == 0 {
			continue
		}
		u.segments = append(u.segments, s)
		u.length += s.Length
		u.most = max(u.most, whole(s.From), whole(s.To))
	}
	return u, nil
}

// whole is how many i >= 0 have i + 1/2 < users.
func whole(users float64) int {
	return int(max(0, math.Ceil(users-0.5)))
}

// Max is the greatest number of users that are at work at a time. Users 0 to Max - 1 have spans.
func (u *Users) Max() int { return u.most }

// Length is the length of all segments. No span stops later.
func (u *Users) Length() time.Duration { return u.length }

// At returns how many users are at work at t: none before 0, nor from Length on.
func (u *Users) At(t time.Duration) int {
	if t < 0 {
		return 0
	}
	for _, s := range u.segments {
		if t < s.Length {
			return whole(s.From + (s.To-s.From)*(t.Seconds()/s.Length.Seconds()))
		}
		t -= s.Length
	}
	return 0
}

// Spans returns when user i is at work, in order, with time between any two spans. Where stages go up and down, a user
// may have several. Users from Max on have none.
func (u *Users) Spans(i int) []Span {
	if i < 0 {
		return nil
	}
	var spans []Span
	threshold := float64(i) + 0.5
	var begin time.Duration
	for _, s := range u.segments {
		span := Span{begin, begin + s.Length}
		begin += s.Length
		rising, falling := s.To > threshold, s.From > threshold
		switch {
		case rising && falling:
		case rising:
			span.Start += s.reach(threshold)
		case falling:
			span.Stop = span.Start + s.reach(threshold)
		default:
			continue
		}
		if span.Start == span.Stop {
			continue
		}
		if n := len(spans); n > 0 && spans[n-1].Stop == span.Start {
			spans[n-1].Stop = span.Stop
		} else {
			spans = append(spans, span)
		}
	}
	return spans
}

// reach returns when the segment, which crosses the value, does so, since its start.
func (s Segment) reach(value float64) time.Duration {
	part := (value - s.From) / (s.To - s.From)
	return min(time.Duration(part*float64(s.Length)+0.5), s.Length)
}
