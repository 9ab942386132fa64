package service

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t testing.TB, spec lab.Service) *HTTP {
	t.Helper()
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	spec.Name = "api"
	h, err := ListenHTTP(clock.New(), spec, authority)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func client(t testing.TB, two bool) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols), MaxIdleConnsPerHost: 100}
	tr.Protocols.SetHTTP1(!two)
	tr.Protocols.SetUnencryptedHTTP2(two)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

// do sends a request and returns the answer, with its body read.
func do(t testing.TB, c *http.Client, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func TestPaths(t *testing.T) {
	h := listen(t, lab.Service{})
	url := "http://" + h.Address()
	for _, test := range []struct {
		method, path, body string
		status             int
		length             int64
		contains           string
	}{
		{"GET", "/", "", 200, -2, `"service":"api"`},
		{"GET", "/strings", "", 200, 8192, ""},
		{"GET", "/strings?bytes=0", "", 200, 0, ""},
		{"GET", "/strings?bytes=3000000", "", 200, 3_000_000, ""},
		{"GET", "/strings?bytes=8KiB", "", 200, 8192, ""},
		{"GET", "/strings?bytes=-1", "", 400, -2, "8KiB"},
		{"GET", "/strings?bytes=9999999GiB", "", 400, -2, "more than"},
		{"GET", "/file?size=1MB", "", 200, 1_000_000, ""},
		{"HEAD", "/file?size=7GiB", "", 200, 7 << 30, ""},
		{"HEAD", "/file", "", 200, 64 << 20, ""},
		{"HEAD", "/strings", "", 200, 8192, ""},
		{"GET", "/file?size=x", "", 400, -2, "64MiB"},
		{"GET", "/status/503", "", 503, -2, "503"},
		{"POST", "/status/201", "x", 201, -2, "201"},
		{"GET", "/status/204", "", 204, -2, ""},
		{"GET", "/status/99", "", 400, -2, "between"},
		{"GET", "/status/x", "", 400, -2, "between"},
		{"POST", "/echo", "hello", 200, 5, "hello"},
		{"POST", "/echo", "", 200, 0, ""},
		{"GET", "/echo", "", 405, -2, ""},
		{"GET", "/delay?time=1ms", "", 200, -2, "1ms"},
		{"GET", "/delay?time=1", "", 400, -2, "100ms"},
		{"GET", "/delay", "", 400, -2, "100ms"},
		{"GET", "/nowhere", "", 404, -2, ""},
	} {
		for _, two := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %s http2=%v", test.method, test.path, two), func(t *testing.T) {
				resp, body := do(t, client(t, two), test.method, url+test.path, test.body)
				if resp.StatusCode != test.status {
					t.Fatalf("%s: %s", resp.Status, body)
				}
				if (resp.ProtoMajor == 2) != two {
					t.Errorf("answered by %s", resp.Proto)
				}
				if test.length >= 0 && resp.ContentLength != test.length {
					t.Errorf("length %d, want %d", resp.ContentLength, test.length)
				}
				if test.length >= 0 && test.method != "HEAD" && int64(len(body)) != test.length {
					t.Errorf("%d bytes, want %d", len(body), test.length)
				}
				if !strings.Contains(body, test.contains) {
					t.Errorf("%q does not contain %q", body, test.contains)
				}
			})
		}
	}
	if got := h.Requests(); got != 48 {
		t.Errorf("%d requests", got)
	}
}

func TestStringsDiffer(t *testing.T) {
	h := listen(t, lab.Service{})
	c := client(t, false)
	_, a := do(t, c, "GET", "http://"+h.Address()+"/strings", "")
	_, b := do(t, c, "GET", "http://"+h.Address()+"/strings", "")
	if a == b {
		t.Error("two answers are equal")
	}
	if i := strings.IndexFunc(a, func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 {
		t.Errorf("%q is not printable", a[i])
	}
}

func TestRanges(t *testing.T) {
	h := listen(t, lab.Service{})
	c := client(t, false)
	url := "http://" + h.Address() + "/file?size=3MiB"
	resp, whole := do(t, c, "GET", url, "")
	if resp.Header.Get("Accept-Ranges") != "bytes" {
		t.Error("ranges are not offered")
	}
	for asked, want := range map[string]string{
		"bytes=0-9":               whole[:10],
		"bytes=1048570-1048590":   whole[1048570:1048591],
		"bytes=-5":                whole[len(whole)-5:],
		"bytes=2097152-":          whole[2<<20:],
		"bytes=1000000-999999999": whole[1000000:],
	} {
		resp, part := do(t, c, "GET", url, "", "Range", asked)
		if resp.StatusCode != http.StatusPartialContent || part != want {
			t.Errorf("%s: %s, %d bytes, want %d", asked, resp.Status, len(part), len(want))
		}
	}
	if resp, _ := do(t, c, "GET", url, "", "Range", "bytes=9999999-"); resp.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("beyond the end: %s", resp.Status)
	}
	if resp, _ := do(t, c, "GET", url, "", "If-None-Match", resp.Header.Get("ETag")); resp.StatusCode != http.StatusNotModified {
		t.Errorf("known already: %s", resp.Status)
	}
}

