package engine

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/profile"
	"github.com/planrun/planrun/engine/record"
)

// pool is the workers of an open phase. They pull: each claims the next arrival with one atomic addition, sleeps until
// it is due, and goes. A worker that is about to send first makes sure that another one waits for the next arrival, so
// that there are as many workers, and connections, as the load really needs at a time.
type pool struct {
	rd       *round
	limit    int32 // workers at most
	patience time.Duration

	arrivals *profile.Arrivals
	origin   time.Duration // on the run's clock: where the schedule begins
	first    int64         // number of the first iteration
	recorded bool

	next    atomic.Int64 // the next arrival to claim
	idle    atomic.Int32 // workers that wait for an arrival, or are about to
	workers atomic.Int32
	failure atomic.Pointer[error]

	mu    sync.Mutex
	spare []*user // opened during the warm-up, and free
	group sync.WaitGroup
}

func (rd *round) prepareOpen(limit int) (func(), error) {
	arrivals, err := arrivalsOf(rd.phase, rd.seed)
	if err != nil {
		return nil, &SetupError{rd.label(), err}
	}
	p, err := rd.newPool(limit)
	if err != nil {
		return nil, err
	}
	return func() { p.run(arrivals, rd.release, true) }, nil
}

// newPool makes the workers' pool and warms it up.
func (rd *round) newPool(limit int) (*pool, error) {
	p := &pool{rd: rd, limit: int32(limit), patience: rd.phase.Patience}
	if d := rd.phase.Warmup.Duration; d > 0 {
		warm, err := profile.Even([]profile.Segment{{To: firstHold(rd), Length: d}})
		if err != nil {
			return nil, &SetupError{rd.label(), fmt.Errorf("warm-up: %w", err)}
		}
		p.run(warm, rd.clock.Now(), false)
	}
	if err := p.failure.Load(); err != nil {
		return nil, &SetupError{rd.label(), *err}
	}
	return p, nil
}

// firstHold is the rate that the warm-up rises to.
func firstHold(rd *round) float64 {
	if c := rd.phase.Capacity; c != nil {
		return c.From
	}
	for _, s := range rd.Stages {
		if s.Kind == "hold" {
			return s.To
		}
	}
	return rd.Stages[0].To
}

// run works through a schedule and returns when the last call has ended.
func (p *pool) run(arrivals *profile.Arrivals, origin time.Duration, recorded bool) {
	p.arrivals, p.origin, p.recorded = arrivals, origin, recorded
	p.next.Store(0)
	p.workers.Store(0)
	p.idle.Store(0)
	p.hire()
	p.group.Wait()
}

// hire starts one more worker, unless there are as many as may be. The new one counts as waiting at once, so that two
// workers that go at the same moment do not hire two.
func (p *pool) hire() {
	for {
		n := p.workers.Load()
		if n >= p.limit || p.failure.Load() != nil {
			return
		}
		if p.workers.CompareAndSwap(n, n+1) {
			p.idle.Add(1)
			p.group.Go(func() { p.work(n) })
			return
		}
	}
}

// user returns one that the warm-up left, or a new one.
func (p *pool) user(id int32) (*user, error) {
	p.mu.Lock()
	if n := len(p.spare); n > 0 {
		u := p.spare[n-1]
		p.spare = p.spare[:n-1]
		p.mu.Unlock()
		return u, nil
	}
	p.mu.Unlock()
	return p.rd.newUser(int(id))
}

func (p *pool) work(id int32) {
	rd := p.rd
	u, err := p.user(id)
	if err != nil {
		p.failure.CompareAndSwap(nil, &err)
		p.idle.Add(-1)
		return
	}
	defer func() {
		u.pending.Store(0)
		p.mu.Lock()
		p.spare = append(p.spare, u)
		p.mu.Unlock()
	}()
	for fresh := true; ; fresh = false {
		if !fresh {
			p.idle.Add(1)
		}
		k := p.next.Add(1) - 1
		if k >= p.arrivals.Count() || rd.halted() || p.recorded && rd.beyond(p.first+k) {
			p.idle.Add(-1)
			return
		}
		due := p.arrivals.At(k)
		since := p.origin - rd.release // what is noted down counts from the release
		if p.recorded {
			// Until then it is the arrival before, which was due earlier: of what has piled up, none is forgotten meanwhile.
			u.pending.Store(1 + int64(since+due))
		}
		claimed := rd.clock.Now() - p.origin
		if !u.waiter.Until(p.origin+due, rd.Stop) {
			p.idle.Add(-1)
			return
		}
		if p.idle.Add(-1) == 0 {
			p.hire()
		}
		now := rd.clock.Now() - p.origin
		lag := now - due
		if due < claimed && !fresh && p.workers.Load() >= p.limit {
			// All that may be in flight were: until this worker came free the arrival waited for the target.
			lag = now - claimed
			if p.recorded {
				rd.backlog.Add(1)
			}
		}
		if now-due > p.patience {
			if p.recorded {
				u.drop(p.first+k, since+due, since+now, lag)
			}
			continue
		}
		if p.recorded {
			u.iterate(p.first+k, since+due, lag, true)
		} else {
			u.iterate(warmupIteration-k, 0, 0, false)
		}
	}
}

// drop notes an arrival that was not sent, because it would have been too late.
func (u *user) drop(k int64, due, now, lag time.Duration) {
	u.book.Add(&record.Sample{
		Due: int64(due), Start: int64(now), End: int64(now), Lag: int64(lag),
		DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1,
		Iteration: k, User: int32(u.id), Step: record.Whole, Stage: int16(u.rd.stageAt(due)),
		Failure: drivers.OK, Flags: record.Dropped,
	})
}
