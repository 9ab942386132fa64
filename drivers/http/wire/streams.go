package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

const (
	// pingAfter is how long an HTTP/2 connection may be silent while calls wait on it before it is asked for a sign
	// of life, and pingWait how long that, or writing anything at all, may take. A connection that fails is replaced; without this, one that died
	// without a word would fail every call of the round.
	pingAfter = 30 * time.Second
	pingWait  = 15 * time.Second
)

// streams are the HTTP/2 connections that all users of a client share. Calls wait here when every connection is at
// its limit of streams, first come first served, and for a connection that another call is opening.
type streams struct {
	client *Client
	limit  int // of connections

	mu      sync.Mutex
	conns   []*multiplexed // taking calls
	old     []*multiplexed // finishing those that they have
	dialing int
	closed  bool

	// A lock of its own: net/http calls back, and may do so while mu is held.
	queueMu sync.Mutex
	queue   []*ticket
}

// multiplexed is one HTTP/2 connection.
type multiplexed struct {
	conn  *http.ClientConn
	watch *frames
	calls int // under way; guarded by streams.mu
}

func (m *multiplexed) dead() bool { return m.watch.leaving.Load() || m.conn.Err() != nil }

// ticket is a call's place in the queue. It is kept from call to call.
type ticket struct {
	turn chan struct{} // gets one value when it is the ticket's turn
	err  error         // why there won't be a connection; guarded by queueMu until turn came
}

func newStreams(c *Client, limit int) *streams { return &streams{client: c, limit: limit} }

// take reserves a stream. Without one, open says whether the caller is to open a connection; otherwise it has to wait.
func (p *streams) take() (m *multiplexed, open bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, drivers.Fail(drivers.Aborted, errors.New("the client is closed"))
	}
	p.conns = slices.DeleteFunc(p.conns, func(m *multiplexed) bool {
		if m.dead() {
			p.old = append(p.old, m)
			return true
		}
		return false
	})
	p.old = slices.DeleteFunc(p.old, func(m *multiplexed) bool { return m.calls == 0 && m.conn.Err() != nil })
	slices.SortStableFunc(p.conns, func(a, b *multiplexed) int { return a.calls - b.calls })
	if len(p.conns)+p.dialing < p.limit && (len(p.conns) == 0 || p.conns[0].calls > 0) {
		p.dialing++
		return nil, true, nil
	}
	for _, m := range p.conns {
		if m.watch.ready.Load() && m.conn.Reserve() == nil {
			m.calls++
			return m, false, nil
		}
	}
	return nil, false, nil
}

// give ends a call on a connection.
func (p *streams) give(m *multiplexed) {
	p.mu.Lock()
	m.calls--
	p.mu.Unlock()
}

// wake gives the first n in the queue their turn.
func (p *streams) wake(n int, err error) {
	p.queueMu.Lock()
	defer p.queueMu.Unlock()
	n = min(n, len(p.queue))
	for _, t := range p.queue[:n] {
		t.err = err
		t.turn <- struct{}{}
	}
	p.queue = slices.Delete(p.queue, 0, n)
}

func (p *streams) waiting() int {
	p.queueMu.Lock()
	defer p.queueMu.Unlock()
	return len(p.queue)
}

// line puts a ticket into the queue: at its end, or back to its front. first says that it is at the front now, and
// that its holder has to look for a stream itself: what was freed before it came woke nobody.
func (p *streams) line(t *ticket, front bool) (first bool) {
	p.queueMu.Lock()
	defer p.queueMu.Unlock()
	if t.turn == nil {
		t.turn = make(chan struct{}, 1)
	}
	t.err = nil
	if front {
		p.queue = slices.Insert(p.queue, 0, t)
	} else {
		p.queue = append(p.queue, t)
	}
	return p.queue[0] == t
}

// leave takes a ticket out of the queue. If its turn had come already, the next in the queue gets it.
func (p *streams) leave(t *ticket) {
	p.queueMu.Lock()
	i := slices.Index(p.queue, t)
	if i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
	p.queueMu.Unlock()
	if i < 0 {
		<-t.turn
		p.wake(1, nil)
	}
}

