package sql

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// session is one user at one database.
type session struct {
	client *client
	own    *slot // the user's connection; nil while it has none of the shared ones

	request request
	answer  answer
	values  []any // of arguments
	timer   *time.Timer

	// watched is the context whose end expires busy, the connection of the call under way.
	watched context.Context
	unwatch func() bool
	mu      sync.Mutex
	busy    connection
}

// Do sends one statement and reads its answer to the end.
func (s *session) Do(ctx context.Context, c drivers.Call, in *drivers.Input, out *drivers.Outcome) error {
	call := c.(*call)
	out.Protocol = s.client.database.dialect.String()
	s.answer.reset(call)
	if err := ctx.Err(); err != nil {
		return dial.Fail(ctx, "before the statement", err)
	}
	st, args, err := call.statement(&s.values, in)
	if err != nil {
		return drivers.Fail(drivers.Expectation, fmt.Errorf("the statement can't be made: %w", err))
	}
	if s.own == nil {
		if err := s.acquire(ctx, in, out); err != nil {
			return err
		}
	}
	slot := s.own
	if s.client.shared != nil {
		// A connection with an open transaction stays with the user who began it.
		defer func() {
			if slot.conn == nil || !slot.conn.inTransaction() {
				s.own = nil
				s.client.shared <- slot
			}
		}()
	}
	if slot.conn != nil && !slot.conn.limit(in.Deadline) {
		inside := slot.conn.inTransaction()
		slot.abandon(false)
		if inside {
			// Over another connection the statement would stand outside the transaction that it belongs to.
			return drivers.Fail(drivers.Reset, errors.New("the connection ended inside a transaction"))
		}
	}
	if slot.conn == nil {
		if slot.conn, err = s.client.open(ctx, in.Deadline, out); err != nil {
			return err
		}
		slot.conn.limit(in.Deadline)
	}
	s.watch(ctx, slot.conn)

	r := &s.request
	*r = request{call: call, statement: st, args: args, in: in, out: out, answer: &s.answer}
	for _, a := range args {
		out.BytesOut += size(a)
	}
	begin := time.Now()
	err = slot.conn.run(ctx, r)
	end := time.Now()
	defer s.occupy(nil)
	if !r.first.IsZero() {
		out.TTFB, out.Transfer = r.first.Sub(begin), end.Sub(r.first)
	}
	s.answer.bytes = out.BytesIn
	if err == nil {
		out.Success, out.Answer = true, &s.answer
		return nil
	}
	return s.failed(ctx, slot, in, err)
}

// failed leaves the connection of a failed call in a state to be used again, or closes it.
func (s *session) failed(ctx context.Context, slot *slot, in *drivers.Input, err error) error {
	err = classify(ctx, in.Deadline, slot.conn.cause(), err)
	if drivers.KindOf(err) == drivers.Status {
		if !slot.conn.inTransaction() {
			return err
		}
		if slot.conn.rollback(ctx) == nil {
			return err
		}
	}
	kind := drivers.KindOf(err)
	slot.abandon(kind == drivers.Timeout || kind == drivers.Aborted)
	return err
}

// acquire waits for one of the shared connections.
func (s *session) acquire(ctx context.Context, in *drivers.Input, out *drivers.Outcome) error {
	select {
	case s.own = <-s.client.shared:
		out.Wait = 0
		return nil
	default:
	}
	begin := time.Now()
	if s.timer == nil {
		s.timer = time.NewTimer(in.Deadline.Sub(begin))
	} else {
		s.timer.Reset(in.Deadline.Sub(begin))
	}
	defer s.timer.Stop()
	var err error
	select {
	case s.own = <-s.client.shared:
	case <-s.timer.C:
		err = drivers.Fail(drivers.Timeout, fmt.Errorf("no connection was free before the time-out: all %d were in use", cap(s.client.shared)))
	case <-ctx.Done():
		err = dial.Fail(ctx, "waiting for a connection", ctx.Err())
	}
	out.Wait = time.Since(begin)
	return err
}

// watch makes the end of ctx expire conn. It allocates only when ctx is another one than last time.
func (s *session) watch(ctx context.Context, conn connection) {
	s.occupy(conn)
	if ctx != s.watched {
		if s.unwatch != nil {
			s.unwatch()
			s.unwatch = nil
		}
		s.watched = ctx
		if ctx.Done() != nil {
			s.unwatch = context.AfterFunc(ctx, s.expire)
		}
	}
	// The context may have ended before there was something to expire.
	if ctx.Err() != nil {
		conn.expire()
	}
}

// occupy says which connection the session is using. One that it gave back is another user's.
func (s *session) occupy(conn connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = conn
}

func (s *session) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy != nil {
		s.busy.expire()
	}
}

// Close closes the user's connection.
func (s *session) Close() error {
	if s.unwatch != nil {
		s.unwatch()
	}
	if s.own != nil {
		if s.client.shared != nil {
			s.own.abandon(false) // a transaction is open
			s.client.shared <- s.own
		} else {
			s.own.leave()
		}
		s.own = nil
	}
	return nil
}
