package sql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/planrun/planrun/drivers"
)

// serverError is what a database said, with its code.
type serverError struct {
	text string
	code string // SQLSTATE or number
	// closes says that the server ended the connection with it.
	closes bool
}

func (e *serverError) Error() string { return e.text }

// ended is the failure of a call whose context is done.
func ended(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return drivers.Fail(drivers.Timeout, errors.New("the time-out passed"))
	}
	return drivers.Fail(drivers.Aborted, fmt.Errorf("the run was interrupted: %w", err))
}

// classify gives the failure of a call its kind. cause is the first failure of the transport, which says more than
// what a library makes of it.
func classify(ctx context.Context, deadline time.Time, cause, err error) error {
	if _, ok := errors.AsType[*drivers.Error](err); ok {
		return err
	}
	if said, ok := errors.AsType[*serverError](err); ok {
		if said.closes {
			return drivers.Fail(drivers.Reset, err)
		}
		return drivers.Fail(drivers.Status, err)
	}
	if ctx.Err() != nil {
		return ended(ctx, ctx.Err())
	}
	if cause != nil {
		err = cause
	}
	kind := kindOfTransport(err)
	// A library may close its connection at the deadline and then report something else.
	if kind == drivers.Timeout || kind == drivers.Protocol && !time.Now().Before(deadline) {
		return drivers.Fail(drivers.Timeout, errors.New("the time-out passed before the answer was complete"))
	}
	switch {
	case kind == drivers.Reset:
		err = fmt.Errorf("the connection ended before the answer was complete: %w", bare(err))
	case kind == drivers.Protocol:
		err = fmt.Errorf("the answer was malformed: %w", err)
	}
	return drivers.Fail(kind, err)
}

// refusal gives the failure to open a connection its kind. limited is ctx with the deadline of the attempt.
func (c *client) refusal(ctx, limited context.Context, a *attempt, err error) error {
	name := c.database.name
	if said, ok := errors.AsType[*serverError](err); ok {
		return drivers.Fail(drivers.Refused, fmt.Errorf("%s: %w", name, said))
	}
	if ctx.Err() != nil {
		return ended(ctx, ctx.Err())
	}
	if a.wire != nil && a.wire.err() != nil {
		err = a.wire.err()
	}
	kind := kindOfTransport(err)
	if limited.Err() != nil {
		kind = drivers.Timeout
	}
	switch kind {
	case drivers.Timeout:
		what := "connecting was not done before the time-out"
		if a.wire != nil {
			what = "the server was reached, but login was not done before the time-out"
		}
		return drivers.Fail(kind, fmt.Errorf("%s: %s", name, what))
	case drivers.Reset:
		return drivers.Fail(kind, fmt.Errorf("%s: the connection ended during login: %w", name, bare(err)))
	case drivers.Protocol:
		if c.database.dialect == sqlite {
			return drivers.Fail(drivers.Refused, fmt.Errorf("%s: %w", name, err))
		}
		return drivers.Fail(kind, fmt.Errorf("%s: login failed: %w", name, err))
	}
	return drivers.Fail(kind, fmt.Errorf("%s: %w", name, bare(err)))
}

// bare takes addresses that change from call to call off a network error.
func bare(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// kindOfTransport says why a network connection failed; Protocol if the network is not to blame.
func kindOfTransport(err error) drivers.Failure {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return drivers.Timeout
	case has[*net.DNSError](err):
		return drivers.DNS
	case has[*tls.CertificateVerificationError](err), has[x509.UnknownAuthorityError](err), has[x509.HostnameError](err),
		has[x509.CertificateInvalidError](err), has[tls.RecordHeaderError](err), has[tls.AlertError](err), has[*tlsError](err):
		return drivers.TLS
	case is(err, syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENOENT):
		return drivers.Refused
	case is(err, syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRINUSE):
		return drivers.Local
	case is(err, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed):
		return drivers.Reset
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return drivers.Timeout
	}
	return drivers.Protocol
}

func has[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func is(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

// tlsError is a failure to agree on TLS that has no type of its own.
type tlsError struct{ text string }

func (e *tlsError) Error() string { return e.text }
