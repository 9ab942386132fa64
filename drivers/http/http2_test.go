package http

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

func fields2(addr, path string) drivertest.Fields {
	return drivertest.Fields{"get": "http://" + addr + path, "version": "2"}
}

// withStreams starts a server that takes n streams a connection.
func withStreams(t testing.TB, n int, handler http.HandlerFunc) *server {
	return serve(t, plain2, handler, limitStreams(n))
}

func limitStreams(n int) func(*httptest.Server) {
	return func(s *httptest.Server) { s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: n} }
}

// A server that says GOAWAY after some requests costs connections, not calls.
func TestGoAway(t *testing.T) {
	var count atomic.Int64
	s := serve(t, plain2, func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1)%20 == 0 {
			w.Header().Set("Connection", "close") // the server's way of asking for GOAWAY
		}
		io.WriteString(w, "ok")
	})
	relay := drivertest.NewRelay(t, s.addr())
	b := drivertest.NewBench(t, New(), fields2(relay.Addr(), "/"), drivers.Pool{Users: 5})
	var wg sync.WaitGroup
	var answered, opened, failed atomic.Int64
	const users, calls = 5, 60
	for range users {
		session := b.Open()
		wg.Go(func() {
			for range calls {
				r := b.Do(t.Context(), session, time.Minute)
				switch kind := drivers.KindOf(r.Err); kind {
				case drivers.OK:
					answered.Add(1)
				case drivers.Refused, drivers.Reset: // the GOAWAY crossed with the request
					failed.Add(1)
				default:
					t.Errorf("%v (%v)", r.Err, kind)
				}
				if r.Opened {
					opened.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if answered.Load() < users*calls*9/10 {
		t.Errorf("%d of %d calls were answered", answered.Load(), users*calls)
	}
	if got := s.requests.Load(); got < answered.Load() || got > answered.Load()+failed.Load() {
		t.Errorf("the server counted %d, answered %d, failed %d", got, answered.Load(), failed.Load())
	}
	if n := int64(relay.Opened()); n < 2 || n != opened.Load() {
		t.Errorf("%d connections were opened, %d calls say so", n, opened.Load())
	}
}

// A call that is under way when GOAWAY comes is finished, and others don't wait for that.
func TestGoAwayDuringCall(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, plain2, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-release
		case "/leave":
			w.Header().Set("Connection", "close")
		}
		io.WriteString(w, "ok")
	})
	d := New()
	b := drivertest.NewBench(t, d, fields2(s.addr(), "/"), drivers.Pool{Users: 2})
	one, two := b.Open(), b.Open()
	b.Must(one)
	slow := make(chan drivertest.Result)
	go func() {
		slow <- b.DoCall(t.Context(), one, drivertest.Prepare(t, d, fields2(s.addr(), "/slow")), time.Minute)
	}()
	for s.requests.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	if r := b.DoCall(t.Context(), two, drivertest.Prepare(t, d, fields2(s.addr(), "/leave")), time.Minute); r.Err != nil {
		t.Fatal(r.Err)
	}
	time.Sleep(50 * time.Millisecond) // for GOAWAY to come
	if r := b.Do(t.Context(), two, time.Minute); r.Err != nil || !r.Opened {
		t.Errorf("after GOAWAY: %v, opened %v", r.Err, r.Opened)
	}
	close(release)
	if r := <-slow; r.Err != nil || r.BytesIn != 2 {
		t.Errorf("the call under way: %v, %d bytes", r.Err, r.BytesIn)
	}
}

// At the server's limit of streams, calls wait their turn; all of that is in their latency, and nothing hangs.
func TestStreamLimit(t *testing.T) {
	const streams, users, calls = 10, 50, 4
	var now, most atomic.Int64
	s := withStreams(t, streams, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		for {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		time.Sleep(5 * time.Millisecond)
		now.Add(-1)
	})
	relay := drivertest.NewRelay(t, s.addr())
	b := drivertest.NewBench(t, New(), fields2(relay.Addr(), "/"), drivers.Pool{Users: users})
	var wg sync.WaitGroup
	var waited atomic.Int64
	slowest := make([]time.Duration, users)
	start := time.Now()
	for u := range users {
		session := b.Open()
		wg.Go(func() {
			for range calls {
				r := b.Do(t.Context(), session, time.Minute)
				if r.Err != nil {
					t.Error(r.Err)
				}
				if r.Wait > time.Millisecond {
					waited.Add(1)
				}
			}
			slowest[u] = time.Since(start)
		})
	}
	wg.Wait()
	if n := relay.Opened(); n != 1 {
		t.Errorf("%d connections were opened, want 1", n)
	}
	if most.Load() > streams {
		t.Errorf("%d requests at once, the limit is %d", most.Load(), streams)
	}
	if n := s.requests.Load(); n != users*calls {
		t.Errorf("the server counted %d, want %d", n, users*calls)
	}
	if n := waited.Load(); n < users*calls/2 {
		t.Errorf("only %d of %d calls waited", n, users*calls)
	}
	// First come, first served: no user is done long before the others.
	if first, all := slowest[0], time.Since(start); first < all/4 {
		t.Errorf("a user was done after %v, all after %v", first, all)
	}
}

// A call that waits for a stream ends at its deadline and with its context.
func TestStreamLimitDeadline(t *testing.T) {
	release := make(chan struct{})
	s := withStreams(t, 1, func(w http.ResponseWriter, r *http.Request) { <-release })
	b := drivertest.NewBench(t, New(), fields2(s.addr(), "/"), drivers.Pool{Users: 3})
	one, two, three := b.Open(), b.Open(), b.Open()
	first := make(chan drivertest.Result)
	go func() { first <- b.Do(t.Context(), one, time.Minute) }()
	for s.requests.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	r := b.Fails(t.Context(), two, 100*time.Millisecond, drivers.Timeout)
	if r.Wait < 50*time.Millisecond || r.TTFB >= 0 {
		t.Errorf("wait is %v, ttfb is %v", r.Wait, r.TTFB)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	b.Fails(ctx, two, time.Minute, drivers.Aborted)
	// One that is still there gets its turn.
	last := make(chan drivertest.Result)
	go func() { last <- b.Do(t.Context(), three, time.Minute) }()
	time.Sleep(20 * time.Millisecond)
	release <- struct{}{}
	release <- struct{}{}
	for _, r := range []drivertest.Result{<-first, <-last} {
		if r.Err != nil {
			t.Error(r.Err)
		}
	}
	if n := s.requests.Load(); n != 2 {
		t.Errorf("the server counted %d, want 2", n)
	}
}

// Several connections are opened when calls need them, and shared evenly.
func TestConnections(t *testing.T) {
	const users = 12
	gate := make(chan struct{})
	s := serve(t, plain2, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			<-gate
		}
	})
	relay := drivertest.NewRelay(t, s.addr())
	b := drivertest.NewBench(t, New(), fields2(relay.Addr(), "/wait"), drivers.Pool{Users: users, Connections: 3})
	alone := b.Open()
	quick := drivertest.Prepare(t, New(), fields2(relay.Addr(), "/"))
	for range 3 {
		if r := b.DoCall(t.Context(), alone, quick, time.Minute); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if n := relay.Opened(); n != 1 {
		t.Errorf("one user alone opened %d connections", n)
	}
	var wg sync.WaitGroup
	for range users {
		session := b.Open()
		wg.Go(func() {
			if r := b.Do(t.Context(), session, time.Minute); r.Err != nil {
				t.Error(r.Err)
			}
		})
	}
	for s.requests.Load() < 3+users {
		time.Sleep(time.Millisecond)
	}
	close(gate)
	wg.Wait()
	if n := relay.Opened(); n != 3 {
		t.Errorf("%d connections were opened, want 3", n)
	}
}

// One stream that gets no answer harms none of the others, and its connection lives on.
func TestSilentStream(t *testing.T) {
	s := serve(t, plain2, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			<-r.Context().Done()
			return
		}
		io.WriteString(w, "ok")
	})
	d := New()
	relay := drivertest.NewRelay(t, s.addr())
	b := drivertest.NewBench(t, d, fields2(relay.Addr(), "/"), drivers.Pool{Users: 100})
	silent := drivertest.Prepare(t, d, fields2(relay.Addr(), "/silent"))
	b.Must(b.Open())
	// This one outlasts all others: what it would hold up would not end before it.
	ctx, cancel := context.WithCancel(t.Context())
	pending, outlasting := make(chan drivertest.Result, 1), b.Open()
	go func() { pending <- b.DoCall(ctx, outlasting, silent, time.Minute) }()
	for s.requests.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	var wg sync.WaitGroup
	for u := range 40 {
		session := b.Open()
		wg.Go(func() {
			if u == 0 {
				for range 3 {
					if r := b.DoCall(t.Context(), session, silent, 200*time.Millisecond); drivers.KindOf(r.Err) != drivers.Timeout {
						t.Errorf("the silent stream: %v", r.Err)
					}
				}
				return
			}
			for range 20 {
				if r := b.Do(t.Context(), session, time.Minute); r.Err != nil {
					t.Errorf("another stream: %v", r.Err)
				}
			}
		})
	}
	wg.Wait()
	cancel()
	if r := <-pending; drivers.KindOf(r.Err) != drivers.Aborted {
		t.Errorf("the call that outlasts the others ended with %v", r.Err)
	}
	if n := relay.Opened(); n != 1 {
		t.Errorf("%d connections were opened, want 1", n)
	}
}

