package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/result"
)

// names makes this process ask a server of its own for the addresses of names: all of them have those that found returns.
func names(t *testing.T, found func() []string) {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		packet := make([]byte, 1500)
		for {
			n, from, err := socket.ReadFrom(packet)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(packet[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				for _, a := range found() {
					body := &dnsmessage.AResource{A: [4]byte(net.ParseIP(a).To4())}
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: body})
				}
			}
			answer, err := m.Pack()
			if err != nil {
				t.Error(err)
				return
			}
			socket.WriteTo(answer, from)
		}
	}()
	system := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", socket.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = system
		socket.Close()
		<-done
	})
}

// A name has two addresses, and after half of the calls others: an address where nobody listens is one of them. Each round
// spreads over those that it found, no call fails, and every report says where connections went.
func TestReportsSayWhereConnectionsWent(t *testing.T) {
	var calls atomic.Int64
	var later atomic.Bool
	names(t, func() []string {
		if later.Load() {
			return []string{"127.0.0.2", "127.0.0.3"}
		}
		return []string{"127.0.0.1", "127.0.0.2"}
	})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 10 {
			later.Store(true)
		}
		io.WriteString(w, "hello")
	})
	first := httptest.NewServer(handler)
	defer first.Close()
	_, port, _ := net.SplitHostPort(first.Listener.Addr().String())
	l, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skipf("this system has no second address for itself: %v", err)
	}
	second := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	second.Start()
	defer second.Close()

	t.Chdir(t.TempDir())
	plan := `
results: {path: run.msgpack}
scenarios:
  spread:
    http: {get: "http://spread.test:PORT/", keep_alive: false}
    phases:
      - sequential: {count: 10, rounds: 2}
`
	if err := os.WriteFile("plan.yaml", []byte(strings.ReplaceAll(plan, "PORT", port)), 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	args := []string{"--quiet", "plan.yaml", "-o", "json=run.json", "-o", "markdown=run.md", "-o", "html=run.html"}
	if code := Main(args, strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, stdout.String(), stderr.String())
	}

	run, err := result.Open("run.msgpack")
	if err != nil {
		t.Fatal(err)
	}
	at := func(host string) string { return net.JoinHostPort(host, port) }
	// The third address is tried once, and comes last from then on.
	for i, want := range [][]drivers.Address{
		{{Addr: at("127.0.0.1"), Opened: 5}, {Addr: at("127.0.0.2"), Opened: 5}},
		{{Addr: at("127.0.0.2"), Opened: 10}, {Addr: at("127.0.0.3"), Failed: 1}},
	} {
		got := run.Cells[0].Rounds[i].End.Addresses
		if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("round %d: connections went to %v, want %v", i, got, want)
		}
	}
	var report struct {
		Cells []struct {
			Addresses []struct {
				Address        string
				Opened, Failed int
			}
		}
	}
	text, err := os.ReadFile("run.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if a := report.Cells[0].Addresses; len(a) != 3 || a[0].Address != at("127.0.0.2") || a[0].Opened != 15 || a[2].Address != at("127.0.0.3") || a[2].Failed != 1 {
		t.Errorf("the JSON has %+v", a)
	}
	for file, want := range map[string]string{
		"run.md":   "| `" + at("127.0.0.2") + "` | 15 | 0 |",
		"run.html": "<code>" + at("127.0.0.2") + "</code></td><td class=\"value count\" data-head=\"connections\">15</td>",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contains(t, string(text), want)
	}
}
