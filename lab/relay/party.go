package relay

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/planrun/planrun/lab/route"
)

// Sender is the party that connects, as the host of an app does for it.
type Sender struct {
	url    string
	client *http.Client
}

// NewSender makes a sender to a path of the relay at an address.
func NewSender(address, path string) *Sender {
	return &Sender{locate(address, path, url.Values{action: {"connect"}, identity: {rand.Text()}}), newClient()}
}

// Dial makes one rendezvous. It is a [route.Dial].
func (s *Sender) Dial(ctx context.Context) (route.Stream, error) {
	conn, _, err := websocket.Dial(ctx, s.url, &websocket.DialOptions{HTTPClient: s.client})
	if err != nil {
		return nil, fmt.Errorf("connect through the relay: %w", err)
	}
	return newStream(conn), nil
}

// Listener is the party near the service, as the hybrid connection manager is.
type Listener struct {
	url    string
	dial   route.Dial
	client *http.Client

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// redialAfter is how long a listener waits when it has lost its control channel.
const redialAfter = 100 * time.Millisecond

// ListenTo opens a control channel to a path of the relay at an address, and leads what comes by it to where dial
// connects. It returns once the channel stands.
func ListenTo(ctx context.Context, address, path string, dial route.Dial) (*Listener, error) {
	l := &Listener{
		url:  locate(address, path, url.Values{action: {"listen"}, identity: {rand.Text()}}),
		dial: dial, client: newClient(),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	conn, err := l.open(ctx)
	if err != nil {
		l.cancel()
		return nil, err
	}
	l.running.Go(func() { l.listen(conn) })
	return l, nil
}

// Close breaks off all connections and returns when nothing runs any more.
func (l *Listener) Close() error {
	l.cancel()
	l.running.Wait()
	return nil
}

func (l *Listener) open(ctx context.Context) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(ctx, l.url, &websocket.DialOptions{HTTPClient: l.client})
	if err != nil {
		return nil, fmt.Errorf("open a control channel to the relay: %w", err)
	}
	return conn, nil
}

func (l *Listener) listen(conn *websocket.Conn) {
	for {
		if conn != nil {
			l.follow(conn)
		}
		select {
		case <-l.ctx.Done():
			return
		case <-time.After(redialAfter):
		}
		conn, _ = l.open(l.ctx)
	}
}

// follow goes to every rendezvous that a control channel calls for.
func (l *Listener) follow(conn *websocket.Conn) {
	defer conn.CloseNow()
	for {
		_, message, err := conn.Read(l.ctx)
		if err != nil {
			return
		}
		var called announcement
		if json.Unmarshal(message, &called) != nil || called.Accept.Address == "" {
			continue
		}
		l.running.Go(func() { l.meet(called.Accept.Address) })
	}
}

// meet connects to the service first, so that it can refuse the rendezvous when that fails.
func (l *Listener) meet(address string) {
	service, err := l.dial(l.ctx)
	if err != nil {
		refusal := url.Values{
			statusCode:  {strconv.Itoa(http.StatusBadGateway)},
			description: {"the service cannot be reached"},
		}
		address += "&" + refusal.Encode()
	}
	conn, _, dialErr := websocket.Dial(l.ctx, address, &websocket.DialOptions{HTTPClient: l.client})
	switch {
	case err != nil && dialErr == nil:
		conn.CloseNow()
	case dialErr != nil && err == nil:
		service.Reset()
	case err == nil:
		route.Join(l.ctx, newStream(conn), service)
	}
}

func locate(address, path string, query url.Values) string {
	u := url.URL{Scheme: "ws", Host: address, Path: prefix + path, RawQuery: query.Encode()}
	return u.String()
}