func TestTooLargeAnEcho(t *testing.T) {
	h := listen(t, lab.Service{})
	body := io.LimitReader(zeros{}, mostEcho+1)
	resp, err := client(t, true).Post("http://"+h.Address()+"/echo", "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Error(resp.Status)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestTLSNegotiates(t *testing.T) {
	h := listen(t, lab.Service{TLS: true})
	for _, name := range []string{"127.0.0.1", "localhost", "::1"} {
		for _, offered := range []string{"h2", "http/1.1"} {
			conn, err := tls.Dial("tcp", h.Address(), &tls.Config{InsecureSkipVerify: true, ServerName: name, NextProtos: []string{offered}})
			if err != nil {
				t.Fatal(err)
			}
			state := conn.ConnectionState()
			if state.NegotiatedProtocol != offered {
				t.Errorf("offered %s, got %q", offered, state.NegotiatedProtocol)
			}
			if err := state.PeerCertificates[0].VerifyHostname(name); err != nil {
				t.Error(err)
			}
			conn.Close()
		}
	}
}

func TestAuthoritySignsItsCertificate(t *testing.T) {
	a, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.PEM()) {
		t.Fatal("no certificate")
	}
	leaf, err := x509.ParseCertificate(a.certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost"}); err != nil {
		t.Error(err)
	}
}

// 50 requests at the same time, each a serial 1.5 ms, take 75 ms at the least, and each but the first waits for others.
func TestSerialWorkAddsUp(t *testing.T) {
	h := listen(t, lab.Service{Serial: 1500 * time.Microsecond})
	c := client(t, true)
	url := "http://" + h.Address() + "/strings?bytes=10"
	do(t, c, "GET", url, "")
	start := time.Now()
	var running sync.WaitGroup
	for range 50 {
		running.Go(func() { do(t, c, "GET", url, "") })
	}
	running.Wait()
	if took := time.Since(start); took < 75*time.Millisecond {
		t.Errorf("50 requests took %v, want 75ms at the least", took)
	}
}

// Slots bound how much is done at a time, and queues have no limit.
func TestSlotsBoundTheCapacity(t *testing.T) {
	h := listen(t, lab.Service{Delay: 10 * time.Millisecond, DelayMax: 12 * time.Millisecond, Slots: 5})
	c := client(t, true)
	start := time.Now()
	var running sync.WaitGroup
	for range 100 {
		running.Go(func() { do(t, c, "GET", "http://"+h.Address()+"/", "") })
	}
	running.Wait()
	if took := time.Since(start); took < 200*time.Millisecond {
		t.Errorf("100 requests in 5 slots took %v, want 200ms at the least", took)
	}
}

func TestManyConnections(t *testing.T) {
	h := listen(t, lab.Service{})
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for range 500 {
		c, err := net.Dial("tcp", h.Address())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	for _, c := range open {
		c.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(c, "GET /status/200 HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	for _, c := range open {
		b := make([]byte, 12)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "HTTP/1.1 200" {
			t.Fatalf("%q, %v", b, err)
		}
	}
	if h.Connections() != 500 || h.Requests() != 500 {
		t.Errorf("%d connections, %d requests", h.Connections(), h.Requests())
	}
}

func TestCloseDoesNotWaitForWork(t *testing.T) {
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	h, err := ListenHTTP(clock.New(), lab.Service{Name: "api"}, authority)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		resp, err := client(t, false).Get("http://" + h.Address() + "/delay?time=1h")
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	for h.Requests() == 0 {
		time.Sleep(time.Millisecond)
	}
	h.Close()
	select {
	case err := <-done:
		if err == nil {
			t.Error("an hour has passed")
		}
	case <-time.After(20 * time.Second):
		t.Error("the request goes on")
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "8192": 8192, "1B": 1, "2kB": 2000, "2KB": 2000, "8KiB": 8192, "1MB": 1e6, "64MiB": 64 << 20, "3GB": 3e9, "1GiB": 1 << 30,
		"": -1, "-1": -1, "1.5MB": -1, "MB": -1, "1 MB": -1, "1TB": -1, "1mb": -1, "9223372036854775807": 9223372036854775807,
		"9223372036854775808": -1, "9007199254740992KiB": -1, "+1": -1, "0x10": -1,
	} {
		got, err := parseSize(text)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

func BenchmarkStrings(b *testing.B) {
	h := listen(b, lab.Service{})
	c := client(b, false)
	url := "http://" + h.Address() + "/strings"
	for b.Loop() {
		do(b, c, "GET", url, "")
	}
}
