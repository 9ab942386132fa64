package sql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"
)

func (d *database) parseMySQL(u *url.URL, query url.Values) *flaw {
	if f := refuse(query, "the step's own timeout: bounds a call", "readTimeout", "writeTimeout"); f != nil {
		return f
	}
	timeout, ok, f := duration(query, "timeout", 0)
	if f != nil {
		return f
	}
	if ok && d.connectTimeout == 0 {
		d.connectTimeout = timeout
	}
	u.RawQuery = query.Encode()
	d.url = u.String()
	// The library reads the parameters; the rest is put where it belongs without its own form of DSN, in which a
	// password would have to be escaped.
	cfg, err := gomysql.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		return &flaw{message: fmt.Sprintf("the DSN's parameters can't be used: %v", err)}
	}
	cfg.User, cfg.Passwd = u.User.Username(), d.password
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	d.host, d.port = u.Hostname(), orElse(u.Port(), "3306")
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(d.host, d.port)
	if d.host == "" {
		return &flaw{message: "the host is missing", hint: "write mysql://user@host:3306/db"}
	}
	if secured, f := d.secured(query, "tls"); f != nil {
		return f
	} else if secured {
		cfg.TLS = d.secure
	}
	if cfg.TLS != nil {
		if cfg.TLS.ServerName == "" && !cfg.TLS.InsecureSkipVerify {
			cfg.TLS.ServerName = d.host
		}
		if cfg.TLS.RootCAs == nil {
			cfg.TLS.RootCAs = d.roots
		}
	}
	cfg.Logger = &gomysql.NopLogger{}
	cfg.CheckConnLiveness = false // the session looks itself
	// Only text that is not to be prepared is sent with its arguments in it.
	cfg.InterpolateParams = true
	d.mysql = cfg
	d.name = show("mysql", cfg.User, d.host, d.port, cfg.DBName)
	return nil
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (c *client) openMySQL(ctx context.Context, a *attempt) (connection, error) {
	cfg := c.database.mysql.Clone()
	cfg.DialFunc = a.dial
	connector, err := gomysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	conn, err := connector.Connect(ctx)
	return c.standard(a, mysqlSaid, conn, err)
}

// mysqlSaid recognizes what a server answered.
func mysqlSaid(err error) error {
	e, ok := errors.AsType[*gomysql.MySQLError](err)
	if !ok {
		return err
	}
	s := &serverError{code: fmt.Sprint(e.Number), text: fmt.Sprintf("%s (error %d)", e.Message, e.Number)}
	if state := string(e.SQLState[:]); state[0] != 0 {
		s.text = fmt.Sprintf("%s (error %d, SQLSTATE %s)", e.Message, e.Number, state)
	}
	switch e.Number {
	case 1053, // the server is shutting down
		1927, // the connection was killed (MariaDB)
		3169, // the session was killed
		4031: // the server disconnects the client because of inactivity
		s.closes = true
	case 1295:
		s.text += ": write prepare: false"
	case 1461:
		s.text += ": each connection keeps the prepared statements of its steps; raise max_prepared_stmt_count, share fewer connections, or write prepare: false"
	}
	return s
}
