// Package profile says how load develops over time, in closed form: when arrivals are due under rates that are
// piecewise linear, and when users work under numbers of users that are. It is pure arithmetic: it reads no clock, and
// what it returns is immutable and safe for concurrent use. All times are counted from the release.
package profile

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Segment is a piece of constant slope. A ramp has From and To apart, a hold has them equal, and where the To of one
// segment differs from the From of the next, the load jumps.
type Segment struct {
	From, To float64       // arrivals a second, or users
	Length   time.Duration // 0 leaves the segment out
}

const (
	// maxRate is one arrival a nanosecond, the resolution of time.Duration.
	maxRate = 1e9
	// maxArrivals keeps sums of arrivals in float64 exact to far better than halfTolerance.
	maxArrivals = 1e9
	maxUsers    = 1e6
	// maxLength is far beyond any run, and keeps nanoseconds exact in float64.
	maxLength = 90 * 24 * time.Hour
)

// check refuses what has no meaning as a load. what names the quantity in messages, and limit is its greatest value.
func check(segments []Segment, what string, limit float64) error {
	var total time.Duration
	for _, s := range segments {
		for _, v := range []float64{s.From, s.To} {
			if math.IsNaN(v) || v < 0 || v > limit {
				return fmt.Errorf("%s of %v: expected 0 to %v", what, v, limit)
			}
		}
		if s.Length < 0 {
			return fmt.Errorf("length of %v: expected none below 0", s.Length)
		}
		if s.Length > maxLength-total {
			return errors.New("expected no more than 90 days in all")
		}
		total += s.Length
	}
	return nil
}
