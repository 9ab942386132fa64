package drivertest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Relay forwards TCP connections to a server and misbehaves on demand, so that every protocol can be tried against a
// slow, silent, broken or closing peer without a server that knows how. Its methods are safe for concurrent use and
// apply to open connections as well as to new ones.
type Relay struct {
	backend  string
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	wake   *sync.Cond
	conns  map[*relayed]struct{}
	opened int
	closed bool
	delay  time.Duration
	budget int64 // bytes of answers still to be forwarded; negative: no limit
	cut    bool  // reset the connection when the budget is spent, instead of holding it
}

// relayed is one connection and its counterpart.
type relayed struct {
	client, server *net.TCPConn
}

// NewRelay starts a relay on 127.0.0.1 in front of backend (host:port). It stops when the test ends.
func NewRelay(t testing.TB, backend string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{backend: backend, listener: l, conns: map[*relayed]struct{}{}, budget: -1}
	r.wake = sync.NewCond(&r.mu)
	r.wg.Go(r.accept)
	t.Cleanup(r.Close)
	return r
}

// Addr is where the relay listens, as host:port.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Opened is how many connections were accepted so far.
func (r *Relay) Opened() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opened
}

// Open is how many connections clients hold open now.
func (r *Relay) Open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns)
}

// Delay holds every piece of an answer back for d.
func (r *Relay) Delay(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = d
}

// FreezeAfter forwards n more bytes of answers, over all connections, and then nothing, while connections stay open.
func (r *Relay) FreezeAfter(n int64) { r.limit(n, false) }

// CutAfter forwards n more bytes of answers, over all connections, and then resets the connection that has more.
func (r *Relay) CutAfter(n int64) { r.limit(n, true) }

// Thaw ends FreezeAfter and CutAfter; what was held back is forwarded.
func (r *Relay) Thaw() { r.limit(-1, false) }

func (r *Relay) limit(n int64, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.budget, r.cut = n, cut
	r.wake.Broadcast()
}

// Sever closes the open connections in an orderly way, as a server does with idle ones, and returns once clients can
// know it.
func (r *Relay) Sever() {
	r.mu.Lock()
	for c := range r.conns {
		c.client.CloseWrite()
		c.server.Close()
	}
	r.mu.Unlock()
	// On loopback the FIN has been received when CloseWrite returns; the pause is for systems where it has not.
	time.Sleep(20 * time.Millisecond)
}

// Close stops the relay and closes its connections.
func (r *Relay) Close() {
	r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for c := range r.conns {
		c.client.Close()
		c.server.Close()
	}
	r.wake.Broadcast()
	r.mu.Unlock()
	r.wg.Wait()
}

func (r *Relay) accept() {
	for {
		nc, err := r.listener.Accept()
		if err != nil {
			return
		}
		back, err := net.Dial("tcp", r.backend)
		if err != nil {
			nc.Close()
			continue
		}
		c := &relayed{nc.(*net.TCPConn), back.(*net.TCPConn)}
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			c.client.Close()
			c.server.Close()
			return
		}
		r.opened++
		r.conns[c] = struct{}{}
		r.mu.Unlock()
		r.wg.Go(func() { r.requests(c) })
		r.wg.Go(func() { r.answers(c) })
	}
}

// requests forwards what the client sends until it closes its side.
func (r *Relay) requests(c *relayed) {
	_, err := io.Copy(c.server, c.client)
	if errors.Is(err, net.ErrClosed) || err == nil {
		c.server.CloseWrite()
	}
	// The client has closed or reset: it no longer holds the connection.
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
	c.client.Close()
	c.server.Close()
	r.mu.Lock()
	r.wake.Broadcast()
	r.mu.Unlock()
}

// answers forwards what the server sends, as far as the relay is allowed to.
func (r *Relay) answers(c *relayed) {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.server.Read(buf)
		for b := buf[:n]; len(b) > 0; {
			k, cut, ok := r.allow(c, len(b))
			if cut {
				c.client.SetLinger(0)
				c.client.Close()
			}
			if !ok || cut {
				return
			}
			if _, werr := c.client.Write(b[:k]); werr != nil {
				return
			}
			b = b[k:]
		}
		if err != nil {
			c.client.CloseWrite()
			return
		}
	}
}

// allow waits until some of n bytes may be forwarded, and returns how many.
func (r *Relay) allow(c *relayed, n int) (k int, cut, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.delay; d > 0 {
		r.mu.Unlock()
		time.Sleep(d)
		r.mu.Lock()
	}
	for {
		_, alive := r.conns[c]
		switch {
		case r.closed || !alive:
			return 0, false, false
		case r.budget < 0:
			return n, false, true
		case r.budget > 0:
			k = int(min(int64(n), r.budget))
			r.budget -= int64(k)
			return k, false, true
		case r.cut:
			return 0, true, false
		}
		r.wake.Wait()
	}
}
