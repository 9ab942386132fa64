//go:build http3

package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// builtHTTP3 says whether this build speaks HTTP/3.
const builtHTTP3 = true

// quicConfig leaves all limits of time to the contexts of calls. While a connection is open it is kept alive: a server
// that is slow to answer must not be taken for one that is gone.
var quicConfig = &quic.Config{
	HandshakeIdleTimeout: time.Hour,
	KeepAlivePeriod:      10 * time.Second,
	MaxIncomingStreams:   -1, // the server has none to open (RFC 9114, section 6.1)
}

// datagrams are the HTTP/3 connections that all users of a client share. A call goes to the one with the fewest calls
// under way. At the server's limit of streams calls wait in the library, as a part of TTFB.
//
// Requests are handed to single connections: the library's own pool sends a request again that a server rejected.
// Nothing is sent before the handshake is complete, so nothing can be replayed (0-RTT; RFC 8446, section 8).
type datagrams struct {
	client *Client
	limit  int // of connections

	mu     sync.Mutex
	conns  []*association
	closed bool
}

// association is one QUIC connection, or the place of one that is being opened.
type association struct {
	ready chan struct{} // closed when it is open, or could not be opened
	err   error         // why not
	quic  *quic.Conn
	http  *http3.ClientConn
	shut  func()
	asked atomic.Bool // for the client's certificate

	// Guarded by datagrams.mu.
	calls   int // under way or waiting
	leaving bool
	dropped bool // no longer among those that take calls
}

func newDatagrams(c *Client, limit int) *datagrams { return &datagrams{client: c, limit: limit} }

// lost tells whether the association takes no further calls. datagrams.mu is held.
func (a *association) lost() bool {
	select {
	case <-a.ready:
		return a.err != nil || a.leaving || a.quic.Context().Err() != nil
	default:
		return false
	}
}

// release closes a dropped association that no call uses. datagrams.mu is held.
func (a *association) release() {
	if a.dropped && a.calls == 0 && a.shut != nil {
		a.shut()
		a.shut = nil
	}
}

// take counts a call in. open says that the caller is to open the connection.
func (p *datagrams) take() (a *association, open bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, drivers.Fail(drivers.Aborted, errors.New("the client is closed"))
	}
	p.conns = slices.DeleteFunc(p.conns, func(a *association) bool {
		if !a.lost() {
			return false
		}
		a.dropped = true
		a.release()
		return true
	})
	for _, c := range p.conns {
		if a == nil || c.calls < a.calls {
			a = c
		}
	}
	if a == nil || a.calls > 0 && len(p.conns) < p.limit {
		a, open = &association{ready: make(chan struct{})}, true
		p.conns = append(p.conns, a)
	}
	a.calls++
	return a, open, nil
}

// give counts a call out.
func (p *datagrams) give(a *association) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.calls--
	a.release()
}

// leave says that the server takes no further requests on a connection.
func (p *datagrams) leave(a *association) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.leaving = true
}

func (p *datagrams) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, a := range p.conns {
		a.dropped = true
		a.release()
	}
	p.conns = nil
}

// open fills an association.
func (p *datagrams) open(ctx context.Context, a *association, t *drivers.Timing) error {
	defer close(a.ready)
	c := p.client
	config := c.place.TLS.Clone()
	config.NextProtos = []string{http3.NextProtoH3}
	config.MinVersion = tls.VersionTLS13
	if config.ServerName == "" {
		config.ServerName = c.place.Host
	}
	certificate := config.GetClientCertificate
	config.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		a.asked.Store(true)
		if certificate == nil {
			return new(tls.Certificate), nil
		}
		return certificate(r)
	}
	a.err = c.dialer.Each(ctx, t, func(ctx context.Context, addr netip.AddrPort) error {
		socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IP(unspecified(addr).AsSlice())})
		if err != nil {
			return err
		}
		transport := &quic.Transport{Conn: socket}
		conn, err := transport.Dial(ctx, net.UDPAddrFromAddrPort(addr), config, quicConfig)
		if err != nil {
			transport.Close()
			socket.Close()
			if ctx.Err() == nil {
				if failure, ok := quicFailure("connecting", err); ok {
					return failure
				}
			}
			return err
		}
		a.quic = conn
		a.http = (&http3.Transport{DisableCompression: true, MaxResponseHeaderBytes: maxHead}).NewClientConn(conn)
		a.shut = func() {
			conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
			transport.Close()
			socket.Close()
		}
		return nil
	})
	return a.err
}

