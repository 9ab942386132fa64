package grpc

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/planrun/planrun/drivers/drivertest"
)

// rawServer speaks HTTP/2 frame by frame, so that it can do what no server of a library does.
type rawServer struct {
	*drivertest.Peer
	calls atomic.Int64 // streams that were begun
}

// rawConn is one connection of a rawServer. Its methods are for the handler and may be called from any goroutine.
type rawConn struct {
	mu     sync.Mutex
	framer *http2.Framer
	conn   net.Conn
	buf    bytes.Buffer
	enc    *hpack.Encoder
}

// serveRaw calls handle in a goroutine of its own for every stream whose request headers were read.
func serveRaw(t testing.TB, settings []http2.Setting, handle func(c *rawConn, stream uint32)) *rawServer {
	s := &rawServer{}
	s.Peer = drivertest.NewPeer(t, func(conn net.Conn) {
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(conn, preface); err != nil {
			return
		}
		c := &rawConn{framer: http2.NewFramer(conn, conn), conn: conn}
		c.enc = hpack.NewEncoder(&c.buf)
		c.write(func() { c.framer.WriteSettings(settings...) })
		var wg sync.WaitGroup
		defer wg.Wait()
		for {
			f, err := c.framer.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					c.write(func() { c.framer.WriteSettingsAck() })
				}
			case *http2.PingFrame:
				if !f.IsAck() {
					data := f.Data
					c.write(func() { c.framer.WritePing(true, data) })
				}
			case *http2.HeadersFrame:
				s.calls.Add(1)
				id := f.StreamID
				wg.Go(func() { handle(c, id) })
			}
		}
	})
	return s
}

func (c *rawConn) write(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// headers writes a HEADERS frame of names and values in turn.
func (c *rawConn) headers(stream uint32, end bool, pairs ...string) {
	c.write(func() {
		c.buf.Reset()
		for i := 0; i < len(pairs); i += 2 {
			c.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
		}
		c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.buf.Bytes(), EndHeaders: true, EndStream: end})
	})
}

// message writes a gRPC message in a DATA frame.
func (c *rawConn) message(stream uint32, end bool, payload ...byte) {
	c.write(func() {
		c.framer.WriteData(stream, end, append([]byte{0, 0, 0, 0, byte(len(payload))}, payload...))
	})
}

func (c *rawConn) data(stream uint32, end bool, data string) {
	c.write(func() { c.framer.WriteData(stream, end, []byte(data)) })
}

func (c *rawConn) reset(stream uint32, code http2.ErrCode) {
	c.write(func() { c.framer.WriteRSTStream(stream, code) })
}

func (c *rawConn) goaway(last uint32, code http2.ErrCode, text string) {
	c.write(func() { c.framer.WriteGoAway(last, code, []byte(text)) })
}

// answer is a whole answer with a message of a few bytes.
func (c *rawConn) answer(stream uint32) {
	c.headers(stream, false, ":status", "200", "content-type", "application/grpc")
	c.message(stream, false, 10, 1, 'x') // Reply{text: "x"}
	c.headers(stream, true, "grpc-status", "0")
}