// The version that a plan asks for is used, or the call fails and says so.
func TestVersions(t *testing.T) {
	ca := authority(t)
	secure := drivertest.Fields{"ca": ca}
	for _, c := range []struct {
		server  protocols
		version string
		want    string // the protocol, or a part of the error
	}{
		{secure1, "auto", "HTTP/1.1"}, {secure2, "auto", "HTTP/2"},
		{secure1, "1.1", "HTTP/1.1"}, {secure2, "1.1", "HTTP/1.1"},
		{secure1, "2", "HTTP/2 was asked for, but the server speaks HTTP/1.1"}, {secure2, "2", "HTTP/2"},
		{plain1, "auto", "HTTP/1.1"}, {plain1, "1.1", "HTTP/1.1"},
		{plain2, "2", "HTTP/2"}, {plain1, "2", "HTTP/2 was asked for, but the server speaks HTTP/1.1"},
	} {
		t.Run(fmt.Sprintf("%s asked for %s", c.server, c.version), func(t *testing.T) {
			s := serve(t, c.server, nil)
			fields := drivertest.Fields{"get": s.URL, "version": c.version}
			if strings.HasPrefix(s.URL, "https") {
				fields["tls"] = secure
			}
			r := do(t, fields)
			switch {
			case r.Err == nil && r.Protocol != c.want:
				t.Errorf("%s was spoken, want %s", r.Protocol, c.want)
			case r.Err != nil && (drivers.KindOf(r.Err) != drivers.Protocol || !strings.Contains(r.Err.Error(), c.want)):
				t.Errorf("got %v (%v), want %s", r.Err, drivers.KindOf(r.Err), c.want)
			}
		})
	}
}

