// Package clock tells the time of a run and waits for moments of it.
//
// Waiting precisely is harder than it sounds. A Go process with nothing to do waits in epoll_wait, whose timeout is whole
// milliseconds, so time.Sleep returns half a millisecond late at the median and a whole one at the worst: the less load,
// the later. On Linux a Clock therefore sets a timerfd for the moment beside the runtime's timer. It wakes the process in
// time for the runtime to find its timer expired; nobody reads it. Elsewhere waiting is as precise as the runtime's timers.
package clock

import "time"

// Clock counts monotonic time from zero, the moment it was made. It is safe for concurrent use.
type Clock struct {
	zero time.Time
	base int64                               // zero, as the kicker counts time
	late func(t time.Duration) time.Duration // nil outside of tests
	kick *kicker                             // nil leaves waiting to the runtime's timers alone
}

// New starts a clock.
func New() *Clock {
	c := &Clock{zero: time.Now(), kick: process()}
	if c.kick != nil {
		// Read after zero, so that a kick is rather late than early: an early one would be for nothing.
		c.base = c.kick.alarm.now()
	}
	return c
}

// Plain starts a clock that uses package time alone: for tests in a synctest bubble.
func Plain() *Clock {
	return &Clock{zero: time.Now()}
}

// Late starts a plain clock whose waiters wake up late, by as much as by says for the moment they wait for: for tests of what
// a generator that can't keep up does to a measurement.
func Late(by func(t time.Duration) time.Duration) *Clock {
	return &Clock{zero: time.Now(), late: by}
}

// Now is the time since zero.
func (c *Clock) Now() time.Duration { return time.Since(c.zero) }

// Time is the moment t after zero.
func (c *Clock) Time(t time.Duration) time.Time { return c.zero.Add(t) }

// NewWaiter makes a waiter for one goroutine. It holds nothing that has to be released.
func (c *Clock) NewWaiter() *Waiter {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &Waiter{clock: c, timer: timer, place: nowhere}
}

// Waiter waits for moments of its clock. It is for one goroutine at a time.
type Waiter struct {
	clock *Clock
	timer *time.Timer

	// The kicker's, under its lock.
	at    int64 // when to be kicked
	place int   // in the kicker's queue; nowhere if it is not there
}

// Until returns true at t, as exactly as it can and never before, or false as soon as done is closed. If t has passed it
// returns at once: false if done is closed already, else true. A nil done is never closed. It does not allocate.
func (w *Waiter) Until(t time.Duration, done <-chan struct{}) bool {
	select {
	case <-done:
		return false
	default:
	}
	c := w.clock
	if c.late != nil {
		t += c.late(t)
	}
	wait := t - c.Now()
	if wait <= 0 {
		return true
	}
	w.timer.Reset(wait)
	if c.kick != nil {
		// The timer expires wait after some moment before this one. The kick must not come earlier than that, or the
		// runtime would find nothing to do and go back to sleep for its whole millisecond.
		now := c.base + int64(c.Now())
		c.kick.enter(w, now, now+int64(wait))
		defer func() { c.kick.leave(w, c.base+int64(c.Now())) }()
	}
	select {
	case <-w.timer.C:
		return true
	case <-done:
		w.timer.Stop()
		return false
	}
}
