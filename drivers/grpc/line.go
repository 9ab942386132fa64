package grpc

import (
	"context"
	"sync"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// line is one of the connections that users share. It is opened by the call that needs it, and again after its end.
type line struct {
	mu      sync.Mutex
	link    *link    // nil before the first call
	opening *opening // nil unless a call is opening the connection
}

// opening is a connection that is being opened, for those who wait for it.
type opening struct {
	done chan struct{} // closed when link or err is set
	link *link
	err  error
}

// acquire takes a stream on a connection of the session's line, opens the connection if there is none, and fills its part of
// the timing split. The stream is given back with release.
func (s *session) acquire(ctx context.Context, out *drivers.Outcome) (*link, error) {
	for {
		l, err := s.connected(ctx, out)
		if err != nil {
			return nil, err
		}
		ok, waited, err := l.acquire(ctx, s.turn)
		if waited > 0 {
			dial.Add(&out.Wait, waited)
		}
		if ok || err != nil {
			return l, err
		}
		if out.Opened {
			// A call opens one connection. A server that ends it before the call could begin is what was measured.
			return nil, l.wire.loss("the connection was opened")
		}
	}
}

// connected returns the line's connection. The first call that finds none opens it, the others wait for that.
func (s *session) connected(ctx context.Context, out *drivers.Outcome) (*link, error) {
	for {
		s.line.mu.Lock()
		if l := s.line.link; l != nil && l.usable() {
			s.line.mu.Unlock()
			return l, nil
		}
		if o := s.line.opening; o != nil {
			s.line.mu.Unlock()
			start := time.Now()
			select {
			case <-o.done:
			case <-ctx.Done():
			}
			dial.Add(&out.Wait, time.Since(start))
			if ctx.Err() != nil {
				return nil, dial.Fail(ctx, "waiting for the connection", ctx.Err())
			}
			// When the other call ran out of time, this one may still have some.
			if kind := drivers.KindOf(o.err); kind != drivers.OK && kind != drivers.Timeout && kind != drivers.Aborted {
				return nil, o.err
			}
			continue
		}
		o := &opening{done: make(chan struct{})}
		s.line.opening = o
		s.line.mu.Unlock()

		o.link, o.err = s.client.dial(ctx, &out.Timing)
		out.Opened = o.err == nil

		s.line.mu.Lock()
		s.line.opening = nil
		old := s.line.link
		if o.link != nil {
			s.line.link = o.link
		}
		s.line.mu.Unlock()
		close(o.done)
		if o.link != nil && old != nil {
			old.retire()
		}
		return o.link, o.err
	}
}