// add takes a new connection in, with a stream reserved for the call that opened it.
func (p *streams) add(m *multiplexed) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing--
	if p.closed {
		m.conn.Close()
		return drivers.Fail(drivers.Aborted, errors.New("the client is closed"))
	}
	if err := m.conn.Reserve(); err != nil {
		m.conn.Close()
		if cause := m.watch.cause(); cause != nil {
			return dial.Fail(context.Background(), "beginning HTTP/2", cause)
		}
		return drivers.Fail(drivers.Reset, errors.New("the server closed the connection at once"))
	}
	m.calls++
	p.conns = append(p.conns, m)
	return nil
}

// lost ends a dial that gave no connection for the queue.
func (p *streams) lost() (alone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing--
	return p.dialing == 0 && len(p.conns) == 0
}

func (p *streams) close() {
	p.mu.Lock()
	p.closed = true
	all := append(p.conns, p.old...)
	p.conns, p.old = nil, nil
	p.mu.Unlock()
	for _, m := range all {
		m.conn.Close()
	}
}

// stream reserves a stream for a call, opening a connection if one is needed. other is a connection on which the
// server chose to speak HTTP/1.1; when all three are nil, another call has found out that it does.
func (s *Session) stream(ctx context.Context, c *Client, in *drivers.Input, out *drivers.Outcome) (m *multiplexed, other net.Conn, err error) {
	p := c.streams
	start := time.Now()
	account := func() {
		dial.Add(&out.Wait, time.Since(start))
		start = time.Now()
	}
	queued := p.waiting() > 0 // whoever came earlier goes first
	look := true
	if queued {
		look = p.line(&s.ticket, false)
	}
	for {
		if look {
			m, open, err := p.take()
			if m == nil && !open && err == nil {
				if !queued {
					queued = true
					look = p.line(&s.ticket, false)
					continue
				}
			} else {
				if queued {
					p.leave(&s.ticket)
				}
				account()
				switch {
				case err != nil:
					return nil, nil, err
				case open:
					return s.connect(ctx, c, in, out)
				}
				if free := m.conn.Available(); free > 0 {
					p.wake(free, nil) // a turn may have been for more than one
				}
				return m, nil, nil
			}
		}
		ring := s.alarm.set(in.Deadline)
		select {
		case <-s.ticket.turn:
			s.alarm.stop()
			if err := s.ticket.err; err != nil {
				account()
				return nil, nil, err
			}
			if c.speaks() == HTTP1 {
				account()
				return nil, nil, nil
			}
			look = p.line(&s.ticket, true)
		case <-ring:
			p.leave(&s.ticket)
			account()
			return nil, nil, drivers.Fail(drivers.Timeout, errors.New("timed out waiting for a free stream or connection"))
		case <-ctx.Done():
			s.alarm.stop()
			p.leave(&s.ticket)
			account()
			return nil, nil, dial.Fail(ctx, "waiting for a free stream or connection", ctx.Err())
		}
	}
}

