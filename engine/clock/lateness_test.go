package clock

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkLateness says how long after its moment Until returns, by quantiles, in microseconds: in a process that has
// nothing else to do, and in one that is busy on every processor.
func BenchmarkLateness(b *testing.B) {
	for _, busy := range []bool{false, true} {
		for _, clock := range []struct {
			name string
			make func() *Clock
		}{{"new", New}, {"plain", Plain}} {
			for _, load := range []struct{ waiters, rate int }{{1, 600}, {100, 600}, {8, 5000}, {100, 20_000}, {1000, 20_000}} {
				state := map[bool]string{false: "idle", true: "busy"}[busy]
				b.Run(fmt.Sprintf("%s/%s/waiters=%d/rate=%d", state, clock.name, load.waiters, load.rate), func(b *testing.B) {
					if busy {
						defer burn()()
					}
					before := processor()
					start := time.Now()
					late := lateness(clock.make(), load.waiters, load.rate, max(b.N, 1))
					cpu := processor() - before
					slices.Sort(late)
					for _, q := range []struct {
						unit string
						of   float64
					}{{"p50-us", 0.5}, {"p90-us", 0.9}, {"p99-us", 0.99}} {
						b.ReportMetric(float64(late[int(q.of*float64(len(late)-1))])/1e3, q.unit)
					}
					b.ReportMetric(100*float64(cpu)/float64(time.Since(start)), "cpu-%")
				})
			}
		}
	}
}

// lateness has waiters take turns at n moments at the rate, and returns how late each was.
func lateness(c *Clock, waiters, rate, n int) []time.Duration {
	late := make([]time.Duration, n)
	gap := time.Second / time.Duration(rate)
	zero := c.Now() + 10*time.Millisecond
	var group sync.WaitGroup
	for i := range waiters {
		group.Go(func() {
			w := c.NewWaiter()
			for k := i; k < n; k += waiters {
				due := zero + time.Duration(k)*gap
				w.Until(due, nil)
				late[k] = c.Now() - due
			}
		})
	}
	group.Wait()
	return late
}

// burn keeps every processor busy in slices of 50 us, as the work of requests would, until it is told to end.
func burn() (end func()) {
	var stop atomic.Bool
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for !stop.Load() {
				for start := time.Now(); time.Since(start) < 50*time.Microsecond; {
				}
				runtime.Gosched()
			}
		})
	}
	return func() {
		stop.Store(true)
		group.Wait()
	}
}
