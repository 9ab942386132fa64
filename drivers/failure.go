package drivers

import "errors"

// Failure is why a call failed. The kinds are few, so that they can be counted and compared.
type Failure uint8

const (
	OK          Failure = iota
	Timeout             // the deadline passed
	Refused             // nobody listens, or the server declined the connection
	Reset               // the connection ended before the whole answer
	DNS                 // the name could not be resolved
	TLS                 // handshake or certificate
	Protocol            // the answer was malformed, or in another protocol
	Status              // the answer says that the call failed
	Expectation         // an expectation was false or could not be evaluated
	Local               // this machine ran out of descriptors, ports or memory
	Aborted             // the run was interrupted
)

// Failures lists the kinds in order.
var Failures = []Failure{Timeout, Refused, Reset, DNS, TLS, Protocol, Status, Expectation, Local, Aborted}

var failureNames = [...]string{"ok", "timeout", "refused", "reset", "dns", "tls", "protocol", "status", "expectation", "local", "aborted"}

func (f Failure) String() string {
	if int(f) < len(failureNames) {
		return failureNames[f]
	}
	return "unknown"
}

// ParseFailure is the inverse of String.
func ParseFailure(s string) (Failure, bool) {
	for i, n := range failureNames[1:] {
		if n == s {
			return Failure(i + 1), true
		}
	}
	return OK, false
}

// Error is a call that was not answered, and why.
type Error struct {
	Kind Failure
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Fail makes an *Error.
func Fail(kind Failure, err error) error { return &Error{kind, err} }

// KindOf returns the failure kind of an error of Do or Probe.
func KindOf(err error) Failure {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Protocol
}