// What is negotiated decides how users share connections, whether a probe told before or not.
func TestNegotiatedSharing(t *testing.T) {
	ca := authority(t)
	for _, probe := range []bool{false, true} {
		for _, p := range []protocols{secure1, secure2} {
			t.Run(fmt.Sprint(p, " probed ", probe), func(t *testing.T) {
				const users, calls = 6, 5
				s := serve(t, p, nil)
				relay := drivertest.NewRelay(t, s.addr())
				b := drivertest.NewBench(t, New(), drivertest.Fields{"get": "https://" + relay.Addr(), "tls": drivertest.Fields{"ca": ca}}, drivers.Pool{Users: users})
				probes := 0
				if probe {
					probes = 1
					if err := b.Client.Probe(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				var wg sync.WaitGroup
				var opened atomic.Int64
				for range users {
					session := b.Open()
					wg.Go(func() {
						for range calls {
							r := b.Do(t.Context(), session, time.Minute)
							if r.Err != nil {
								t.Error(r.Err)
							}
							if r.Opened {
								opened.Add(1)
								if r.TLS < 0 || r.Connect < 0 {
									t.Errorf("a call that opened a connection has no times for it: %+v", r.Timing)
								}
							}
						}
					})
				}
				wg.Wait()
				want := 1
				if p == secure1 {
					want = users
				}
				if n := relay.Opened() - probes; n != want || opened.Load() != int64(want) {
					t.Errorf("%d connections were opened, %d calls say so, want %d", n, opened.Load(), want)
				}
				if n := s.requests.Load(); n != users*calls {
					t.Errorf("the server counted %d, want %d", n, users*calls)
				}
			})
		}
	}
}

// Calls that wait for another call's connection share its failure, and don't dial one after the other.
func TestSharedDialFailure(t *testing.T) {
	addr := drivertest.RefusedAddr(t)
	b := drivertest.NewBench(t, New(), fields2(addr, "/"), drivers.Pool{Users: 20})
	var wg sync.WaitGroup
	for range 20 {
		session := b.Open()
		wg.Go(func() {
			for range 5 {
				if r := b.Do(t.Context(), session, time.Minute); drivers.KindOf(r.Err) != drivers.Refused {
					t.Errorf("got %v (%v)", r.Err, drivers.KindOf(r.Err))
				}
			}
		})
	}
	wg.Wait()
}

// A call whose deadline ends while it dials leaves the dialling to the next that waits.
func TestDialTakenOver(t *testing.T) {
	addr, ok := drivertest.BlackHoleAddr(t)
	if !ok {
		t.Skip("this system has no black hole")
	}
	b := drivertest.NewBench(t, New(), fields2(addr, "/"), drivers.Pool{Users: 3})
	var wg sync.WaitGroup
	for i := range 3 {
		session := b.Open()
		timeout := time.Duration(i+1) * 300 * time.Millisecond
		wg.Go(func() {
			r := b.Do(t.Context(), session, timeout)
			if drivers.KindOf(r.Err) != drivers.Timeout || r.Service < timeout-time.Millisecond || r.Service > timeout+10*time.Second {
				t.Errorf("call %d: %v after %v of %v", i, r.Err, r.Service, timeout)
			}
		})
	}
	wg.Wait()
}

// A stream that the server refuses or resets is told as such, once.
func TestResetStream(t *testing.T) {
	s := serve(t, plain2, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	b := drivertest.NewBench(t, New(), fields2(s.addr(), "/"), drivers.Pool{Users: 1})
	session := b.Open()
	for range 2 {
		b.Fails(t.Context(), session, time.Minute, drivers.Reset)
	}
	if n := s.requests.Load(); n != 2 {
		t.Errorf("the server counted %d, want 2", n)
	}
}

// An answer that comes before the request was read is heard, and the next request's body is not mixed with the rest.
func TestEarlyAnswerOnStream(t *testing.T) {
	s := serve(t, plain2, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/early" {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	})
	d := New()
	body := drivertest.Func(func(in *drivers.Input) any { return strings.Repeat("x", 1<<20) })
	early := fields2(s.addr(), "/early")
	early["post"], early["body"] = early["get"], body
	whole := fields2(s.addr(), "/whole")
	whole["post"], whole["body"] = whole["get"], body
	delete(early, "get")
	delete(whole, "get")
	b := drivertest.NewBench(t, d, early, drivers.Pool{Users: 1}, "body")
	then := drivertest.Prepare(t, d, whole, "body")
	session := b.Open()
	for range 20 {
		if r := b.Do(t.Context(), session, time.Minute); r.Err != nil || r.Status != http.StatusRequestEntityTooLarge {
			t.Fatalf("early answer: %v, status %d", r.Err, r.Status)
		}
		r := b.DoCall(t.Context(), session, then, time.Minute)
		if got := value(t, r, "body"); got != fmt.Sprint(1<<20) || r.BytesOut != 1<<20 {
			t.Fatalf("the server read %v, %d bytes out", got, r.BytesOut)
		}
	}
}
