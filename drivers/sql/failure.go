package sql

import (
	"bytes"
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

// refusal gives the failure to open a connection its kind. limited is ctx with the deadline of the attempt. Its text does
// not name the database: whoever shows it knows that.
func (c *client) refusal(ctx, limited context.Context, a *attempt, err error) error {
	d := c.database.dialect
	if a.wire != nil {
		// What a library makes of another protocol may be anything, even an answer.
		if other := a.wire.foreign(); other != nil {
			return other
		}
	}
	if answer, ok := errors.AsType[*serverError](err); ok {
		return drivers.Fail(drivers.Refused, answer)
	}
	if a.wire == nil && a.failure != nil {
		return drivers.Fail(dial.Classify(a.failure), a.failure)
	}
	if ctx.Err() != nil && (a.wire == nil || errors.Is(ctx.Err(), context.Canceled)) {
		return dial.Fail(ctx, "connecting", ctx.Err())
	}
	if a.wire != nil && a.wire.err() != nil {
		err = a.wire.err()
	}
	kind := dial.Classify(err)
	if limited.Err() != nil {
		kind = drivers.Timeout
	}
	switch {
	case kind == drivers.Timeout && a.wire != nil && a.wire.silent():
		return drivers.Fail(kind, fmt.Errorf("timed out: the server said nothing; does it speak %s?", d))
	case kind == drivers.Timeout:
		return drivers.Fail(kind, errors.New("the server was reached, but login was not done before the time-out"))
	case kind == drivers.Reset:
		return drivers.Fail(kind, fmt.Errorf("the connection ended during login: %w", bare(err)))
	case kind == drivers.Protocol && d == sqlite:
		return drivers.Fail(drivers.Refused, err)
	case kind == drivers.Protocol:
		return drivers.Fail(kind, fmt.Errorf("login failed: %w", err))
	}
	return drivers.Fail(kind, bare(err))
}

// speaks tells the protocol of a server by its first bytes, "" if they don't tell.
func speaks(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("HTTP/")):
		return "HTTP"
	case bytes.HasPrefix(head, []byte("SSH-")):
		return "SSH"
	case len(head) < 7:
		return ""
	}
	// MySQL's packets begin with their length in three bytes, the lowest first, and a number that counts from 0. The
	// first is a greeting, which has the version of the protocol, 10, and that of the server in digits; or an error,
	// which has 255 and a number (MySQL internals, "Protocol::HandshakeV10" and "ERR_Packet").
	if head[2] == 0 && head[3] == 0 {
		digit := '0' <= head[5] && head[5] <= '9'
		if head[4] == 10 && digit || head[4] == 255 && head[6] < ' ' {
			return mysql.String()
		}
	}
	// PostgreSQL's error has a letter and a length in four bytes, the highest first, and begins with its severity
	// (manual, "Message Formats").
	if head[0] == 'E' && head[1] == 0 && head[2] == 0 && head[5] == 'S' && (head[6] == 'F' || head[6] == 'E') {
		return postgres.String()
	}
	return ""
}

// bare takes off a network error the addresses, which change from connection to connection.
func bare(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Err
	}
	return err
}
