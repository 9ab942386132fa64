package drivertest

import (
	"net"
	"sync"
	"testing"
)

// RefusedAddr is an address of 127.0.0.1 where nobody listens.
func RefusedAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Peer is a raw TCP server for answers that no real server gives.
type Peer struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	opened int
}

// NewPeer starts a server on 127.0.0.1 that hands every connection to serve, each in its own goroutine, and closes it
// when serve returns. It stops when the test ends.
func NewPeer(t testing.TB, serve func(net.Conn)) *Peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Peer{listener: l, conns: map[net.Conn]struct{}{}}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.opened++
			p.conns[c] = struct{}{}
			p.mu.Unlock()
			p.wg.Go(func() {
				serve(c)
				c.Close()
				p.mu.Lock()
				delete(p.conns, c)
				p.mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

// Addr is where the peer listens, as host:port.
func (p *Peer) Addr() string { return p.listener.Addr().String() }

// Opened is how many connections were accepted so far.
func (p *Peer) Opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

// NewGarbage starts a peer that answers every piece it receives with bytes that belong to no protocol.
func NewGarbage(t testing.TB) *Peer {
	garbage := make([]byte, 1024)
	for i := range garbage {
		garbage[i] = byte(i*7919>>3) | 0x80
	}
	return NewPeer(t, func(c net.Conn) {
		buf := make([]byte, 4096)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			if _, err := c.Write(garbage); err != nil {
				return
			}
		}
	})
}
