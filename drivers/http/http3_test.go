//go:build http3

package http

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"go.uber.org/goleak"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// server3 is an HTTP/3 server on 127.0.0.1 that counts.
type server3 struct {
	*http3.Server
	socket   *net.UDPConn
	requests atomic.Int64
	opened   atomic.Int64
	stopped  sync.WaitGroup
}

func (s *server3) url() string { return "https://" + s.socket.LocalAddr().String() }

// stop ends the server at once, and tells its clients.
func (s *server3) stop() {
	s.Server.Close()
	s.stopped.Wait()
	s.socket.Close()
}

// certificate is the one of the servers that httptest starts.
func certificate(t testing.TB) (tls.Certificate, *x509.Certificate) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return s.TLS.Certificates[0], s.Certificate()
}

// serve3 starts a server at an address; port 0 chooses one. A nil handler answers with 100 bytes.
func serve3(t testing.TB, addr string, handler http.HandlerFunc, set func(*http3.Server)) *server3 {
	t.Helper()
	if handler == nil {
		handler = func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, strings.Repeat("0123456789", 10)) }
	}
	at, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenUDP("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	cert, _ := certificate(t)
	s := &server3{socket: socket}
	s.Server = &http3.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.requests.Add(1)
			handler(w, r)
		}),
		ConnContext: func(ctx context.Context, _ *quic.Conn) context.Context { s.opened.Add(1); return ctx },
	}
	if set != nil {
		set(s.Server)
	}
	s.stopped.Go(func() { s.Server.Serve(socket) })
	t.Cleanup(s.stop)
	return s
}

// leakFree fails a test that leaves goroutines behind. It is called before anything else that cleans up.
func leakFree(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if !t.Failed() {
			goleak.VerifyNone(t, before)
		}
	})
}

func fields3(t testing.TB, url string) drivertest.Fields {
	_, c := certificate(t)
	return drivertest.Fields{"url": url, "version": "3", "tls": drivertest.Fields{"ca": pemFile(t, c)}}
}

func TestHTTP3(t *testing.T) {
	leakFree(t)
	s := serve3(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s %s %d %s %s", r.Method, r.URL, n, r.Header.Get("Content-Length"), r.Header.Get("X"))
	}, nil)
	for _, c := range []struct {
		method string
		fields drivertest.Fields
		want   string
		out    int64
	}{
		{"GET", drivertest.Fields{"query": drivertest.Fields{"a": "ä b"}, "headers": drivertest.Fields{"X": "y"}}, "GET /?a=%C3%A4%20b 0  y", 0},
		{"POST", drivertest.Fields{"body": strings.Repeat("x", 5<<20)}, "POST / 5242880 5242880 ", 5 << 20},
		{"POST", drivertest.Fields{"body": drivertest.Func(func(in *drivers.Input) any { return strings.Repeat("x", 10+int(in.Iteration)) })}, "POST / 10 10 ", 10},
		{"PUT", drivertest.Fields{"body": ""}, "PUT / 0 0 ", 0},
		{"HEAD", nil, "", 0},
	} {
		fields := fields3(t, c.method+" "+s.url()+"/")
		for k, v := range c.fields {
			fields[k] = v
		}
		b := drivertest.NewBench(t, New(), fields, drivers.Pool{Users: 1}, "body")
		session := b.Open()
		s.requests.Store(0)
		for i := range 3 {
			r := b.Must(session)
			if body := value(t, r, "body"); body != c.want {
				t.Errorf("%s: got %q, want %q", c.method, body, c.want)
			}
			if proto := value(t, r, "proto"); proto != "HTTP/3" || r.Protocol != "HTTP/3" {
				t.Errorf("the protocol is %q", proto)
			}
			if r.Opened != (i == 0) || (r.Connect != drivers.None) != r.Opened || r.TLS != drivers.None {
				t.Errorf("%s, call %d: opened %v, connecting took %v, TLS %v", c.method, i, r.Opened, r.Connect, r.TLS)
			}
			if r.BytesOut != c.out || r.BytesIn != int64(len(c.want)) {
				t.Errorf("%s: %d bytes out, %d in", c.method, r.BytesOut, r.BytesIn)
			}
		}
		drivertest.WentTo(t, b.Client, drivers.Address{Addr: s.socket.LocalAddr().String(), Opened: 1})
		if n := s.requests.Load(); n != 3 {
			t.Errorf("%s: the server counted %d, want 3", c.method, n)
		}
	}
}

