package service

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/planrun/planrun/engine/clock"
)

// station is where requests are worked on: a number of slots, and a queue without limit in front of them, first come first
// served. So
//
//	capacity = slots / mean work
//
// and whatever is offered above it waits longer and longer.
//
// Moments are worked out, not measured: the next in the queue begins when the one before it was due to end, however late
// its goroutine was woken. So 50 requests of 1.5 ms in one slot take 75 ms together.
type station struct {
	clock *clock.Clock
	slots int           // 0: no limit, and no queue
	least time.Duration // work is uniform between the two
	most  time.Duration

	mu    sync.Mutex
	busy  int
	queue []*visit // those waiting; may hold some that have left
}

// visit is one request in the queue of a station. Its fields are the station's, under its lock.
type visit struct {
	arrived time.Duration
	begin   chan time.Duration // gets the moment at which work begins; buffered
	left    bool
}

func (s *station) work() time.Duration {
	if s.most <= s.least {
		return s.least
	}
	return s.least + rand.N(s.most-s.least+1)
}

// serve returns when the work of one request is done. A request that gives up while it waits leaves the queue and takes no
// slot; one at work is worked to its end, as a service does that does not look for its client's wellbeing.
func (s *station) serve(ctx context.Context, waiter *clock.Waiter) error {
	begin := s.clock.Now()
	if s.slots == 0 {
		if w := s.work(); w > 0 {
			waiter.Until(begin+w, nil)
		}
		return ctx.Err()
	}
	s.mu.Lock()
	if s.busy < s.slots {
		s.busy++
		s.mu.Unlock()
	} else {
		v := &visit{arrived: begin, begin: make(chan time.Duration, 1)}
		s.queue = append(s.queue, v)
		s.mu.Unlock()
		select {
		case begin = <-v.begin:
		case <-ctx.Done():
			s.mu.Lock()
			v.left = true
			s.mu.Unlock()
			select {
			case begin = <-v.begin: // called in the same moment: hand the slot on
				s.release(begin)
			default:
			}
			return ctx.Err()
		}
	}
	end := begin + s.work()
	waiter.Until(end, nil)
	s.release(end)
	return ctx.Err()
}

// release gives a slot that became free at the moment end to the next in the queue.
func (s *station) release(end time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 {
		v := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		if !v.left {
			v.begin <- max(end, v.arrived)
			return
		}
	}
	s.queue = nil
	s.busy--
}
