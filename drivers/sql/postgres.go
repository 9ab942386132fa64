package sql

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// tlsMode is how PostgreSQL's sslmode wants a connection.
type tlsMode uint8

const (
	tlsOff    tlsMode = iota
	tlsPrefer         // TLS if the server has it
	tlsRequire
)

func (d *database) parsePostgres(u *url.URL, query url.Values) *flaw {
	timeout, ok, f := duration(query, "connect_timeout", time.Second)
	if f != nil {
		return f
	}
	if ok && d.connectTimeout == 0 {
		d.connectTimeout = timeout
	}
	for _, key := range []string{"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity"} {
		if query.Has(key) {
			return &flaw{message: fmt.Sprintf("the parameter %q has no meaning here", key), hint: "write prepare: true or false"}
		}
	}
	secured, f := d.secured(query, "sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslsni")
	if f != nil {
		return f
	}
	if secured {
		query.Set("sslmode", "disable") // the library has no say
	}
	u.RawQuery = query.Encode()
	d.url = u.String()
	cfg, err := pgconn.ParseConfig(d.url)
	if err != nil {
		// The text of the outer error has the URL in it.
		if inner := errors.Unwrap(err); inner != nil {
			return &flaw{message: fmt.Sprintf("the DSN can't be used: %v", inner)}
		}
		return &flaw{message: "the DSN can't be used", hint: "see the parameters of libpq's connection URIs"}
	}
	if d.password != "" {
		cfg.Password = d.password
	}
	// The library would dial a second time for the other answer to the question of TLS; one connection is enough to
	// ask and to go on without.
	switch {
	case cfg.TLSConfig == nil && len(cfg.Fallbacks) > 0:
		return &flaw{message: "sslmode=allow tries each connection twice", hint: "write disable, prefer, require, verify-ca or verify-full"}
	case cfg.TLSConfig != nil && len(cfg.Fallbacks) > 0:
		d.tlsMode = tlsPrefer
	case cfg.TLSConfig != nil:
		d.tlsMode = tlsRequire
	}
	if cfg.TLSConfig != nil && cfg.TLSConfig.RootCAs == nil {
		cfg.TLSConfig.RootCAs = d.roots
	}
	if secured {
		cfg.TLSConfig, d.tlsMode = d.secure, tlsRequire
	}
	cfg.Fallbacks = nil
	cfg.ConnectTimeout = 0
	cfg.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	for key, value := range map[string]string{"client_encoding": "UTF8", "application_name": "planrun"} {
		if _, ok := cfg.RuntimeParams[key]; !ok {
			cfg.RuntimeParams[key] = value
		}
	}
	d.postgres = cfg
	if path.IsAbs(cfg.Host) {
		_, d.socket = pgconn.NetworkAddress(cfg.Host, cfg.Port)
		d.name = show("postgres", cfg.User, "", "", cfg.Database) + "?host=" + cfg.Host
	} else {
		d.host, d.port = cfg.Host, strconv.Itoa(int(cfg.Port))
		d.name = show("postgres", cfg.User, d.host, d.port, cfg.Database)
	}
	return nil
}

// postgresConn speaks PostgreSQL's protocol, version 3 (manual, part VII chapter "Frontend/Backend Protocol"). The
// library logs in; after that, this code sends and reads the messages itself, so that a call costs one round trip,
// values are counted as they come, and nothing happens in the background.
type postgresConn struct {
	client   *client
	wire     *wire
	frontend *pgproto3.Frontend
	pid      uint32
	secret   []byte
	secure   *tls.Config // nil on a plain connection
	// status is the server's word on transactions: I idle, T inside, E inside a failed one.
	status byte

	prepared statements[*postgresStatement]
	names    int
	extended bool             // the statement under way is not a simple query
	columns  []postgresColumn // of the answer that is being read
	// What calls send, kept so that a call does not allocate it.
	parse    pgproto3.Parse // always without a name
	bind     pgproto3.Bind
	describe pgproto3.Describe
	execute  pgproto3.Execute
	sync     pgproto3.Sync
	query    pgproto3.Query
	scratch  []byte
}

// postgresStatement is a statement prepared at the server.
type postgresStatement struct {
	name    string
	columns []postgresColumn
	formats []int16
}

type postgresColumn struct {
	name   string
	oid    uint32
	binary bool
}

func (c *client) openPostgres(ctx context.Context, a *attempt) (connection, error) {
	d := c.database
	cfg := d.postgres.Copy()
	secure := cfg.TLSConfig
	cfg.TLSConfig = nil
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if a.wire != nil {
			// When login fails, the library asks the server over another connection to stop what it is not doing.
			return nil, errors.New("one connection is enough")
		}
		return a.dial(ctx, network, addr)
	}
	encrypted := false
	cfg.AfterNetConnect = func(ctx context.Context, cfg *pgconn.Config, conn net.Conn) (net.Conn, error) {
		if d.tlsMode == tlsOff {
			return conn, nil
		}
		t, err := startTLS(ctx, conn, d, secure, d.tlsMode, &a.timing)
		if err != nil {
			return conn, err
		}
		encrypted = t != conn
		return t, nil
	}
	login, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		if said, ok := errors.AsType[*pgconn.PgError](err); ok {
			return nil, postgresError(said.Severity, said.Code, said.Message, said.Detail, "")
		}
		return nil, innermost(err)
	}
	h, err := login.Hijack()
	if err != nil {
		return nil, err
	}
	p := &postgresConn{client: c, wire: a.wire, frontend: h.Frontend, pid: h.PID, secret: h.SecretKey, status: h.TxStatus}
	if encrypted {
		p.secure = secure
	}
	return p, nil
}

