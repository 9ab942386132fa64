package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// Sink takes the body of an answer as it arrives, unpacked if the request asked for compression. p is valid during
// the call only. An error ends the call.
type Sink interface {
	Take(p []byte) error
}

// Observer is a Sink that looks at the answer while it arrives.
type Observer interface {
	Sink
	// Begin is called when the head of the final answer has come, before its body. It may limit how much of the body is
	// read. An error ends the call.
	Begin(*Response) error
	// Arrive tells how many bytes of the body have come, packed or not.
	Arrive(n int)
}

// Session is one user of a client. It is never used concurrently.
type Session struct {
	client *Client
	buffer int // how much is read at once
	own    connection
	abroad map[*Client]*connection // where redirects led
	jar    *cookiejar.Jar
	alarm  alarm
	ticket ticket

	// The call under way.
	msg      message
	out      []byte // its head, or all of it
	sent     string // the method that was written
	head     fasthttp.ResponseHeader
	body     body
	resp     Response
	incoming incoming
	gzip     unpacker

	// What HTTP/2 needs, kept from call to call.
	limit    *limit
	flow     flow
	request  *http.Request // with limit as its context
	template *http.Request // that request was made of

	// The context of the last call is watched until another one comes, so that a call under the same context, as
	// all of a run are, needs no watch of its own.
	done  <-chan struct{}
	stop  func() bool
	mu    sync.Mutex
	watch int      // the number of the watch: an earlier one has nothing to say
	busy  net.Conn // what the call waits for, if it is a connection of its own
	ends  *limit   // or a stream
}

// Open makes the session of one user. It dials nothing. bulk is for large answers, which are read in larger pieces.
func (c *Client) Open(bulk bool) *Session {
	s := &Session{client: c, buffer: readBuffer}
	if bulk {
		s.buffer = bulkBuffer
	}
	return s
}

// Close releases the session's connections.
func (s *Session) Close() error {
	if s.stop != nil {
		s.stop()
	}
	s.own.close()
	for _, c := range s.abroad {
		c.close()
	}
	return nil
}

// at is the session's connection to another place.
func (s *Session) at(c *Client) *connection {
	if s.abroad == nil {
		s.abroad = map[*Client]*connection{}
	}
	con := s.abroad[c]
	if con == nil {
		con = new(connection)
		s.abroad[c] = con
	}
	return con
}

// heed makes ctx interrupt what the session waits for.
func (s *Session) heed(ctx context.Context) {
	done := ctx.Done()
	if done == s.done && s.stop != nil {
		return
	}
	if s.stop != nil {
		s.stop()
	}
	s.mu.Lock()
	s.watch++
	watch := s.watch
	s.mu.Unlock()
	s.done = done
	s.stop = context.AfterFunc(ctx, func() { s.interrupt(watch, ctx.Err()) })
}

func (s *Session) interrupt(watch int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if watch != s.watch {
		return
	}
	if s.busy != nil {
		s.busy.SetDeadline(time.Unix(1, 0))
	}
	if s.ends != nil {
		s.ends.fire(err)
	}
}

// attend names what is to be interrupted. The caller sets a connection's deadline afterwards, and in any case looks
// at the context then, so that no interruption is lost between the two.
func (s *Session) attend(conn net.Conn, stream *limit) {
	s.mu.Lock()
	s.busy, s.ends = conn, stream
	s.mu.Unlock()
}

func (s *Session) leave() { s.attend(nil, nil) }

// Response is the answer to the last exchange. It is valid until the next one.
type Response struct {
	Status int
	// Protocol is "HTTP/1.1", "HTTP/2" or "HTTP/3".
	Protocol string
	// Bytes is the length of the body as it came, packed or not.
	Bytes int64
	// Limited says that the body was read only as far as the request's MaxBytes.
	Limited bool
	// Hops are the redirects that led to this answer, in order.
	Hops []Hop

	promised int64 // what the head says of the body's length; -1 if nothing
	limit    int64 // how much of the body is read; 0: all of it
	head1    *fasthttp.ResponseHeader
	head2    http.Header
	excerpt  excerpt
}

// Hop is a redirect that was followed.
type Hop struct {
	Status   int
	Location string // as the server named it
}

func (r *Response) begin(status int, protocol string) {
	*r = Response{Status: status, Protocol: protocol, Hops: r.Hops, promised: -1, excerpt: excerpt{text: r.excerpt.text[:0]}}
}

// trail names the redirects that led to an answer, or to a failure instead of one: "after 302 to /b".
func (r *Response) trail() string {
	var hops []string
	for _, h := range r.Hops {
		hops = append(hops, fmt.Sprintf("%d to %s", h.Status, clean(h.Location)))
	}
	return "after " + strings.Join(hops, ", ")
}

// StopAfter ends the body after n bytes, and the connection with it if there is more: for Observer.Begin. n is not 0.
func (r *Response) StopAfter(n int64) { r.limit = n }

// Header returns the value of a header field, "" if the answer does not have it.
func (r *Response) Header(name string) string { return r.header(name) }

