package lab_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/planrun/planrun/lab"
	"github.com/planrun/planrun/lab/server"
)

// The test binary plays the processes that a lab needs: this variable says which.
const role = "PLANRUN_LAB_TEST"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "serve":
		if err := server.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "garble":
		fmt.Println("I am no lab")
		io.Copy(io.Discard, os.Stdin)
	case "die":
		fmt.Fprintln(os.Stderr, "something went wrong here")
		os.Exit(7)
	case "hang":
		select {}
	case "parent":
		parent()
	default:
		os.Unsetenv(role)
		goleak.VerifyTestMain(m)
	}
}

// parent starts a lab, says where it is, and waits to be killed.
func parent() {
	os.Setenv(role, "serve")
	l, err := lab.Start(context.Background(), small, []string{os.Args[0]})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(strings.TrimPrefix(l.Addresses()["direct"]["api"], "http://"))
	select {}
}

// as has the test binary play a role when it is started.
func as(t testing.TB, what string) []string {
	t.Helper()
	t.Setenv(role, what)
	return []string{os.Args[0]}
}

var small = lab.Spec{
	Services: []lab.Service{{Name: "api", Kind: lab.HTTP}},
	Routes:   []lab.Route{{Name: "direct"}},
}

func start(t testing.TB, spec lab.Spec) *lab.Lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, err := lab.Start(ctx, spec, as(t, "serve"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// client makes an HTTP client that speaks HTTP/1.1, or HTTP/2 with prior knowledge.
func client(t testing.TB, two bool) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols), MaxIdleConnsPerHost: 100}
	tr.Protocols.SetHTTP1(!two)
	tr.Protocols.SetUnencryptedHTTP2(two)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

func get(t testing.TB, c *http.Client, url string) (body string, took time.Duration) {
	t.Helper()
	begin := time.Now()
	resp, err := c.Get(url)
	if err != nil {
		t.Error(err)
		return "", 0
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %s, %v", url, resp.Status, err)
	}
	return string(b), time.Since(begin)
}

// hybrid is the lab of the study of a hybrid connection.
var hybrid = lab.Spec{
	Services: []lab.Service{
		{Name: "api", Kind: lab.HTTP},
		{Name: "db", Kind: lab.Postgres, Rows: 100, Payload: 8 << 10},
	},
	Routes: []lab.Route{
		{Name: "direct", RTT: 12 * time.Millisecond, Bandwidth: 75e6, Window: 320_000},
		{
			Name: "hybrid", RTT: 12 * time.Millisecond, Bandwidth: 75e6, Window: 320_000,
			Relay: &lab.Relay{RTT: 11 * time.Millisecond, Window: 220_000},
		},
	},
}

func TestRelayCostsARoundTripMore(t *testing.T) {
	l := start(t, hybrid)
	warm := map[string]time.Duration{}
	cold := map[string]time.Duration{}
	for route, addresses := range l.Addresses() {
		c := client(t, true)
		_, cold[route] = get(t, c, addresses["api"]+"/strings?bytes=8192")
		warm[route] = time.Hour
		for range 10 {
			body, took := get(t, c, addresses["api"]+"/strings?bytes=8192")
			if len(body) != 8192 {
				t.Fatalf("%d bytes", len(body))
			}
			warm[route] = min(warm[route], took)
		}
	}
	t.Log("cold", cold, "warm", warm)
	// Machines are slow at times, never fast: what the routes cost at the least holds always.
	for route, least := range map[string]time.Duration{"direct": 12 * time.Millisecond, "hybrid": 23 * time.Millisecond} {
		if warm[route] < least {
			t.Errorf("a warm call by %s takes %v, which is less than its trips do", route, warm[route])
		}
	}
	// A connection costs a trip, and three of the relay: half for the message, one for TCP, half for the request to upgrade,
	// one for the call.
	for route, least := range map[string]time.Duration{"direct": 24 * time.Millisecond, "hybrid": 57 * time.Millisecond} {
		if cold[route] < least {
			t.Errorf("a cold call by %s takes %v, which is less than its trips do", route, cold[route])
		}
	}
	if warm["hybrid"] <= warm["direct"] {
		t.Error("the relay costs nothing")
	}

	counts, err := l.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := lab.RouteCounts{Connections: 1, Rendezvous: 1}
	if got := counts.Routes["hybrid"]["api"]; got != want {
		t.Errorf("by the relay: %+v, want %+v", got, want)
	}
	want.Rendezvous = 0
	if got := counts.Routes["direct"]["api"]; got != want {
		t.Errorf("directly: %+v, want %+v", got, want)
	}
	if got := counts.Services["api"]; got != (lab.ServiceCounts{Connections: 2, Requests: 22}) {
		t.Errorf("the service: %+v", got)
	}
}

