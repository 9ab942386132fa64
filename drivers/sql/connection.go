package sql

import (
	"context"
	"time"

	"github.com/planrun/planrun/drivers"
)

// request is one statement to be sent, and where its answer goes.
type request struct {
	call      *call
	statement statement
	args      []any
	in        *drivers.Input
	out       *drivers.Outcome
	answer    *answer
	// first is when the first row came, or the end of an answer without rows. It is zero before that.
	first time.Time
}

// arrive counts a row whose values have n bytes.
func (r *request) arrive(n int64) {
	r.begin()
	r.out.BytesIn += n
	if r.in.Received != nil {
		r.in.Received.Add(n)
	}
}

// begin notes that the answer has begun.
func (r *request) begin() {
	if r.first.IsZero() {
		r.first = time.Now()
	}
}

// connection is one login at a database. It is used by one goroutine at a time.
type connection interface {
	// run sends the statement of r once and reads its answer to the end. An error of kind Status leaves the
	// connection usable; after any other it has to be closed.
	run(ctx context.Context, r *request) error
	// inTransaction tells whether a transaction may be open.
	inTransaction() bool
	// rollback ends the open transaction.
	rollback(ctx context.Context) error
	// limit sets until when the connection may be busy, and says whether the server is still there, as far as that
	// can be known without sending anything.
	limit(deadline time.Time) (alive bool)
	// expire ends what the connection is doing. It may be called from any goroutine.
	expire()
	// cause is the first failure of the transport, nil if there was none.
	cause() error
	// abandon closes the connection at once. cancelled, if the server may be at work for it.
	abandon(busy bool)
	// close takes leave of the server.
	close()
}

// statements are those prepared on one connection: at most maxPrepared of them, the oldest is given up first.
type statements[T any] struct {
	byCall map[*call]T
	order  []*call
}

// maxPrepared bounds what one connection keeps prepared at the server, whose own bound is shared by all connections
// (MySQL: max_prepared_stmt_count).
const maxPrepared = 64

// add keeps v, and returns what has to be closed in its place.
func (s *statements[T]) add(c *call, v T) (old T, full bool) {
	if s.byCall == nil {
		s.byCall = map[*call]T{}
	}
	if len(s.order) == maxPrepared {
		old, full = s.byCall[s.order[0]], true
		delete(s.byCall, s.order[0])
		s.order = s.order[1:]
	}
	s.byCall[c] = v
	s.order = append(s.order, c)
	return old, full
}

func (s *statements[T]) forget(c *call) {
	delete(s.byCall, c)
	for i, o := range s.order {
		if o == c {
			s.order = append(s.order[:i:i], s.order[i+1:]...)
			return
		}
	}
}
