// Package wire sends one HTTP request and reads one answer, over HTTP/1.1, HTTP/2 or HTTP/3, for the drivers that speak HTTP.
//
// What it holds to:
//
//   - A request is written once. No library underneath retries: HTTP/1.1 is written by this package and read by
//     fasthttp's parser; HTTP/2 is net/http's and HTTP/3 quic-go's, one client connection at a time, whose own pools
//     are not used.
//   - A connection that the server closed while it was idle is replaced before anything is written to it. If the close
//     crosses with the request, the call fails as a reset.
//   - The deadline covers waiting, dialling, writing and reading.
//   - Bodies are handed over piece by piece and not kept here.
//   - A warm call over HTTP/1.1 does not allocate.
package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// Connector makes clients. It remembers which protocol an endpoint negotiated, so that later rounds know from the
// start whether users share connections. The zero Connector is ready to use, and safe for concurrent use.
type Connector struct {
	negotiated sync.Map // endpoint key to *atomic.Uint32 holding a Version
}

// Client is one place in one round.
type Client struct {
	place     *Place
	connector *Connector
	users     drivers.Pool
	dialer    *dial.Dialer
	tally     dial.Tally
	// version is what was negotiated, if the plan leaves it to the server; Auto until it is known.
	version *atomic.Uint32
	streams *streams // HTTP/2
	shared  *shared  // HTTP/1.1 connections that users share; nil if each has its own

	datagrams *datagrams // HTTP/3

	mu        sync.Mutex
	elsewhere map[string]*Client // where redirects led
}

// Connect makes the client of an endpoint.
func (c *Connector) Connect(ep drivers.Endpoint, pool drivers.Pool) (*Client, error) {
	place, ok := ep.Config.(*Place)
	if !ok {
		return nil, fmt.Errorf("the endpoint %s is not one of HTTP", ep.Name)
	}
	version, _ := c.negotiated.LoadOrStore(ep.Key, new(atomic.Uint32))
	client := &Client{place: place, connector: c, users: pool, version: version.(*atomic.Uint32)}
	client.dialer = &dial.Dialer{Host: place.Host, Port: place.Port, Unix: place.Unix}
	if place.Proxy != nil {
		client.dialer = &dial.Dialer{Host: place.Proxy.Hostname(), Port: portOf(place.Proxy)}
	}
	client.dialer.Tally = &client.tally
	client.streams = newStreams(client, max(pool.Connections, 1))
	client.datagrams = newDatagrams(client, max(pool.Connections, 1))
	if pool.Connections > 0 {
		client.shared = newShared(pool.Connections)
	}
	return client, nil
}

// speaks is the version that calls use; Auto if only a connection can tell.
func (c *Client) speaks() Version {
	switch {
	case c.place.Version != Auto:
		return c.place.Version
	case !c.place.Secure:
		return HTTP1
	}
	return Version(c.version.Load())
}

// probeLimit ends a probe that nothing else ends.
const probeLimit = 30 * time.Second

// Probe implements drivers.Client.
func (c *Client) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var t drivers.Timing
	if c.speaks() == HTTP3 {
		return c.datagrams.probe(ctx, &t)
	}
	conn, version, err := c.open(ctx, c.speaks(), dial.HandshakeJudged, &t)
	if err != nil {
		return err
	}
	if c.place.Version == Auto {
		c.version.Store(uint32(version))
	}
	conn.Close() // a server that has hung up already was reached all the same
	return nil
}

// Close releases everything.
func (c *Client) Close() error {
	c.mu.Lock()
	others := c.elsewhere
	c.elsewhere = nil
	c.mu.Unlock()
	for _, o := range others {
		o.Close()
	}
	c.streams.close()
	c.datagrams.close()
	if c.shared != nil {
		c.shared.close()
	}
	return nil
}

// Addresses implements drivers.Addressed: with a proxy, it is the proxy that is connected to. Where redirects led is
// among them.
func (c *Client) Addresses() []drivers.Address { return c.tally.Addresses() }

