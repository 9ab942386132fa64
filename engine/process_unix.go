//go:build unix

package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is the processor time that this process has used, user and system together.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// descriptorLimit is how many files and sockets this process may have open. The Go runtime raises the soft limit to the
// hard one when it starts.
func descriptorLimit() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 1024
	}
	return int(min(l.Cur, 1<<20))
}
