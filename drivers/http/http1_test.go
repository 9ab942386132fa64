package http

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// do makes one call with a fresh client.
func do(t testing.TB, fields drivertest.Fields, reads ...string) drivertest.Result {
	t.Helper()
	b := drivertest.NewBench(t, New(), fields, drivers.Pool{Users: 1}, reads...)
	return b.Do(t.Context(), b.Open(), time.Minute)
}

// value reads a name of an answer.
func value(t testing.TB, r drivertest.Result, name string) any {
	t.Helper()
	if r.Err != nil {
		t.Fatalf("call failed: %v", r.Err)
	}
	v, err := r.Answer.Value(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// echo answers with the request as the server saw it.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s\n", r.Method, r.RequestURI, r.Host)
	for _, k := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(w, "%s: %s\n", k, strings.Join(r.Header[k], " | "))
	}
	fmt.Fprintf(w, "\n%s", body)
}

var both = map[string]protocols{"1.1": plain1, "2": plain2}

func TestRequests(t *testing.T) {
	dynamic := func(v any) drivertest.Func { return func(*drivers.Input) any { return v } }
	const nasty = `o'neill, "x" {"a": 1} & ü=?#` + "\n"
	for version, p := range both {
		s := serve(t, p, echo)
		base := "http://" + s.addr()
		for _, c := range []struct {
			name   string
			fields drivertest.Fields
			want   string
		}{
			{"get", drivertest.Fields{"get": base}, "GET / HOST\nUser-Agent: planrun\n\n"},
			{"method in front", drivertest.Fields{"url": "DELETE " + base + "/a"}, "DELETE /a HOST\nUser-Agent: planrun\n\n"},
			{"method in front of a template", drivertest.Fields{"url": drivertest.Mix{"PUT " + base + "/a/", dynamic(7)}}, "PUT /a/7 HOST\nContent-Length: 0\nUser-Agent: planrun\n\n"},
			{"method in small letters", drivertest.Fields{"url": "delete " + base + "/a"}, "DELETE /a HOST\nUser-Agent: planrun\n\n"},
			{"method of its own", drivertest.Fields{"url": base, "method": "PURGE"}, "PURGE / HOST\nUser-Agent: planrun\n\n"},
			{"query", drivertest.Fields{"get": base + "/s?a=1", "query": drivertest.Fields{"b": "x y&z", "ü": dynamic(nasty)}},
				"GET /s?a=1&b=x%20y%26z&%C3%BC=o%27neill%2C%20%22x%22%20%7B%22a%22%3A%201%7D%20%26%20%C3%BC%3D%3F%23%0A HOST\nUser-Agent: planrun\n\n"},
			{"value within the URL", drivertest.Fields{"get": drivertest.Mix{base + "/u/", dynamic(`a b"ü#%2F%zz`), "/x?y=1#fragment"}},
				"GET /u/a%20b%22%C3%BC%23%2F%25zz/x?y=1 HOST\nUser-Agent: planrun\n\n"},
			{"text within the URL", drivertest.Fields{"get": base + `/a b/ü?q={"x"}#fragment`}, "GET /a%20b/%C3%BC?q=%7B%22x%22%7D HOST\nUser-Agent: planrun\n\n"},
			{"query without a path", drivertest.Fields{"get": base + "?a=1"}, "GET /?a=1 HOST\nUser-Agent: planrun\n\n"},
			{"path is not normalised", drivertest.Fields{"get": base + "//a/../b/%41"}, "GET //a/../b/%41 HOST\nUser-Agent: planrun\n\n"},
			{"whole URL is dynamic", drivertest.Fields{"get": dynamic(base + "/x?y=z")}, "GET /x?y=z HOST\nUser-Agent: planrun\n\n"},
			{"headers", drivertest.Fields{"get": base, "headers": drivertest.Fields{"User-Agent": "me", "X-A": "1", "X-B": dynamic(nasty[:20])}},
				"GET / HOST\nUser-Agent: me\nX-A: 1\nX-B: " + nasty[:20] + "\n\n"},
			{"host", drivertest.Fields{"get": base, "host": "shop.test"}, "GET / shop.test\nUser-Agent: planrun\n\n"},
			{"host as a header", drivertest.Fields{"get": base, "headers": drivertest.Fields{"Host": "shop.test"}}, "GET / shop.test\nUser-Agent: planrun\n\n"},
			{"bearer", drivertest.Fields{"get": base, "bearer": dynamic("tok")}, "GET / HOST\nAuthorization: Bearer tok\nUser-Agent: planrun\n\n"},
			{"basic", drivertest.Fields{"get": base, "basic": drivertest.Fields{"user": "Aladdin", "password": dynamic("open sesame")}},
				"GET / HOST\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\nUser-Agent: planrun\n\n"},
			{"user in the URL", drivertest.Fields{"get": "http://Aladdin:open%20sesame@" + s.addr()}, "GET / HOST\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\nUser-Agent: planrun\n\n"},
			{"body", drivertest.Fields{"post": base, "body": dynamic(nasty)}, "POST / HOST\nContent-Length: " + strconv.Itoa(len(nasty)) + "\nUser-Agent: planrun\n\n" + nasty},
			{"empty body", drivertest.Fields{"post": base}, "POST / HOST\nContent-Length: 0\nUser-Agent: planrun\n\n"},
			{"form", drivertest.Fields{"post": base, "form": drivertest.Fields{"a": "1 2", "b": dynamic("x&y")}},
				"POST / HOST\nContent-Length: 15\nContent-Type: application/x-www-form-urlencoded\nUser-Agent: planrun\n\na=1%202&b=x%26y"},
			{"json", drivertest.Fields{"post": base, "json": drivertest.Fields{
				"a": 1, "b": "x\"y", "c": []any{true, nil, 1.5, dynamic(int64(3))}, "d": dynamic(nasty), "e": drivertest.Mix{"v", dynamic(2), "\t"}, "f": drivertest.Fields{}, "g": []any{}}},
				"POST / HOST\nContent-Length: 123\nContent-Type: application/json\nUser-Agent: planrun\n\n" +
					`{"a":1,"b":"x\"y","c":[true,null,1.5,3],"d":"o'neill, \"x\" {\"a\": 1} & ü=?#\n","e":"v2\t","f":{},"g":[]}`},
			{"json with a type of its own", drivertest.Fields{"patch": base, "json": 1, "headers": drivertest.Fields{"content-type": "application/x"}},
				"PATCH / HOST\nContent-Length: 1\nContent-Type: application/x\nUser-Agent: planrun\n\n1"},
		} {
			t.Run(c.name+" "+version, func(t *testing.T) {
				c.fields["version"] = version
				got := value(t, do(t, c.fields, "body"), "body").(string)
				want := strings.Replace(c.want, "HOST", s.addr(), 1)
				// The length is the server's word for what the body's own bytes say.
				if i := strings.Index(want, "Content-Length: 123\n"); i >= 0 {
					_, body, _ := strings.Cut(want, "\n\n")
					want = strings.Replace(want, "Content-Length: 123", "Content-Length: "+strconv.Itoa(len(body)), 1)
				}
				if got != want {
					t.Errorf("the server saw\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

func TestUnsendable(t *testing.T) {
	s := serve(t, plain1, nil)
	fail := drivertest.Func(func(*drivers.Input) any { return fmt.Errorf("there is no token") })
	lines := drivertest.Func(func(*drivers.Input) any { return "a\r\nX-Injected: 1" })
	for _, c := range []struct {
		fields drivertest.Fields
		want   string
	}{
		{drivertest.Fields{"get": "http://" + s.addr(), "bearer": fail}, "the header Authorization can't be made: there is no token"},
		{drivertest.Fields{"get": "http://" + s.addr(), "headers": drivertest.Fields{"X-A": lines}}, "the header X-A can't be made: its value holds a line break or another control character"},
		{drivertest.Fields{"get": "http://" + s.addr(), "host": lines}, "the host can't be made: it holds a control character"},
		{drivertest.Fields{"get": "http://" + s.addr(), "query": drivertest.Fields{"a": fail}}, "the URL can't be made: there is no token"},
		{drivertest.Fields{"post": "http://" + s.addr(), "json": fail}, "the body can't be made: there is no token"},
	} {
		r := do(t, c.fields)
		if drivers.KindOf(r.Err) != drivers.Expectation || r.Err.Error() != c.want {
			t.Errorf("got %v (%v), want %s", r.Err, drivers.KindOf(r.Err), c.want)
		}
	}
	if n := s.requests.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// A host that changes after all fails the call and sends nothing.
func TestHostIsConstant(t *testing.T) {
	s := serve(t, plain1, nil)
	b := drivertest.NewBench(t, New(), drivertest.Fields{"get": drivertest.Func(func(in *drivers.Input) any {
		if in.Deadline.IsZero() {
			return "http://" + s.addr() + "/"
		}
		return "http://" + s.addr() + ".evil.test/"
	})}, drivers.Pool{Users: 1})
	if r := b.Do(t.Context(), b.Open(), time.Minute); drivers.KindOf(r.Err) != drivers.Expectation {
		t.Errorf("got %v", r.Err)
	}
	if n := s.requests.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestAnswers(t *testing.T) {
	for version, p := range both {
		t.Run(version, func(t *testing.T) {
			s := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Add("X-Twice", "a")
				w.Header().Add("X-Twice", "b")
				w.Header().Add("Set-Cookie", "c=1")
				w.Header().Add("Set-Cookie", "d=2")
				w.WriteHeader(201)
				io.WriteString(w, `{"id": 12345678901234567, "half": 0.5, "list": [1, null, "x"], "big": 123456789012345678901234567890}`)
			})
			r := do(t, drivertest.Fields{"get": "http://" + s.addr(), "version": version}, "json", "headers")
			if r.Err != nil || !r.Success || r.Status != 201 {
				t.Fatalf("%v, success %v, status %d", r.Err, r.Success, r.Status)
			}
			h := value(t, r, "headers").(map[string]string)
			for k, want := range map[string]string{"content-type": "application/json", "x-twice": "a, b", "set-cookie": "c=1, d=2", "content-length": strconv.Itoa(int(r.BytesIn))} {
				if h[k] != want {
					t.Errorf("header %s is %q, want %q", k, h[k], want)
				}
			}
			j := value(t, r, "json").(map[string]any)
			if j["id"] != int64(12345678901234567) || j["half"] != 0.5 || j["big"] != 123456789012345678901234567890.0 {
				t.Errorf("json is %#v", j)
			}
			if list := fmt.Sprintf("%#v", j["list"]); list != `[]interface {}{1, interface {}(nil), "x"}` {
				t.Errorf("list is %s", list)
			}
			if proto := value(t, r, "proto"); proto != r.Protocol || proto != map[string]string{"1.1": "HTTP/1.1", "2": "HTTP/2"}[version] {
				t.Errorf("proto is %v, the outcome has %v", proto, r.Protocol)
			}
			if n, ok := r.Answer.Number("status"); !ok || n != 201 {
				t.Errorf("status is %v, %v", n, ok)
			}
			if n, ok := r.Answer.Number("bytes"); !ok || n != float64(r.BytesIn) {
				t.Errorf("bytes is %v, %v", n, ok)
			}
			if n := testing.AllocsPerRun(100, func() { r.Answer.Number("status"); r.Answer.Number("bytes") }); n != 0 {
				t.Errorf("reading numbers allocates %v times", n)
			}
		})
	}
}

func TestNoJSON(t *testing.T) {
	for body, want := range map[string]string{
		"":                       "the body is empty, not JSON",
		"<html>":                 `the body is not JSON: invalid character '<' looking for beginning of value at byte 1; it begins with "<html>"`,
		`{"a": 1`:                `the body is not JSON: it ends too early; it begins with "{\"a\": 1"`,
		`1 2`:                    `the body is not JSON: something follows the value; it begins with "1 2"`,
		strings.Repeat("x", 100): `the body is not JSON: invalid character 'x' looking for beginning of value at byte 1; it begins with "` + strings.Repeat("x", 40) + `..."`,
		strings.Repeat("[", 1e5): `the body is not JSON: invalid character '[' exceeded max depth at byte 10001; it begins with "` + strings.Repeat("[", 40) + `..."`,
	} {
		if _, err := decodeJSON([]byte(body)); err == nil || err.Error() != want {
			t.Errorf("%.20q: got %v, want %s", body, err, want)
		}
	}
}

func TestSuccess(t *testing.T) {
	s := serve(t, plain1, func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(code)
	})
	for code, want := range map[int]bool{200: true, 204: true, 299: true, 301: true, 304: true, 399: true, 400: false, 404: false, 500: false, 599: false} {
		r := do(t, drivertest.Fields{"get": fmt.Sprintf("http://%s/%d", s.addr(), code)})
		if r.Err != nil || r.Success != want || r.Status != code {
			t.Errorf("%d: %v, success %v, status %d", code, r.Err, r.Success, r.Status)
		}
	}
}

// Whatever the framing of an answer, the connection stays in step.
func TestFraming(t *testing.T) {
	const next = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for _, c := range []struct {
		name, method, answer string
		body                 string
		kept                 bool
	}{
		{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", true},
		{"empty", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", true},
		{"chunked", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;ext=1\r\nlo\r\n0\r\n\r\n", "hello", true},
		{"chunked with trailers", "GET", "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", "hello", true},
		{"chunked, bare line feeds", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n", "hello", true},
		{"head", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "", true},
		{"no content", "GET", "HTTP/1.1 204 No Content\r\n\r\n", "", true},
		{"not modified", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "", true},
		{"early hints", "GET", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", true},
		{"continue", "POST", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", true},
		{"announced close", "GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", "hello", false},
		{"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", false},
		{"HTTP/1.0, kept alive", "GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", "hello", true},
		{"something follows", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "hello", false},
		{"large head", "GET", "HTTP/1.1 200 OK\r\nX-Large: " + strings.Repeat("x", 200_000) + "\r\nContent-Length: 5\r\n\r\nhello", "hello", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			peer := drivertest.NewPeer(t, func(conn net.Conn) {
				br := bufio.NewReader(conn)
				for answer := c.answer; ; answer = next {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					if r.URL.Path == "/next" {
						answer = next
					}
					io.WriteString(conn, answer)
				}
			})
			b := drivertest.NewBench(t, New(), drivertest.Fields{"url": c.method + " http://" + peer.Addr() + "/first"}, drivers.Pool{Users: 1}, "body")
			session := b.Open()
			r := b.Must(session)
			if body := value(t, r, "body"); body != c.body {
				t.Errorf("the body is %q, want %q", body, c.body)
			}
			second := b.DoCall(t.Context(), session, drivertest.Prepare(t, New(), drivertest.Fields{"get": "http://" + peer.Addr() + "/next"}, "body"), time.Minute)
			if body := value(t, second, "body"); body != "ok" {
				t.Errorf("the next body is %q", body)
			}
			if second.Opened == c.kept {
				t.Errorf("the next call opened a connection: %v", second.Opened)
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	for name, answer := range map[string]string{
		"no HTTP":            "SSH-2.0-OpenSSH_9.6\r\n",
		"no status":          "HTTP/1.1 OK\r\n\r\n",
		"HTTP/2 to HTTP/1.1": "HTTP/2.0 200 OK\r\n\r\n"[:3] + "\x00\x01\x02",
		"two lengths":        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"negative length":    "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"unknown coding":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: zip\r\n\r\n",
		"endless head":       "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20),
		"endless trailer":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + strings.Repeat("x", 2<<20),
	} {
		t.Run(name, func(t *testing.T) {
			peer := raw(t, []byte(answer))
			r := do(t, drivertest.Fields{"get": "http://" + peer.Addr()})
			if drivers.KindOf(r.Err) != drivers.Protocol {
				t.Errorf("got %v (%v), want protocol", r.Err, drivers.KindOf(r.Err))
			}
			if len(fmt.Sprint(r.Err)) > 400 {
				t.Errorf("the error has %d characters", len(r.Err.Error()))
			}
		})
	}
}

// Between calls that follow at once the system isn't asked whether the connection is open, but a server that closes
// after each answer without saying so is found out, and so is one that closes a connection after many.
func TestUnannouncedClose(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	for _, each := range []int{1, 2, 50} {
		closed := make(chan struct{}, 1)
		peer := drivertest.NewPeer(t, func(c net.Conn) {
			br := bufio.NewReader(c)
			for range each {
				if _, err := http.ReadRequest(br); err != nil {
					return
				}
				io.WriteString(c, answer)
			}
			c.(*net.TCPConn).CloseWrite()
			closed <- struct{}{}
			io.Copy(io.Discard, c)
		})
		b := drivertest.NewBench(t, New(), drivertest.Fields{"get": "http://" + peer.Addr()}, drivers.Pool{Users: 1})
		session := b.Open()
		for range 3 {
			for i := range each {
				if r := b.Must(session); r.Opened != (i == 0) {
					t.Fatalf("closed after %d: call %d opened a connection: %v", each, i, r.Opened)
				}
			}
			<-closed
			if each > 1 {
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
}

// A server that closes idle connections without a word costs connections, not calls: whatever the method, each call is sent
// once, and what the server counts is what is reported.
func TestIdleClose(t *testing.T) {
	closed := make(chan struct{}, 1)
	s := serve(t, plain1, echo, func(s *httptest.Server) {
		s.Config.IdleTimeout = 20 * time.Millisecond
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				closed <- struct{}{}
			}
		}
	})
	get := drivertest.Fields{"get": "http://" + s.addr()}
	b := drivertest.NewBench(t, New(), get, drivers.Pool{Users: 1})
	post := drivertest.Prepare(t, New(), drivertest.Fields{"post": "http://" + s.addr(), "body": "order"})
	session := b.Open()
	const pairs = 5
	for range pairs {
		for _, call := range []drivers.Call{b.Call, post} {
			if r := b.DoCall(t.Context(), session, call, time.Minute); r.Err != nil || !r.Success || !r.Opened {
				t.Errorf("%v: %v, success %v, opened %v", call, r.Err, r.Success, r.Opened)
			}
			<-closed
			time.Sleep(5 * time.Millisecond) // for the close to come
		}
	}
	if n := s.requests.Load(); n != 2*pairs {
		t.Errorf("the server counted %d, want %d", n, 2*pairs)
	}
}

// A close that crosses with the request is a reset, whatever the method, and sent once.
func TestCloseCrosses(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "PUT", "POST", "DELETE"} {
		for _, partial := range []string{"", "HTTP/1.1 200 OK\r\nConte"} {
			var requests atomic.Int64
			peer := drivertest.NewPeer(t, func(c net.Conn) {
				br := bufio.NewReader(c)
				for i := 0; ; i++ {
					if _, err := http.ReadRequest(br); err != nil {
						return
					}
					requests.Add(1)
					if i == 1 {
						io.WriteString(c, partial)
						return
					}
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			})
			b := drivertest.NewBench(t, New(), drivertest.Fields{"url": method + " http://" + peer.Addr()}, drivers.Pool{Users: 1})
			session := b.Open()
			b.Must(session)
			if r := b.Fails(t.Context(), session, time.Minute, drivers.Reset); r.Opened {
				t.Errorf("%s: the failed call opened a connection", method)
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("%s: the server counted %d, want 2", method, n)
			}
			if r := b.Must(session); !r.Opened {
				t.Errorf("%s: the next call opened no connection", method)
			}
		}
	}
}

// A server that answers before it has read the whole request is heard.
func TestEarlyAnswer(t *testing.T) {
	peer := drivertest.NewPeer(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		if _, err := http.ReadRequest(br); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, br)
	})
	r := do(t, drivertest.Fields{"post": "http://" + peer.Addr(), "body": strings.Repeat("x", 8<<20)})
	if r.Err != nil || r.Status != 413 || r.Success {
		t.Errorf("%v, status %d, success %v", r.Err, r.Status, r.Success)
	}
}

func TestKeepAliveOff(t *testing.T) {
	s := serve(t, plain1, echo)
	relay := drivertest.NewRelay(t, s.addr())
	b := drivertest.NewBench(t, New(), drivertest.Fields{"get": "http://" + relay.Addr(), "keep_alive": false}, drivers.Pool{Users: 1}, "body")
	session := b.Open()
	for range 3 {
		r := b.Must(session)
		if !r.Opened || !strings.Contains(value(t, r, "body").(string), "Connection: close") {
			t.Errorf("opened %v, body %q", r.Opened, value(t, r, "body"))
		}
	}
	if n := relay.Opened(); n != 3 {
		t.Errorf("%d connections were opened, want 3", n)
	}
}

// With a pool, users wait for a connection, and that is told.
func TestPool(t *testing.T) {
	const users, connections = 20, 2
	gate := make(chan struct{}, users)
	var now, most atomic.Int64
	s := serve(t, plain1, func(w http.ResponseWriter, r *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-gate
		now.Add(-1)
	})
	relay := drivertest.NewRelay(t, s.addr())
	b := drivertest.NewBench(t, New(), drivertest.Fields{"get": "http://" + relay.Addr()}, drivers.Pool{Users: users, Connections: connections})
	var wg sync.WaitGroup
	var opened, waited atomic.Int64
	for range users {
		session := b.Open()
		wg.Go(func() {
			r := b.Do(t.Context(), session, time.Minute)
			if r.Err != nil {
				t.Error(r.Err)
			}
			if r.Opened {
				opened.Add(1)
			}
			if r.Wait > 10*time.Millisecond {
				waited.Add(1)
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	for range users {
		gate <- struct{}{}
	}
	wg.Wait()
	if relay.Opened() != connections || opened.Load() != connections || most.Load() > connections {
		t.Errorf("%d connections, %d calls say so, %d requests at once; want %d", relay.Opened(), opened.Load(), most.Load(), connections)
	}
	if n := waited.Load(); n < users-connections-2 {
		t.Errorf("%d calls waited, want about %d", n, users-connections)
	}

	t.Run("deadline and cancel", func(t *testing.T) {
		one := drivertest.NewBench(t, New(), drivertest.Fields{"get": "http://" + s.addr()}, drivers.Pool{Users: 3, Connections: 1})
		first, second := one.Open(), one.Open()
		done := make(chan drivertest.Result)
		go func() { done <- one.Do(t.Context(), first, time.Minute) }()
		for now.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		one.Fails(t.Context(), second, 50*time.Millisecond, drivers.Timeout)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		one.Fails(ctx, second, time.Minute, drivers.Aborted, drivers.Timeout)
		gate <- struct{}{}
		if r := <-done; r.Err != nil {
			t.Error(r.Err)
		}
		gate <- struct{}{}
		one.Must(second)
	})
}

func TestCompression(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	text := strings.Repeat("hello, hello. ", 10_000)
	io.WriteString(w, text)
	w.Close()
	corrupt := bytes.Clone(packed.Bytes())
	corrupt[len(corrupt)/2] ^= 0xff
	variants := map[string][]byte{
		"/right": packed.Bytes(), "/corrupt": corrupt, "/cut": packed.Bytes()[:packed.Len()-5], "/garbage": []byte("not gzip at all"),
		"/trailing": append(bytes.Clone(packed.Bytes()), "garbage"...), "/empty": nil,
	}
	for version, p := range both {
		t.Run(version, func(t *testing.T) {
			s := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" && r.Header.Get("Accept-Encoding") != "gzip" {
					io.WriteString(w, text)
					return
				}
				body := packed.Bytes()
				if b, ok := variants[r.URL.Path]; ok {
					body = b
				}
				w.Header().Set("Content-Encoding", "gzip")
				w.Write(body)
			})
			fields := func(path string, on bool) drivertest.Fields {
				return drivertest.Fields{"get": "http://" + s.addr() + path, "version": version, "compression": on}
			}
			r := do(t, fields("/", false), "body")
			if r.BytesIn != int64(len(text)) || value(t, r, "body") != text {
				t.Errorf("without compression: %d bytes, want %d", r.BytesIn, len(text))
			}
			r = do(t, fields("/", true), "body")
			if r.BytesIn != int64(packed.Len()) || value(t, r, "body") != text {
				t.Errorf("with compression: %d bytes, want %d, and the text unpacked", r.BytesIn, packed.Len())
			}
			if r = do(t, fields("/right", false), "body"); value(t, r, "body") != packed.String() {
				t.Error("a packed answer that was not asked for is unpacked")
			}
			if r = do(t, fields("/empty", true), "body"); value(t, r, "body") != "" {
				t.Error("an empty answer is not empty")
			}
			for _, path := range []string{"/corrupt", "/cut", "/garbage", "/trailing"} {
				// Corruption is found even where nobody reads the body, and the session goes on.
				b := drivertest.NewBench(t, New(), fields(path, true), drivers.Pool{Users: 1})
				session := b.Open()
				for range 2 {
					r := b.Fails(t.Context(), session, time.Minute, drivers.Protocol)
					if !strings.Contains(r.Err.Error(), "unpacked") {
						t.Errorf("%s: %v", path, r.Err)
					}
				}
				if r := b.DoCall(t.Context(), session, drivertest.Prepare(t, New(), fields("/right", true), "body"), time.Minute); value(t, r, "body") != text {
					t.Errorf("after %s: the next body is wrong", path)
				}
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	for version, p := range both {
		t.Run(version, func(t *testing.T) {
			other := serve(t, p, echo)
			s := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/loop/")); err == nil {
					http.Redirect(w, r, fmt.Sprintf("/loop/%d", n+1), http.StatusFound)
					return
				}
				code, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/to/"))
				switch {
				case err == nil:
					http.Redirect(w, r, "../echo?from="+r.URL.Path, code)
				case r.URL.Path == "/away":
					http.Redirect(w, r, "http://"+other.addr()+"/there", http.StatusTemporaryRedirect)
				case r.URL.Path == "/file":
					http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
				default:
					r.RequestURI = r.URL.RequestURI()
					io.WriteString(w, r.Method+" "+r.RequestURI)
				}
			})
			base := "http://" + s.addr()
			call := func(method, path string, more drivertest.Fields) drivertest.Result {
				fields := drivertest.Fields{"url": method + " " + base + path, "version": version, "redirects": 3}
				maps.Copy(fields, more)
				return do(t, fields, "body")
			}
			if r := call("GET", "/to/302", drivertest.Fields{"redirects": 0}); r.Status != 302 || !r.Success {
				t.Errorf("without redirects: status %d", r.Status)
			}
			for _, c := range []struct{ method, path, want string }{
				{"GET", "/to/301", "GET /echo?from=/to/301"},
				{"HEAD", "/to/303", ""},
				{"POST", "/to/301", "GET /echo?from=/to/301"},
				{"POST", "/to/302", "GET /echo?from=/to/302"},
				{"POST", "/to/303", "GET /echo?from=/to/303"},
				{"PUT", "/to/303", "GET /echo?from=/to/303"},
				{"PUT", "/to/302", "PUT /echo?from=/to/302"},
				{"POST", "/to/307", "POST /echo?from=/to/307"},
				{"POST", "/to/308", "POST /echo?from=/to/308"},
			} {
				before := s.requests.Load()
				if r := call(c.method, c.path, nil); value(t, r, "body") != c.want || r.Status != 200 {
					t.Errorf("%s %s: %d %q, want %q", c.method, c.path, r.Status, value(t, r, "body"), c.want)
				}
				if n := s.requests.Load() - before; n != 2 {
					t.Errorf("%s %s: %d requests, want 2", c.method, c.path, n)
				}
			}
			before := s.requests.Load()
			if r := call("GET", "/loop/0", nil); drivers.KindOf(r.Err) != drivers.Protocol || !strings.Contains(r.Err.Error(), "more than 3 redirects") {
				t.Errorf("a loop: %v", r.Err)
			}
			if n := s.requests.Load() - before; n != 4 {
				t.Errorf("a loop: %d requests, want 4", n)
			}
			if r := call("GET", "/file", nil); drivers.KindOf(r.Err) != drivers.Protocol {
				t.Errorf("another scheme: %v", r.Err)
			}
			// To another host: the body goes along, credentials and the host's name do not.
			r := call("POST", "/away", drivertest.Fields{"body": "payload", "bearer": "secret", "host": "shop.test",
				"headers": drivertest.Fields{"Cookie": "a=b", "X-Keep": "1"}})
			got := value(t, r, "body").(string)
			if !strings.HasPrefix(got, "POST /there "+other.addr()) || !strings.HasSuffix(got, "payload") || !strings.Contains(got, "X-Keep: 1") ||
				strings.Contains(got, "secret") || strings.Contains(got, "a=b") {
				t.Errorf("the other host saw\n%s", got)
			}
		})
	}
}

func TestRedirectToTLS(t *testing.T) {
	for _, p := range []protocols{secure1, secure2} {
		secure := serve(t, p, echo)
		s := serve(t, plain1, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, secure.URL+"/there", http.StatusMovedPermanently)
		})
		d := New()
		op := drivertest.NewOp(t, d, drivertest.Fields{"get": "http://" + s.addr(), "redirects": 1}, "body")
		op.Roots = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
		call, err := d.Prepare(op)
		if err != nil {
			t.Fatal(err)
		}
		b := drivertest.NewBench(t, d, drivertest.Fields{"get": "http://" + s.addr()}, drivers.Pool{Users: 1})
		client, err := d.Connect(t.Context(), call.Endpoint(), drivers.Pool{Users: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		session, err := client.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		for i := range 2 {
			r := b.DoCall(t.Context(), session, call, time.Minute)
			if got := value(t, r, "body").(string); !strings.HasPrefix(got, "GET /there "+secure.addr()) {
				t.Errorf("the server saw %q", got)
			}
			if r.Opened != (i == 0) || (r.TLS >= 0) != (i == 0) {
				t.Errorf("call %d: opened %v, %+v", i, r.Opened, r.Timing)
			}
		}
	}
}

func TestCookies(t *testing.T) {
	for version, p := range both {
		t.Run(version, func(t *testing.T) {
			s := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/set":
					http.SetCookie(w, &http.Cookie{Name: "id", Value: r.FormValue("id"), Path: "/"})
					http.SetCookie(w, &http.Cookie{Name: "elsewhere", Value: "1", Path: "/other"})
					http.Redirect(w, r, "/show", http.StatusSeeOther)
				default:
					io.WriteString(w, r.Header.Get("Cookie"))
				}
			})
			base := "http://" + s.addr()
			set := drivertest.Fields{"get": base + "/set", "version": version, "cookies": true, "redirects": 1,
				"query": drivertest.Fields{"id": drivertest.Func(func(in *drivers.Input) any { return in.User })}}
			b := drivertest.NewBench(t, New(), set, drivers.Pool{Users: 2}, "body")
			show := drivertest.Prepare(t, New(), drivertest.Fields{"get": base + "/show", "version": version, "cookies": true, "headers": drivertest.Fields{"Cookie": "own=1"}}, "body")
			without := drivertest.Prepare(t, New(), drivertest.Fields{"get": base + "/show", "version": version}, "body")
			one, two := b.Open(), b.Open()
			if got := value(t, b.Do(t.Context(), one, time.Minute), "body"); got != "id=0" {
				t.Errorf("after the redirect the cookies are %q", got)
			}
			if got := value(t, b.DoCall(t.Context(), one, show, time.Minute), "body"); got != "own=1; id=0" {
				t.Errorf("later the cookies are %q", got)
			}
			if got := value(t, b.DoCall(t.Context(), two, show, time.Minute), "body"); got != "own=1" {
				t.Errorf("the other user's cookies are %q", got)
			}
			if got := value(t, b.DoCall(t.Context(), one, without, time.Minute), "body"); got != "" {
				t.Errorf("a step without cookies sends %q", got)
			}
		})
	}
}

// A length that is promised is not believed: nothing is allocated for it, whether the body is kept or not.
func TestHugePromise(t *testing.T) {
	for _, reads := range [][]string{nil, {"body"}, {"json"}} {
		peer := drivertest.NewPeer(t, func(c net.Conn) {
			http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000000\r\n\r\n{")
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := do(t, drivertest.Fields{"get": "http://" + peer.Addr()}, reads...)
		runtime.ReadMemStats(&after)
		if drivers.KindOf(r.Err) != drivers.Reset || !strings.Contains(r.Err.Error(), "1 of 9000000000000000000 bytes") || r.BytesIn != 1 {
			t.Errorf("reading %v: %v, %d bytes", reads, r.Err, r.BytesIn)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
			t.Errorf("reading %v: %d MiB were allocated", reads, grown>>20)
		}
	}
}

// Bodies that are kept are bounded, and only kept where they are read.
func TestKeptBody(t *testing.T) {
	s := serve(t, plain1, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.FormValue("n"))
		for piece := make([]byte, 1<<20); n > 0; n-- {
			w.Write(piece)
		}
	})
	url := func(mib int) string { return fmt.Sprintf("http://%s/?n=%d", s.addr(), mib) }
	if r := do(t, drivertest.Fields{"get": url(64)}, "body"); len(value(t, r, "body").(string)) != 64<<20 {
		t.Error("64 MiB are not kept")
	}
	if r := do(t, drivertest.Fields{"get": url(65)}, "body"); drivers.KindOf(r.Err) != drivers.Protocol || !strings.Contains(r.Err.Error(), "larger than 64 MiB") {
		t.Errorf("more than 64 MiB: %v", r.Err)
	}
	r := do(t, drivertest.Fields{"get": url(65)})
	if r.Err != nil || r.BytesIn != 65<<20 {
		t.Errorf("unkept: %v, %d bytes", r.Err, r.BytesIn)
	}
	if _, err := r.Answer.Value("body"); err == nil {
		t.Error("a body that was not kept can be read")
	}
}

// What changes from call to call costs no allocation either, unless its expression does.
func TestTemplatesDoNotAllocate(t *testing.T) {
	text := appendOnly("a b&ü")
	b := drivertest.NewBench(t, New(), drivertest.Fields{
		"post":    drivertest.Mix{"http://" + quiet(t).Addr + "/x/", text, "/y"},
		"query":   drivertest.Fields{"q": text},
		"headers": drivertest.Fields{"X-A": "v", "X-B": appendOnly("w")},
		"form":    drivertest.Fields{"f": text},
	}, drivers.Pool{Users: 1}, "body")
	session := b.Open()
	b.Must(session)
	var in drivers.Input
	var out drivers.Outcome
	ctx := t.Context()
	least := 1e9
	for range 5 {
		least = min(least, testing.AllocsPerRun(100, func() {
			in.Deadline = time.Now().Add(time.Minute)
			out.Reset()
			if err := session.Do(ctx, b.Call, &in, &out); err != nil {
				t.Error(err)
			}
		}))
	}
	if least > 0 {
		t.Errorf("a call with templates makes %v allocations", least)
	}
}

// appendOnly is a template that depends on the call and does not allocate.
type appendOnly string

func (a appendOnly) Constant() (any, bool)            { return nil, false }
func (a appendOnly) Eval(*drivers.Input) (any, error) { return string(a), nil }
func (a appendOnly) AppendText(dst []byte, _ *drivers.Input) ([]byte, error) {
	return append(dst, a...), nil
}
