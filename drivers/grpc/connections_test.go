package grpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// Users are spread over as many connections as the pool has.
func TestConnections(t *testing.T) {
	e := serve(t, serverConfig{})
	b := drivertest.NewBench(t, New(), fields(t, e.addr, "Unary", nil), drivers.Pool{Users: 8, Connections: 4})
	opened := 0
	for range 8 {
		s := b.Open()
		for range 3 {
			if b.Must(s).Opened {
				opened++
			}
		}
	}
	if n := e.conns.Load(); n != 4 || opened != 4 {
		t.Errorf("%d connections, %d calls opened one, want 4", n, opened)
	}
}

// Of users that begin together one opens the connection, and the others wait for it.
func TestOneOpensOthersWait(t *testing.T) {
	e := serve(t, serverConfig{})
	relay := drivertest.NewRelay(t, e.addr)
	relay.Delay(100 * time.Millisecond) // the server's SETTINGS are late
	b := drivertest.NewBench(t, New(), fields(t, relay.Addr(), "Unary", nil), drivers.Pool{Users: 20})
	var opened, waited atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		s := b.Open()
		wg.Go(func() {
			r := b.Do(t.Context(), s, long)
			switch {
			case r.Err != nil:
				t.Error(r.Err)
			case r.Opened:
				opened.Add(1)
				if r.Connect < 50*time.Millisecond {
					t.Errorf("connect is %v, though the server's HTTP/2 began late", r.Connect)
				}
			case r.Wait > 0 && r.Connect < 0:
				waited.Add(1)
			}
		})
	}
	wg.Wait()
	if opened.Load() != 1 || waited.Load() < 10 {
		t.Errorf("%d opened, %d waited", opened.Load(), waited.Load())
	}
	if n := relay.Opened(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Those who wait share the failure of the dial, and every later call dials anew: nothing fails by a back-off.
func TestRefusedIsMeasured(t *testing.T) {
	var dials atomic.Int64
	peer := drivertest.NewPeer(t, func(c net.Conn) { dials.Add(1) }) // closes at once
	b := drivertest.NewBench(t, New(), fields(t, peer.Addr(), "Unary", nil), drivers.Pool{Users: 1})
	s := b.Open()
	for i := range 5 {
		r := b.Fails(t.Context(), s, long, drivers.Reset)
		if !strings.Contains(r.Err.Error(), "plaintext: false") {
			t.Errorf("no hint at TLS: %v", r.Err)
		}
		if n := dials.Load(); n != int64(i+1) {
			t.Errorf("after %d calls there were %d dials", i+1, n)
		}
	}

	// A server that comes up is found by the next call.
	addr := drivertest.RefusedAddr(t)
	b = drivertest.NewBench(t, New(), fields(t, addr, "Unary", nil), drivers.Pool{Users: 1})
	s = b.Open()
	for range 10 {
		b.Fails(t.Context(), s, long, drivers.Refused)
	}
	e := serve(t, serverConfig{})
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skip("the port was taken meanwhile")
	}
	done := make(chan struct{})
	go func() { defer close(done); e.server.Serve(l) }()
	t.Cleanup(func() { e.server.Stop(); <-done })
	b.Must(s)
}

