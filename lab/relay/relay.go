// Package relay is a rendezvous over WebSocket, as Azure Relay's hybrid connections make it: a listener near the service
// keeps a control channel open to the relay; for every connection of a sender the relay tells the listener an address, the
// listener dials it, and from then on the two WebSockets are a pipe. So every TCP connection costs one rendezvous.
//
// URLs and messages are those of the Hybrid Connections protocol
// (https://learn.microsoft.com/azure/azure-relay/relay-hybrid-connections-protocol), without tokens. HTTP requests on the
// control channel are left out; TCP relays do not use them.
package relay

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// The query of the protocol's URLs.
const (
	prefix      = "/$hc/"
	action      = "sb-hc-action"
	identity    = "sb-hc-id"
	statusCode  = "sb-hc-statusCode"
	description = "sb-hc-statusDescription"
)

// acceptWithin is how long the address of a rendezvous is good for.
const acceptWithin = 30 * time.Second

// announcement is what the relay sends on the control channel when a sender has connected.
type announcement struct {
	Accept accept `json:"accept"`
}

type accept struct {
	Address        string            `json:"address"`
	ID             string            `json:"id"`
	ConnectHeaders map[string]string `json:"connectHeaders"`
	RemoteEndpoint endpoint          `json:"remoteEndpoint"`
}

type endpoint struct {
	Address string `json:"address"`
	Port    int    `json:"port"`
}

// Relay is the meeting point. It has one hybrid connection for each path that a listener asks for.
type Relay struct {
	listener net.Listener
	server   *http.Server
	ctx      context.Context
	cancel   context.CancelFunc
	served   sync.WaitGroup // the server, and the handlers whose connections it no longer knows

	mu      sync.Mutex
	closed  bool
	hybrids map[string]*hybrid
	waiting map[string]*rendezvous // by id
}

// hybrid is one hybrid connection.
type hybrid struct {
	listeners []*control
	met       atomic.Int64
}

// control is the control channel of a listener.
type control struct {
	host  string // by which the listener reached the relay
	conn  *websocket.Conn
	ready chan struct{} // closed when conn is set
}

// rendezvous is a sender that waits for a listener.
type rendezvous struct {
	path   string
	answer chan answer // buffered
	ended  chan struct{}
}

// answer is a listener's: its WebSocket, or why there is none.
type answer struct {
	conn   *websocket.Conn
	code   int
	reason string
}

// Listen starts a relay on 127.0.0.1.
func Listen() (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a relay: %w", err)
	}
	r := &Relay{listener: listener, hybrids: map[string]*hybrid{}, waiting: map[string]*rendezvous{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.server = &http.Server{Handler: http.HandlerFunc(r.serve), ErrorLog: log.New(io.Discard, "", 0)}
	r.served.Go(func() { r.server.Serve(listener) })
	return r, nil
}

// Address is host and port of the relay.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Rendezvous is how many senders and listeners of a path have met.
func (r *Relay) Rendezvous(path string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.hybrids[path]; h != nil {
		return h.met.Load()
	}
	return 0
}

// Close breaks off all connections and returns when nothing runs any more.
func (r *Relay) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	err := r.server.Close()
	r.served.Wait()
	return err
}

func (r *Relay) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.served.Add(1)
	r.mu.Unlock()
	defer r.served.Done()
	path, ok := cutPath(req.URL.Path)
	if !ok {
		http.Error(w, "not a hybrid connection", http.StatusNotFound)
		return
	}
	switch req.URL.Query().Get(action) {
	case "listen":
		r.listen(w, req, path)
	case "connect":
		r.connect(w, req, path)
	case "accept":
		r.accept(w, req, path)
	default:
		http.Error(w, "unknown action", http.StatusBadRequest)
	}
}

func cutPath(path string) (string, bool) {
	if len(path) <= len(prefix) || path[:len(prefix)] != prefix {
		return "", false
	}
	return path[len(prefix):], true
}

// listen keeps the control channel of a listener until it closes. The listener is known before its handshake is over, so
// that a sender finds it as soon as the listener itself knows.
func (r *Relay) listen(w http.ResponseWriter, req *http.Request, path string) {
	c := &control{host: req.Host, ready: make(chan struct{})}
	r.mu.Lock()
	h := r.hybrids[path]
	if h == nil {
		h = &hybrid{}
		r.hybrids[path] = h
	}
	h.listeners = append(h.listeners, c)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		h.listeners = slices.DeleteFunc(h.listeners, func(other *control) bool { return other == c })
	}()
	conn, err := websocket.Accept(w, req, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	c.conn = conn
	close(c.ready)
	// A listener may renew its token; nothing else comes from it.
	for {
		if _, _, err := conn.Read(r.ctx); err != nil {
			return
		}
	}
}