// at returns the client of another place, for redirects. Its connections are counted with those of c.
func (c *Client) at(p *Place) (*Client, error) {
	ep := p.Endpoint()
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.elsewhere[ep.Key]; ok {
		return o, nil
	}
	o, err := c.connector.Connect(ep, c.users)
	if err != nil {
		return nil, err
	}
	o.dialer.Tally = c.dialer.Tally
	if c.elsewhere == nil {
		c.elsewhere = map[string]*Client{}
	}
	c.elsewhere[ep.Key] = o
	return o, nil
}

// handshake is dial.Handshake, or dial.HandshakeJudged for a probe.
type handshake func(context.Context, net.Conn, *tls.Config, string, *drivers.Timing) (*tls.Conn, error)

// open opens a connection on which version (Auto: HTTP/1.1 or HTTP/2, whichever is negotiated) can be spoken, and
// says which it is. The error is an *drivers.Error.
func (c *Client) open(ctx context.Context, version Version, handshake handshake, t *drivers.Timing) (net.Conn, Version, error) {
	p := c.place
	conn, err := c.dialer.Dial(ctx, t)
	if p.Proxy != nil {
		if err == nil && (p.Secure || version == HTTP2) {
			conn, err = c.tunnel(ctx, conn, p, t)
		}
		if err != nil {
			return nil, 0, drivers.Fail(drivers.KindOf(err), fmt.Errorf("proxy %s: %w", p.Proxy.Host, err))
		}
	}
	if err != nil {
		return nil, 0, err
	}
	if !p.Secure {
		if version == HTTP2 {
			return conn, HTTP2, nil
		}
		return conn, HTTP1, nil
	}
	config := p.TLS.Clone()
	switch version {
	case HTTP1:
		config.NextProtos = []string{"http/1.1"}
	default:
		// HTTP/1.1 is offered even where HTTP/2 is demanded, so that a server without it says so.
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	tc, err := handshake(ctx, quiet(conn), config, p.Host, t)
	if err != nil {
		return nil, 0, err
	}
	negotiated := HTTP1
	if tc.ConnectionState().NegotiatedProtocol == "h2" {
		negotiated = HTTP2
	}
	if version == HTTP2 && negotiated != HTTP2 {
		tc.Close()
		return nil, 0, drivers.Fail(drivers.Protocol, errors.New("HTTP/2 was asked for, but the server speaks HTTP/1.1 only"))
	}
	return tc, negotiated, nil
}

// tunnel asks a proxy for a connection to the place (RFC 9110, section 9.3.6). What it takes belongs to connecting.
func (c *Client) tunnel(ctx context.Context, conn net.Conn, p *Place, t *drivers.Timing) (net.Conn, error) {
	start := time.Now()
	defer func() { dial.Add(&t.Connect, time.Since(start)) }()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	authority := net.JoinHostPort(p.Host, p.Port)
	request := "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n"
	if a := proxyAuthorization(p.Proxy); a != "" {
		request += "Proxy-Authorization: " + a + "\r\n"
	}
	var header fasthttp.ResponseHeader
	br := bufio.NewReader(conn)
	_, err := conn.Write([]byte(request + "\r\n"))
	if err == nil {
		_, err = br.Peek(1)
	}
	if err == nil {
		err = greets(br)
	}
	if err == nil {
		err = header.Read(br)
	}
	if err != nil {
		conn.Close()
		return nil, dial.Fail(ctx, "asking for a connection", headError(err))
	}
	if code := header.StatusCode(); code/100 != 2 {
		conn.Close()
		return nil, drivers.Fail(drivers.Refused, fmt.Errorf("it answered %d to CONNECT %s", code, authority))
	}
	if n := br.Buffered(); n > 0 {
		early, _ := br.Peek(n)
		return &preceded{Conn: conn, pending: early}, nil
	}
	return conn, nil
}

// preceded is a connection of which some bytes were read already.
type preceded struct {
	net.Conn
	pending []byte
}

func (c *preceded) Read(p []byte) (int, error) {
	if len(c.pending) > 0 {
		n := copy(p, c.pending)
		c.pending = c.pending[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

func proxyAuthorization(proxy *url.URL) string {
	if proxy.User == nil {
		return ""
	}
	password, _ := proxy.User.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password))
}