func unspecified(addr netip.AddrPort) netip.Addr {
	if addr.Addr().Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// probe opens a connection and closes it. The handshake ends before the server has judged the client's certificate, so
// where it asks for one its verdict is waited for: a moment, because nothing comes if it is content.
func (p *datagrams) probe(ctx context.Context, t *drivers.Timing) error {
	start := time.Now()
	a := &association{ready: make(chan struct{})}
	if err := p.open(ctx, a, t); err != nil {
		return err
	}
	defer a.shut()
	if !a.asked.Load() {
		return nil
	}
	select {
	case <-a.quic.Context().Done():
	case <-time.After(min(max(4*time.Since(start), 200*time.Millisecond), time.Second)):
		return nil
	case <-ctx.Done():
		return nil
	}
	err := context.Cause(a.quic.Context())
	failure, ok := quicFailure("connecting", err)
	if !ok {
		failure = dial.Fail(ctx, "connecting", err)
	}
	if p.client.place.TLS.GetClientCertificate == nil {
		failure = drivers.Fail(drivers.KindOf(failure), fmt.Errorf("%w (the server asks for a client certificate: name one in tls.cert and tls.key)", failure))
	}
	return failure
}

// association takes a connection for a call, and opens it if need be.
func (s *Session) association(ctx context.Context, c *Client, in *drivers.Input, out *drivers.Outcome) (*association, error) {
	p := c.datagrams
	for {
		a, open, err := p.take()
		if err != nil {
			return nil, err
		}
		if open {
			dialCtx, cancel := context.WithDeadline(ctx, in.Deadline)
			err := p.open(dialCtx, a, &out.Timing)
			cancel()
			if err != nil {
				p.give(a)
				return nil, err
			}
			out.Opened = true
			return a, nil
		}
		start := time.Now()
		err = s.await(ctx, a, in)
		dial.Add(&out.Wait, time.Since(start))
		if err == nil {
			return a, nil
		}
		p.give(a)
		if a.failed() && ofTheCall(a.err) {
			continue // the next one dials
		}
		return nil, err
	}
}

// await waits for a connection that another call opens.
func (s *Session) await(ctx context.Context, a *association, in *drivers.Input) error {
	select {
	case <-a.ready:
		return a.err
	default:
	}
	ring := s.alarm.set(in.Deadline)
	defer s.alarm.stop()
	select {
	case <-a.ready:
		return a.err
	case <-ring:
		return drivers.Fail(drivers.Timeout, errors.New("timed out waiting for a connection"))
	case <-ctx.Done():
		return dial.Fail(ctx, "waiting for a connection", ctx.Err())
	}
}

func (a *association) failed() bool {
	select {
	case <-a.ready:
		return a.err != nil
	default:
		return false
	}
}

// http3 makes one attempt over HTTP/3.
func (s *Session) http3(ctx context.Context, c *Client, r *Request, in *drivers.Input, out *drivers.Outcome, sink Sink) error {
	for {
		a, err := s.association(ctx, c, in, out)
		if err != nil {
			return err
		}
		again, err := s.carry(ctx, a, "HTTP/3", r, in, out, sink)
		if again {
			c.datagrams.leave(a)
		}
		c.datagrams.give(a)
		if !again {
			return err
		}
	}
}

func (a *association) RoundTrip(r *http.Request) (*http.Response, error) { return a.http.RoundTrip(r) }
func (a *association) spare()                                            {}
func (a *association) cause() error                                      { return nil }

// unsent goes by the text: the library has a type of its own for this, which it does not export.
func (a *association) unsent(err error) bool {
	return strings.HasPrefix(err.Error(), "http3: conn unusable")
}

// quicFailure makes the error of an operation over QUIC. ok is false for errors that are not of QUIC.
func quicFailure(doing string, err error) (failure error, ok bool) {
	fail := func(kind drivers.Failure, format string, args ...any) (error, bool) {
		return drivers.Fail(kind, fmt.Errorf("%s: %w", doing, fmt.Errorf(format, args...))), true
	}
	// The code of TLS's alert no_application_protocol, as QUIC shows it (RFC 9001, section 4.8).
	const noProtocol = 0x100 + 120
	if e, ok := errors.AsType[*quic.StreamError](err); ok {
		switch code := http3.ErrCode(e.ErrorCode); {
		case code == http3.ErrCodeRequestRejected:
			return fail(drivers.Refused, "the server refused the stream")
		case e.Remote:
			return fail(drivers.Reset, "the server reset the stream (%s)", code)
		default:
			return fail(drivers.Protocol, "%s", shorten(err.Error()))
		}
	}
	if e, ok := errors.AsType[*quic.TransportError](err); ok {
		switch {
		case e.ErrorCode == noProtocol:
			return fail(drivers.Protocol, "HTTP/3 was asked for, but the server does not speak it there")
		case e.ErrorCode.IsCryptoError():
			cause := errors.Unwrap(onlyCause{e})
			if cause == nil {
				cause = errors.New(shorten(e.Error()))
			}
			return fail(drivers.TLS, "TLS handshake: %w", dial.Explain(cause))
		case e.ErrorCode == quic.ConnectionRefused:
			return fail(drivers.Refused, "the server refused the connection")
		case e.Remote:
			return fail(drivers.Reset, "the server closed the connection: %s", shorten(e.Error()))
		}
		return fail(drivers.Protocol, "%s", shorten(e.Error()))
	}
	if e, ok := errors.AsType[*quic.ApplicationError](err); ok {
		return fail(drivers.Reset, "the server closed the connection (%s)", http3.ErrCode(e.ErrorCode))
	}
	if _, ok := errors.AsType[*quic.HandshakeTimeoutError](err); ok {
		return fail(drivers.Timeout, "timed out")
	}
	if _, ok := errors.AsType[*quic.IdleTimeoutError](err); ok {
		return fail(drivers.Reset, "the connection was lost")
	}
	if _, ok := errors.AsType[*quic.StatelessResetError](err); ok {
		return fail(drivers.Reset, "the server does not know the connection any more")
	}
	if _, ok := errors.AsType[*quic.VersionNegotiationError](err); ok {
		return fail(drivers.Protocol, "the server speaks another version of QUIC")
	}
	return nil, false
}

// onlyCause unwraps a transport error to what TLS said, without the closed connection that it is as well.
type onlyCause struct{ *quic.TransportError }

func (c onlyCause) Unwrap() error {
	for _, err := range c.TransportError.Unwrap() {
		if err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	return nil
}
