package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// carrier is a connection of HTTP/2 or HTTP/3, which carries many exchanges at the same time.
type carrier interface {
	// RoundTrip is the library's own.
	RoundTrip(*http.Request) (*http.Response, error)
	// spare gives up what was reserved for a request that is not sent after all.
	spare()
	// unsent tells of an error of RoundTrip that nothing was sent, because the connection had ended before.
	unsent(error) bool
	// cause is why the connection ended, where that says more than such an error; nil otherwise.
	cause() error
}

func (m *multiplexed) RoundTrip(r *http.Request) (*http.Response, error) { return m.conn.RoundTrip(r) }
func (m *multiplexed) spare()                                            { m.conn.Release() }
func (m *multiplexed) cause() error                                      { return m.watch.cause() }

func (m *multiplexed) unsent(err error) bool {
	return strings.Contains(err.Error(), "http2: client conn not usable")
}

// http2 makes one attempt on a stream that was reserved. again says that nothing was sent because the connection had
// ended before.
func (s *Session) http2(ctx context.Context, c *Client, m *multiplexed, r *Request, in *drivers.Input, out *drivers.Outcome, sink Sink) (again bool, err error) {
	defer c.streams.give(m)
	return s.carry(ctx, m, "HTTP/2", r, in, out, sink)
}

// carry makes one attempt over a connection. again says that nothing was sent because it had ended before.
func (s *Session) carry(ctx context.Context, over carrier, protocol string, r *Request, in *drivers.Input, out *drivers.Outcome, sink Sink) (again bool, err error) {
	start := time.Now()
	out.Protocol = protocol
	s.limit = s.limit.begin(in.Deadline)
	defer s.limit.end()
	s.attend(nil, s.limit)
	defer s.leave()
	if ctx.Err() != nil {
		over.spare()
		return false, dial.Fail(ctx, "sending the request", ctx.Err())
	}
	request, sent, err := s.prepare(r)
	if err != nil {
		over.spare()
		return false, err
	}
	response, err := over.RoundTrip(request)
	first := time.Now()
	if sent != nil {
		defer func() {
			n := sent.read.Load()
			out.BytesOut += n
			if n < sent.Size() {
				s.msg.body = nil // it may be read still: the next call needs memory of its own
			}
		}()
	}
	if err != nil {
		if over.unsent(err) && !out.Opened && s.limit.Err() == nil {
			return true, nil
		}
		dial.Add(&out.TTFB, first.Sub(start))
		if cause := over.cause(); cause != nil && s.limit.Err() == nil {
			err = cause
		}
		return false, s.failedStream("waiting for the answer", err)
	}
	defer s.hangUp(response.Body)
	dial.Add(&out.TTFB, first.Sub(start))
	s.resp.begin(response.StatusCode, protocol)
	s.resp.head2 = response.Header
	s.resp.promised = response.ContentLength
	out.Status = response.StatusCode

	buf := buffers.get(s.buffer)
	defer buffers.put(buf)
	s.flow.begin(s, response.Body, *buf, r.Stall)
	err = s.drain(ctx, r, &s.flow, nil, in, out, sink)
	dial.Add(&out.Transfer, time.Since(first))
	return false, err
}

// hangUp ends a stream. After the deadline nothing is waited for: telling the server may have to wait for others that
// write to the connection.
func (s *Session) hangUp(body io.Closer) {
	if s.limit.Err() != nil {
		go body.Close()
		return
	}
	body.Close()
}

// prepare makes the request of a call for net/http. One without a body that is the same for every call is made once:
// it is only read.
func (s *Session) prepare(r *Request) (*http.Request, *payloadReader, error) {
	template, payload := r.template, r.payload
	if template == nil || s.msg.replaced {
		var err error
		if template, err = s.msg.request(s.msg.place); err != nil {
			return nil, nil, err
		}
		payload = s.msg.body
	}
	if len(payload) == 0 {
		if s.template != template || s.request.Context() != s.limit {
			s.template, s.request = template, template.WithContext(s.limit)
		}
		return s.request, nil, nil
	}
	request, sent := template.WithContext(s.limit), &payloadReader{}
	sent.Reset(payload)
	request.Body = sent
	return request, sent, nil
}

// payloadReader is a request's body. Without GetBody it can't be sent twice. It counts what was taken from it.
type payloadReader struct {
	bytes.Reader
	read atomic.Int64
}

func (p *payloadReader) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.read.Add(int64(n))
	return n, err
}

// WriteTo is not passed on: all of the body has to go through Read.
func (p *payloadReader) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{p})
}

func (*payloadReader) Close() error { return nil }