// The server's limit of streams makes calls wait on this side, visibly.
func TestStreamLimit(t *testing.T) {
	const limit, users = 10, 40
	const work = 50 * time.Millisecond
	e := serve(t, serverConfig{options: []grpc.ServerOption{grpc.MaxConcurrentStreams(limit)}})
	b := drivertest.NewBench(t, New(), fields(t, e.addr, "Unary", drivertest.Fields{"delay_ms": work.Milliseconds()}), drivers.Pool{Users: users})
	b.Must(b.Open())
	var longest, waited atomic.Int64
	var wg sync.WaitGroup
	for range users {
		s := b.Open()
		wg.Go(func() {
			r := b.Do(t.Context(), s, long)
			if r.Err != nil || !r.Success {
				t.Errorf("%v", r.Err)
			}
			if r.Wait > 0 {
				waited.Add(1)
			}
			for {
				w := longest.Load()
				if int64(r.Wait) <= w || longest.CompareAndSwap(w, int64(r.Wait)) {
					break
				}
			}
		})
	}
	wg.Wait()
	if n := e.peak.Load(); n > limit {
		t.Errorf("%d at the same time, the limit is %d", n, limit)
	}
	if n := waited.Load(); n < users-2*limit {
		t.Errorf("%d of %d calls waited", n, users)
	}
	if d := time.Duration(longest.Load()); d < 2*work {
		t.Errorf("the longest wait is %v, the last of %d had to wait for %v", d, users, (users/limit-1)*work)
	}

	// A call that gives up while it waits is a timeout, and leaves the queue in order.
	holder := b.Open()
	call := drivertest.Prepare(t, New(), fields(t, e.addr, "Unary", drivertest.Fields{"delay_ms": 1000}))
	for range limit {
		s := b.Open()
		wg.Go(func() { b.DoCall(t.Context(), s, call, long) })
	}
	for e.active.Load() < limit {
		time.Sleep(time.Millisecond)
	}
	r := b.Fails(t.Context(), holder, 100*time.Millisecond, drivers.Timeout)
	if !strings.Contains(r.Err.Error(), "10 streams") || r.Wait < 50*time.Millisecond {
		t.Errorf("waited %v: %v", r.Wait, r.Err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	b.Fails(ctx, holder, long, drivers.Aborted)
	wg.Wait()
	b.Must(holder)
}

// A limit that the server raises later lets waiting calls go on.
func TestStreamLimitRaised(t *testing.T) {
	release := make(chan *rawConn, 10)
	s := serveRaw(t, []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 1}}, func(c *rawConn, id uint32) {
		if id == 1 {
			release <- c
			return
		}
		c.answer(id)
	})
	b := drivertest.NewBench(t, New(), fields(t, s.Addr(), "Unary", nil), drivers.Pool{Users: 3})
	var wg sync.WaitGroup
	first, second := b.Open(), b.Open()
	wg.Go(func() { b.Do(t.Context(), first, long) })
	c := <-release
	wg.Go(func() {
		if r := b.Do(t.Context(), second, long); r.Err != nil || r.Wait <= 0 {
			t.Errorf("err %v, wait %v", r.Err, r.Wait)
		}
	})
	time.Sleep(50 * time.Millisecond)
	if n := s.calls.Load(); n != 1 {
		t.Errorf("%d streams, the limit is 1", n)
	}
	c.write(func() { c.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 5}) })
	for end := time.Now().Add(long); s.calls.Load() < 2 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	c.answer(1)
	wg.Wait()
}

