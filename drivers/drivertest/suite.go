// Package drivertest is the conformance suite that every driver passes, and what tests of drivers share: values made
// of simple Go values, and peers that misbehave.
//
// The suite counts attempts at the server and connections at a relay in front of it; what a driver says of itself is
// compared with that. It never asserts an absolute time: what is slow must be slower than what it waits for, and what
// is prompt must end long before what it would otherwise wait for.
package drivertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/planrun/planrun/drivers"
)

// Server is a well-behaved server of the driver's protocol.
type Server struct {
	// Addr is where it listens, as host:port.
	Addr string
	// Requests is how many calls reached it, whatever became of them. It is safe for concurrent use.
	Requests func() int
}

// Suite is what a driver's own test says about it.
type Suite struct {
	// Driver is under test.
	Driver drivers.Driver
	// Serve starts a server on 127.0.0.1 that answers every call at once with at least 64 bytes of body, and stops it
	// when the test ends.
	Serve func(t testing.TB) Server
	// Fields makes the fields of a step that calls the server at addr (host:port) once.
	Fields func(addr string) Fields
	// Reads are names of the answer to be kept, if the driver should keep any.
	Reads []string
	// Shared says that all users share one connection.
	Shared bool
	// Allocs is how many allocations one warm call may make: 0, or what the protocol's library is known to make, and
	// the server if it is Serve's, since it runs in the same process.
	Allocs float64
	// Quiet starts a server that does not allocate, to count the driver's own allocations with. nil stands for Serve.
	Quiet func(t testing.TB) Server
	// Skip names parts of the suite that the protocol can't show, such as "garbage".
	Skip []string
}

// long is a deadline that no test should reach.
const long = 30 * time.Second

// settle is how long a connection gets to become quiet.
const settle = 100 * time.Millisecond

// prompt is when something that should happen at once must have happened, however busy the machine is.
const prompt = 10 * time.Second

// Run runs the whole suite as subtests.
func Run(t *testing.T, s Suite) {
	parts := []struct {
		name string
		run  func(*testing.T, Suite)
	}{
		{"describe", describe},
		{"probe", probe},
		{"once", once},
		{"users", users},
		{"slow", slow},
		{"idle close", idleClose},
		{"reset", reset},
		{"freeze", freeze},
		{"cancel", cancel},
		{"cancelled before", cancelledBefore},
		{"refused", refused},
		{"black hole", blackHole},
		{"garbage", garbage},
		{"allocations", allocations},
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			if slices.Contains(s.Skip, p.name) {
				t.Skip("the protocol can't show it")
			}
			// Registered first, so that it runs after the servers have stopped.
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() {
				if !t.Failed() {
					goleak.VerifyNone(t, before)
				}
			})
			p.run(t, s)
		})
	}
}

// Bench is one client of the driver at one address, for tests.
type Bench struct {
	testing.TB
	Client drivers.Client
	Call   drivers.Call
}

// NewBench prepares a step and connects a client for users. The client is closed when the test ends.
func NewBench(t testing.TB, d drivers.Driver, fields Fields, pool drivers.Pool, reads ...string) *Bench {
	t.Helper()
	call := Prepare(t, d, fields, reads...)
	client, err := d.Connect(t.Context(), call.Endpoint(), pool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return &Bench{TB: t, Client: client, Call: call}
}

// Open opens the session of one user, and closes it when the test ends.
func (b *Bench) Open() drivers.Session {
	b.Helper()
	session, err := b.Client.Open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := session.Close(); err != nil {
			b.Errorf("closing the session: %v", err)
		}
	})
	return session
}

// Result is one call and what was measured around it.
type Result struct {
	drivers.Outcome
	Err     error
	Service time.Duration
	// Received is what the driver added to Input.Received.
	Received int64
}

// Do makes one call and checks what holds for every call, whatever became of it.
func (b *Bench) Do(ctx context.Context, s drivers.Session, timeout time.Duration) Result {
	b.Helper()
	return b.DoCall(ctx, s, b.Call, timeout)
}

// DoCall is Do with another call.
func (b *Bench) DoCall(ctx context.Context, s drivers.Session, call drivers.Call, timeout time.Duration) Result {
	b.Helper()
	var r Result
	var received atomic.Int64
	start := time.Now()
	in := drivers.Input{Deadline: start.Add(timeout), Received: &received}
	r.Outcome.Reset()
	r.Err = s.Do(ctx, call, &in, &r.Outcome)
	r.Service = time.Since(start)
	r.Received = received.Load()
	for _, fault := range r.faults() {
		b.Error(fault)
	}
	return r
}

