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
	worst time.Duration
}

const probeInterval = 20 * time.Millisecond

func startProbe(c *clock.Clock) *probe {
	p := &probe{done: make(chan struct{})}
	p.group.Go(func() {
		w := c.NewWaiter()
		for at := c.Now() + probeInterval; w.Until(at, p.done); {
			now := c.Now()
			p.worst = max(p.worst, now-at)
			at = now + probeInterval
		}
	})
	return p
}

// stop ends the probe and returns the greatest lateness.
func (p *probe) stop() time.Duration {
	close(p.done)
	p.group.Wait()
	return p.worst
}
