package clock

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// alarm is a timerfd that the runtime's poller watches. When it goes off, epoll_wait returns. The runtime watches edges, and
// each expiry is one, so it need not be read.
type alarm struct {
	file *os.File
	fd   int
}

// process is the kicker that all clocks share. It stays for the life of the process, like the runtime's own poller.
var process = sync.OnceValue(func() *kicker {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	// Only a file that the poller watches takes a deadline.
	if file.SetReadDeadline(time.Time{}) != nil {
		file.Close()
		return nil
	}
	return newKicker(alarm{file, fd})
})

func (alarm) now() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// setFor has the alarm go off at the moment at, at once if that has passed. It replaces what was set before. Should it fail,
// waiting is as precise as without it.
func (a alarm) setFor(at int64) {
	var spec unix.ItimerSpec
	spec.Value = unix.NsecToTimespec(max(at, 1))
	_ = unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil)
}
