// Package drivers says what a protocol driver is: it prepares calls before any load, and makes one attempt at a
// time for one user. A driver knows nothing of plans, YAML, phases or histograms.
//
// The life of a driver in one round of a cell, and who may call what from where:
//
//	Fields, Answer   at any time, from any goroutine
//	Prepare          before any load, once per step and target
//	Connect          once per endpoint and round, before the release
//	Client.Probe     before the load, once per endpoint of the whole plan
//	Client.Open      once per user and endpoint, from that user's goroutine
//	Session.Do       from that user's goroutine only, one call at a time
//	Session.Close, then Client.Close, after the last Do has returned
package drivers

import (
	"context"
	"sync/atomic"
	"time"
)

// Driver speaks one protocol. It is safe for concurrent use.
type Driver interface {
	// Fields lists the keys a step of this driver accepts. The decoder, schema.json and the reference are made from it.
	Fields() []Field

	// Answer lists the names that an expectation may read of an answer of this driver.
	Answer() []Name

	// Prepare checks and encodes all of a call that does not depend on the moment it is made. Faults of single
	// fields are reported together, as FieldErrors, so that each can be shown at its own place.
	Prepare(op *Op) (Call, error)

	// Connect makes what the users of a round share: pools, resolved names, TLS configurations. It sends nothing and
	// dials nothing, so that what a connection costs is found in the sample that needed it.
	Connect(ctx context.Context, ep Endpoint, pool Pool) (Client, error)
}

// Call is one prepared step for one target: immutable, and shared by all users.
//
// One that is a fmt.Stringer, as those of all drivers here are, says on one line what it asks of its endpoint, as in
// "GET /cart?id=${...}": without the endpoint's name, with ${...} for what depends on the moment of the call, and without
// what a plan keeps in headers, bodies and arguments.
type Call interface {
	Endpoint() Endpoint
}

// Endpoint is what calls connect to. Calls whose endpoints have equal keys share a Client.
type Endpoint struct {
	// Name is for people: scheme, host and port, and whatever tells this endpoint from others. It holds no secrets.
	Name string
	// Key identifies the endpoint and every setting that a connection depends on. It may hold secrets and is never shown.
	Key string
	// Config is the driver's own.
	Config any
}

// Pool says how users share connections.
type Pool struct {
	// Users is the greatest number of sessions that will be open at the same time.
	Users int
	// Connections is how many connections all users share where the protocol multiplexes. 0 leaves it to the driver:
	// one for all users (HTTP/2, gRPC) or one per user (HTTP/1.1, SQL).
	Connections int
}

// Client is one endpoint in one round. It is safe for concurrent use. One that is Addressed says which remote addresses
// the connections of the round went to.
type Client interface {
	// Probe dials the endpoint once, TLS and login included, sends no request, and closes what it opened.
	// The error is an *Error.
	Probe(ctx context.Context) error

	// Open makes the session of one user. It dials nothing.
	Open(ctx context.Context) (Session, error)

	// Close releases everything. No session is in use any more.
	Close() error
}

// Session is one user at one endpoint. It is never used concurrently.
type Session interface {
	// Do makes exactly one attempt on the wire: no retries, no redirects unless asked for. It returns when the whole
	// answer has been read, at in.Deadline, or soon after ctx is done, whichever comes first.
	//
	// A call that was answered returns nil, whatever the answer says: out.Success tells whether the protocol counts
	// it as a success. Otherwise the error is an *Error. out is filled as far as the call got in both cases.
	//
	// Once warm, Do does not allocate of its own.
	Do(ctx context.Context, call Call, in *Input, out *Outcome) error

	Close() error
}

// Input is what a call depends on besides its Call.
type Input struct {
	// Iteration counts from 0 in each round and is unique over users.
	Iteration int64
	// User counts from 0.
	User int
	// Deadline is when the attempt must have ended, whatever it is doing. It is always set.
	Deadline time.Time
	// Received, if not nil, is increased by the body bytes as they arrive, so that long transfers are seen while
	// they run.
	Received *atomic.Int64
	// Seed fixes what Random returns. It does not depend on the target, so that every target gets the same inputs.
	Seed uint64
	// Round is the seed of the round, for what spans iterations, such as the order of shuffled rows.
	Round uint64
	// Values has what earlier steps captured, in the order that the plan gave their names.
	Values []any

	draws uint64
}

// Begin readies in for another iteration.
func (in *Input) Begin(iteration int64, seed uint64) {
	in.Iteration, in.Seed, in.draws = iteration, seed, 0
}

// Random returns the next number of the iteration's own sequence (SplitMix64; Steele, Lea and Flood 2014).
func (in *Input) Random() uint64 {
	in.draws++
	z := in.Seed + in.draws*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// None is the value of a part of the timing split that a call did not have.
const None time.Duration = -1

// Timing is where the time of a call went. The parts do not overlap, and together they are no longer than the call.
type Timing struct {
	DNS      time.Duration // name resolution
	Connect  time.Duration // opening the connection; for SQL login included
	TLS      time.Duration // handshake
	Wait     time.Duration // waiting for a free connection or stream on the client's side
	TTFB     time.Duration // from having the connection to the first byte, row or message of the answer
	Transfer time.Duration // from there to the last byte, row or message
}

// Outcome is filled by Session.Do.
type Outcome struct {
	Timing
	// Success is the protocol's own judgement of the answer, used where the plan has no expectation.
	Success bool
	// Status is the protocol's number for the outcome: the HTTP status, the gRPC code. 0 where there is none.
	Status int
	// Opened says that this call opened a connection.
	Opened bool
	// Protocol is what was negotiated, such as "HTTP/2". The string is a constant of the driver.
	Protocol string
	// BytesIn and BytesOut are the body bytes on the wire (HTTP), message bytes (gRPC) or value bytes (SQL).
	BytesIn, BytesOut int64
	// Answer gives an expectation what it reads. It is valid until the next Do of the session.
	Answer Answer
}

// Reset readies o for another call.
func (o *Outcome) Reset() {
	*o = Outcome{Timing: Timing{None, None, None, None, None, None}}
}

// Answer is what an expectation looks at: the names that the driver lists in Answer.
type Answer interface {
	// Number returns a name of kind IntName or SizeName without allocating.
	Number(name string) (float64, bool)
	// Value returns any name: int64, float64, string, bool, map[string]string, map[string]any, []any or nil. An error says
	// why the answer does not have it, such as a body that is not JSON.
	Value(name string) (any, error)
}

// Name is something an expectation may read.
type Name struct {
	Name string
	Kind NameKind
	Doc  string // one sentence
}

// NameKind is the type of a Name, as expectations see it.
type NameKind uint8

const (
	IntName   NameKind = iota // a whole number
	SizeName                  // bytes
	TextName                  // a string
	TextsName                 // strings by name
	AnyName                   // whatever the answer holds: known only when it comes
	ListName                  // a list of anything
)
