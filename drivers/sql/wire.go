package sql

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// wire is a database's connection as its library sees it. The deadline on it is the session's alone: those that
// libraries set are ignored, so that none of them lengthens a call. It remembers the first failure, which some
// libraries replace by one of their own.
type wire struct {
	net.Conn
	raw  syscall.RawConn // nil where the connection has none
	peek peeker

	mu      sync.Mutex
	failure error
}

func newWire(c net.Conn) *wire {
	w := &wire{Conn: c}
	if s, ok := c.(syscall.Conn); ok {
		w.raw, _ = s.SyscallConn()
	}
	return w
}

// Read implements net.Conn.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err != nil {
		w.remember(err)
	}
	return n, err
}

// Write implements net.Conn.
func (w *wire) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	if err != nil {
		w.remember(err)
	}
	return n, err
}

func (w *wire) remember(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == nil {
		w.failure = err
	}
}

// err is the first failure of the connection.
func (w *wire) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure
}

// forgive forgets a failure that was expected.
func (w *wire) forgive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = nil
}

// SetDeadline does nothing: see wire.
func (*wire) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing: see wire.
func (*wire) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing: see wire.
func (*wire) SetWriteDeadline(time.Time) error { return nil }

// limit sets when reading and writing end.
func (w *wire) limit(t time.Time) { w.Conn.SetDeadline(t) }

// expire ends reading and writing now. It may be called from any goroutine.
func (w *wire) expire() { w.Conn.SetDeadline(time.Unix(1, 0)) }

// attempt measures the parts of opening a connection that a library doesn't tell apart.
type attempt struct {
	dns, tls time.Duration
	wire     *wire
	stop     func() bool
}

// dial resolves a name and connects to the first of its addresses that answers, within ctx. The connection's deadline
// is that of ctx until finish.
func (a *attempt) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var dialer net.Dialer
	if host, port, err := net.SplitHostPort(addr); err == nil && network != "unix" && net.ParseIP(host) == nil {
		begin := time.Now()
		ips, err := net.DefaultResolver.LookupHost(ctx, host)
		a.dns = max(a.dns, 0) + time.Since(begin)
		if err != nil {
			return nil, err
		}
		for i, ip := range ips {
			var c net.Conn
			if c, err = dialer.DialContext(ctx, network, net.JoinHostPort(ip, port)); err == nil {
				return a.adopt(ctx, c), nil
			}
			if i == len(ips)-1 || ctx.Err() != nil {
				return nil, err
			}
		}
	}
	c, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return a.adopt(ctx, c), nil
}

func (a *attempt) adopt(ctx context.Context, c net.Conn) *wire {
	a.finish()
	a.wire = newWire(c)
	if t, ok := ctx.Deadline(); ok {
		a.wire.limit(t)
	}
	a.stop = context.AfterFunc(ctx, a.wire.expire)
	return a.wire
}

// finish takes the connection's deadline off the context of the attempt.
func (a *attempt) finish() {
	if a.stop != nil {
		a.stop()
	}
}
