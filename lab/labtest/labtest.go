// Package labtest has the ends of connections between which tests put routes and relays: services of few lines, and clients
// that give up in time.
package labtest

import (
	"io"
	"net"
	"testing"
	"time"
)

// patience is how long a connection of Dial may take for all that a test does with it.
const patience = 20 * time.Second

// Serve runs handle for every connection, which it closes when handle returns, and returns the address. It stops with the
// test.
func Serve(t testing.TB, handle func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				handle(c)
			}()
		}
	}()
	return l.Addr().String()
}

// Echo sends back what it is sent.
func Echo(c *net.TCPConn) { io.Copy(c, c) }

// Reset waits for a byte and resets the connection.
func Reset(c *net.TCPConn) {
	io.ReadFull(c, make([]byte, 1))
	c.SetLinger(0)
}

// Nobody returns an address at which nobody listens.
func Nobody(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l.Addr().String()
}

// Dial connects to an address. The connection fails what takes longer than a test should, and is closed with it.
func Dial(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, patience/2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}
