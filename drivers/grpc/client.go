package grpc

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// Client is one server in one round: its lines, over which users are spread.
type Client struct {
	endpoint *endpoint
	dialer   *dial.Dialer
	lines    []line
	users    atomic.Uint64
	closing  sync.WaitGroup // links that are being closed
}

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

func newClient(e *endpoint, pool drivers.Pool) *Client {
	return &Client{
		endpoint: e,
		dialer:   &dial.Dialer{Host: e.host, Port: e.port},
		lines:    make([]line, max(pool.Connections, 1)),
	}
}

// Probe implements drivers.Client. Where the schema comes by reflection and is not known yet, it is asked for on the
// same connection.
func (c *Client) Probe(ctx context.Context) error {
	if c.endpoint.served.waits() {
		return c.reflect(ctx)
	}
	var t drivers.Timing
	l, err := c.dial(ctx, &t)
	if err != nil {
		return err
	}
	l.retire()
	return nil
}

// Open implements drivers.Client. Users are spread over the connections in turn.
func (c *Client) Open(context.Context) (drivers.Session, error) {
	n := c.users.Add(1) - 1
	return newSession(c, &c.lines[n%uint64(len(c.lines))]), nil
}

// Close implements drivers.Client.
func (c *Client) Close() error {
	for i := range c.lines {
		if l := c.lines[i].link; l != nil {
			l.retire()
		}
	}
	c.closing.Wait()
	return nil
}

// link takes a stream on a connection of the line, opens the connection if there is none, and fills out's part of the
// timing split. The stream is given back with release.
func (s *session) acquire(ctx context.Context, out *drivers.Outcome) (*link, error) {
	waited := func(d time.Duration) { dial.Add(&out.Wait, d) }
	for {
		l, err := s.connected(ctx, out, waited)
		if err != nil {
			return nil, err
		}
		ok, w, err := l.acquire(ctx, s.turn)
		if w > 0 {
			waited(w)
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
func (s *session) connected(ctx context.Context, out *drivers.Outcome, waited func(time.Duration)) (*link, error) {
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
			waited(time.Since(start))
			if ctx.Err() != nil {
				return nil, dial.Fail(ctx, "waiting for the connection", ctx.Err())
			}
			// When the other call ran out of time, this one may still have some.
			if kind := drivers.KindOf(o.err); kind != drivers.OK && kind != drivers.Timeout && kind != drivers.Aborted {
				return nil, o.err
			}
			continue
		}
		if s.line.link != nil && out.Opened {
			s.line.mu.Unlock()
			return nil, s.line.link.wire.loss("the connection was opened")
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

var _ drivers.Client = (*Client)(nil)
