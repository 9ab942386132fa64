// Package record holds what was measured: samples as users note them down, the notebooks that carry them to the
// writer without locks, and the histograms and series that summarise them.
package record

import (
	"github.com/planrun/planrun/drivers"
)

// Sample is one executed iteration, one executed step of it, or one arrival that was dropped. Times are nanoseconds
// since the release of the sample's round.
type Sample struct {
	Due   int64 // when it should have started
	Start int64 // when it did
	End   int64 // when the whole answer had been read
	// Lag is how late the generator itself was: the part of Start - Due for which a user was free.
	Lag int64
	// Paused is for how long an iteration did nothing because the plan says so.
	Paused int64

	// The timing split in nanoseconds; -1 is no data.
	DNS, Connect, TLS, Wait, TTFB, Transfer int64

	BytesIn, BytesOut int64

	Iteration int64
	User      int32
	Status    int32 // the protocol's number; 0 is none
	Step      int16 // index of the step; Whole for the iteration
	Stage     int16 // index of the stage in which it was due
	Failure   drivers.Failure
	Flags     Flags
}

// Whole is the Step of a sample that is an iteration.
const Whole = -1

// Flags of a sample.
type Flags uint8

const (
	Dropped Flags = 1 << iota // never sent: later than the phase's patience
	Opened                    // opened a connection
)

// Latency is end - due, pauses excluded.
func (s *Sample) Latency() int64 { return s.End - s.Due - s.Paused }

// Service is end - start, pauses excluded.
func (s *Sample) Service() int64 { return s.End - s.Start - s.Paused }