// With HTTP/1.1 every user has a connection, and each costs a rendezvous; with HTTP/2 they share one.
func TestRendezvousOfParallelCalls(t *testing.T) {
	const users = 50
	for name, two := range map[string]bool{"http/1.1": false, "http/2": true} {
		t.Run(name, func(t *testing.T) {
			l := start(t, lab.Spec{
				Services: []lab.Service{{Name: "api", Kind: lab.HTTP, Delay: 20 * time.Millisecond}},
				Routes:   []lab.Route{{Name: "hybrid", Relay: &lab.Relay{}}},
			})
			c := client(t, two)
			c.Transport.(*http.Transport).DisableKeepAlives = !two // so that every call is the first of its connection
			url := l.Addresses()["hybrid"]["api"] + "/strings"
			want := int64(users)
			if two {
				want = 1
				get(t, c, url)
			}
			var running sync.WaitGroup
			for range users {
				running.Go(func() { get(t, c, url) })
			}
			running.Wait()
			counts, err := l.Counts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := counts.Routes["hybrid"]["api"]; got.Rendezvous != want || got.Connections != want {
				t.Errorf("%+v, want %d rendezvous", got, want)
			}
		})
	}
}

func TestQueriesByEveryRoute(t *testing.T) {
	l := start(t, hybrid)
	took := map[string]time.Duration{}
	for route, addresses := range l.Addresses() {
		db, err := sql.Open("pgx", addresses["db"])
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		took[route] = time.Hour
		for i := range 10 {
			begin := time.Now()
			var payload string
			if err := db.QueryRowContext(t.Context(), "SELECT payload FROM documents WHERE id = $1", i+1).Scan(&payload); err != nil {
				t.Fatal(err)
			}
			if len(payload) != 8<<10 {
				t.Errorf("%d bytes", len(payload))
			}
			took[route] = min(took[route], time.Since(begin))
		}
	}
	if took["hybrid"] <= took["direct"] {
		t.Errorf("a query takes %v by the relay and %v directly", took["hybrid"], took["direct"])
	}
}

func TestDownloadsAreBoundByTheWindow(t *testing.T) {
	l := start(t, hybrid)
	const size = 8 << 20
	rate := map[string]float64{}
	for route, addresses := range l.Addresses() {
		body, took := get(t, client(t, false), addresses["api"]+"/file?size=8MiB")
		if len(body) != size {
			t.Fatalf("%d bytes", len(body))
		}
		rate[route] = size / took.Seconds() / 1e6
	}
	t.Log(rate, "MB/s")
	// 320 kB a trip of 12 ms, 220 kB a trip of 11 ms. A window can be kept, but not exceeded.
	if rate["direct"] > 320/12. || rate["direct"] < 1 {
		t.Errorf("directly %.1f MB/s, want about %.1f", rate["direct"], 320/12.)
	}
	if rate["hybrid"] > 220/11. || rate["hybrid"] < 1 {
		t.Errorf("by the relay %.1f MB/s, want about %.1f", rate["hybrid"], 220/11.)
	}
}

func TestTLS(t *testing.T) {
	l := start(t, lab.Spec{
		Services: []lab.Service{{Name: "api", Kind: lab.HTTP, TLS: true}},
		Routes:   []lab.Route{{Name: "direct"}, {Name: "hybrid", Relay: &lab.Relay{}}},
	})
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(l.CA()) {
		t.Fatalf("no authority: %q", l.CA())
	}
	for route, addresses := range l.Addresses() {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
		body, _ := get(t, &http.Client{Transport: tr, Timeout: 30 * time.Second}, addresses["api"]+"/")
		if !strings.Contains(body, `"proto":"HTTP/2.0"`) || !strings.HasPrefix(addresses["api"], "https://") {
			t.Errorf("%s: %s", route, body)
		}
		tr.CloseIdleConnections()
	}
}