// connect opens a connection for a call, and for those that wait.
func (s *Session) connect(ctx context.Context, c *Client, in *drivers.Input, out *drivers.Outcome) (*multiplexed, net.Conn, error) {
	p := c.streams
	dialCtx, cancel := context.WithDeadline(ctx, in.Deadline)
	defer cancel()
	conn, version, err := c.open(dialCtx, c.place.Version, dial.Handshake, &out.Timing)
	out.Opened = err == nil
	if err == nil && c.place.Version == Auto {
		c.version.Store(uint32(version))
	}
	if err == nil && version == HTTP1 {
		p.lost()
		p.wake(p.waiting(), nil)
		return nil, conn, nil
	}
	var m *multiplexed
	if err == nil {
		m, err = p.multiplex(conn)
	} else if alone := p.lost(); alone && !ofTheCall(err) {
		// It was a connection for all who wait: they share its failure.
		p.wake(p.waiting(), err)
	} else {
		p.wake(1, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	return m, nil, nil
}

// ofTheCall tells whether a dial failed for a reason that holds for one call only.
func ofTheCall(err error) bool {
	kind := drivers.KindOf(err)
	return kind == drivers.Timeout || kind == drivers.Aborted
}

// multiplex speaks HTTP/2 on a connection, and takes it in.
func (p *streams) multiplex(conn net.Conn) (*multiplexed, error) {
	m := &multiplexed{}
	m.watch = &frames{Conn: conn, changed: func() {
		// A connection that is ready lets some in; one that leaves makes somebody open another.
		free := 1
		if m.watch.ready.Load() && !m.watch.leaving.Load() {
			free = max(1, m.conn.Available())
		}
		p.wake(free, nil)
	}}
	// Whether there is TLS beneath is none of this transport's business: it is done already.
	transport := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return m.watch, nil },
		DisableCompression: true,
		Protocols:          new(http.Protocols),
		HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingWait, WriteByteTimeout: pingWait},
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	m.watch.hold.Lock()
	var err error
	m.conn, err = transport.NewClientConn(context.Background(), "http", "multiplexed:80")
	m.watch.hold.Unlock()
	if err != nil {
		conn.Close()
		alone := p.lost()
		err = dial.Fail(context.Background(), "beginning HTTP/2", err)
		if alone {
			p.wake(p.waiting(), err)
		} else {
			p.wake(1, nil)
		}
		return nil, err
	}
	if err := p.add(m); err != nil {
		p.wake(1, nil)
		return nil, err
	}
	m.conn.SetStateHook(func(cc *http.ClientConn) { p.wake(max(1, cc.Available()), nil) })
	return m, nil
}

// frames is a connection beneath HTTP/2. It watches what the server sends for two things that net/http keeps to
// itself: that the server's settings have come, before which its limit of streams is unknown, and that it is leaving
// (GOAWAY; RFC 9113, sections 4.1, 6.5 and 6.8).
type frames struct {
	net.Conn
	changed func()
	hold    sync.Mutex // until the connection is known to those who are told of changes

	ready   atomic.Bool // the settings have been read and applied
	leaving atomic.Bool // no further streams are accepted
	ended   atomic.Pointer[error]

	// Of the reading goroutine.
	header  [9]byte
	have    int  // of the header
	skip    int  // of the payload
	arrived bool // the first frame is complete
}

const goAway = 7 // the type of the frame

var errNotHTTP2 = drivers.Fail(drivers.Protocol, errors.New("HTTP/2 was asked for, but the server speaks HTTP/1.1"))

// Read implements net.Conn. That there is another read tells that what came before has been dealt with.
func (f *frames) Read(p []byte) (int, error) {
	if f.arrived && !f.ready.Load() {
		f.hold.Lock()
		f.ready.Store(true)
		f.hold.Unlock()
		f.changed()
	}
	n, err := f.Conn.Read(p)
	f.scan(p[:n])
	if err != nil {
		f.ended.CompareAndSwap(nil, &err)
	}
	return n, err
}

// cause is why the connection ended, if it was not simply closed: net/http does not always tell.
func (f *frames) cause() error {
	if p := f.ended.Load(); p != nil && dial.Classify(*p) != drivers.Reset {
		return *p
	}
	return nil
}

func (f *frames) scan(p []byte) {
	for len(p) > 0 {
		if f.have < len(f.header) {
			n := copy(f.header[f.have:], p)
			f.have += n
			p = p[n:]
			if f.have < len(f.header) {
				return
			}
			if string(f.header[:len(greeting)]) == greeting {
				err := errNotHTTP2
				f.ended.CompareAndSwap(nil, &err)
			}
			f.skip = int(binary.BigEndian.Uint32(f.header[:4]) >> 8)
			if f.header[3] == goAway && !f.leaving.Load() {
				f.leaving.Store(true)
				f.hold.Lock()
				//lint:ignore SA2001 the lock is only waited for
				f.hold.Unlock()
				f.changed()
			}
		}
		n := min(f.skip, len(p))
		f.skip -= n
		p = p[n:]
		if f.skip == 0 {
			f.have = 0
			f.arrived = true
		}
	}
}
