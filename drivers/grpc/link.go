package grpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// link is one HTTP/2 connection, and the channel of the gRPC library that was made for it.
type link struct {
	wire    *wire
	channel *grpc.ClientConn
	closed  *sync.WaitGroup

	mu      sync.Mutex
	active  int64 // calls that hold a stream
	first   *turn // calls that wait for one, in order
	last    *turn
	retired bool // no longer the line's: ends with its last call
	ended   bool
}

// turn is a call's place in the queue for a stream.
type turn struct {
	ready chan struct{} // receives when the call may go on: with a stream, or because the link is gone
	next  *turn
	got   bool
}

// errSpent is what the library gets when it wants to dial again. The text is what tells it from errors of servers,
// which the library passes on as text, too.
var errSpent = errors.New("this connection is spent (planrun 6c1f)")

// dial opens a connection and starts HTTP/2 on it, and adds what it took to t. The error is an *drivers.Error.
func (c *Client) dial(ctx context.Context, t *drivers.Timing) (*link, error) {
	conn, err := c.dialer.Dial(ctx, t)
	if err != nil {
		return nil, err
	}
	e := c.endpoint
	var info credentials.AuthInfo = plainInfo{}
	if e.tls != nil {
		tc, err := dial.Handshake(ctx, conn, e.tls, e.host, t)
		if err != nil {
			return nil, explainTLS(err)
		}
		if p := tc.ConnectionState().NegotiatedProtocol; p != "h2" {
			tc.Close()
			return nil, drivers.Fail(drivers.Protocol, errors.New("TLS handshake: "+noHTTP2))
		}
		conn, info = tc, credentials.TLSInfo{State: tc.ConnectionState(), CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
	}
	start := time.Now()
	l, err := c.begin(ctx, conn, info)
	dial.Add(&t.Connect, time.Since(start))
	return l, err
}

const noHTTP2 = "the server does not agree to HTTP/2 (ALPN h2), which gRPC needs"

// explainTLS says what a failed handshake usually means for gRPC.
func explainTLS(err error) error {
	if e, ok := errors.AsType[tls.RecordHeaderError](err); ok && e.RecordHeader[0] == 0 {
		return drivers.Fail(drivers.TLS, errors.New("TLS handshake: the server speaks HTTP/2 without TLS; write plaintext: true"))
	}
	if strings.Contains(err.Error(), "no application protocol") {
		return drivers.Fail(drivers.TLS, errors.New("TLS handshake: "+noHTTP2))
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return drivers.Fail(drivers.TLS, fmt.Errorf("%w; if the server has no TLS, write plaintext: true", err))
	}
	return err
}

// begin makes a channel for conn and waits until the server has begun HTTP/2. It owns conn.
func (c *Client) begin(ctx context.Context, conn net.Conn, info credentials.AuthInfo) (*link, error) {
	l := &link{wire: newWire(conn), closed: &c.closing}
	l.wire.changed = l.serve
	var handed atomic.Bool
	options := []grpc.DialOption{
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if handed.Swap(true) {
				l.wire.end()
				return nil, errSpent
			}
			return l.wire, nil
		}),
		grpc.WithTransportCredentials(handshaken{info}),
		grpc.WithAuthority(c.endpoint.authority),
		grpc.WithUserAgent("planrun"),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableHealthCheck(),
		grpc.WithIdleTimeout(0),
		grpc.WithNoProxy(),
		// The calls' deadlines decide, not the library's.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: time.Hour, MaxDelay: time.Hour}, MinConnectTimeout: 24 * time.Hour}),
	}
	if c.endpoint.keepalive > 0 {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: c.endpoint.keepalive}))
	}
	if c.endpoint.compressed {
		options = append(options, grpc.WithStatsHandler(traffic{}))
	}
	channel, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(c.endpoint.host, c.endpoint.port), options...)
	if err != nil {
		conn.Close()
		return nil, drivers.Fail(drivers.Protocol, err)
	}
	l.channel = channel
	channel.Connect()
	select {
	case <-l.wire.begun:
		return l, nil
	case <-l.wire.gone:
		err = l.wire.beginning(c.endpoint.tls != nil)
	case <-ctx.Done():
		err = dial.Fail(ctx, "starting HTTP/2", ctx.Err())
	}
	if !handed.Load() {
		conn.Close()
	}
	l.retire()
	return nil, err
}

