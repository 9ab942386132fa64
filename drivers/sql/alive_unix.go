//go:build unix

package sql

import "syscall"

// idleState is what an idle connection looks like without sending anything.
type idleState uint8

const (
	quiet  idleState = iota // open, as far as this side can know
	unread                  // the server has said something
	gone                    // closed by the server, or broken
)

// peeker looks at a socket without taking anything off it. Its fields live here so that looking does not allocate.
type peeker struct {
	look  func(fd uintptr) bool
	state idleState
}

func (w *wire) idle() idleState {
	if w.raw == nil {
		return quiet
	}
	p := &w.peek
	if p.look == nil {
		var b [1]byte
		p.look = func(fd uintptr) bool {
			n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			switch {
			case n > 0:
				p.state = unread
			case err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR:
				p.state = quiet
			default:
				p.state = gone
			}
			return true
		}
	}
	if err := w.raw.Read(p.look); err != nil {
		return gone
	}
	return p.state
}
