package sql

import (
	"context"
	"sync"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// client is one database in one round.
type client struct {
	database *database
	dialer   *dial.Dialer
	tally    dial.Tally
	// shared has the connections that users share; nil if every user has its own.
	shared chan *slot
	// background are cancellations that are under way.
	background sync.WaitGroup
}

// slot is the place of a connection, which may not be open.
type slot struct{ conn connection }

func newClient(d *database, pool drivers.Pool) *client {
	c := &client{database: d}
	c.dialer = &dial.Dialer{Host: d.host, Port: d.port, Unix: d.socket, Tally: &c.tally}
	if pool.Connections > 0 && pool.Connections < pool.Users {
		c.shared = make(chan *slot, pool.Connections)
		for range pool.Connections {
			c.shared <- &slot{}
		}
	}
	return c
}

// Addresses implements drivers.Addressed: a file has none.
func (c *client) Addresses() []drivers.Address { return c.tally.Addresses() }

// Probe logs in once.
func (c *client) Probe(ctx context.Context) error {
	var out drivers.Outcome
	conn, err := c.open(ctx, time.Time{}, &out)
	if err != nil {
		return err
	}
	conn.limit(time.Now().Add(farewell))
	conn.close()
	return nil
}

// Open makes a session.
func (c *client) Open(context.Context) (drivers.Session, error) {
	s := &session{client: c}
	if c.shared == nil {
		s.own = &slot{}
	}
	return s, nil
}

// Close closes the connections that users shared, and waits for what was cancelled at the server.
func (c *client) Close() error {
	if c.shared != nil {
		for range cap(c.shared) {
			(<-c.shared).leave()
		}
	}
	c.background.Wait()
	return nil
}

// farewell is how long taking leave of a server may take.
const farewell = time.Second

// leave closes the slot's connection in an orderly way.
func (s *slot) leave() {
	if s.conn != nil {
		s.conn.limit(time.Now().Add(farewell))
		s.conn.close()
		s.conn = nil
	}
}

// abandon closes the slot's connection at once.
func (s *slot) abandon(busy bool) {
	if s.conn != nil {
		s.conn.abandon(busy)
		s.conn = nil
	}
}

// open opens a connection until deadline, if there is one, and measures it.
func (c *client) open(ctx context.Context, deadline time.Time, out *drivers.Outcome) (connection, error) {
	if err := ctx.Err(); err != nil {
		return nil, dial.Fail(ctx, "connecting", err)
	}
	begin := time.Now()
	limited := ctx
	if t := c.database.connectTimeout; t > 0 && (deadline.IsZero() || begin.Add(t).Before(deadline)) {
		deadline = begin.Add(t)
	}
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		limited, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	a := &attempt{dialect: c.database.dialect, dialer: c.dialer}
	a.timing.DNS, a.timing.TLS = drivers.None, drivers.None
	var conn connection
	var err error
	switch c.database.dialect {
	case postgres:
		conn, err = c.openPostgres(limited, a)
	case mysql:
		conn, err = c.openMySQL(limited, a)
	case sqlserver:
		conn, err = c.openSQLServer(limited, a)
	case sqlite:
		conn, err = c.openSQLite(limited)
	}
	a.finish()
	out.DNS, out.TLS = a.timing.DNS, a.timing.TLS
	out.Connect = time.Since(begin) - max(out.DNS, 0) - max(out.TLS, 0)
	if err != nil {
		return nil, c.refusal(ctx, limited, a, err)
	}
	out.Opened = true
	return conn, nil
}