// innermost returns the error that everything else wraps: what wraps it names the user, the database and the address,
// which the endpoint's name says already.
func innermost(err error) error {
	for {
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			inner := e.Unwrap()
			if inner == nil {
				return err
			}
			// Types that say what kind of failure it is stay whole.
			if dial.Classify(err) != dial.Classify(inner) {
				return err
			}
			err = inner
		case interface{ Unwrap() []error }:
			errs := e.Unwrap()
			if len(errs) == 0 {
				return err
			}
			err = errs[len(errs)-1]
		default:
			return err
		}
	}
}

// startTLS asks the server for TLS and shakes hands; without TLS at the server it returns conn, if mode allows that.
func startTLS(ctx context.Context, conn net.Conn, d *database, cfg *tls.Config, mode tlsMode, t *drivers.Timing) (net.Conn, error) {
	if d.postgres.SSLNegotiation != "direct" {
		if _, err := conn.Write([]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f}); err != nil { // SSLRequest
			return nil, err
		}
		// The answer is one byte, and nothing follows before the handshake. More tells another protocol by its beginning,
		// or somebody in between who puts in something of his own.
		var b [maxHead]byte
		n, err := conn.Read(b[:])
		if n == 0 && err != nil {
			return nil, err
		}
		switch {
		case b[0] == 'E':
			return nil, errors.New("the server answers the question for TLS with an error")
		case n > 1:
			return nil, errors.New("the server does not speak PostgreSQL")
		case b[0] == 'N' && mode == tlsPrefer:
			return conn, nil
		case b[0] == 'N':
			return nil, drivers.Fail(drivers.TLS, errors.New("the server does not offer TLS"))
		case b[0] != 'S':
			return nil, errors.New("the server does not speak PostgreSQL")
		}
	}
	return dial.Handshake(ctx, conn, cfg, d.host, t)
}

func postgresError(severity, code, message, detail, hint string) *serverError {
	e := &serverError{code: code, text: fmt.Sprintf("%s (SQLSTATE %s)", message, code)}
	if detail != "" {
		e.text += ": " + detail
	}
	if hint != "" {
		e.text += ": " + hint
	}
	e.closes = severity == "FATAL" || severity == "PANIC"
	return e
}

func (p *postgresConn) inTransaction() bool { return p.status != 'I' && p.status != 0 }

func (p *postgresConn) rollback(context.Context) error {
	p.frontend.SendQuery(&pgproto3.Query{String: "ROLLBACK"})
	if err := p.frontend.Flush(); err != nil {
		return err
	}
	if err := p.read(nil); err != nil {
		return err
	}
	if p.inTransaction() {
		return errors.New("the transaction is still open")
	}
	return nil
}

// limit looks at what the server said while the connection was idle: a notice or a changed setting is nothing to
// worry about, a FATAL error is the end.
func (p *postgresConn) limit(deadline time.Time) bool {
	p.wire.limit(deadline)
	if !p.wire.idle.Readable() {
		return true
	}
	// What has arrived is read, and nothing is waited for: a message comes in one piece unless the network splits it.
	p.wire.limit(time.Now().Add(time.Millisecond))
	defer p.wire.limit(deadline)
	for {
		msg, err := p.frontend.Receive()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.wire.forgive()
			return true
		}
		if _, bad := msg.(*pgproto3.ErrorResponse); bad || err != nil {
			return false
		}
	}
}

func (p *postgresConn) expire()      { p.wire.expire() }
func (p *postgresConn) cause() error { return p.wire.err() }

// abandon closes the connection. If the server is at work for it, it is told to stop, as PostgreSQL's libraries do:
// it would not notice a closed connection before it has an answer to send.
func (p *postgresConn) abandon(busy bool) {
	p.wire.Conn.Close()
	if !busy || p.pid == 0 {
		return
	}
	p.client.background.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), farewell)
		defer stop()
		p.cancel(ctx)
	})
}

// cancel sends a CancelRequest. Nothing depends on whether it arrives.
func (p *postgresConn) cancel(ctx context.Context) {
	// A dialer of its own, as this is none of the connections that are counted.
	a := &attempt{dialect: postgres, dialer: &dial.Dialer{Unix: p.client.dialer.Unix}}
	addr := p.wire.RemoteAddr()
	conn, err := a.dial(ctx, addr.Network(), addr.String())
	if err != nil {
		return
	}
	defer conn.Close()
	defer a.finish()
	if p.secure != nil {
		if conn, err = startTLS(ctx, conn, p.client.database, p.secure, tlsRequire, &a.timing); err != nil {
			return
		}
	}
	msg, err := (&pgproto3.CancelRequest{ProcessID: p.pid, SecretKey: p.secret}).Encode(nil)
	if err != nil {
		return
	}
	if _, err := conn.Write(msg); err != nil {
		return
	}
	// The server closes the connection when it has passed the request on.
	io.Copy(io.Discard, conn)
}

func (p *postgresConn) close() {
	p.frontend.Send(&pgproto3.Terminate{})
	p.frontend.Flush()
	p.wire.Conn.Close()
}
