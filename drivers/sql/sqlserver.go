package sql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"
)

func (d *database) parseSQLServer(u *url.URL, query url.Values) *flaw {
	if f := refuse(query, "the step's own timeout: bounds a call", "connection timeout", "connectiontimeout"); f != nil {
		return f
	}
	if f := refuse(query, "make each host a target of its own", "failoverpartner", "failoverport", "failoverpartnerspn"); f != nil {
		return f
	}
	timeout, ok, f := duration(query, "dial timeout", time.Second)
	if f != nil {
		return f
	}
	if ok && d.connectTimeout == 0 {
		d.connectTimeout = timeout
	}
	// Without a port, the library asks the browser service of a named instance for one.
	if d.host, d.port = u.Hostname(), orElse(u.Port(), "1433"); d.host == "" {
		return &flaw{message: "the host is missing", hint: "write sqlserver://user@host:1433?database=db"}
	}
	if !query.Has("app name") {
		query.Set("app name", "planrun")
	}
	u.RawQuery = query.Encode()
	d.url = u.String()
	cfg, err := msdsn.Parse(d.url)
	if err != nil {
		return &flaw{message: fmt.Sprintf("the DSN can't be used: %v", err)}
	}
	cfg.Password = d.password
	cfg.DialTimeout = -1 // the library's own of 15 s
	cfg.DisableRetry = true
	if secured, f := d.secured(query, "encrypt", "trustservercertificate", "certificate", "servercertificate", "hostnameincertificate", "tlsmin"); f != nil {
		return f
	} else if secured {
		// One TDS packet is expected in one TLS record, as the library has it in its own configurations.
		d.secure.DynamicRecordSizingDisabled = true
		cfg.Encryption, cfg.TLSConfig = msdsn.EncryptionRequired, d.secure
	}
	if cfg.TLSConfig != nil && cfg.TLSConfig.RootCAs == nil {
		cfg.TLSConfig.RootCAs = d.roots
	}
	d.sqlserver = &cfg
	db := cfg.Database
	if cfg.Instance != "" {
		db = strings.Trim(cfg.Instance+"/"+db, "/")
	}
	d.name = show("sqlserver", cfg.User, u.Hostname(), u.Port(), db)
	return nil
}

// sqlserverDialer dials for the library, names included.
type sqlserverDialer struct {
	attempt *attempt
	host    string
}

func (d sqlserverDialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if network == "udp" { // the browser service, which knows the ports of named instances
		var dialer net.Dialer
		return dialer.DialContext(ctx, network, addr)
	}
	return d.attempt.dial(ctx, network, addr)
}

func (d sqlserverDialer) HostName() string { return d.host }

func (c *client) openSQLServer(ctx context.Context, a *attempt) (connection, error) {
	connector := mssql.NewConnectorConfig(*c.database.sqlserver)
	connector.Dialer = sqlserverDialer{a, c.database.sqlserver.Host}
	conn, err := connector.Connect(ctx)
	return c.standard(a, sqlserverSaid, conn, err)
}

// sqlserverSaid recognizes what a server answered.
func sqlserverSaid(err error) error {
	e, ok := errors.AsType[mssql.Error](err)
	if !ok {
		return err
	}
	all := e.All
	if len(all) == 0 {
		all = []mssql.Error{e}
	}
	s := &serverError{code: fmt.Sprint(e.Number)}
	for i, one := range all {
		if i > 0 {
			s.text += "; "
		}
		s.text += fmt.Sprintf("%s (error %d)", one.Message, one.Number)
		// From severity 20 on, the server ends the connection.
		s.closes = s.closes || one.Class >= 20
	}
	return s
}