func TestHTTP3Probe(t *testing.T) {
	leakFree(t)
	s := serve3(t, "127.0.0.1:0", nil, nil)
	b := drivertest.NewBench(t, New(), fields3(t, s.url()), drivers.Pool{Users: 1})
	if err := b.Client.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if n := s.requests.Load(); n != 0 {
		t.Errorf("the server counted %d, want none", n)
	}

	demanding := serve3(t, "127.0.0.1:0", nil, func(s *http3.Server) { s.TLSConfig.ClientAuth = tls.RequireAnyClientCert })
	b = drivertest.NewBench(t, New(), fields3(t, demanding.url()), drivers.Pool{Users: 1})
	if err := b.Client.Probe(t.Context()); drivers.KindOf(err) != drivers.TLS {
		t.Errorf("without the certificate that the server asks for: %v (%v)", err, drivers.KindOf(err))
	}
}

// Users share one connection, or as many as the plan says; what waits for the opening says so.
func TestHTTP3Users(t *testing.T) {
	for _, c := range []struct{ connections, want int }{{0, 1}, {3, 3}} {
		t.Run(fmt.Sprint(c.connections), func(t *testing.T) {
			leakFree(t)
			const users, calls = 250, 4 // more than the 100 streams that the server allows at once
			var running sync.WaitGroup
			running.Add(20) // that many are under way at once, so that every connection is needed
			var arrived atomic.Int64
			s := serve3(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
				if arrived.Add(1) <= 20 {
					running.Done()
					running.Wait()
				}
				io.WriteString(w, r.URL.Path)
			}, nil)
			url := drivertest.Mix{s.url() + "/", drivertest.Func(func(in *drivers.Input) any { return in.User })}
			fields := fields3(t, "")
			fields["url"] = url
			b := drivertest.NewBench(t, New(), fields, drivers.Pool{Users: users, Connections: c.connections}, "body")
			var wg sync.WaitGroup
			var waited, opened atomic.Int64
			for i := range users {
				session := b.Open()
				wg.Go(func() {
					for range calls {
						in := drivers.Input{User: i, Deadline: time.Now().Add(time.Minute)}
						var out drivers.Outcome
						out.Reset()
						if err := session.Do(t.Context(), b.Call, &in, &out); err != nil {
							t.Error(err)
							return
						}
						if body, _ := out.Answer.Value("body"); body != fmt.Sprint("/", i) {
							t.Errorf("user %d got %q", i, body)
						}
						if out.Wait > 0 {
							waited.Add(1)
						}
						if out.Opened {
							opened.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if n := s.requests.Load(); n != users*calls {
				t.Errorf("the server counted %d, want %d", n, users*calls)
			}
			if n := s.opened.Load(); n != int64(c.want) || opened.Load() != n {
				t.Errorf("%d connections were opened, and %d told; want %d", n, opened.Load(), c.want)
			}
			if waited.Load() == 0 {
				t.Error("nobody waited for a connection")
			}
		})
	}
}

// The deadline and an interruption end a call, before the answer and within it, and the next one works.
func TestHTTP3Ends(t *testing.T) {
	leakFree(t)
	s := serve3(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/silent":
			<-r.Context().Done()
		case "/half":
			w.Header().Set("Content-Length", "200")
			io.WriteString(w, strings.Repeat("x", 100))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/abort":
			w.Header().Set("Content-Length", "200")
			io.WriteString(w, strings.Repeat("x", 100))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}, nil)
	d := New()
	b := drivertest.NewBench(t, d, fields3(t, s.url()+"/"), drivers.Pool{Users: 1})
	session := b.Open()
	b.Must(session)
	call := func(path string) drivers.Call {
		fields := fields3(t, s.url()+path)
		fields["tls"] = drivertest.Fields{"insecure": true}
		return drivertest.Prepare(t, d, fields)
	}
	const timeout = 200 * time.Millisecond
	for _, path := range []string{"/silent", "/half"} {
		r := b.DoCall(t.Context(), session, call(path), timeout)
		if drivers.KindOf(r.Err) != drivers.Timeout || r.Service < timeout {
			t.Errorf("%s: %v (%v) after %v", path, r.Err, drivers.KindOf(r.Err), r.Service)
		}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(timeout, stop)
		r = b.DoCall(ctx, session, call(path), time.Hour)
		if drivers.KindOf(r.Err) != drivers.Aborted {
			t.Errorf("%s: %v (%v)", path, r.Err, drivers.KindOf(r.Err))
		}
	}
	s.requests.Store(0)
	r := b.DoCall(t.Context(), session, call("/abort"), time.Minute)
	if drivers.KindOf(r.Err) != drivers.Reset { // what was on its way goes with the stream
		t.Errorf("reset: %v (%v)", r.Err, drivers.KindOf(r.Err))
	}
	if n := s.requests.Load(); n != 1 {
		t.Errorf("the server counted %d, want 1", n)
	}
	if r := b.Must(session); r.Opened {
		t.Error("the connection did not survive")
	}
}

// A server that goes is told from one that stays away, and a new one is found.
func TestHTTP3ServerGoes(t *testing.T) {
	leakFree(t)
	s := serve3(t, "127.0.0.1:0", nil, nil)
	b := drivertest.NewBench(t, New(), fields3(t, s.url()), drivers.Pool{Users: 1})
	session := b.Open()
	b.Must(session)
	addr := s.socket.LocalAddr().String()
	s.stop()
	b.Fails(t.Context(), session, 300*time.Millisecond, drivers.Timeout, drivers.Reset)
	again := serve3(t, addr, nil, nil)
	if r := b.Must(session); !r.Opened {
		t.Error("the call after the restart opened no connection")
	}
	if n := again.requests.Load(); n != 1 {
		t.Errorf("the server counted %d, want 1", n)
	}

	// A server that finishes what it has: the next call opens a connection, without a failure in between.
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	again.Server.Shutdown(ctx)
	again.stop()
	third := serve3(t, addr, nil, nil)
	if r := b.Must(session); !r.Opened || third.requests.Load() != 1 {
		t.Errorf("opened %v, the server counted %d", r.Opened, third.requests.Load())
	}
}

func TestHTTP3Handshake(t *testing.T) {
	leakFree(t)
	s := serve3(t, "127.0.0.1:0", nil, nil)
	unknown := fields3(t, s.url())
	delete(unknown, "tls")
	cert, _ := certificate(t)
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	// A transport of its own, because closing a listener leaves its connections to end in their own time.
	transport := &quic.Transport{Conn: socket}
	defer transport.Close()
	other, err := transport.Listen(&tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"other"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for name, c := range map[string]struct {
		fields drivertest.Fields
		kind   drivers.Failure
		text   string
	}{
		"unknown authority": {unknown, drivers.TLS, "name its authority in tls.ca"},
		"another protocol":  {fields3(t, "https://"+other.Addr().String()), drivers.Protocol, "the server does not speak it there"},
		"nobody listens":    {fields3(t, "https://"+drivertest.RefusedAddr(t)), drivers.Timeout, "connecting: timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			b := drivertest.NewBench(t, New(), c.fields, drivers.Pool{Users: 1})
			timeout := time.Minute
			if c.kind == drivers.Timeout {
				timeout = 300 * time.Millisecond
			}
			if r := b.Fails(t.Context(), b.Open(), timeout, c.kind); !strings.Contains(r.Err.Error(), c.text) {
				t.Errorf("got %v, want %q in it", r.Err, c.text)
			}
		})
	}
}

func TestHTTP3Faults(t *testing.T) {
	for _, c := range []struct {
		fields drivertest.Fields
		want   string
	}{
		{drivertest.Fields{"get": "http://a.test/"}, "get: HTTP/3 is always encrypted: begin the URL with https://"},
		{drivertest.Fields{"get": "https://a.test/", "keep_alive": false}, "keep_alive: HTTP/3 shares a connection between users, so it can't be closed after each call: use version: 1.1"},
		{drivertest.Fields{"get": "https://a.test/", "proxy": "http://p.test:1"}, "proxy: HTTP/3 comes in datagrams, which can't go that way: leave out proxy, or use version: 2"},
		{drivertest.Fields{"get": "https://a.test/", "unix": "/x"}, "unix: HTTP/3 comes in datagrams, which can't go that way: leave out unix, or use version: 2"},
	} {
		c.fields["version"] = "3"
		_, err := New().Prepare(drivertest.NewOp(t, New(), c.fields))
		if err == nil || err.Error() != c.want {
			t.Errorf("%v:\n got %v\nwant %s", c.fields, err, c.want)
		}
	}
}

// What a failure says is kept over HTTP/3 as well.
func TestHTTP3Excerpts(t *testing.T) {
	leakFree(t)
	tellExcerpts(t, fields3(t, serve3(t, "127.0.0.1:0", failing, nil).url()))
}
