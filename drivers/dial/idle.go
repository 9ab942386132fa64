package dial

import (
	"net"
	"syscall"
)

// Idle watches a connection between two calls, when nothing should arrive. A server that closes an idle connection
// makes it readable, and so does one that speaks out of turn; in both cases the next call needs another connection.
// It is used by one goroutine at a time.
type Idle struct {
	raw      syscall.RawConn
	ask      func(fd uintptr) // poll, kept so that asking doesn't allocate
	readable bool
	poller   poller
}

// NewIdle makes the watch of a TCP or Unix connection. One that has no descriptor is never readable.
func NewIdle(conn net.Conn) *Idle {
	i := &Idle{}
	if sc, ok := conn.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			i.raw = raw
		}
	}
	i.ask = func(fd uintptr) { i.readable = i.poller.poll(fd) }
	return i
}

// Readable tells at once, without taking anything from the connection, whether reading would return something: data,
// the end, or an error. It does not allocate.
func (i *Idle) Readable() bool {
	if i.raw == nil {
		return false
	}
	i.readable = false
	if err := i.raw.Control(i.ask); err != nil {
		return true // closed on our side
	}
	return i.readable
}