// flow is the body of an answer over HTTP/2 or HTTP/3.
type flow struct {
	session *Session
	body    io.Reader
	buf     []byte
	err     error
	stall   time.Duration
	timer   *time.Timer
}

func (f *flow) begin(s *Session, body io.Reader, buf []byte, stall time.Duration) {
	f.session, f.body, f.buf, f.err, f.stall = s, body, buf, nil, stall
	f.timer = nil // the last one's limit may not be this call's
}

// errStalled ends a stream on which nothing comes any more.
var errStalled = errors.New("the answer stalled")

func (f *flow) next() ([]byte, error) {
	if f.err != nil {
		return nil, f.explain(f.err) // now that what came with it has been counted
	}
	if f.stall > 0 {
		if f.timer == nil {
			limit := f.session.limit
			f.timer = time.AfterFunc(f.stall, func() { limit.fire(errStalled) })
		} else {
			f.timer.Reset(f.stall)
		}
	}
	n, err := f.body.Read(f.buf)
	if f.timer != nil {
		f.timer.Stop()
	}
	if n > 0 {
		f.err = err
		return f.buf[:n], nil
	}
	return nil, f.explain(err)
}

func (f *flow) explain(err error) error {
	switch {
	case err == nil, err == io.EOF:
		return err
	case f.session.limit.Err() == errStalled:
		return drivers.Fail(drivers.Timeout, fmt.Errorf("reading the answer: %s, then nothing for %v", f.session.far(), f.stall))
	}
	return f.session.failedStream("reading the answer: "+f.session.far(), err)
}

// streamError has the fields of the error of one stream in net/http, which errors.As fills in.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return fmt.Sprintf("stream error %d", e.Code) }

const refusedStream = 7 // RFC 9113, section 7

// failedStream makes the error of a call over HTTP/2 or HTTP/3.
func (s *Session) failedStream(doing string, err error) error {
	if e, ok := errors.AsType[*drivers.Error](err); ok {
		return e
	}
	if s.limit.Err() != nil {
		return dial.Fail(s.limit, doing, err)
	}
	if failure, ok := quicFailure(doing, err); ok {
		return failure
	}
	text := err.Error()
	var se streamError
	if errors.As(err, &se) {
		switch {
		case se.Code == refusedStream:
			return drivers.Fail(drivers.Refused, fmt.Errorf("%s: the server refused the stream", doing))
		case strings.Contains(text, "received from peer"):
			return drivers.Fail(drivers.Reset, fmt.Errorf("%s: the server reset the stream (%s)", doing, code(text)))
		}
		return drivers.Fail(drivers.Protocol, fmt.Errorf("%s: %s", doing, shorten(text)))
	}
	switch {
	case strings.Contains(text, "graceful shutdown GOAWAY"), strings.Contains(text, "received GOAWAY from server"):
		return drivers.Fail(drivers.Refused, fmt.Errorf("%s: the server is leaving (GOAWAY) and did not take the request", doing))
	case strings.Contains(text, "server sent GOAWAY and closed"):
		return drivers.Fail(drivers.Reset, fmt.Errorf("%s: the server closed the connection (GOAWAY)", doing))
	case strings.Contains(text, "client connection lost"), strings.Contains(text, "client conn is closed"),
		strings.Contains(text, "force closed"), strings.Contains(text, "not be established"), strings.Contains(text, "not usable"):
		return drivers.Fail(drivers.Reset, fmt.Errorf("%s: the connection was lost", doing))
	}
	switch kind := dial.Classify(err); kind {
	case drivers.Reset:
		return drivers.Fail(kind, fmt.Errorf("%s: the connection ended before the whole answer", doing))
	case drivers.Protocol:
		return drivers.Fail(kind, fmt.Errorf("%s: %s", doing, shorten(strings.TrimPrefix(text, "http2: "))))
	}
	return dial.Fail(s.limit, doing, err)
}

// code is the name of the code in the text of a stream's error: "stream error: stream ID 3; CANCEL; received ...".
func code(text string) string {
	if parts := strings.Split(text, "; "); len(parts) > 1 {
		return parts[1]
	}
	return "unknown code"
}

// buffers are reused between the calls of all sessions: a session over HTTP/2 needs one only while it reads.
var buffers bufferPools

type bufferPools struct{ small, bulk sync.Pool }

func (p *bufferPools) of(size int) *sync.Pool {
	if size > readBuffer {
		return &p.bulk
	}
	return &p.small
}

func (p *bufferPools) get(size int) *[]byte {
	if b, ok := p.of(size).Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, size)
	return &b
}

func (p *bufferPools) put(b *[]byte) { p.of(len(*b)).Put(b) }
