package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/lab/labtest"
	"github.com/planrun/planrun/lab/route"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// relayed leads to an address through a relay whose listener is shape away.
func relayed(t testing.TB, shape route.Shape, address string) (near string, r *Relay) {
	t.Helper()
	r, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	far, err := route.NewLine(clock.New(), shape).Listen(route.To(r.Address()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	l, err := ListenTo(t.Context(), far.Address(), "api", route.To(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	k, err := route.NewLine(clock.New(), route.Shape{}).Listen(NewSender(r.Address(), "api").Dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k.Address(), r
}

func TestEveryConnectionIsOneRendezvous(t *testing.T) {
	near, r := relayed(t, route.Shape{}, labtest.Serve(t, labtest.Echo))
	const connections = 20
	for i := range connections {
		c := labtest.Dial(t, near)
		for range 3 {
			c.Write([]byte("hello"))
			var b [5]byte
			if _, err := io.ReadFull(c, b[:]); err != nil || string(b[:]) != "hello" {
				t.Fatalf("connection %d: %q, %v", i, b, err)
			}
		}
		if i%2 == 0 {
			c.Close()
		}
	}
	if got := r.Rendezvous("api"); got != connections {
		t.Errorf("%d rendezvous for %d connections", got, connections)
	}
	if got := r.Rendezvous("other"); got != 0 {
		t.Errorf("%d rendezvous at a path that nobody used", got)
	}
}

func TestBytesAndEndsComeThrough(t *testing.T) {
	near, _ := relayed(t, route.Shape{RTT: time.Millisecond, Window: 100_000}, labtest.Serve(t, labtest.Echo))
	c := labtest.Dial(t, near)
	want := bytes.Repeat([]byte("0123456789abcdef!"), 60_000)
	go func() {
		c.Write(want)
		c.CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
}

func TestResetComesThrough(t *testing.T) {
	near, _ := relayed(t, route.Shape{}, labtest.Serve(t, labtest.Reset))
	c := labtest.Dial(t, near)
	c.Write([]byte("x"))
	if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
}

func TestClientThatGoesIsNoticed(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn){
		"closed": func(c *net.TCPConn) { c.Close() },
		"reset":  func(c *net.TCPConn) { c.SetLinger(0); c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan error, 1)
			near, _ := relayed(t, route.Shape{}, labtest.Serve(t, func(c *net.TCPConn) {
				_, err := io.Copy(c, c)
				seen <- err
			}))
			c := labtest.Dial(t, near)
			c.Write([]byte("x"))
			io.ReadFull(c, make([]byte, 1))
			leave(c)
			select {
			case err := <-seen:
				if (err == nil) != (name == "closed") {
					t.Errorf("the service sees %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("the service never learns of it")
			}
		})
	}
}

func TestRendezvousCostsRoundTrips(t *testing.T) {
	const rtt = 20 * time.Millisecond
	near, _ := relayed(t, route.Shape{RTT: rtt}, labtest.Serve(t, labtest.Echo))
	c := labtest.Dial(t, near)
	var took [4]time.Duration
	for i := range took {
		start := time.Now()
		c.Write([]byte("x"))
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		took[i] = time.Since(start)
	}
	// Half a trip for the message, one for TCP, half for the request to upgrade; its answer travels with the first bytes.
	cold, warm := took[0], min(took[1], took[2], took[3])
	if warm < rtt {
		t.Errorf("a warm round trip takes %v, want %v", warm, rtt)
	}
	if cold < 3*rtt {
		t.Errorf("the first takes %v, want %v", cold, 3*rtt)
	}
}

func TestServiceThatIsNotThere(t *testing.T) {
	near, r := relayed(t, route.Shape{}, labtest.Nobody(t))
	c := labtest.Dial(t, near)
	if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
	if got := r.Rendezvous("api"); got != 0 {
		t.Errorf("%d rendezvous", got)
	}
}

// get asks for a WebSocket that should be refused, and returns the status.
func get(t *testing.T, address, path, query string) int {
	t.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	conn, resp, err := websocket.Dial(t.Context(), "ws://"+address+path+"?"+query, &websocket.DialOptions{HTTPClient: client})
	if err == nil {
		conn.CloseNow()
		return http.StatusSwitchingProtocols
	}
	if resp == nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

func TestRefusals(t *testing.T) {
	_, r := relayed(t, route.Shape{}, labtest.Serve(t, labtest.Echo))
	for _, test := range []struct {
		path, query string
		want        int
	}{
		{"/$hc/api", "sb-hc-action=connect", http.StatusSwitchingProtocols},
		{"/$hc/other", "sb-hc-action=connect", http.StatusNotFound},
		{"/$hc/api", "sb-hc-action=dance", http.StatusBadRequest},
		{"/$hc/api", "", http.StatusBadRequest},
		{"/$hc/", "sb-hc-action=connect", http.StatusNotFound},
		{"/api", "sb-hc-action=connect", http.StatusNotFound},
		{"/$hc/api", "sb-hc-action=accept&sb-hc-id=unknown", http.StatusNotFound},
	} {
		if got := get(t, r.Address(), test.path, test.query); got != test.want {
			t.Errorf("%s?%s: %d, want %d", test.path, test.query, got, test.want)
		}
	}
}

// A listener written by hand shows what goes over the control channel, and that an address is good for one use.
func TestControlChannel(t *testing.T) {
	r, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	client := newClient()
	options := &websocket.DialOptions{HTTPClient: client}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	control, _, err := websocket.Dial(ctx, locate(r.Address(), "api", map[string][]string{action: {"listen"}}), options)
	if err != nil {
		t.Fatal(err)
	}
	defer control.CloseNow()

	sent := make(chan error, 1)
	go func() {
		s, err := NewSender(r.Address(), "api").Dial(ctx)
		if err == nil {
			_, err = s.Write([]byte("hello"))
			defer s.Close()
		}
		sent <- err
	}()
	_, message, err := control.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Accept struct {
			Address        string
			ID             string
			ConnectHeaders map[string]string
		}
	}
	if err := json.Unmarshal(message, &got); err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	if !strings.HasPrefix(string(message), `{"accept":{"address":"ws://`+r.Address()+`/$hc/api?`) ||
		!strings.Contains(got.Accept.Address, "sb-hc-action=accept") || got.Accept.ID == "" ||
		got.Accept.ConnectHeaders["Host"] == "" {
		t.Errorf("announced as %s", message)
	}
	met, _, err := websocket.Dial(ctx, got.Accept.Address, options)
	if err != nil {
		t.Fatal(err)
	}
	defer met.CloseNow()
	if kind, b, err := met.Read(ctx); kind != websocket.MessageBinary || string(b) != "hello" || err != nil {
		t.Errorf("%v %q, %v", kind, b, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if again, _, err := websocket.Dial(ctx, got.Accept.Address, options); err == nil {
		again.CloseNow()
		t.Error("an address is good for two uses")
	}

	// Refusing: the listener is told that it did, the sender why.
	go func() {
		_, err := NewSender(r.Address(), "api").Dial(ctx)
		sent <- err
	}()
	if _, message, err = control.Read(ctx); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(message, &got); err != nil {
		t.Fatal(err)
	}
	_, resp, err := websocket.Dial(ctx, got.Accept.Address+"&sb-hc-statusCode=503&sb-hc-statusDescription=full", options)
	if err == nil || resp == nil || resp.StatusCode != http.StatusGone {
		t.Errorf("refusing: %v, %v", resp, err)
	}
	if err := <-sent; err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("the sender learns of %v", err)
	}
}
