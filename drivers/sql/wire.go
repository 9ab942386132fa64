package sql

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// wire is a database's connection as its library sees it. The deadline on it is the session's alone: those that
// libraries set are ignored, so that none of them lengthens a call. It remembers the first failure, which some
// libraries replace by one of their own.
type wire struct {
	net.Conn
	idle *dial.Idle

	mu      sync.Mutex
	failure error
}

func newWire(c net.Conn) *wire { return &wire{Conn: c, idle: dial.NewIdle(c)} }

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

// attempt opens one connection and measures the parts of that which a library doesn't tell apart.
type attempt struct {
	dialer  *dial.Dialer
	timing  drivers.Timing
	failure error // of dialling
	wire    *wire
	stop    func() bool
}

// dial connects to addr within ctx. The connection's deadline is that of ctx until finish.
func (a *attempt) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := a.dialer
	if network != "unix" && addr != dialer.String() {
		var err error
		if dialer, err = dial.To(addr); err != nil {
			return nil, err
		}
	}
	c, err := dialer.Dial(ctx, &a.timing)
	if err != nil {
		a.failure = err
		return nil, err
	}
	a.finish()
	a.wire = newWire(c)
	if t, ok := ctx.Deadline(); ok {
		a.wire.limit(t)
	}
	a.stop = context.AfterFunc(ctx, a.wire.expire)
	return a.wire, nil
}

// finish takes the connection's deadline off the context of the attempt.
func (a *attempt) finish() {
	if a.stop != nil {
		a.stop()
	}
}