// Range sets which bytes the following exchanges ask for, if their requests are ranged: from first to last, both
// included. last < 0 asks for all from first on (RFC 9110, section 14.2).
func (s *Session) Range(first, last int64) { s.msg.first, s.msg.last = first, last }

// Response returns the answer to the last exchange.
func (s *Session) Response() *Response { return &s.resp }

// Headers returns the header fields by name in lower case; several fields of one name are joined by ", ".
func (r *Response) Headers() map[string]string {
	m := map[string]string{}
	add := func(name, value string) {
		name = strings.ToLower(name)
		if before, ok := m[name]; ok {
			value = before + ", " + value
		}
		m[name] = value
	}
	if r.head1 != nil {
		for k, v := range r.head1.All() {
			add(string(k), string(v))
		}
	}
	for k, vs := range r.head2 {
		for _, v := range vs {
			add(k, v)
		}
	}
	return m
}

func (r *Response) header(name string) string {
	if r.head1 != nil {
		return string(r.head1.Peek(name))
	}
	return r.head2.Get(name)
}

// compressed tells whether the body is gzip, and encoded whether it is in any encoding, without allocating.
func (r *Response) compressed() (gzip, encoded bool) {
	if r.head1 != nil {
		e := r.head1.ContentEncoding()
		return string(e) == "gzip" || string(e) == "x-gzip", len(e) > 0 && string(e) != "identity"
	}
	e := r.head2.Get("Content-Encoding")
	return e == "gzip" || e == "x-gzip", e != "" && e != "identity"
}

// Exchange makes one attempt at a request, and hands the answer's body to sink. It returns when all of the answer has
// been read, at in.Deadline, or soon after ctx is done. nil means that there is an answer, whatever it says; any other
// error is an *drivers.Error. out is filled as far as the exchange got, except for its judgement and Answer.
func (s *Session) Exchange(ctx context.Context, r *Request, in *drivers.Input, out *drivers.Outcome, sink Sink) error {
	s.resp.Hops = s.resp.Hops[:0]
	s.resp.begin(0, "")
	if err := ctx.Err(); err != nil {
		return dial.Fail(ctx, "sending the request", err)
	}
	s.heed(ctx)
	if r.fixed == nil {
		if err := s.msg.evaluate(r, in); err != nil {
			return err
		}
	} else {
		s.msg.replaced = false
	}
	client := s.client
	for hop := 0; ; hop++ {
		if r.Cookies {
			s.sendCookies()
		}
		err := s.attempt(ctx, client, r, in, out, sink)
		if err != nil && hop > 0 {
			return drivers.Fail(drivers.KindOf(err), fmt.Errorf("%s: %w", s.resp.trail(), err))
		}
		if err != nil {
			return err
		}
		if r.Cookies {
			s.keepCookies()
		}
		location, redirected := s.redirect(r)
		if !redirected {
			return nil
		}
		if hop == r.Redirects {
			return drivers.Fail(drivers.Protocol, fmt.Errorf("more than %d redirects: the last one was to %s", r.Redirects, clean(location)))
		}
		s.resp.Hops = append(s.resp.Hops, Hop{s.resp.Status, location})
		if r.fixed != nil && !s.msg.replaced {
			if err := s.msg.evaluate(r, in); err != nil {
				return err
			}
		}
		if err := s.msg.follow(s.resp.Status, location); err != nil {
			return err
		}
		client = s.client
		if !s.msg.place.same(client.place) {
			if client, err = client.at(s.msg.place); err != nil {
				return drivers.Fail(drivers.Protocol, err)
			}
		}
	}
}

// redirect tells whether the answer is a redirect to be followed, and where it leads.
func (s *Session) redirect(r *Request) (location string, ok bool) {
	if r.Redirects == 0 {
		return "", false
	}
	switch s.resp.Status {
	case 301, 302, 303, 307, 308:
		location = s.resp.header("Location")
	}
	return location, location != ""
}

// attempt makes one hop over the version that the client speaks.
func (s *Session) attempt(ctx context.Context, c *Client, r *Request, in *drivers.Input, out *drivers.Outcome, sink Sink) error {
	for {
		switch c.speaks() {
		case HTTP1:
			return s.http1(ctx, c, r, in, out, sink, nil)
		case HTTP3:
			return s.http3(ctx, c, r, in, out, sink)
		}
		stream, other, err := s.stream(ctx, c, in, out)
		switch {
		case err != nil:
			return err
		case other != nil:
			return s.http1(ctx, c, r, in, out, sink, other)
		case stream == nil:
			continue // another call has found out that the server speaks HTTP/1.1
		}
		again, err := s.http2(ctx, c, stream, r, in, out, sink)
		if !again {
			return err
		}
	}
}

// pieces is a body that comes piece by piece; io.EOF follows the last.
type pieces interface {
	next() ([]byte, error)
}

// incoming is the body under way, counted, limited and timed.
type incoming struct {
	ctx     context.Context
	request *Request
	pieces  pieces
	conn    net.Conn // whose deadline ends a stall; nil if the pieces see to that themselves
	in      *drivers.Input
	out     *drivers.Outcome
	resp    *Response
	session *Session
	watch   Observer // nil: nobody looks

	rest []byte // of the last piece, when it is read as a stream
	err  error  // why there is no further piece; io.EOF at the end
}

