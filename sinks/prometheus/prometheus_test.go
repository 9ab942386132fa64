package prometheus

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks"
	"github.com/planrun/planrun/sinks/sinktest"
)

var _ sinks.Sink = (*Sink)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// readable parses what was written, as Prometheus would.
func readable(t *testing.T, out []byte) {
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	for name := range families {
		if !strings.HasPrefix(name, "planrun_") {
			t.Errorf("%s is not ours by its name", name)
		}
	}
	if families["planrun_passed"] == nil || families["planrun_assertions"] == nil {
		t.Error("there is no verdict")
	}
	if bytes.Contains(out, []byte("NaN")) {
		t.Error("no data is a number")
	}
}

func TestGolden(t *testing.T) {
	sinktest.Render(t, New(), ".prom", readable)
}

func scrape(t *testing.T, l *Live) string {
	t.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + l.Address() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	return string(b)
}

// TestLive scrapes in the middle of a run and at its end, and compares with what the run came to.
func TestLive(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if s := scrape(t, l); strings.Contains(s, "planrun_live_iterations_total{") {
		t.Errorf("before the run there are figures:\n%s", s)
	}
	for _, c := range sinktest.Cases() {
		if c.Name != "stages" {
			continue
		}
		half := len(c.Frames) / 2
		for i, f := range c.Frames {
			if i == half {
				if s := scrape(t, l); !strings.Contains(s, `planrun_live_running{`) {
					t.Errorf("in the middle nothing runs:\n%s", s)
				}
			}
			l.Watch(f)
		}
		run := c.Open(t)
		s := scrape(t, l)
		if strings.Contains(s, "planrun_live_running{") {
			t.Error("at the end something runs")
		}
		for _, x := range run.Cells {
			st := x.Stats(result.Pooled, result.Every, -1)
			labels := fmt.Sprintf(`phase="load",plan="stages",scenario="main",target=%q`, x.Target)
			for _, want := range []string{
				fmt.Sprintf(`planrun_live_iterations_total{outcome="failed",%s} %d`, labels, st.Failed),
				fmt.Sprintf(`planrun_live_iterations_total{outcome="ok",%s} %d`, labels, st.OK),
				fmt.Sprintf(`planrun_live_latency_seconds_count{%s} %d`, labels, st.OK),
				fmt.Sprintf(`planrun_live_latency_seconds_bucket{%s,le="60"} %d`, labels, st.OK),
			} {
				if !strings.Contains(s, want+"\n") {
					t.Errorf("there is no %s in\n%s", want, s)
				}
			}
		}
	}
}

// TestWatchDoesNotWait has a client that asks and never reads.
func TestWatchDoesNotWait(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 50)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, c := range sinktest.Cases() {
				for _, f := range c.Frames {
					l.Watch(f)
				}
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("frames wait for a reader")
	}
}

func TestListen(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:0": "loopback", ":0": "loopback", "192.0.2.1:9464": "loopback", "example.test:1": "loopback", "127.0.0.1": "a port", "": "a port",
		"127.0.0.1:99999": "port",
	} {
		l, err := Listen(address)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", address, err)
		}
	}
	first, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if second, err := Listen(first.Address()); err == nil {
		second.Close()
		t.Error("two listen at one port")
	}
	var none *Live
	none.Watch(&result.Header{})
}
