package engine

import (
	"sync"
	"sync/atomic"

	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/profile"
)

// openUsers opens n users and warms them up, all at the same time.
func (rd *round) openUsers(n int) ([]*user, error) {
	users := make([]*user, n)
	for i := range users {
		u, err := rd.newUser(i)
		if err != nil {
			return nil, &SetupError{rd.label(), err}
		}
		users[i] = u
	}
	warm := rd.phase.Warmup
	if warm == (plan.Warmup{}) {
		return users, nil
	}
	end := rd.clock.Now() + warm.Duration
	var group sync.WaitGroup
	for _, u := range users {
		group.Go(func() {
			for k := 0; !rd.halted(); k++ {
				if warm.Duration > 0 && rd.clock.Now() >= end || warm.Duration == 0 && k == warm.Count {
					return
				}
				// Warm-up iterations count back from the far end, so that their inputs do not meet those of the load.
				u.iterate(warmupIteration-int64(k*len(users)+u.id), 0, 0, false)
			}
		})
	}
	group.Wait()
	return users, nil
}

const warmupIteration = 1<<40 - 1

// halted tells whether nothing new is to be begun.
func (rd *round) halted() bool { return rd.stopped() || rd.broken.Load() || rd.ctx.Err() != nil }

// prepareClosed drives single, sequential and parallel: users that begin together, and whose next iteration begins when
// the last has ended.
func (rd *round) prepareClosed(n int) (func(), error) {
	users, err := rd.openUsers(n)
	if err != nil {
		return nil, err
	}
	return func() {
		// The first iteration of user i is i, so that each user has one even if a fast one could take two meanwhile.
		var next atomic.Int64
		next.Store(int64(n))
		together := make(chan struct{})
		var group sync.WaitGroup
		for _, u := range users {
			group.Go(func() {
				<-together
				for k := int64(u.id); rd.phase.Count == 0 || k < rd.phase.Count; k = next.Add(1) - 1 {
					if rd.halted() || rd.phase.Duration > 0 && rd.now() >= rd.phase.Duration {
						return
					}
					if rd.beyond(k) {
						return
					}
					u.turn(k)
					if !u.pause(rd.phase.Pause) {
						return
					}
				}
			})
		}
		close(together)
		group.Wait()
	}, nil
}

// pause waits as long as the plan says between two iterations; false means that the run was stopped.
func (u *user) pause(span plan.Span) bool {
	if span == (plan.Span{}) {
		return true
	}
	return u.waiter.Until(u.rd.clock.Now()+u.draw(span), u.rd.Stop)
}

// prepareSpans drives a number of users that rises and falls: user i is at work during the spans that the profile gives
// it, and ends after the iteration in which a span ends.
func (rd *round) prepareSpans(n int) (func(), error) {
	users, err := rd.openUsers(n)
	if err != nil {
		return nil, err
	}
	return func() {
		profile := usersOf(rd.phase)
		var next atomic.Int64
		var group sync.WaitGroup
		for i, u := range users {
			group.Go(func() {
				for _, span := range profile.Spans(i) {
					if !u.waiter.Until(rd.release+span.Start, rd.Stop) {
						return
					}
					for !rd.halted() && rd.now() < span.Stop {
						k := next.Add(1) - 1
						if rd.beyond(k) {
							return
						}
						u.turn(k)
						if !u.pause(rd.phase.Pause) {
							return
						}
					}
				}
			})
		}
		group.Wait()
	}, nil
}

func usersOf(ph *plan.Phase) *profile.Users {
	users, err := profile.NewUsers(segmentsOf(ph))
	if err != nil {
		panic(err) // the plan has been checked
	}
	return users
}
