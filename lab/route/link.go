package route

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Dial connects to what a link leads to.
type Dial func(context.Context) (Stream, error)

// To dials an address over TCP.
func To(address string) Dial {
	return func(ctx context.Context) (Stream, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return TCP(conn.(*net.TCPConn)), nil
	}
}

// Link is the near end of a line to one service: a listener on 127.0.0.1, at a port of the kernel's choice.
//
// The kernel answers a client's SYN before the link can delay anything, so connecting itself takes no time. The link makes
// up for it: it holds a new connection's first bytes until the handshake would have been over, one RTT after the SYN, and
// connects to the service when the client's ACK would have reached it, half an RTT later. What the client sees first, an
// answer or a TLS handshake, is thus later by the RTT that connecting should have taken.
type Link struct {
	line     *Line
	dial     Dial
	listener *net.TCPListener

	ctx         context.Context
	cancel      context.CancelFunc
	running     sync.WaitGroup
	connections atomic.Int64
}

// Listen opens a link. It serves until Close.
func (l *Line) Listen(dial Dial) (*Link, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("open a route: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &Link{line: l, dial: dial, listener: listener, ctx: ctx, cancel: cancel}
	k.running.Go(k.accept)
	return k, nil
}

// Address is host and port of the link.
func (k *Link) Address() string { return k.listener.Addr().String() }

// Connections is how many connections the link has accepted.
func (k *Link) Connections() int64 { return k.connections.Load() }

// Close breaks off all connections and returns when nothing runs any more.
func (k *Link) Close() error {
	k.cancel()
	err := k.listener.Close()
	k.running.Wait()
	return err
}

func (k *Link) accept() {
	for {
		conn, err := k.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, most likely: those who wait stay in the kernel's queue until some are free.
			select {
			case <-time.After(5 * time.Millisecond):
			case <-k.ctx.Done():
				return
			}
			continue
		}
		k.connections.Add(1)
		accepted := k.line.clock.Now()
		k.running.Go(func() { k.serve(TCP(conn), accepted) })
	}
}

// serve carries one connection from its first byte to its end.
func (k *Link) serve(client Stream, accepted time.Duration) {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	defer client.Close()
	// Reads and writes that are under way end when the connection is over.
	defer context.AfterFunc(ctx, func() { client.Close() })()

	if k.line.straight() {
		server, err := k.dial(ctx)
		if err != nil {
			client.Reset()
			return
		}
		Join(ctx, client, server)
		return
	}

	way := k.line.way
	there := newFlow(k.line, forth, client, accepted+2*way, ctx.Done())
	var takers sync.WaitGroup
	defer takers.Wait()
	defer cancel()
	takers.Go(there.take)

	waiter := k.line.clock.NewWaiter()
	if !waiter.Until(accepted+3*way, ctx.Done()) {
		return
	}
	server, err := k.dial(ctx)
	if err != nil {
		waiter.Until(k.line.clock.Now()+way, ctx.Done())
		client.Reset()
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { server.Close() })()
	again := newFlow(k.line, back, server, 0, ctx.Done())
	takers.Go(again.take)
	both(ctx, cancel, client, server, func() ending { return there.give(server) }, func() ending { return again.give(client) })
}
