package route

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/planrun/planrun/engine/clock"
)

// flow is one direction of one connection. One goroutine takes bytes in, another gives them out.
type flow struct {
	line *Line
	to   int
	from Stream
	gone <-chan struct{} // the connection is over

	// Bytes read before it are sent at this moment: the other end does not know yet that it is connected.
	connected time.Duration

	mu       sync.Mutex
	queue    backlog
	held     int64 // bytes taken in and not acknowledged
	acks     []ack // of bytes given out, under way back; in order
	last     time.Duration
	arrived  chan struct{} // something was queued
	returned chan struct{} // something was given out
}

// ack is the acknowledgement of bytes, and when it arrives.
type ack struct {
	bytes int64
	due   time.Duration
}

func newFlow(l *Line, to int, from Stream, connected time.Duration, gone <-chan struct{}) *flow {
	return &flow{
		line: l, to: to, from: from, connected: connected, gone: gone,
		arrived: make(chan struct{}, 1), returned: make(chan struct{}, 1),
	}
}

// take reads until the end, and queues what it read with the moment at which it is due.
func (f *flow) take() {
	waiter := f.line.clock.NewWaiter()
	busy := false
	for {
		room, ok := f.room(waiter)
		if !ok {
			return
		}
		b := buffer(busy)
		size := min(len(b), f.line.piece, int(room))
		n, err := f.from.Read(b[:size])
		// A full buffer means that more is waiting; a large one that is nearly empty is more than is needed.
		busy = n == size || busy && n > smallPiece
		if n > 0 {
			sent := f.line.send(f.to, n, max(f.line.clock.Now(), f.connected))
			f.put(piece{bytes: b[:n], due: f.line.arrival(sent)})
		} else {
			release(b)
		}
		if err != nil {
			end := broken
			if errors.Is(err, io.EOF) {
				end = closed
			}
			f.put(piece{end: end, due: f.line.arrival(max(f.line.clock.Now(), f.connected))})
			return
		}
	}
}

// room waits until the window and the line have room, and returns how much the window has.
func (f *flow) room(waiter *clock.Waiter) (int64, bool) {
	if !waiter.Until(f.line.turn(f.to), f.gone) {
		return 0, false
	}
	for {
		f.mu.Lock()
		now := f.line.clock.Now()
		n := 0
		for n < len(f.acks) && f.acks[n].due <= now {
			f.held -= f.acks[n].bytes
			n++
		}
		f.acks = f.acks[:copy(f.acks, f.acks[n:])]
		room := f.line.limit - f.held
		next := time.Duration(-1)
		if len(f.acks) > 0 {
			next = f.acks[0].due
		}
		f.mu.Unlock()

		// Pieces that get smaller and smaller would be what TCP calls the silly window (RFC 1122, section 4.2.3.4).
		if room >= int64(max(f.line.piece/4, 1)) {
			return room, true
		}
		if next >= 0 {
			if !waiter.Until(next, f.gone) {
				return 0, false
			}
			continue
		}
		select {
		case <-f.returned:
		case <-f.gone:
			return 0, false
		}
	}
}

func (f *flow) put(p piece) {
	f.mu.Lock()
	p.due = max(p.due, f.last)
	f.last = p.due
	f.held += int64(len(p.bytes))
	f.queue.push(p)
	f.mu.Unlock()
	signal(f.arrived)
}

// give writes what was taken in to the other end, each piece when it is due, and returns how that ended. When the other
// end takes no more, that is known here one way later.
func (f *flow) give(to Stream) ending {
	waiter := f.line.clock.NewWaiter()
	for {
		p, ok := f.next()
		if !ok {
			return broken
		}
		if !waiter.Until(p.due, f.gone) {
			return broken
		}
		if p.end != open {
			return p.end
		}
		_, err := to.Write(p.bytes)
		n := int64(len(p.bytes))
		release(p.bytes)
		if err != nil {
			waiter.Until(f.line.clock.Now()+f.line.way, f.gone)
			return broken
		}
		f.acknowledge(n)
	}
}

func (f *flow) next() (piece, bool) {
	for {
		f.mu.Lock()
		if f.queue.len() > 0 {
			p := f.queue.pop()
			f.mu.Unlock()
			return p, true
		}
		f.mu.Unlock()
		select {
		case <-f.arrived:
		case <-f.gone:
			return piece{}, false
		}
	}
}

func (f *flow) acknowledge(n int64) {
	f.mu.Lock()
	if f.line.shape.Window > 0 {
		f.acks = append(f.acks, ack{n, f.line.clock.Now() + f.line.way})
	} else {
		f.held -= n
	}
	f.mu.Unlock()
	signal(f.returned)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
