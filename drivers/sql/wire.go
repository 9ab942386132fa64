package sql

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// wire is a database's connection as its library sees it. The deadline on it is the session's alone: those that
// libraries set are ignored, so that none of them lengthens a call. It remembers the first failure, which some
// libraries replace by one of their own.
type wire struct {
	net.Conn
	idle    *dial.Idle
	dialect dialect

	mu      sync.Mutex
	failure error
	head    []byte      // what the peer said first
	known   atomic.Bool // head is full
}

// maxHead is how many of a peer's first bytes are kept: enough to tell protocols apart.
const maxHead = 8

func newWire(c net.Conn, d dialect) *wire { return &wire{Conn: c, idle: dial.NewIdle(c), dialect: d} }

// Read implements net.Conn.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if n > 0 && !w.known.Load() {
		w.note(b[:n])
		if other := w.foreign(); other != nil {
			// A library might wait for all of what it takes for a long message.
			n, err = 0, other
		}
	}
	if err != nil {
		w.remember(err)
	}
	return n, err
}

func (w *wire) note(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.head = append(w.head, b[:min(len(b), maxHead-len(w.head))]...)
	w.known.Store(len(w.head) == maxHead)
}

// silent tells whether the peer has said nothing yet.
func (w *wire) silent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.head) == 0
}

// foreign says that the peer speaks another protocol, nil if its first bytes don't tell.
func (w *wire) foreign() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if peer := speaks(w.head); peer != "" && peer != w.dialect.String() {
		return drivers.Fail(drivers.Protocol, fmt.Errorf("the server does not speak %s: it looks like %s", w.dialect, peer))
	}
	return nil
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
	dialect dialect
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
		dialer.Tally = a.dialer.Tally
	}
	c, err := dialer.Dial(ctx, &a.timing)
	if err != nil {
		a.failure = err
		return nil, err
	}
	a.finish()
	a.wire = newWire(c, a.dialect)
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
