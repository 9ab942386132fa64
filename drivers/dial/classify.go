package dial

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

	"github.com/planrun/planrun/drivers"
)

// Classify returns why an operation on a connection failed. What it doesn't know is a matter of the protocol.
func Classify(err error) drivers.Failure {
	if err == nil {
		return drivers.OK
	}
	if e, ok := errors.AsType[*drivers.Error](err); ok {
		return e.Kind
	}
	switch {
	case errors.Is(err, context.Canceled):
		return drivers.Aborted
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return drivers.Timeout
	case anyOf(err, localErrors):
		return drivers.Local
	case errors.Is(err, syscall.ETIMEDOUT):
		return drivers.Timeout
	case anyOf(err, refusedErrors), errors.Is(err, os.ErrNotExist): // a missing socket file: nobody listens
		return drivers.Refused
	}
	// A name that took too long is a timeout of the name: its kind says where to look.
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return drivers.DNS
	}
	if isTLS(err) {
		return drivers.TLS
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || anyOf(err, resetErrors) {
		return drivers.Reset
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return drivers.Timeout
	}
	return drivers.Protocol
}

func anyOf(err error, list []syscall.Errno) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return true
	}
	// The peer's alerts come as a net.OpError with one of these for an operation.
	if e, ok := errors.AsType[*net.OpError](err); ok && (e.Op == "remote error" || e.Op == "local error") {
		return true
	}
	return false
}

// Fail makes an *drivers.Error of an error of dialling, reading or writing. doing says what was going on, such as
// "connecting". A context that is done explains whatever else went wrong.
func Fail(ctx context.Context, doing string, err error) error {
	if e, ok := errors.AsType[*drivers.Error](err); ok {
		return e
	}
	kind := Classify(err)
	switch ctx.Err() {
	case context.Canceled:
		return drivers.Fail(drivers.Aborted, fmt.Errorf("%s: the run was interrupted", doing))
	case context.DeadlineExceeded:
		kind = drivers.Timeout
	}
	switch kind {
	case drivers.Timeout:
		return drivers.Fail(kind, fmt.Errorf("%s: timed out", doing))
	case drivers.Local:
		return drivers.Fail(kind, fmt.Errorf("%s: %w%s", doing, plain(err), localHint(err)))
	}
	return drivers.Fail(kind, fmt.Errorf("%s: %w", doing, plain(err)))
}

// localHint says what ran out on this machine.
func localHint(err error) string {
	switch {
	case anyOf(err, noDescriptors):
		return "; this machine's limit of open files is reached: raise it (ulimit -n), or use fewer connections"
	case anyOf(err, noPorts):
		return "; this machine has no local port left: keep connections alive, or widen its range of ephemeral ports"
	}
	return ""
}

// plain leaves out what the net package wraps around an error, except the address.
func plain(err error) error {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Err == nil {
		return err
	}
	cause := op.Err
	if e, ok := errors.AsType[*os.SyscallError](cause); ok {
		cause = e.Err
	}
	if op.Addr != nil && op.Op == "dial" {
		return fmt.Errorf("%s: %w", op.Addr, cause)
	}
	return cause
}
