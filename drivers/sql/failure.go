package sql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// serverError is what a database answered instead of a result.
type serverError struct {
	text string
	code string // SQLSTATE or number
	// closes says that the server ended the connection with it.
	closes bool
}

func (e *serverError) Error() string { return e.text }

// classify gives the failure of a statement its kind. cause is the first failure of the transport, which says more
// than what a library makes of it.
func classify(ctx context.Context, deadline time.Time, cause, err error) error {
	if said, ok := errors.AsType[*serverError](err); ok {
		if said.closes {
			return drivers.Fail(drivers.Reset, err)
		}
		return drivers.Fail(drivers.Status, err)
	}
	if ctx.Err() != nil {
		return dial.Fail(ctx, "waiting for the answer", ctx.Err())
	}
	if cause != nil {
		err = cause
	}
	switch kind := dial.Classify(err); {
	case kind == drivers.Timeout, kind == drivers.Protocol && !time.Now().Before(deadline):
		// A library may close its connection at the deadline and then report something else.
		return drivers.Fail(drivers.Timeout, errors.New("the time-out passed before the answer was complete"))
	case kind == drivers.Reset:
		return drivers.Fail(kind, fmt.Errorf("the connection ended before the answer was complete: %w", bare(err)))
	case kind == drivers.Protocol:
		return drivers.Fail(kind, fmt.Errorf("the answer was malformed: %w", err))
	default:
		return drivers.Fail(kind, err)
	}
}

// refusal gives the failure to open a connection its kind. limited is ctx with the deadline of the attempt.
func (c *client) refusal(ctx, limited context.Context, a *attempt, err error) error {
	name := c.database.name
	fail := func(kind drivers.Failure, err error) error {
		return drivers.Fail(kind, fmt.Errorf("%s: %w", name, err))
	}
	if said, ok := errors.AsType[*serverError](err); ok {
		return fail(drivers.Refused, said)
	}
	if a.wire == nil && a.failure != nil {
		return fail(dial.Classify(a.failure), a.failure)
	}
	if ctx.Err() != nil {
		return dial.Fail(ctx, name, ctx.Err())
	}
	if a.wire != nil && a.wire.err() != nil {
		err = a.wire.err()
	}
	kind := dial.Classify(err)
	if limited.Err() != nil {
		kind = drivers.Timeout
	}
	switch {
	case kind == drivers.Timeout:
		return fail(kind, errors.New("the server was reached, but login was not done before the time-out"))
	case kind == drivers.Reset:
		return fail(kind, fmt.Errorf("the connection ended during login: %w", bare(err)))
	case kind == drivers.Protocol && c.database.dialect == sqlite:
		return fail(drivers.Refused, err)
	case kind == drivers.Protocol:
		return fail(kind, fmt.Errorf("login failed: %w", err))
	}
	return fail(kind, bare(err))
}

// bare takes off a network error the addresses, which change from connection to connection.
func bare(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Err
	}
	return err
}
