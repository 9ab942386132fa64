package engine

import (
	"runtime"
	"runtime/debug"
	"time"

	"github.com/planrun/planrun/engine/result"
)

// vitals are the generator's own state at a moment.
type vitals struct {
	cpu  time.Duration
	gc   debug.GCStats
	time time.Time
}

func takeVitals() vitals {
	v := vitals{cpu: processorTime(), time: time.Now()}
	debug.ReadGCStats(&v.gc)
	return v
}

// until enters into the end of a round how the generator did from v to now.
func (v *vitals) until(now vitals, end *result.RoundEnd) {
	end.CPU = now.cpu - v.cpu
	end.Cores = runtime.GOMAXPROCS(0) // which heeds the limits of a container
	end.GC = now.gc.PauseTotal - v.gc.PauseTotal
	for i := range min(now.gc.NumGC-v.gc.NumGC, int64(len(now.gc.Pause))) {
		end.GCLongest = max(end.GCLongest, now.gc.Pause[i])
	}
	// What the wall clock has gained on the monotonic one.
	end.ClockStep = now.time.Round(0).Sub(v.time.Round(0)) - now.time.Sub(v.time)
}
