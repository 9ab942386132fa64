package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// measured runs a plan in this process and returns its exit code, what it printed in one line, and its results.
func measured(t *testing.T, text string, args ...string) (exit int, printed string, run *result.Run) {
	t.Helper()
	dir := t.TempDir()
	file, results := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "run.msgpack")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, messages bytes.Buffer
	exit = Main(append([]string{"--quiet", "--no-ci", file, "--results", results}, args...), strings.NewReader(""), &out, &messages)
	run, err := result.Open(results)
	if err != nil {
		t.Fatalf("exit %d, %v\n%s%s", exit, err, out.String(), messages.String())
	}
	return exit, strings.Join(strings.Fields(out.String()), " "), run
}

// A relay that spoils answers sooner than the direct route gives good ones is failed, with what it did as a kind of its own
// and in its own words, and is not called faster.
func TestARelayIsNotFasterByItsFailures(t *testing.T) {
	direct := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(50 * time.Millisecond)
		w.Write(make([]byte, 1000))
	}))
	t.Cleanup(direct.Close)
	for name, test := range map[string]struct {
		relay  http.HandlerFunc
		kind   drivers.Failure
		status int32
		says   string
	}{
		"gives up": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusGatewayTimeout)
			io.WriteString(w, "the backend did not answer")
		}, drivers.Status, 504, "the backend did not answer"},
		"cuts the answer": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n%s", make([]byte, 600))
		}, drivers.Reset, 200, "600"},
	} {
		relay := httptest.NewServer(test.relay)
		t.Cleanup(relay.Close)
		for driver, step := range map[string]string{"http": "http: GET /", "download": "download: /"} {
			t.Run(name+", "+driver, func(t *testing.T) {
				exit, printed, run := measured(t, fmt.Sprintf(`
targets:
  direct: {url: %q}
  relay: {url: %q}
scenarios:
  s:
    %s
    phases:
      - sequential: {count: 10}
`, direct.URL, relay.URL, step))
				if exit != 1 {
					t.Errorf("exit %d", exit)
				}
				good := run.Find("s", "sequential", "direct").Stats(result.Pooled, result.Judged, record.Whole)
				bad := run.Find("s", "sequential", "relay").Stats(result.Pooled, result.Judged, record.Whole)
				if good.OK != 10 || bad.OK != 0 || bad.Failures[test.kind] != 10 || bad.Statuses[test.status] != 10 {
					t.Errorf("%d direct ones are ok; by the relay %d are, %d failed as %s, %d were answered with %d",
						good.OK, bad.OK, bad.Failures[test.kind], test.kind, bad.Statuses[test.status], test.status)
				}
				contains(t, printed, "all failed (10 of 10: "+test.kind.String()+")", "failed s.sequential.relay: ok > 0", test.says)
				if strings.Contains(printed, "faster") || strings.Contains(printed, "slower") {
					t.Errorf("somebody is called faster:\n%s", printed)
				}
			})
		}
	}
}

// slowDoor lets connections in one by one, each after a time.
type slowDoor struct {
	net.Listener
	wait time.Duration
}

func (l slowDoor) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	time.Sleep(l.wait)
	return c, err
}

// What opening the connection costs is in the call that opened it and in a column of its own, so that five calls can be read
// for what they are; a warm-up takes it away.
func TestTheFirstConnectionIsToldApart(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	server.Listener = slowDoor{server.Listener, time.Second}
	server.StartTLS()
	t.Cleanup(server.Close)
	exit, printed, run := measured(t, fmt.Sprintf(`
preflight: false
defaults:
  http: {tls: {insecure: true}}
scenarios:
  s:
    http: GET %s/
    phases:
      - sequential: {name: cold, count: 5}
      - sequential: {name: warm, count: 5, warmup: 1}
    assert:
      - cold.opened == 1
      - cold.ttfb.max < 1s and cold.p50 < 1s
      - warm.opened == 0 and warm.max < 1s
`, server.URL))
	if exit != 0 {
		t.Errorf("exit %d:\n%s", exit, printed)
	}
	contains(t, printed, " tls p50 ")
	// As an assertion it would be in doubt wherever the processors are busy.
	cold := run.Find("s", "cold", "target").Stats(result.Pooled, result.Judged, record.Whole)
	longest, _ := cold.Latency().Max()
	shook, _ := cold.TLS.Max()
	if longest < int64(time.Second) || shook < int64(time.Second) {
		t.Errorf("the first call took %v, its handshake %v", time.Duration(longest), time.Duration(shook))
	}
	if s := run.Find("s", "warm", "target").Stats(result.Pooled, result.Judged, record.Whole); s.TLS.Count() != 0 || s.Count() != 5 {
		t.Errorf("%d of %d calls after the warm-up shook hands", s.TLS.Count(), s.Count())
	}
}
