// Package route leads TCP connections to a service by a path with a round trip time, jitter, a bandwidth and a window.
//
// Bytes that enter a line leave it, in order, at moments worked out when they enter; so delays do not add up to more than
// was asked for, however late a goroutine wakes. A line does not lose anything.
package route

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/planrun/planrun/engine/clock"
)

// Shape is what a line does to the bytes of its connections. The zero value does nothing to them.
type Shape struct {
	// RTT is the time of a round trip; half of it is spent each way. A new connection costs one more, as a TCP handshake does.
	RTT time.Duration
	// Jitter adds between nothing and itself to the time of each way, uniformly. Order is kept.
	Jitter time.Duration
	// Bandwidth is in bytes a second, for all connections of the line together and each direction. 0 is no limit.
	Bandwidth float64
	// Window is how many bytes of one connection and direction may have been sent and not yet acknowledged. The
	// acknowledgement comes back half an RTT after the delivery, so that
	//
	//	throughput = Window / RTT
	//
	// of one connection at the most. 0 is no limit.
	Window int64
}

// Line is the path that the connections of several links share.
type Line struct {
	shape Shape
	clock *clock.Clock
	way   time.Duration // one way, without jitter
	limit int64         // bytes a connection and direction may hold here
	piece int           // greatest number of bytes to take at once

	directions [2]direction
}

// The directions of a line.
const (
	forth = 0 // from the client to the service
	back  = 1
)

// direction is what the connections of a line share in one direction: the time at which the line has sent all that was
// put on it.
type direction struct {
	mu   sync.Mutex
	free time.Duration
}

const (
	smallPiece = 4 << 10
	largePiece = 64 << 10

	// A connection without a window holds what a fast line would have in flight, within these bounds.
	leastHeld  = 1 << 20
	mostHeld   = 32 << 20
	fastestWay = 1e9 // bytes a second

	// ahead is how far a connection may fill the line before others get their turn.
	ahead = 4 * time.Millisecond
)

// NewLine makes a line with the clock that its delays are counted on.
func NewLine(c *clock.Clock, shape Shape) *Line {
	l := &Line{shape: shape, clock: c, way: shape.RTT / 2, limit: shape.Window, piece: largePiece}
	if l.limit == 0 {
		held := (l.way + shape.Jitter).Seconds() * fastestWay
		l.limit = int64(min(max(held, leastHeld), mostHeld))
	}
	if shape.Bandwidth > 0 {
		// A slow line is cut into pieces of 2 ms, but no smaller than a packet.
		l.piece = int(min(max(shape.Bandwidth*0.002, 1460), largePiece))
	}
	if shape.Window > 0 {
		// A whole number of pieces fills the window, and at least four, so that acknowledgements flow.
		pieces := max(4, (shape.Window+int64(l.piece)-1)/int64(l.piece))
		l.piece = int(max(shape.Window/pieces, 1))
	}
	return l
}

// straight tells whether bytes pass without any delay or limit.
func (l *Line) straight() bool { return l.shape == Shape{} }

// send puts n bytes on the line at the moment at or as soon as it is free, and returns when the last of them is on its way.
func (l *Line) send(to int, n int, at time.Duration) time.Duration {
	if l.shape.Bandwidth == 0 {
		return at
	}
	d := &l.directions[to]
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = max(d.free, at) + time.Duration(float64(n)/l.shape.Bandwidth*float64(time.Second))
	return d.free
}

// turn is when a connection may put more on the line: once what is on it already lies no more than ahead in the future.
func (l *Line) turn(to int) time.Duration {
	if l.shape.Bandwidth == 0 {
		return 0
	}
	d := &l.directions[to]
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.free - ahead
}

// arrival is when bytes sent at the moment sent come out.
func (l *Line) arrival(sent time.Duration) time.Duration {
	at := sent + l.way
	if l.shape.Jitter > 0 {
		at += rand.N(l.shape.Jitter + 1)
	}
	return at
}
