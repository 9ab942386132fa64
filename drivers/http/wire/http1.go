package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

const (
	// readBuffer is what a connection reads at once, and how large a head it takes without growing.
	readBuffer = 16 << 10
	// bulkBuffer is the same for downloads.
	bulkBuffer = 256 << 10
	// maxHead is how large a head of an answer may be.
	maxHead = 1 << 20
	// fresh is how long after an answer a connection is taken to be open without asking the system.
	fresh = time.Millisecond
	// greeting is how every answer begins.
	greeting = "HTTP/"
)

// connection is an HTTP/1.1 connection, or the place of one that has yet to be opened.
type connection struct {
	conn   net.Conn // nil: not open
	socket *socket  // beneath TLS; nil otherwise
	idle   *dial.Idle
	reader *bufio.Reader
	source source

	answered time.Time // when the last answer had been read
	proven   bool      // it was found open after an answer before
}

// source is what the reader reads: bytes left over from a smaller reader, then the connection.
type source struct {
	pending []byte
	conn    net.Conn
}

func (s *source) Read(p []byte) (int, error) {
	if len(s.pending) > 0 {
		n := copy(p, s.pending)
		s.pending = s.pending[n:]
		return n, nil
	}
	return s.conn.Read(p)
}

// adopt takes over an open connection.
func (c *connection) adopt(conn net.Conn, buffer int) {
	c.conn, c.socket, c.proven = conn, nil, false
	below := conn
	if tc, ok := conn.(*tls.Conn); ok {
		if s, ok := tc.NetConn().(*socket); ok {
			c.socket, c.idle = s, s.idle
		}
	}
	if c.socket == nil {
		if p, ok := below.(*preceded); ok {
			below = p.Conn
		}
		c.idle = dial.NewIdle(below)
	}
	c.source = source{conn: conn}
	if c.reader == nil || c.reader.Size() < buffer {
		c.reader = bufio.NewReaderSize(&c.source, buffer)
	} else {
		c.reader.Reset(&c.source)
	}
}

// grow gives the reader more room, for a head that does not fit. It is false when the head is too large.
func (c *connection) grow() bool {
	size := c.reader.Size() * 4
	if size > maxHead {
		return false
	}
	pending, _ := c.reader.Peek(c.reader.Buffered())
	c.source.pending = append(append([]byte(nil), pending...), c.source.pending...)
	c.reader = bufio.NewReaderSize(&c.source, size)
	return true
}

// usable tells whether the connection can take another request: open, and silent since the last answer.
//
// The system is asked, which costs as much as a tenth of a short call, except where there is nothing to learn: a
// connection whose answer ended a moment ago was not idle, so no idle limit of the server can have closed it, and a
// close that is under way would as likely cross with the request anyway. Each connection is asked once in any case,
// after its first answer, because there are servers that close after every answer without saying so.
func (c *connection) usable() bool {
	switch {
	case c.conn == nil || c.reader.Buffered() > 0 || len(c.source.pending) > 0:
		return false
	case c.proven && time.Since(c.answered) < fresh:
		return true
	}
	c.proven = c.silent()
	return c.proven
}

// silent asks the system.
func (c *connection) silent() bool {
	if !c.idle.Readable() {
		return true
	}
	if c.socket == nil {
		return false
	}
	// TLS has messages of its own, such as session tickets: the connection is usable if they are all there is.
	c.socket.peek = true
	defer func() { c.socket.peek = false }()
	c.conn.SetReadDeadline(time.Time{}) // the last call's may have passed, and nothing is waited for
	_, err := c.reader.Peek(1)
	return errors.Is(err, errNothing)
}

func (c *connection) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// socket is the connection beneath TLS. While peek is set, reading from it does not wait.
type socket struct {
	net.Conn
	idle *dial.Idle
	peek bool
}

func quiet(conn net.Conn) net.Conn {
	below := conn
	if p, ok := conn.(*preceded); ok {
		below = p.Conn
	}
	return &socket{Conn: conn, idle: dial.NewIdle(below)}
}

func (s *socket) Read(p []byte) (int, error) {
	if s.peek && !s.idle.Readable() {
		return 0, errNothing
	}
	return s.Conn.Read(p)
}

// errNothing is temporary, so that TLS does not take it for the end of the connection.
var errNothing error = nothing{}

type nothing struct{}

func (nothing) Error() string   { return "nothing to read" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }

// shared are HTTP/1.1 connections that all users of a client take turns with.
type shared struct {
	open  chan *connection // were used, and are open unless the server has closed them
	spare chan *connection // have yet to be opened

	mu  sync.Mutex
	all []*connection
}

func newShared(n int) *shared {
	s := &shared{open: make(chan *connection, n), spare: make(chan *connection, n)}
	for range n {
		c := new(connection)
		s.all = append(s.all, c)
		s.spare <- c
	}
	return s
}

func (s *shared) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.all {
		c.close()
	}
}

// give returns a connection.
func (s *shared) give(c *connection) {
	if c.conn == nil {
		s.spare <- c
	} else {
		s.open <- c
	}
}

// take waits for a connection, an open one first.
func (s *shared) take(ctx context.Context, timer *alarm, deadline time.Time) (*connection, error) {
	select {
	case c := <-s.open:
		return c, nil
	default:
	}
	select {
	case c := <-s.spare:
		return c, nil
	default:
	}
	ring := timer.set(deadline)
	defer timer.stop()
	select {
	case c := <-s.open:
		return c, nil
	case c := <-s.spare:
		return c, nil
	case <-ring:
		return nil, drivers.Fail(drivers.Timeout, errors.New("timed out waiting for a free connection"))
	case <-ctx.Done():
		return nil, dial.Fail(ctx, "waiting for a free connection", ctx.Err())
	}
}

// alarm is a timer that is kept from call to call.
type alarm struct{ timer *time.Timer }

func (a *alarm) set(at time.Time) <-chan time.Time {
	if a.timer == nil {
		a.timer = time.NewTimer(time.Until(at))
	} else {
		a.timer.Reset(time.Until(at))
	}
	return a.timer.C
}

func (a *alarm) stop() { a.timer.Stop() }

// http1 makes one attempt over HTTP/1.1. adopted, if not nil, is a connection that was opened to find out which
// version the server speaks.
func (s *Session) http1(ctx context.Context, c *Client, r *Request, in *drivers.Input, out *drivers.Outcome, sink Sink, adopted net.Conn) error {
	con := &s.own
	switch {
	case c.shared != nil:
		start := time.Now()
		var err error
		con, err = c.shared.take(ctx, &s.alarm, in.Deadline)
		dial.Add(&out.Wait, time.Since(start))
		if err != nil {
			if adopted != nil {
				adopted.Close()
			}
			return err
		}
		defer c.shared.give(con)
	case c != s.client:
		con = s.at(c)
	}
	if adopted != nil {
		con.close()
		con.adopt(adopted, s.buffer)
	} else if !con.usable() {
		con.close()
		nc, err := s.open(ctx, c, in, out, HTTP1)
		if err != nil {
			return err
		}
		out.Opened = true
		con.adopt(nc, s.buffer)
	}
	out.Protocol = "HTTP/1.1"

	reuse, err := s.converse(ctx, con, r, in, out, sink)
	if !reuse || !r.KeepAlive {
		con.close()
	}
	return err
}

// open dials within the call's deadline.
func (s *Session) open(ctx context.Context, c *Client, in *drivers.Input, out *drivers.Outcome, version Version) (net.Conn, error) {
	ctx, cancel := context.WithDeadline(ctx, in.Deadline)
	defer cancel()
	conn, _, err := c.open(ctx, version, dial.Handshake, &out.Timing)
	return conn, err
}

// converse writes the request and reads the answer. reuse says whether the connection can take another one.
func (s *Session) converse(ctx context.Context, con *connection, r *Request, in *drivers.Input, out *drivers.Outcome, sink Sink) (reuse bool, err error) {
	start := time.Now()
	s.attend(con.conn, nil)
	defer s.leave()
	con.conn.SetDeadline(in.Deadline)
	if err := ctx.Err(); err != nil {
		return true, dial.Fail(ctx, "sending the request", err)
	}

	werr := s.write(con.conn, r, out)
	if werr != nil && dial.Classify(werr) != drivers.Reset {
		return false, dial.Fail(ctx, "sending the request", werr)
	}
	// A server may answer before it has read all of a request, and close: its answer counts.
	head, first, err := s.readHead(con)
	if err != nil {
		if werr != nil {
			err = werr
		}
		begun := !first.IsZero()
		if !begun {
			first = time.Now()
		}
		dial.Add(&out.TTFB, first.Sub(start))
		if dial.Classify(err) == drivers.Reset {
			return false, dial.Fail(ctx, "waiting for the answer", noAnswer{err, begun})
		}
		return false, dial.Fail(ctx, "waiting for the answer", err)
	}
	dial.Add(&out.TTFB, first.Sub(start))
	s.resp.begin(head.StatusCode(), "HTTP/1.1")
	s.resp.head1 = head
	out.Status = head.StatusCode()

	b := &s.body
	b.begin(con.reader, s.sent == "HEAD", head)
	s.resp.promised = b.total
	err = s.drain(ctx, r, b, con.conn, in, out, sink)
	con.answered = time.Now()
	dial.Add(&out.Transfer, con.answered.Sub(first))
	if err != nil {
		return false, err
	}
	return werr == nil && b.done && b.mode != untilClose && !head.ConnectionClose() && head.StatusCode() != 101, nil
}