// Must makes one call that has to succeed.
func (b *Bench) Must(s drivers.Session) Result {
	b.Helper()
	r := b.Do(b.Context(), s, long)
	if r.Err != nil {
		b.Fatalf("call failed: %v", r.Err)
	}
	if !r.Success {
		b.Fatalf("call was not a success: status %d", r.Status)
	}
	return r
}

// Fails makes one call that has to fail with one of kinds.
func (b *Bench) Fails(ctx context.Context, s drivers.Session, timeout time.Duration, kinds ...drivers.Failure) Result {
	b.Helper()
	r := b.Do(ctx, s, timeout)
	if r.Err == nil {
		b.Fatalf("call did not fail, want %v", kinds)
	}
	if kind := drivers.KindOf(r.Err); !slices.Contains(kinds, kind) {
		b.Fatalf("call failed with %v (%v), want %v", kind, r.Err, kinds)
	}
	return r
}

// faults is what is wrong with a result.
func (r *Result) faults() []string {
	var faults []string
	var sum time.Duration
	for _, p := range []struct {
		name string
		d    time.Duration
	}{{"dns", r.DNS}, {"connect", r.Connect}, {"tls", r.TLS}, {"wait", r.Wait}, {"ttfb", r.TTFB}, {"transfer", r.Transfer}} {
		if p.d < 0 && p.d != drivers.None {
			faults = append(faults, fmt.Sprintf("%s is %v", p.name, p.d))
		}
		sum += max(p.d, 0)
	}
	if sum > r.Service {
		faults = append(faults, fmt.Sprintf("the parts make %v, the call took %v: %+v", sum, r.Service, r.Timing))
	}
	if r.Received != r.BytesIn {
		faults = append(faults, fmt.Sprintf("%d bytes were received, the outcome has %d", r.Received, r.BytesIn))
	}
	if r.Err != nil {
		var e *drivers.Error
		if !errors.As(r.Err, &e) || e.Kind == drivers.OK {
			faults = append(faults, fmt.Sprintf("the error has no kind: %v", r.Err))
		}
		if r.Success {
			faults = append(faults, "a failed call says success")
		}
		if kind := drivers.KindOf(r.Err); r.Opened && (kind == drivers.Refused || kind == drivers.DNS) && r.TTFB < 0 {
			faults = append(faults, "a call that could not connect says that it opened a connection")
		}
		return faults
	}
	if r.Protocol == "" {
		faults = append(faults, "the protocol is empty")
	}
	if r.Answer == nil {
		faults = append(faults, "there is no answer")
	}
	if r.TTFB < 0 {
		faults = append(faults, "an answered call has no ttfb")
	}
	if r.Transfer < 0 {
		faults = append(faults, "an answered call has no transfer")
	}
	return faults
}

func (s Suite) start(t *testing.T, users int) (Server, *Relay, *Bench) {
	t.Helper()
	server := s.Serve(t)
	relay := NewRelay(t, server.Addr)
	return server, relay, NewBench(t, s.Driver, s.Fields(relay.Addr()), drivers.Pool{Users: users}, s.Reads...)
}

