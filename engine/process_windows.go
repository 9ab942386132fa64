package engine

import (
	"time"

	"golang.org/x/sys/windows"
)

// processorTime is the processor time that this process has used, user and kernel together.
func processorTime() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) != nil {
		return 0
	}
	ticks := func(f windows.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return time.Duration(100 * (ticks(kernel) + ticks(user)))
}

// descriptorLimit is how many sockets this process may have open. Windows sets no small limit; this one keeps memory
// bounded.
func descriptorLimit() int { return 1 << 16 }
