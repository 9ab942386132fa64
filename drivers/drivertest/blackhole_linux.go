package drivertest

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BlackHoleAddr is an address of 127.0.0.1 where connecting neither succeeds nor fails: a listener whose backlog is
// full, so that the system drops further attempts. ok is false where the system offers no such thing.
func BlackHoleAddr(t testing.TB) (addr string, ok bool) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr = fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
	// That a dial times out would prove nothing on a busy machine; the system tells how many wait to be accepted.
	for range 16 {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return "", false
		}
		if waiting, room := info.Unacked, info.Sacked; waiting > room { // what these two say of a listener
			return addr, true
		}
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	return "", false
}