// describe: fields and names are complete and consistent.
func describe(t *testing.T, s Suite) {
	var check func(fields []drivers.Field, path string)
	check = func(fields []drivers.Field, path string) {
		seen, mains := map[string]bool{}, 0
		for _, f := range fields {
			at := path + f.Key
			if f.Key == "" || seen[f.Key] {
				t.Errorf("field %q is empty or there twice", at)
			}
			seen[f.Key] = true
			if f.Title == "" || f.Doc == "" {
				t.Errorf("field %s has no title or doc", at)
			}
			if (f.Kind == drivers.Choice) != (len(f.Choices) > 0) {
				t.Errorf("field %s: choices belong to a choice, and to nothing else", at)
			}
			if f.Kind == drivers.Choice && f.Default != "" && !slices.Contains(f.Choices, f.Default) {
				t.Errorf("field %s: the default %q is no choice", at, f.Default)
			}
			if f.Kind != drivers.Args && (f.Kind == drivers.Group || f.Kind == drivers.Groups) != (len(f.Fields) > 0) {
				t.Errorf("field %s: fields belong to a group, and to nothing else", at)
			}
			if f.Main {
				mains++
			}
			check(f.Fields, at+".")
		}
		if path == "" && mains != 1 {
			t.Errorf("%d fields are main, want 1", mains)
		}
	}
	check(s.Driver.Fields(), "")
	seen := map[string]bool{}
	for _, n := range s.Driver.Answer() {
		if n.Name == "" || seen[n.Name] || n.Doc == "" {
			t.Errorf("name %q of the answer is empty, there twice, or without a doc", n.Name)
		}
		seen[n.Name] = true
	}
	call := Prepare(t, s.Driver, s.Fields("127.0.0.1:1"))
	again := Prepare(t, s.Driver, s.Fields("127.0.0.1:1"))
	other := Prepare(t, s.Driver, s.Fields("127.0.0.1:2"))
	if call.Endpoint().Key != again.Endpoint().Key {
		t.Error("the same step makes two endpoints")
	}
	if call.Endpoint().Key == other.Endpoint().Key {
		t.Error("two addresses make one endpoint")
	}
	if call.Endpoint().Name == "" {
		t.Error("the endpoint has no name")
	}
}

// probe: it dials, sends no request, closes, and its error has a kind.
func probe(t *testing.T, s Suite) {
	server, relay, b := s.start(t, 1)
	if err := b.Client.Probe(t.Context()); err != nil {
		t.Fatalf("probe: %v", err)
	}
	if n := server.Requests(); n != 0 {
		t.Errorf("the probe made %d requests", n)
	}
	// A connection counts as opened once the relay has taken it, which may be after the client is done with it.
	eventually(t, "the probe opened a connection and closed it", func() bool { return relay.Opened() == 1 && relay.Open() == 0 })

	gone := NewBench(t, s.Driver, s.Fields(RefusedAddr(t)), drivers.Pool{Users: 1})
	if err := gone.Client.Probe(t.Context()); drivers.KindOf(err) != drivers.Refused {
		t.Errorf("probing a closed port: %v (%v), want refused", err, drivers.KindOf(err))
	}
}

// once: one user's calls are one attempt each, over one connection.
func once(t *testing.T, s Suite) {
	server, relay, b := s.start(t, 1)
	session := b.Open()
	if n := relay.Opened(); n != 0 {
		t.Errorf("opening a session dialled %d connections", n)
	}
	const calls = 5
	var bytes int64
	for i := range calls {
		r := b.Must(session)
		if r.Opened != (i == 0) {
			t.Errorf("call %d: opened is %v", i, r.Opened)
		}
		if (r.Connect >= 0) != (i == 0) {
			t.Errorf("call %d: connect is %v", i, r.Connect)
		}
		if r.DNS >= 0 {
			t.Errorf("call %d: an address was looked up for %v", i, r.DNS)
		}
		if r.BytesIn < 64 {
			t.Errorf("call %d: %d bytes in, want at least 64", i, r.BytesIn)
		}
		if i > 0 && r.BytesIn != bytes {
			t.Errorf("call %d: %d bytes in, before %d", i, r.BytesIn, bytes)
		}
		bytes = r.BytesIn
	}
	if n := server.Requests(); n != calls {
		t.Errorf("the server counted %d, want %d", n, calls)
	}
	if n := relay.Opened(); n != 1 {
		t.Errorf("%d connections were opened, want 1", n)
	}
}

