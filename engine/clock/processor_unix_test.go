//go:build unix

package clock

import (
	"syscall"
	"time"
)

// processor is how much processor time this process has used.
func processor() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
