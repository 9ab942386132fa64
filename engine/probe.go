package engine

import (
	"sync"
	"time"

	"github.com/planrun/planrun/engine/clock"
)

// probe measures how late the generator itself is, in every load model: it waits for moments a short time apart and notes
// by how much it misses them.
type probe struct {
	done  chan struct{}
	group sync.WaitGroup

	mu     sync.Mutex
	missed []moment // since they were last taken
}

// moment is one that the probe waited for.
type moment struct {
	at   time.Duration // on the run's clock
	late time.Duration
}

const (
	probeInterval = 10 * time.Millisecond
	// probeUnit is what lateness is rounded down to, so that what a calm machine has to show takes little space.
	probeUnit = 50 * time.Microsecond
)

// startProbe begins to probe. Moments that pass while the probe itself is held up are late too, as long as it takes.
func startProbe(c *clock.Clock) *probe {
	p := &probe{done: make(chan struct{})}
	p.group.Go(func() {
		w := c.NewWaiter()
		for at := c.Now() + probeInterval; w.Until(at, p.done); {
			now := c.Now()
			p.mu.Lock()
			for ; at <= now; at += probeInterval {
				p.missed = append(p.missed, moment{at, (now - at).Truncate(probeUnit)})
			}
			p.mu.Unlock()
		}
	})
	return p
}

// take appends the moments since the last call to dst.
func (p *probe) take(dst []moment) []moment {
	p.mu.Lock()
	defer p.mu.Unlock()
	dst = append(dst, p.missed...)
	p.missed = p.missed[:0]
	return dst
}

// stop ends the probe.
func (p *probe) stop() {
	close(p.done)
	p.group.Wait()
}
