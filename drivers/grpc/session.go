package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// protocol is what every answer came over.
const protocol = "HTTP/2"

// session is one user. Its buffers are reused from call to call.
type session struct {
	client *Client
	line   *line
	turn   *turn

	encoder encoder
	scratch []byte
	sending []*outgoing
	answer  answer

	// Of the messages that arrive during a call.
	received *atomic.Int64
	first    time.Time // when the first message had arrived; zero: none has
	count    atomic.Int64
	bytes    int64 // unpacked
	arrived  int64 // as they travelled
	keep     keeping

	sent int64 // bytes of messages as they travelled, of a call with compression
}

// keeping says which messages of an answer are kept.
type keeping uint8

const (
	keepNone keeping = iota
	keepLast
	keepAll
)

func newSession(c *Client, l *line) *session {
	return &session{client: c, line: l, turn: &turn{ready: make(chan struct{}, 1)}}
}

// Close implements drivers.Session. Connections belong to the client.
func (s *session) Close() error { return nil }

// Do implements drivers.Session.
func (s *session) Do(ctx context.Context, dc drivers.Call, in *drivers.Input, out *drivers.Outcome) error {
	c := dc.(*call)
	p := c.plan.Load()
	if p == nil {
		return drivers.Fail(drivers.Protocol, errors.New("the server was not asked for its descriptors"))
	}
	s.begin(c, p, in)
	out.Answer = &s.answer
	// The deadline is the call's own from here on, and the server is told (grpc-timeout).
	ctx, cancel := context.WithDeadline(ctx, in.Deadline)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return dial.Fail(ctx, "calling", err)
	}
	if err := s.encode(p, in); err != nil {
		return drivers.Fail(drivers.Expectation, fmt.Errorf("message: %w", err))
	}
	if c.compressed {
		ctx = context.WithValue(ctx, owner{}, s)
	}
	ctx, err := s.withMetadata(ctx, c, in)
	if err != nil {
		return drivers.Fail(drivers.Expectation, err)
	}

	for {
		l, err := s.acquire(ctx, out)
		if err != nil {
			return err
		}
		out.Protocol = protocol
		err = s.attempt(ctx, cancel, l, in, out)
		l.release()
		if !isSpent(err) {
			return err
		}
		// Nothing of the call was sent: the connection was gone before the call could begin. A call opens one
		// connection at most, so this ends.
		if out.Opened {
			return l.wire.loss("the connection was opened")
		}
	}
}

func (s *session) begin(c *call, p *plan, in *drivers.Input) {
	s.answer.reset(c, p)
	s.received, s.first, s.bytes, s.arrived, s.sent = in.Received, time.Time{}, 0, 0, 0
	s.count.Store(0)
	s.keep = keepNone
	switch {
	case c.keepAll:
		s.keep = keepAll
	case c.keepLast:
		s.keep = keepLast
	}
}

// encode readies the request messages.
func (s *session) encode(p *plan, in *drivers.Input) error {
	s.sending = s.sending[:0]
	for _, m := range p.messages {
		if m.ready != nil {
			s.sending = append(s.sending, m.ready)
			continue
		}
		b, err := m.program.append(s.scratch[:0], &s.encoder, in)
		s.scratch = b[:0]
		if err != nil {
			return err
		}
		// The library may hold on to the bytes after the call, so the buffer that is reused is not what it gets.
		s.sending = append(s.sending, &outgoing{mem.BufferSlice{mem.Copy(b, mem.DefaultBufferPool())}})
	}
	return nil
}

// withMetadata adds the request's metadata to ctx.
func (s *session) withMetadata(ctx context.Context, c *call, in *drivers.Input) (context.Context, error) {
	if len(c.metadata) == 0 {
		return ctx, nil
	}
	if c.fixedMetadata != nil {
		return metadata.NewOutgoingContext(ctx, c.fixedMetadata), nil
	}
	md := make(metadata.MD, len(c.metadata))
	for i := range c.metadata {
		h := &c.metadata[i]
		v, err := h.text(in)
		if err != nil {
			return ctx, fmt.Errorf("metadata.%s: %w", h.key, err)
		}
		md[h.key] = append(md[h.key], v)
	}
	return metadata.NewOutgoingContext(ctx, md), nil
}

// take notes a message of the answer as it arrives, and keeps a copy if it is read.
func (s *session) take(data mem.BufferSlice) {
	if s.count.Add(1) == 1 {
		s.first = time.Now()
	}
	n := data.Len()
	s.bytes += int64(n)
	if !s.answer.call.compressed {
		s.arrive(int64(n))
	}
	if s.keep == keepNone {
		return
	}
	a := &s.answer
	if s.keep == keepLast {
		a.data, a.ends = a.data[:0], a.ends[:0]
	}
	for _, b := range data {
		a.data = append(a.data, b.ReadOnlyData()...)
	}
	a.ends = append(a.ends, len(a.data))
}

