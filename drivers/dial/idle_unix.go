//go:build unix

package dial

import "golang.org/x/sys/unix"

type poller struct{ fds [1]unix.PollFd }

func (p *poller) poll(fd uintptr) bool {
	p.fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	n, err := unix.Poll(p.fds[:], 0)
	return n > 0 && err == nil
}