// noAnswer says that the connection ended before the head of an answer had come.
type noAnswer struct {
	error
	begun bool
}

func (e noAnswer) Unwrap() error { return e.error }

func (e noAnswer) Error() string {
	switch {
	case !errors.Is(e.error, io.EOF) && !errors.Is(e.error, io.ErrUnexpectedEOF):
		return "the connection broke: " + e.error.Error()
	case e.begun:
		return "the server closed the connection within the head of its answer"
	}
	return "the server closed the connection before it answered"
}

// write sends the request.
func (s *Session) write(conn net.Conn, r *Request, out *drivers.Outcome) error {
	if r.fixed != nil && !s.msg.replaced {
		s.sent = r.Method
		n, err := conn.Write(r.fixed)
		out.BytesOut += int64(max(0, n-(len(r.fixed)-r.fixedBody)))
		return err
	}
	s.sent = s.msg.method
	s.out = s.msg.appendHTTP1(s.out[:0], s.msg.place, r.KeepAlive)
	head := len(s.out)
	body := s.msg.body
	if len(body) <= 64<<10 {
		s.out = append(s.out, body...) // one packet where it fits
		body = nil
	}
	n, err := conn.Write(s.out)
	out.BytesOut += int64(max(0, n-head))
	if err == nil && len(body) > 0 {
		n, err = conn.Write(body)
		out.BytesOut += int64(n)
	}
	return err
}

// readHead reads the head of the final answer, and when its first byte came.
func (s *Session) readHead(con *connection) (head *fasthttp.ResponseHeader, first time.Time, err error) {
	head = &s.head
	for {
		if _, err = con.reader.Peek(1); err != nil {
			return nil, first, err
		}
		first = time.Now()
		if err = greets(con.reader); err != nil {
			return nil, first, err
		}
		for {
			err = head.Read(con.reader)
			if _, small := errors.AsType[*fasthttp.ErrSmallBuffer](err); !small {
				break
			}
			if !con.grow() {
				return nil, first, drivers.Fail(drivers.Protocol, fmt.Errorf("the head of the answer is larger than %d KiB", maxHead>>10))
			}
		}
		if err != nil {
			return nil, first, headError(err)
		}
		// Interim answers, such as 103, precede the final one (RFC 9110, section 15.2).
		if code := head.StatusCode(); code >= 200 || code == 101 {
			return head, first, nil
		}
	}
}

// greets tells whether what has come can be the beginning of an answer. The parser waits for the end of a line, which
// garbage may never have.
func greets(r *bufio.Reader) error {
	b, _ := r.Peek(min(r.Buffered(), len(greeting)))
	if b[0] == '\r' || b[0] == '\n' || string(b) == greeting[:len(b)] {
		return nil
	}
	return drivers.Fail(drivers.Protocol, fmt.Errorf("the answer is not HTTP/1.1: it begins with %q", b))
}

// headError tells a head that broke off from one that is malformed, and leaves out what the parser quotes.
func headError(err error) error {
	switch {
	case errors.Is(err, fasthttp.ErrTimeout):
		return context.DeadlineExceeded
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	}
	if kind := dial.Classify(err); kind != drivers.Protocol {
		return err
	}
	text := strings.TrimPrefix(err.Error(), "error when reading response headers: ")
	text, _, _ = strings.Cut(text, ": buffer size=")
	return drivers.Fail(drivers.Protocol, fmt.Errorf("the answer is not HTTP/1.1: %s", shorten(text)))
}

func shorten(s string) string {
	if len(s) > 160 {
		return s[:160] + "..."
	}
	return s
}