// users: several users at once make one attempt a call, and leave nothing open.
func users(t *testing.T, s Suite) {
	const count, calls = 8, 10
	server := s.Serve(t)
	relay := NewRelay(t, server.Addr)
	call := Prepare(t, s.Driver, s.Fields(relay.Addr()), s.Reads...)
	client, err := s.Driver.Connect(t.Context(), call.Endpoint(), drivers.Pool{Users: count})
	if err != nil {
		t.Fatal(err)
	}
	b := &Bench{TB: t, Client: client, Call: call}
	var opened atomic.Int64
	var wg sync.WaitGroup
	for range count {
		wg.Go(func() {
			session, err := client.Open(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer session.Close()
			for range calls {
				r := b.Do(t.Context(), session, long)
				if r.Err != nil || !r.Success {
					t.Errorf("call failed: %v", r.Err)
				}
				if r.Opened {
					opened.Add(1)
				}
			}
		})
	}
	wg.Wait()
	want := count
	if s.Shared {
		want = 1
	}
	WentTo(t, client, drivers.Address{Addr: relay.Addr(), Opened: int64(want)})
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if n := server.Requests(); n != count*calls {
		t.Errorf("the server counted %d, want %d", n, count*calls)
	}
	if n := relay.Opened(); n != want {
		t.Errorf("%d connections were opened, want %d", n, want)
	}
	if n := opened.Load(); n != int64(want) {
		t.Errorf("%d calls say that they opened a connection, want %d", n, want)
	}
	eventually(t, "no connection is left open", func() bool { return relay.Open() == 0 })
}

// WentTo checks where connections went, if the client tells.
func WentTo(t testing.TB, client drivers.Client, want ...drivers.Address) {
	t.Helper()
	told, ok := client.(drivers.Addressed)
	if !ok {
		return
	}
	if got := drivers.MergeAddresses(told.Addresses()); !slices.Equal(got, want) {
		t.Errorf("connections went to %v, want %v", got, want)
	}
}

// slow: waiting for the answer is found in the right part of the timing.
func slow(t *testing.T, s Suite) {
	const delay = 100 * time.Millisecond
	_, relay, b := s.start(t, 1)
	session := b.Open()
	b.Must(session)
	relay.Delay(delay)
	r := b.Must(session)
	if r.Service < delay {
		t.Errorf("the call took %v behind a delay of %v", r.Service, delay)
	}
	// An answer may come in several pieces, each held back; the first byte waits for one of them at least.
	if r.TTFB < delay {
		t.Errorf("ttfb is %v behind a delay of %v", r.TTFB, delay)
	}
	if rest := r.Service - r.TTFB; rest < 0 {
		t.Errorf("ttfb is %v of %v", r.TTFB, r.Service)
	}
}

// idleClose: a connection that the server closed while it was idle is replaced, unblamed and without a second attempt.
func idleClose(t *testing.T, s Suite) {
	server, relay, b := s.start(t, 1)
	session := b.Open()
	for i := range 3 {
		if r := b.Must(session); !r.Opened {
			t.Errorf("call %d did not open a connection after the server had closed the last one", i)
		}
		b.Must(session)
		relay.Sever()
	}
	if n := server.Requests(); n != 6 {
		t.Errorf("the server counted %d, want 6", n)
	}
	if n := relay.Opened(); n != 3 {
		t.Errorf("%d connections were opened, want 3", n)
	}
}

// reset: a connection that breaks within an answer is a reset, is not retried, and the session recovers.
func reset(t *testing.T, s Suite) {
	server, relay, b := s.start(t, 1)
	session := b.Open()
	b.Must(session)
	for _, after := range []int64{0, 10} {
		before := server.Requests()
		// What a protocol still sends after an answer, such as acknowledgements, must not be cut in the next one's place.
		time.Sleep(settle)
		relay.CutAfter(after)
		b.Fails(t.Context(), session, long, drivers.Reset)
		eventually(t, "the attempt is counted", func() bool { return server.Requests() > before })
		if n := server.Requests() - before; n != 1 {
			t.Errorf("cut after %d bytes: the server counted %d, want 1", after, n)
		}
		relay.Thaw()
		if r := b.Must(session); !r.Opened {
			t.Errorf("cut after %d bytes: the next call opened no connection", after)
		}
	}
}

// freeze: the deadline ends a call whose server goes silent, before and within the answer, and the session recovers.
func freeze(t *testing.T, s Suite) {
	const timeout = 300 * time.Millisecond
	server, relay, b := s.start(t, 1)
	session := b.Open()
	b.Must(session)
	for _, after := range []int64{0, 10} {
		before := server.Requests()
		relay.FreezeAfter(after)
		r := b.Fails(t.Context(), session, timeout, drivers.Timeout)
		if r.Service < timeout || r.Service > timeout+prompt {
			t.Errorf("frozen after %d bytes: the call took %v, its deadline was %v", after, r.Service, timeout)
		}
		if n := server.Requests() - before; n != 1 {
			t.Errorf("frozen after %d bytes: the server counted %d, want 1", after, n)
		}
		relay.Thaw()
		b.Must(session)
	}
}

// cancel: a call ends soon after its context.
func cancel(t *testing.T, s Suite) {
	_, relay, b := s.start(t, 1)
	session := b.Open()
	b.Must(session)
	relay.FreezeAfter(0)
	ctx, stop := context.WithCancel(t.Context())
	timer := time.AfterFunc(100*time.Millisecond, stop)
	defer timer.Stop()
	r := b.Fails(ctx, session, 10*long, drivers.Aborted)
	if r.Service > prompt {
		t.Errorf("the call took %v after it was cancelled", r.Service)
	}
	relay.Thaw()
	b.Must(session)
}

// cancelledBefore: a context that is done sends nothing.
func cancelledBefore(t *testing.T, s Suite) {
	server, _, b := s.start(t, 1)
	session := b.Open()
	done, stop := context.WithCancel(t.Context())
	stop()
	b.Fails(done, session, long, drivers.Aborted)
	b.Must(session)
	b.Fails(done, session, long, drivers.Aborted)
	b.Must(session)
	if n := server.Requests(); n != 2 {
		t.Errorf("the server counted %d, want 2", n)
	}
}

// refused: a closed port is told as such, every time.
func refused(t *testing.T, s Suite) {
	addr := RefusedAddr(t)
	b := NewBench(t, s.Driver, s.Fields(addr), drivers.Pool{Users: 1}, s.Reads...)
	session := b.Open()
	for range 3 {
		b.Fails(t.Context(), session, long, drivers.Refused)
	}
	WentTo(t, b.Client, drivers.Address{Addr: addr, Failed: 3})
}

// blackHole: deadline and context hold while dialling.
func blackHole(t *testing.T, s Suite) {
	addr, ok := BlackHoleAddr(t)
	if !ok {
		t.Skip("this system has no black hole")
	}
	const timeout = 300 * time.Millisecond
	b := NewBench(t, s.Driver, s.Fields(addr), drivers.Pool{Users: 1}, s.Reads...)
	session := b.Open()
	if r := b.Fails(t.Context(), session, timeout, drivers.Timeout); r.Service < timeout || r.Service > timeout+prompt {
		t.Errorf("the call took %v, its deadline was %v", r.Service, timeout)
	} else if !strings.HasPrefix(r.Err.Error(), "connecting") {
		t.Errorf("it is not told that connecting took so long: %v", r.Err)
	}
	ctx, stop := context.WithCancel(t.Context())
	timer := time.AfterFunc(100*time.Millisecond, stop)
	defer timer.Stop()
	if r := b.Fails(ctx, session, 10*long, drivers.Aborted); r.Service > prompt {
		t.Errorf("the call took %v after it was cancelled", r.Service)
	}
}

// garbage: bytes of no protocol are a failure, once.
func garbage(t *testing.T, s Suite) {
	peer := NewGarbage(t)
	b := NewBench(t, s.Driver, s.Fields(peer.Addr()), drivers.Pool{Users: 1}, s.Reads...)
	session := b.Open()
	b.Fails(t.Context(), session, long, drivers.Protocol, drivers.TLS, drivers.Reset)
	if n := peer.Opened(); n != 1 {
		t.Errorf("%d connections were opened, want 1", n)
	}
}

// allocations: a warm call allocates no more than the suite allows.
func allocations(t *testing.T, s Suite) {
	serve := s.Quiet
	if serve == nil {
		serve = s.Serve
	}
	b := NewBench(t, s.Driver, s.Fields(serve(t).Addr), drivers.Pool{Users: 1}, s.Reads...)
	session := b.Open()
	b.Must(session)
	var in drivers.Input
	var out drivers.Outcome
	var received atomic.Int64
	ctx, iteration := t.Context(), int64(0)
	do := func() {
		in.Begin(iteration, 1)
		iteration++
		in.Deadline, in.Received = time.Now().Add(long), &received
		out.Reset()
		if err := session.Do(ctx, b.Call, &in, &out); err != nil {
			t.Error(err)
		}
	}
	// What else the process does is counted too, so the least of several runs is taken. A run is long enough that one
	// allocation a call can't hide.
	least := testing.AllocsPerRun(100, do)
	for range 4 {
		least = min(least, testing.AllocsPerRun(100, do))
	}
	if least > s.Allocs {
		t.Errorf("a warm call makes %v allocations, at most %v are allowed", least, s.Allocs)
	}
	runtime.KeepAlive(&out)
}

// eventually waits for what happens elsewhere, such as a close seen by the other side.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(prompt); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("does not happen: %s", what)
		}
	}
}

// Split returns host and port of an address, for drivers that take them apart.
func Split(t testing.TB, addr string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}
