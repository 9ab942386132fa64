package service

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/lab"
)

// behind is a node as tests look at it.
type behind interface {
	io.Closer
	Address() string
	Connections() int64
	Requests() int64
}

var nodeKinds = []string{lab.HTTP, lab.GRPC}

// listenGateway starts a node of a kind and a gateway in front of it.
func listenGateway(t testing.TB, kind string, asked, front lab.Service) (*Gateway, behind) {
	t.Helper()
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	c := clock.New()
	asked.Name, asked.Kind = "node", kind
	front.Name, front.Kind, front.Node = "api", lab.Gateway, "node"
	var n behind
	if kind == lab.HTTP {
		n, err = ListenHTTP(c, asked, authority)
	} else {
		n, err = ListenGRPC(c, asked, authority)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	g, err := ListenGateway(c, front, asked, n.Address(), authority)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, n
}

func TestGatewayAsksItsNode(t *testing.T) {
	for _, kind := range nodeKinds {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s tls=%v", kind, secure), func(t *testing.T) {
				g, n := listenGateway(t, kind, lab.Service{TLS: secure}, lab.Service{})
				url := "http://" + g.Address()
				for i, test := range []struct {
					path     string
					status   int
					length   int
					contains string
				}{
					{"/", 200, -1, `"service":"api"`},
					{"/status/404", 404, -1, ""},
					{"/strings", 200, 8192, ""},
					{"/strings?bytes=100", 200, 100, ""},
					{"/strings?bytes=0", 200, 0, ""},
					{"/strings?bytes=5MiB", 200, 5 << 20, ""},
					{"/strings?bytes=1e3", 400, -1, "number of bytes"},
					{"/strings?bytes=65MiB", 400, -1, "at most"},
					{"/file", 404, -1, ""},
				} {
					resp, body := do(t, client(t, i%2 == 0), "GET", url+test.path, "")
					if resp.StatusCode != test.status || test.length >= 0 && len(body) != test.length || !strings.Contains(body, test.contains) {
						t.Errorf("%s: %s, %d bytes, %.100q", test.path, resp.Status, len(body), body)
					}
				}
				if n.Requests() != 4 || n.Connections() != 1 {
					t.Errorf("the node had %d requests by %d connections", n.Requests(), n.Connections())
				}
				if g.Requests() != 9 {
					t.Errorf("the gateway had %d requests", g.Requests())
				}
			})
		}
	}
}

// Connections to a node of HTTP are as many as calls at the same time, and kept; to one of gRPC there is one.
func TestGatewayKeepsItsConnections(t *testing.T) {
	for kind, want := range map[string]int64{lab.HTTP: 20, lab.GRPC: 1} {
		t.Run(kind, func(t *testing.T) {
			g, n := listenGateway(t, kind, lab.Service{Delay: 100 * time.Millisecond}, lab.Service{})
			c := client(t, true)
			for range 3 {
				var running sync.WaitGroup
				for range 20 {
					running.Go(func() { do(t, c, "GET", "http://"+g.Address()+"/strings?bytes=1", "") })
				}
				running.Wait()
			}
			if got := n.Connections(); got > want || got < want/4 {
				t.Errorf("%d connections for 3 times 20 requests, want %d", got, want)
			}
		})
	}
}

func TestGatewayReportsItsNode(t *testing.T) {
	for _, kind := range nodeKinds {
		t.Run(kind, func(t *testing.T) {
			g, _ := listenGateway(t, kind, lab.Service{Delay: time.Second}, lab.Service{Timeout: 20 * time.Millisecond})
			if resp, body := do(t, client(t, false), "GET", "http://"+g.Address()+"/strings", ""); resp.StatusCode != http.StatusGatewayTimeout {
				t.Errorf("a node that is late: %s, %s", resp.Status, body)
			}
			g, n := listenGateway(t, kind, lab.Service{}, lab.Service{})
			do(t, client(t, false), "GET", "http://"+g.Address()+"/strings", "")
			n.Close()
			if resp, body := do(t, client(t, false), "GET", "http://"+g.Address()+"/strings", ""); resp.StatusCode != http.StatusBadGateway || !strings.Contains(body, "the node failed") {
				t.Errorf("a node that is gone: %s, %s", resp.Status, body)
			}
		})
	}
}

// Whoever gives up at the gateway leaves the node's queue, too.
func TestGivingUpAtTheGateway(t *testing.T) {
	for _, kind := range nodeKinds {
		t.Run(kind, func(t *testing.T) {
			g, n := listenGateway(t, kind, lab.Service{Delay: 300 * time.Millisecond, Slots: 1}, lab.Service{})
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			c := client(t, true)
			for range 100 {
				running.Go(func() {
					req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.Address()+"/strings", nil)
					if resp, err := c.Do(req); err == nil {
						resp.Body.Close()
					}
				})
			}
			for n.Requests() < 100 {
				time.Sleep(time.Millisecond)
			}
			cancel()
			running.Wait()
			start := time.Now()
			do(t, c, "GET", "http://"+g.Address()+"/strings", "")
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("the queue was still there: %v", took)
			}
		})
	}
}

func TestGatewayOfNothing(t *testing.T) {
	if _, err := ListenGateway(clock.New(), lab.Service{Name: "api"}, lab.Service{Name: "db", Kind: lab.Postgres}, "127.0.0.1:1", nil); err == nil {
		t.Error("a database is no node")
	}
}