// usable tells whether a new call may begin.
func (l *link) usable() bool { return !l.wire.ended.Load() }

// acquire takes a stream of the link, and waits while the server allows no more. waited is how long. It returns false,
// with a nil error, when the link is gone and nothing was begun.
func (l *link) acquire(ctx context.Context, t *turn) (ok bool, waited time.Duration, err error) {
	l.mu.Lock()
	if l.wire.ended.Load() || l.ended {
		l.mu.Unlock()
		return false, 0, nil
	}
	limit := l.limit()
	if l.first == nil && l.active < limit {
		l.active++
		l.mu.Unlock()
		return true, 0, nil
	}
	t.next, t.got = nil, false
	if l.last == nil {
		l.first = t
	} else {
		l.last.next = t
	}
	l.last = t
	l.mu.Unlock()

	start := time.Now()
	select {
	case <-t.ready:
		return t.got, time.Since(start), nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	queued := l.remove(t)
	l.mu.Unlock()
	if !queued {
		// It was this call's turn at the same moment.
		<-t.ready
		if t.got {
			l.release()
		}
	}
	return false, time.Since(start), dial.Fail(ctx, fmt.Sprintf("waiting for one of the %d streams that the server allows on a connection", limit), ctx.Err())
}

// limit is how many calls may be under way. l.mu is held.
func (l *link) limit() int64 { return int64(l.wire.streams.Load()) }

// release gives a stream back.
func (l *link) release() {
	l.mu.Lock()
	l.active--
	l.mu.Unlock()
	l.serve()
}

// serve lets waiting calls go on, as far as streams are free or because the link is gone, and ends a retired link.
func (l *link) serve() {
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := l.wire.ended.Load()
	for t := l.first; t != nil && (gone || l.active < l.limit()); t = l.first {
		l.first = t.next
		if l.first == nil {
			l.last = nil
		}
		t.next, t.got = nil, !gone
		if t.got {
			l.active++
		}
		t.ready <- struct{}{}
	}
	l.endIfIdle()
}

// remove takes t out of the queue and tells whether it was there. l.mu is held.
func (l *link) remove(t *turn) bool {
	var before *turn
	for q := l.first; q != nil; before, q = q, q.next {
		if q != t {
			continue
		}
		if before == nil {
			l.first = t.next
		} else {
			before.next = t.next
		}
		if l.last == t {
			l.last = before
		}
		t.next = nil
		return true
	}
	return false
}

// retire ends the link once its last call has ended.
func (l *link) retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = true
	l.endIfIdle()
}

// endIfIdle closes a retired link without calls, in the background: closing waits for the peer. l.mu is held.
func (l *link) endIfIdle() {
	if l.retired && !l.ended && l.active == 0 {
		l.ended = true
		l.closed.Go(func() { l.channel.Close() })
	}
}

// handshaken are the credentials of a connection whose handshake is over.
type handshaken struct{ info credentials.AuthInfo }

func (h handshaken) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return conn, h.info, nil
}

func (h handshaken) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are a client's")
}

// Info tells the library which scheme requests have.
func (h handshaken) Info() credentials.ProtocolInfo {
	if _, ok := h.info.(credentials.TLSInfo); ok {
		return credentials.ProtocolInfo{SecurityProtocol: "tls"}
	}
	return credentials.ProtocolInfo{SecurityProtocol: "insecure"}
}

func (h handshaken) Clone() credentials.TransportCredentials { return h }
func (h handshaken) OverrideServerName(string) error         { return nil }

// plainInfo is what is known of a connection without TLS.
type plainInfo struct{}

func (plainInfo) AuthType() string { return "insecure" }
