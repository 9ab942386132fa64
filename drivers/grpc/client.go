package grpc

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// Client is one server in one round: its lines, over which users are spread.
type Client struct {
	endpoint *endpoint
	dialer   *dial.Dialer
	tally    dial.Tally
	lines    []line
	users    atomic.Uint64
	closing  sync.WaitGroup // links that are being closed
}

func newClient(e *endpoint, pool drivers.Pool) *Client {
	c := &Client{endpoint: e, lines: make([]line, max(pool.Connections, 1))}
	c.dialer = &dial.Dialer{Host: e.host, Port: e.port, Tally: &c.tally}
	return c
}

// Addresses implements drivers.Addressed. A connection on which the server was asked by reflection is among them.
func (c *Client) Addresses() []drivers.Address { return c.tally.Addresses() }

// Probe implements drivers.Client. Where the schema comes by reflection and is not known yet, it is asked for on the
// same connection.
func (c *Client) Probe(ctx context.Context) error {
	if c.endpoint.served.waits() {
		return c.reflect(ctx)
	}
	var t drivers.Timing
	l, err := c.dial(ctx, &t)
	if err != nil {
		return err
	}
	l.retire()
	return nil
}

// Open implements drivers.Client. Users are spread over the connections in turn.
func (c *Client) Open(context.Context) (drivers.Session, error) {
	n := c.users.Add(1) - 1
	return newSession(c, &c.lines[n%uint64(len(c.lines))]), nil
}

// Close implements drivers.Client.
func (c *Client) Close() error {
	for i := range c.lines {
		if l := c.lines[i].link; l != nil {
			l.retire()
		}
	}
	c.closing.Wait()
	return nil
}

var (
	_ drivers.Client    = (*Client)(nil)
	_ drivers.Addressed = (*Client)(nil)
)