// next returns the next piece. Errors other than io.EOF are of type *drivers.Error.
func (b *incoming) next() ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	r := b.request
	if b.resp.Limited {
		b.err = io.EOF
		return nil, b.err
	}
	if r.Stall > 0 && b.conn != nil {
		b.conn.SetReadDeadline(earlier(b.in.Deadline, time.Now().Add(r.Stall)))
		if err := b.ctx.Err(); err != nil {
			b.err = dial.Fail(b.ctx, "reading the answer", err)
			return nil, b.err
		}
	}
	p, err := b.pieces.next()
	if err != nil {
		if err != io.EOF {
			err = b.session.cut(b.ctx, r, b.in, err)
		}
		b.err = err
		return nil, err
	}
	if limit := b.resp.limit; limit > 0 && b.resp.Bytes+int64(len(p)) >= limit {
		p = p[:limit-b.resp.Bytes]
		b.resp.Limited = true
	}
	b.resp.Bytes += int64(len(p))
	b.out.BytesIn += int64(len(p))
	if b.in.Received != nil {
		b.in.Received.Add(int64(len(p)))
	}
	if b.watch != nil {
		b.watch.Arrive(len(p))
	}
	return p, nil
}

// Read and ReadByte give the body as a stream, for unpacking.
func (b *incoming) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		var err error
		if b.rest, err = b.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *incoming) ReadByte() (byte, error) {
	for len(b.rest) == 0 {
		var err error
		if b.rest, err = b.next(); err != nil {
			return 0, err
		}
	}
	c := b.rest[0]
	b.rest = b.rest[1:]
	return c, nil
}

// drain reads a body to its end.
func (s *Session) drain(ctx context.Context, r *Request, b pieces, conn net.Conn, in *drivers.Input, out *drivers.Outcome, sink Sink) error {
	if _, follow := s.redirect(r); follow {
		sink = nil // a redirect's own body is nobody's
	}
	s.resp.limit = r.MaxBytes
	watch, _ := sink.(Observer)
	if watch != nil {
		if err := watch.Begin(&s.resp); err != nil {
			return err
		}
	}
	s.incoming = incoming{ctx: ctx, request: r, pieces: b, conn: conn, in: in, out: out, resp: &s.resp, session: s, watch: watch}
	gzip, encoded := s.resp.compressed()
	unpack := r.Gzip && gzip
	s.resp.excerpt.begin(s.resp.Status, encoded && !unpack)
	if unpack {
		return s.gzip.drain(&s.incoming, sink)
	}
	for {
		p, err := s.incoming.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.resp.hand(p, sink); err != nil {
			return err
		}
	}
}

// hand passes on a piece of the body as it is meant to be read.
func (r *Response) hand(p []byte, sink Sink) error {
	r.excerpt.take(p)
	if sink == nil {
		return nil
	}
	return sink.Take(p)
}

// far is how much of the body has come, for messages.
func (s *Session) far() string {
	if s.resp.promised >= 0 {
		return fmt.Sprintf("%d of %d bytes", s.resp.Bytes, s.resp.promised)
	}
	return fmt.Sprintf("%d bytes", s.resp.Bytes)
}

// cut makes the error of a body that did not come to its end.
func (s *Session) cut(ctx context.Context, r *Request, in *drivers.Input, err error) error {
	far := s.far()
	doing := "reading the answer: " + far
	if _, ok := errors.AsType[*drivers.Error](err); ok {
		return err
	}
	if ctx.Err() != nil {
		return dial.Fail(ctx, doing, err)
	}
	switch dial.Classify(err) {
	case drivers.Timeout:
		if r.Stall > 0 && time.Now().Before(in.Deadline) {
			return drivers.Fail(drivers.Timeout, fmt.Errorf("%s, then nothing for %v", doing, r.Stall))
		}
	case drivers.Reset:
		return drivers.Fail(drivers.Reset, fmt.Errorf("the connection ended before the whole answer: %s", far))
	}
	return dial.Fail(ctx, doing, err)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// sendCookies puts the cookies that the user's jar has for the message into it.
func (s *Session) sendCookies() {
	s.msg.cookies = ""
	if s.jar == nil {
		s.jar, _ = cookiejar.New(nil)
	}
	u, err := s.msg.url()
	if err != nil {
		return
	}
	var b strings.Builder
	for _, c := range s.jar.Cookies(u) {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(c.Name + "=" + c.Value)
	}
	s.msg.cookies = b.String()
}

// keepCookies takes the cookies of the answer into the user's jar.
func (s *Session) keepCookies() {
	h := http.Header{}
	if s.resp.head1 != nil {
		for _, v := range s.resp.head1.Cookies() {
			h.Add("Set-Cookie", string(v))
		}
	} else {
		h["Set-Cookie"] = s.resp.head2["Set-Cookie"]
	}
	if u, err := s.msg.url(); err == nil {
		s.jar.SetCookies(u, (&http.Response{Header: h}).Cookies())
	}
}