// arrive counts the bytes of a message as they travelled.
func (s *session) arrive(n int64) {
	s.arrived += n
	if s.received != nil {
		s.received.Add(n)
	}
}

// attempt makes the call on a link and fills the outcome.
func (s *session) attempt(ctx context.Context, cancel func(), l *link, in *drivers.Input, out *drivers.Outcome) error {
	a := &s.answer
	resets := l.wire.resets.Load()
	start := time.Now()
	stream, cut, err := s.exchange(ctx, cancel, l, start, out)
	end := time.Now()
	if isSpent(err) {
		return err
	}
	a.count, a.bytes = s.count.Load(), s.bytes
	out.BytesIn = s.arrived
	if !s.first.IsZero() {
		out.TTFB, out.Transfer = s.first.Sub(start), end.Sub(s.first)
	}
	c := a.call
	failed := err != nil && !cut
	if stream != nil && (c.keepHeaders || failed) {
		a.headers, _ = stream.Header()
	}
	if stream != nil && !cut && (c.keepTrailers || failed) {
		a.trailers = stream.Trailer()
	}
	if failed {
		st := status.Convert(err)
		m := marks{
			ctx: ctx, deadline: in.Deadline, wire: l.wire, max: c.maxMessage, reset: l.wire.resets.Load() != resets,
			headers: len(a.headers) > 0, trailers: len(a.trailers) > 0, packed: c.compressed,
		}
		for _, o := range s.sending {
			m.sent = max(m.sent, int64(o.parts.Len()))
		}
		if failure := m.failure(st); failure != nil {
			if drivers.KindOf(failure) == drivers.Refused && s.first.IsZero() {
				out.TTFB = end.Sub(start) // the refusal is what the server had to say
			}
			return failure
		}
		a.code, a.text = st.Code(), st.Message()
	}
	if s.first.IsZero() {
		out.TTFB, out.Transfer = end.Sub(start), 0
	}
	out.Status, out.Success = int(a.code), a.code == codes.OK
	return nil
}

// exchange sends the messages of the call and receives those of its answer. The stream is nil when it did not begin; cut
// tells that it was ended here because a limit of the plan was reached. cancel ends ctx.
//
// Unary calls go the way of streams: that is the only way to tell the library that a stream which was begun must not be
// begun again, and it costs no more than its own way for them.
func (s *session) exchange(ctx context.Context, cancel func(), l *link, start time.Time, out *drivers.Outcome) (stream grpc.ClientStream, cut bool, err error) {
	c, p := s.answer.call, s.answer.plan
	stream, err = l.channel.NewStream(ctx, p.desc, c.path, p.options...)
	if err != nil {
		return nil, false, err
	}
	stream.Context() // commits the attempt: a server that refuses it is not asked again
	switch {
	case !p.desc.ClientStreams || !p.desc.ServerStreams:
		out.BytesOut = s.send(stream)
	default:
		done := make(chan struct{})
		go func() {
			defer close(done)
			out.BytesOut = s.send(stream)
		}()
		// Messages and outcome are the session's, so the sender ends with the call.
		defer func() {
			cancel()
			<-done
		}()
	}
	if c.streamDuration > 0 {
		timer := time.AfterFunc(c.streamDuration-time.Since(start), func() {
			// A stream that has brought nothing yet runs on: to be silent is no success.
			if s.count.Load() > 0 {
				cancel()
			}
		})
		defer timer.Stop()
	}
	for {
		err = stream.RecvMsg(s)
		switch {
		case err == io.EOF || err == nil && !p.desc.ServerStreams:
			return stream, false, nil
		case err != nil:
			// The timer has ended the stream, unless it was the caller or the deadline.
			return stream, s.reached(start) && ctx.Err() == context.Canceled && status.Code(err) == codes.Canceled, err
		case s.reached(start):
			cancel()
			return stream, true, nil
		}
	}
}

// send sends the messages and returns how many bytes they had as they travelled. An error of sending only says that the
// stream has ended; receiving tells why.
func (s *session) send(stream grpc.ClientStream) int64 {
	for _, m := range s.sending {
		if stream.SendMsg(m) != nil {
			return s.sent
		}
		if !s.answer.call.compressed {
			s.sent += int64(m.parts.Len())
		}
	}
	stream.CloseSend()
	return s.sent
}

// reached tells whether the stream has reached a limit of the plan.
func (s *session) reached(start time.Time) bool {
	c, n := s.answer.call, s.count.Load()
	return c.messagesLimit > 0 && n >= c.messagesLimit || c.streamDuration > 0 && n > 0 && time.Since(start) >= c.streamDuration
}

var _ drivers.Session = (*session)(nil)