// connect serves a sender: it calls a listener, picked at random, waits until that has answered, and carries bytes
// between the two until either has gone.
func (r *Relay) connect(w http.ResponseWriter, req *http.Request, path string) {
	meeting := &rendezvous{path: path, answer: make(chan answer, 1), ended: make(chan struct{})}
	defer close(meeting.ended)
	id := rand.Text()
	r.mu.Lock()
	h := r.hybrids[path]
	if h == nil || len(h.listeners) == 0 {
		r.mu.Unlock()
		http.Error(w, "no listener is connected", http.StatusNotFound)
		return
	}
	listener := h.listeners[mathrand.IntN(len(h.listeners))]
	r.waiting[id] = meeting
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, id)
	}()

	ctx, cancel := context.WithTimeout(req.Context(), acceptWithin)
	defer cancel()
	if err := listener.announce(ctx, path, id, req); err != nil {
		http.Error(w, "the listener has gone", http.StatusBadGateway)
		return
	}
	var listened answer
	select {
	case listened = <-meeting.answer:
	case <-ctx.Done():
		http.Error(w, "the listener did not answer", http.StatusGatewayTimeout)
		return
	case <-r.ctx.Done():
		return
	}
	if listened.conn == nil {
		http.Error(w, listened.reason, listened.code)
		return
	}
	defer listened.conn.CloseNow()
	sender, err := websocket.Accept(w, req, nil)
	if err != nil {
		return
	}
	defer sender.CloseNow()
	h.met.Add(1)
	pipe(r.ctx, sender, listened.conn)
}

// announce tells a listener that a sender is waiting.
func (c *control) announce(ctx context.Context, path, id string, req *http.Request) error {
	address := url.URL{
		Scheme: "ws", Host: c.host, Path: prefix + path,
		RawQuery: url.Values{action: {"accept"}, identity: {id}}.Encode(),
	}
	host, port, _ := net.SplitHostPort(req.RemoteAddr)
	number, _ := strconv.Atoi(port)
	message, err := json.Marshal(announcement{accept{
		Address:        address.String(),
		ID:             id,
		ConnectHeaders: map[string]string{"Host": req.Host},
		RemoteEndpoint: endpoint{host, number},
	}})
	if err != nil {
		return err
	}
	select {
	case <-c.ready:
		return c.conn.Write(ctx, websocket.MessageText, message)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// accept serves a listener that comes to a rendezvous, or refuses it. An address is good for one use.
func (r *Relay) accept(w http.ResponseWriter, req *http.Request, path string) {
	query := req.URL.Query()
	r.mu.Lock()
	meeting := r.waiting[query.Get(identity)]
	if meeting != nil && meeting.path == path {
		delete(r.waiting, query.Get(identity))
	} else {
		meeting = nil
	}
	r.mu.Unlock()
	if meeting == nil {
		http.Error(w, "nobody is waiting here", http.StatusNotFound)
		return
	}
	if text := query.Get(statusCode); text != "" {
		code, err := strconv.Atoi(text)
		if err != nil || code < 400 || code > 599 {
			code = http.StatusBadGateway
		}
		meeting.answer <- answer{code: code, reason: query.Get(description)}
		http.Error(w, "the rendezvous is refused, as asked", http.StatusGone)
		return
	}
	conn, err := websocket.Accept(w, req, nil)
	if err != nil {
		meeting.answer <- answer{code: http.StatusBadGateway, reason: "the listener did not come"}
		return
	}
	defer conn.CloseNow()
	meeting.answer <- answer{conn: conn}
	<-meeting.ended
}

// pipe carries messages between two WebSockets until either has gone.
func pipe(ctx context.Context, a, b *websocket.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		a.CloseNow()
		b.CloseNow()
	})
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { forward(a, b); cancel() })
	running.Go(func() { forward(b, a); cancel() })
	running.Wait()
}

// largest is how many bytes of a message are carried at once. Longer messages are cut: what they carry is a stream.
const largest = 64 << 10

var buffers = sync.Pool{New: func() any { return new([largest]byte) }}

func forward(from, to *websocket.Conn) {
	from.SetReadLimit(-1)
	ctx := context.Background()
	for {
		kind, message, err := from.Reader(ctx)
		if err != nil {
			return
		}
		// Taken only now, so that idle connections hold none.
		b := buffers.Get().(*[largest]byte)
		for first := true; ; first = false {
			n, err := io.ReadFull(message, b[:])
			ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
			if err != nil && !ended {
				return
			}
			if n > 0 || first {
				if to.Write(ctx, kind, b[:n]) != nil {
					return
				}
			}
			if ended {
				break
			}
		}
		buffers.Put(b)
	}
}