// Services may come in any order; a gateway finds its node, and the address of grpc is host and port.
func TestServerToServer(t *testing.T) {
	l := start(t, lab.Spec{
		Services: []lab.Service{
			{Name: "rest", Kind: lab.Gateway, Node: "node_http"},
			{Name: "rpc", Kind: lab.Gateway, Node: "node_grpc"},
			{Name: "node_http", Kind: lab.HTTP},
			{Name: "node_grpc", Kind: lab.GRPC},
		},
		Routes: []lab.Route{{Name: "direct"}, {Name: "hybrid", Relay: &lab.Relay{}}},
	})
	for route, addresses := range l.Addresses() {
		for _, service := range []string{"rest", "rpc"} {
			if body, _ := get(t, client(t, true), addresses[service]+"/strings?bytes=100"); len(body) != 100 {
				t.Errorf("%s.%s: %d bytes", route, service, len(body))
			}
		}
		if _, _, err := net.SplitHostPort(addresses["node_grpc"]); err != nil {
			t.Error(err)
		}
	}
	counts, err := l.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"rest", "rpc", "node_http", "node_grpc"} {
		if got := counts.Services[service].Requests; got != 2 {
			t.Errorf("%s had %d requests, want one by each route", service, got)
		}
	}
}

func TestLabThatCannotStart(t *testing.T) {
	for name, test := range map[string]struct {
		command []string
		spec    lab.Spec
		want    string
	}{
		"no command":      {nil, small, "no command"},
		"no such program": {[]string{"/does/not/exist"}, small, "no such file"},
		"no service":      {as(t, "serve"), lab.Spec{Routes: small.Routes}, "needs a service"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := lab.Start(t.Context(), test.spec, test.command)
			if err == nil {
				l.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	for what, want := range map[string]string{"die": "something went wrong here", "garble": "I am no lab"} {
		t.Run(what, func(t *testing.T) {
			if _, err := lab.Start(t.Context(), small, as(t, what)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
	t.Run("hang", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := lab.Start(ctx, small, as(t, "hang")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDeathIsNoticed(t *testing.T) {
	ctx := t.Context()
	l, err := lab.Start(ctx, small, as(t, "serve"))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.Done():
		t.Fatal("done before its time")
	default:
	}
	l.Kill()
	select {
	case <-l.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("nobody notices")
	}
	if l.Err() == nil {
		t.Error("no error")
	}
	if _, err := l.Counts(ctx); err == nil {
		t.Error("the dead count")
	}
	if err := l.Close(); err == nil {
		t.Error("closing tells nothing")
	}
}

func TestCloseIsNoError(t *testing.T) {
	l, err := lab.Start(t.Context(), small, as(t, "serve"))
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	<-l.Done()
	if err := l.Err(); err != nil {
		t.Error(err)
	}
	if _, err := l.Counts(t.Context()); err == nil {
		t.Error("a closed lab counts")
	}
}

func TestCountsGivenUp(t *testing.T) {
	l := start(t, small)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		l.Counts(gone)
		if c, err := l.Counts(t.Context()); err != nil || c.Services["api"].Requests != 0 {
			t.Fatalf("%+v, %v", c, err)
		}
	}
}

// Whoever started a lab may be killed: the lab goes too.
func TestLabDiesWithItsParent(t *testing.T) {
	cmd := exec.Command(as(t, "parent")[0])
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + strings.TrimSpace(string(bytes.Trim(line[:n], "\x00")))
	get(t, client(t, false), address+"/")
	cmd.Process.Kill()
	deadline := time.Now().Add(15 * time.Second)
	for time.Now().Before(deadline) {
		c := client(t, false)
		resp, err := c.Get(address + "/")
		if err != nil {
			return
		}
		resp.Body.Close()
		c.CloseIdleConnections()
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the lab outlives its parent")
}
