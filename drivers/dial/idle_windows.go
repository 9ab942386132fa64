package dial

import (
	"syscall"
	"unsafe"
)

var wsaPoll = syscall.NewLazyDLL("ws2_32.dll").NewProc("WSAPoll")

const pollIn = 0x0300 // POLLRDNORM | POLLRDBAND

// poller asks WSAPoll; its structure is WSAPOLLFD of winsock2.h.
type poller struct {
	fd struct {
		socket  uintptr
		events  int16
		revents int16
	}
}

func (p *poller) poll(fd uintptr) bool {
	p.fd.socket, p.fd.events, p.fd.revents = fd, pollIn, 0
	n, _, _ := wsaPoll.Call(uintptr(unsafe.Pointer(&p.fd)), 1, 0)
	return int32(n) > 0
}