// A server that replaces its connections now and then loses no call.
func TestGracefulGoAway(t *testing.T) {
	e := serve(t, serverConfig{options: []grpc.ServerOption{grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 200 * time.Millisecond, MaxConnectionAgeGrace: long})}})
	const users = 10
	b := drivertest.NewBench(t, New(), fields(t, e.addr, "Unary", drivertest.Fields{"delay_ms": 20}), drivers.Pool{Users: users})
	var wg sync.WaitGroup
	var calls, opened atomic.Int64
	end := time.Now().Add(1500 * time.Millisecond)
	for range users {
		s := b.Open()
		wg.Go(func() {
			for time.Now().Before(end) {
				r := b.Do(t.Context(), s, long)
				if r.Err != nil || !r.Success {
					t.Errorf("%v, status %d", r.Err, r.Status)
				}
				calls.Add(1)
				if r.Opened {
					opened.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := e.requests.Load(); n != calls.Load() {
		t.Errorf("%d calls, the server counted %d", calls.Load(), n)
	}
	if n := e.conns.Load(); n < 3 || n != opened.Load() {
		t.Errorf("%d connections, %d calls say that they opened one", n, opened.Load())
	}
}

// A server that says GOAWAY after every few calls, without finishing those it left out: those fail, once and by name.
func TestAbruptGoAway(t *testing.T) {
	var answered atomic.Int64
	s := serveRaw(t, nil, func(c *rawConn, id uint32) {
		switch {
		case id < 9:
			c.answer(id)
			answered.Add(1)
		case id == 9:
			c.goaway(7, http2.ErrCodeNo, "enough")
		}
	})
	b := drivertest.NewBench(t, New(), fields(t, s.Addr(), "Unary", nil), drivers.Pool{Users: 1})
	session := b.Open()
	ok, lost := 0, 0
	for range 50 {
		switch r := b.Do(t.Context(), session, long); {
		case r.Err == nil:
			ok++
		case drivers.KindOf(r.Err) == drivers.Reset && strings.Contains(r.Err.Error(), `GOAWAY NO_ERROR "enough"`):
			lost++
		default:
			t.Fatalf("unexpected failure: %v", r.Err)
		}
	}
	if ok != 40 || lost != 10 || s.calls.Load() != 50 || s.Opened() != 10 {
		t.Errorf("%d ok, %d lost, %d attempts at the server, %d connections; want 40, 10, 50, 10", ok, lost, s.calls.Load(), s.Opened())
	}
}

func TestTooManyPings(t *testing.T) {
	s := serveRaw(t, nil, func(c *rawConn, id uint32) {
		c.goaway(id, http2.ErrCodeEnhanceYourCalm, "too_many_pings")
		c.conn.Close()
	})
	r := once(t, fields(t, s.Addr(), "Unary", nil))
	if drivers.KindOf(r.Err) != drivers.Reset || !strings.Contains(r.Err.Error(), "too_many_pings") || !strings.Contains(r.Err.Error(), "keepalive") {
		t.Errorf("%v", r.Err)
	}
}

// keepalive is off unless asked for, and a dead peer is found when it is on.
func TestKeepalive(t *testing.T) {
	_, errs := New().Prepare(drivertest.NewOp(t, New(), with(fields(t, "127.0.0.1:1", "Unary", nil), drivertest.Fields{"keepalive": time.Second})))
	if errs == nil || !strings.Contains(errs.Error(), "keepalive: must be at least 10s") {
		t.Errorf("%v", errs)
	}
	e := serve(t, serverConfig{})
	if k := drivertest.Prepare(t, New(), fields(t, e.addr, "Unary", nil)).Endpoint().Config.(*endpoint).keepalive; k != 0 {
		t.Errorf("connections are pinged every %v unasked", k)
	}
	if r := once(t, with(fields(t, e.addr, "Unary", nil), drivertest.Fields{"keepalive": 10 * time.Minute})); r.Err != nil {
		t.Error(r.Err)
	}
}

// A stream that the server refuses or resets is one attempt, and a failure with its name.
func TestResetStreams(t *testing.T) {
	for _, test := range []struct {
		code http2.ErrCode
		kind drivers.Failure
	}{
		{http2.ErrCodeRefusedStream, drivers.Refused},
		{http2.ErrCodeEnhanceYourCalm, drivers.Refused},
		{http2.ErrCodeInternal, drivers.Reset},
		{http2.ErrCodeCancel, drivers.Reset},
		{http2.ErrCodeProtocol, drivers.Reset},
		{http2.ErrCodeNo, drivers.Reset},
	} {
		for _, begun := range []bool{false, true} {
			s := serveRaw(t, nil, func(c *rawConn, id uint32) {
				if begun {
					c.headers(id, false, ":status", "200", "content-type", "application/grpc")
				}
				c.reset(id, test.code)
			})
			b := drivertest.NewBench(t, New(), fields(t, s.Addr(), "Unary", nil), drivers.Pool{Users: 1})
			session := b.Open()
			for range 20 {
				r := b.Fails(t.Context(), session, long, test.kind)
				if !strings.Contains(r.Err.Error(), test.code.String()) {
					t.Errorf("%v: %v", test.code, r.Err)
				}
			}
			if n := s.calls.Load(); n != 20 {
				t.Errorf("%v: 20 calls were %d attempts", test.code, n)
			}
		}
	}
}

// Answers that are not gRPC's are failures, never successes with nothing in them.
func TestBrokenAnswers(t *testing.T) {
	ok := []string{":status", "200", "content-type", "application/grpc"}
	for name, test := range map[string]struct {
		handle func(c *rawConn, id uint32)
		kind   drivers.Failure
		text   string
	}{
		"a web page": {func(c *rawConn, id uint32) {
			c.headers(id, false, ":status", "200", "content-type", "text/html")
			c.data(id, true, "<html>login please")
		}, drivers.Protocol, "text/html"},
		"a proxy's error": {func(c *rawConn, id uint32) {
			c.headers(id, false, ":status", "502", "content-type", "text/html")
			c.data(id, true, "bad gateway")
		}, drivers.Protocol, "502"},
		"an empty page": {func(c *rawConn, id uint32) { c.headers(id, true, ":status", "404") }, drivers.Protocol, "404"},
		"no content type": {func(c *rawConn, id uint32) {
			c.headers(id, true, ":status", "200", "grpc-status", "0")
		}, drivers.Protocol, "content-type"},
		"no trailers": {func(c *rawConn, id uint32) {
			c.headers(id, false, ok...)
			c.message(id, true, 10, 1, 'x')
		}, drivers.Protocol, "without sending trailers"},
		"no message": {func(c *rawConn, id uint32) {
			c.headers(id, false, ok...)
			c.headers(id, true, "grpc-status", "0")
		}, drivers.Protocol, "no response message"},
		"two messages": {func(c *rawConn, id uint32) {
			c.headers(id, false, ok...)
			c.message(id, false, 10, 1, 'x')
			c.message(id, false, 10, 1, 'y')
			c.headers(id, true, "grpc-status", "0")
		}, drivers.Protocol, "another message"},
		"half a message": {func(c *rawConn, id uint32) {
			c.headers(id, false, ok...)
			c.data(id, false, "\x00\x00\x00\x00\x09abc")
			c.headers(id, true, "grpc-status", "0")
		}, drivers.Protocol, "unexpected EOF"},
		"no number for a status": {func(c *rawConn, id uint32) {
			c.headers(id, true, append(ok, "grpc-status", "fine")...)
		}, drivers.Protocol, "grpc-status"},
		"compressed unasked": {func(c *rawConn, id uint32) {
			c.headers(id, false, append(ok, "grpc-encoding", "zstd")...)
			c.data(id, false, "\x01\x00\x00\x00\x01x")
			c.headers(id, true, "grpc-status", "0")
		}, drivers.Protocol, "zstd"},
		// A close with something unread is a reset on some days.
		"nothing": {func(c *rawConn, id uint32) { c.conn.Close() }, drivers.Reset, "connection"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveRaw(t, nil, test.handle)
			r := once(t, fields(t, s.Addr(), "Unary", nil))
			if drivers.KindOf(r.Err) != test.kind || r.Success || r.Status != 0 {
				t.Fatalf("%v: %v; status %d", drivers.KindOf(r.Err), r.Err, r.Status)
			}
			if !strings.Contains(r.Err.Error(), test.text) {
				t.Errorf("%q is not told: %v", test.text, r.Err)
			}
			if n := s.calls.Load(); n != 1 {
				t.Errorf("%d attempts", n)
			}
		})
	}
	// What does not decode is seen when it is read.
	s := serveRaw(t, nil, func(c *rawConn, id uint32) {
		c.headers(id, false, ok...)
		c.message(id, false, 0xff, 0xff, 0xff)
		c.headers(id, true, "grpc-status", "0")
	})
	r := once(t, fields(t, s.Addr(), "Unary", nil), "message")
	if _, err := r.Answer.Value("message"); r.Err != nil || err == nil || !strings.Contains(err.Error(), "demo.v1.Reply") {
		t.Errorf("err %v, message: %v", r.Err, err)
	}
}

// An answer that ends before the connection's loss counts, whatever comes after.
func TestWrongTransport(t *testing.T) {
	authority := newAuthority(t)
	serverTLS := authority.server(t)
	secure := serve(t, serverConfig{tls: serverTLS})
	plain := serve(t, serverConfig{})
	web := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
	h1 := httptest.NewServer(web)
	defer h1.Close()
	h1s := httptest.NewUnstartedServer(web)
	h1s.Config.ErrorLog = log.New(io.Discard, "", 0)
	h1s.TLS = &tls.Config{Certificates: serverTLS.Certificates}
	h1s.StartTLS()
	defer h1s.Close()
	h2s := httptest.NewUnstartedServer(web)
	h2s.EnableHTTP2 = true
	h2s.TLS = &tls.Config{Certificates: serverTLS.Certificates}
	h2s.StartTLS()
	defer h2s.Close()
	noALPN := drivertest.NewPeer(t, func(c net.Conn) {
		tls.Server(c, &tls.Config{Certificates: serverTLS.Certificates}).Handshake()
	})
	alert := drivertest.NewPeer(t, func(c net.Conn) {
		io.ReadFull(c, make([]byte, 24))
		c.Write([]byte{21, 3, 1, 0, 2, 2, 70}) // fatal: protocol version
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
	})
	silent := drivertest.NewPeer(t, func(c net.Conn) { io.Copy(io.Discard, c) })

	addr := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	for name, test := range map[string]struct {
		addr  string
		plain bool
		kind  drivers.Failure
		text  string
	}{
		"plaintext to TLS":         {secure.addr, true, drivers.Reset, "plaintext: false"},
		"TLS to plaintext":         {plain.addr, false, drivers.TLS, "plaintext: true"},
		"plaintext to HTTP/1.1":    {addr(h1), true, drivers.Protocol, `answered "HTTP/1.1`},
		"TLS to HTTP/1.1":          {addr(h1), false, drivers.TLS, "HTTP"},
		"TLS to HTTP/1.1 over TLS": {addr(h1s), false, drivers.TLS, ""},
		"TLS to a web server":      {addr(h2s), false, drivers.Protocol, "404"},
		"TLS to a server w/o ALPN": {noALPN.Addr(), false, drivers.Protocol, "ALPN"},
		"plaintext to nobody":      {silent.Addr(), true, drivers.Timeout, "HTTP/2"},
		"TLS to nobody":            {silent.Addr(), false, drivers.Timeout, "TLS"},
		"plaintext to an alert":    {alert.Addr(), true, drivers.Protocol, "plaintext: false"},
	} {
		t.Run(name, func(t *testing.T) {
			f := with(fields(t, test.addr, "Unary", nil), drivertest.Fields{"plaintext": test.plain})
			if !test.plain {
				f["tls"] = drivertest.Fields{"ca": authority.file}
			}
			b := drivertest.NewBench(t, New(), f, drivers.Pool{Users: 1})
			timeout := long
			if test.kind == drivers.Timeout {
				timeout = 300 * time.Millisecond
			}
			r := b.Fails(t.Context(), b.Open(), timeout, test.kind)
			if !strings.Contains(r.Err.Error(), test.text) {
				t.Errorf("%q is not told: %v", test.text, r.Err)
			}
			t.Log(r.Err)
			if test.kind != drivers.Timeout {
				if err := b.Client.Probe(t.Context()); name != "TLS to a web server" && drivers.KindOf(err) != test.kind {
					t.Errorf("the probe says %v", err)
				}
			}
		})
	}
}

func TestTLS(t *testing.T) {
	authority := newAuthority(t)
	e := serve(t, serverConfig{tls: authority.server(t)})
	f := with(fields(t, e.addr, "Unary", nil), drivertest.Fields{"plaintext": nil})
	trusted := drivertest.Fields{"ca": authority.file}

	r := once(t, with(f, drivertest.Fields{"tls": trusted}))
	if r.Err != nil || r.TLS <= 0 || r.Connect < 0 || !r.Success {
		t.Errorf("trusted: %v, tls %v", r.Err, r.TLS)
	}
	r = once(t, with(f, drivertest.Fields{"tls": trusted, "address": "grpcs://" + e.addr}))
	if r.Err != nil {
		t.Errorf("by scheme: %v", r.Err)
	}
	r = once(t, with(f, drivertest.Fields{"tls": drivertest.Fields{"insecure": true}}))
	if r.Err != nil {
		t.Errorf("insecure: %v", r.Err)
	}
	r = once(t, f)
	if drivers.KindOf(r.Err) != drivers.TLS || !strings.Contains(r.Err.Error(), "tls.ca") {
		t.Errorf("untrusted: %v", r.Err)
	}
	r = once(t, with(f, drivertest.Fields{"tls": drivertest.Fields{"ca": authority.file, "server_name": "other.test"}}))
	if drivers.KindOf(r.Err) != drivers.TLS || !strings.Contains(r.Err.Error(), "other.test") {
		t.Errorf("wrong name: %v", r.Err)
	}
	r = once(t, with(f, drivertest.Fields{"tls": trusted, "authority": "api.test:443"}))
	if r.Err != nil {
		t.Errorf("another authority: %v", r.Err)
	}
}

func TestMutualTLS(t *testing.T) {
	authority := newAuthority(t)
	config := authority.server(t)
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, authority.pool
	e := serve(t, serverConfig{tls: config})
	f := with(fields(t, e.addr, "Unary", nil), drivertest.Fields{"plaintext": nil})
	cert, key := authority.clientFiles(t)
	r := once(t, with(f, drivertest.Fields{"tls": drivertest.Fields{"ca": authority.file, "cert": cert, "key": key}}))
	if r.Err != nil || !r.Success {
		t.Errorf("with a certificate: %v", r.Err)
	}
	r = once(t, with(f, drivertest.Fields{"tls": drivertest.Fields{"ca": authority.file}}))
	if drivers.KindOf(r.Err) != drivers.TLS || !strings.Contains(r.Err.Error(), "certificate required") {
		t.Errorf("without: %v: %v", drivers.KindOf(r.Err), r.Err)
	}
}

// A server that lets a connection begin and ends it at once, again and again, neither hangs nor floods.
func TestGoAwayAtOnce(t *testing.T) {
	peer := drivertest.NewPeer(t, func(c net.Conn) {
		framer := http2.NewFramer(c, c)
		framer.WriteSettings()
		framer.WriteGoAway(0, http2.ErrCodeNo, []byte("closing time"))
		c.Read(make([]byte, 100))
		time.Sleep(10 * time.Millisecond)
	})
	b := drivertest.NewBench(t, New(), fields(t, peer.Addr(), "Unary", nil), drivers.Pool{Users: 1})
	s := b.Open()
	for range 5 {
		r := b.Fails(t.Context(), s, long, drivers.Reset)
		if !strings.Contains(r.Err.Error(), "closing time") {
			t.Errorf("%v", r.Err)
		}
	}
	if n := peer.Opened(); n != 5 {
		t.Errorf("%d connections for 5 calls", n)
	}
}

// Whatever the moment at which connections end, a call either fails or is answered, and is sent once.
func TestConnectionsEndAnyTime(t *testing.T) {
	e := serve(t, serverConfig{})
	relay := drivertest.NewRelay(t, e.addr)
	b := drivertest.NewBench(t, New(), fields(t, relay.Addr(), "Unary", nil), drivers.Pool{Users: 8, Connections: 2})
	stop := make(chan struct{})
	var severing, wg sync.WaitGroup
	severing.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				relay.Sever()
			}
		}
	})
	var ok, failed atomic.Int64
	end := time.Now().Add(time.Second)
	for range 8 {
		s := b.Open()
		wg.Go(func() {
			for time.Now().Before(end) {
				r := b.Do(t.Context(), s, long)
				switch kind := drivers.KindOf(r.Err); {
				case r.Err == nil && r.Success:
					ok.Add(1)
				case kind == drivers.Reset:
					failed.Add(1)
				default:
					t.Errorf("%v: %v, status %v", kind, r.Err, codes.Code(r.Status))
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	severing.Wait()
	if ok.Load() == 0 {
		t.Error("no call was answered")
	}
	if n := e.requests.Load(); n < ok.Load() || n > ok.Load()+failed.Load() {
		t.Errorf("%d answered, %d failed, the server counted %d", ok.Load(), failed.Load(), n)
	}
	t.Log(fmt.Sprint(ok.Load(), " answered, ", failed.Load(), " failed, ", relay.Opened(), " connections"))
}
