package relay

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/coder/websocket"
)

// stream is the end of a pipe through the relay. Bytes travel in binary messages. WebSocket knows no half-closed
// connection, so an empty message stands for the end of what one side sends; a pipe that goes without it was broken off.
type stream struct {
	conn    *websocket.Conn
	message io.Reader // under way, or nil
	begun   bool      // something of message was read
	ended   bool
}

func newStream(conn *websocket.Conn) *stream {
	conn.SetReadLimit(-1)
	return &stream{conn: conn}
}

func (s *stream) Read(p []byte) (int, error) {
	for {
		if s.ended {
			return 0, io.EOF
		}
		if s.message == nil {
			_, message, err := s.conn.Reader(context.Background())
			if err != nil {
				return 0, brokenOff(err)
			}
			s.message, s.begun = message, false
		}
		n, err := s.message.Read(p)
		switch {
		case errors.Is(err, io.EOF):
			s.message = nil
			s.ended = n == 0 && !s.begun
		case err != nil:
			return n, brokenOff(err)
		}
		s.begun = true
		if n > 0 {
			return n, nil
		}
	}
}

// brokenOff makes sure that an error is not taken for an end.
func brokenOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *stream) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n := min(len(p), largest)
		if err := s.conn.Write(context.Background(), websocket.MessageBinary, p[:n]); err != nil {
			return written, err
		}
		written += n
		p = p[n:]
	}
	return written, nil
}

func (s *stream) CloseWrite() error {
	return s.conn.Write(context.Background(), websocket.MessageBinary, nil)
}

func (s *stream) Reset() error { return s.conn.CloseNow() }
func (s *stream) Close() error { return s.conn.CloseNow() }

// newClient makes a client that dials anew for every WebSocket, and no proxy.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}
