package wire

import (
	"context"
	"sync"
	"time"
)

// limit is the context of a session's calls over HTTP/2: it ends at the call's deadline, when the call's own context
// does, or when the answer stalls. It is kept from call to call, which spares each one a timer and an entry in the
// list of the context that all users share, until it has ended once: a stream may be looking at it still.
type limit struct {
	mu       sync.Mutex
	done     chan struct{}
	err      error
	deadline time.Time
	timer    *time.Timer
}

// begin makes l the context of another call. It returns l or its successor.
func (l *limit) begin(deadline time.Time) *limit {
	if l == nil || l.Err() != nil {
		l = &limit{done: make(chan struct{})}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = deadline
	if l.timer == nil {
		l.timer = time.AfterFunc(time.Until(deadline), l.expire)
	} else {
		l.timer.Reset(time.Until(deadline))
	}
	return l
}

// end stops the clock between calls.
func (l *limit) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
}

// expire is called by the timer, perhaps late, when another call has begun already.
func (l *limit) expire() {
	l.mu.Lock()
	late := time.Now().Before(l.deadline)
	l.mu.Unlock()
	if !late {
		l.fire(context.DeadlineExceeded)
	}
}

// fire ends the context.
func (l *limit) fire(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.done)
	}
}

// Deadline implements context.Context.
func (l *limit) Deadline() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline, true
}

// Done implements context.Context.
func (l *limit) Done() <-chan struct{} { return l.done }

// Err implements context.Context.
func (l *limit) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Value implements context.Context.
func (l *limit) Value(any) any { return nil }
