package sql

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// database is an endpoint: a parsed DSN and everything that its connections depend on. It is immutable.
type database struct {
	dialect  dialect
	name     string // for people, without secrets
	url      string // without the password
	password string
	// Where it is: host and port, or a socket's path, or the path of a file.
	host, port, socket, path string
	// roots are the certificates to be trusted, nil for the system's; secure is what the step itself says of TLS, nil
	// if the DSN decides. fingerprint identifies both.
	roots       *x509.CertPool
	secure      *tls.Config
	fingerprint string
	// connectTimeout is 0 if only the deadline of the call bounds connecting.
	connectTimeout time.Duration

	// What the library of the dialect needs.
	postgres  *pgconn.Config
	tlsMode   tlsMode
	mysql     *gomysql.Config
	sqlserver *msdsn.Config
}

func (d *database) key() string {
	return strings.Join([]string{d.dialect.String(), d.url, d.password, d.connectTimeout.String(), d.fingerprint, fmt.Sprint(d.secure != nil)}, "\x00")
}

// schemes are those of a DSN.
var schemes = map[string]dialect{
	"postgres": postgres, "postgresql": postgres,
	"mysql": mysql, "mariadb": mysql,
	"sqlserver": sqlserver,
	"sqlite":    sqlite,
}

// nearMisses are what other tools call the schemes.
var nearMisses = map[string]string{
	"pg": "postgres", "pgx": "postgres", "psql": "postgres", "pgsql": "postgres", "postgis": "postgres",
	"my": "mysql", "maria": "mariadb",
	"mssql": "sqlserver", "ms": "sqlserver", "tds": "sqlserver", "azuresql": "sqlserver",
	"sqlite3": "sqlite", "file": "sqlite", "modernc": "sqlite",
}

const forms = "postgres://user@host:5432/db, mysql://user@host:3306/db, sqlserver://user@host:1433?database=db or sqlite:path"

// parseDatabase reads the fields that say which database a step is for. No message repeats the DSN: it may hold a
// password where a URL has none.
func parseDatabase(op *drivers.Op) (*database, drivers.FieldErrors) {
	var errs drivers.FieldErrors
	fixed := func(key string) string {
		s, err := op.Fixed(key)
		if err != nil {
			errs = append(errs, err.(*drivers.FieldError))
		}
		return s
	}
	dsn, user, password := fixed("dsn"), fixed("user"), fixed("password")
	if len(errs) > 0 {
		return nil, errs
	}
	if !op.Has("dsn") || dsn == "" {
		return nil, append(errs, op.Errorf("dsn", "the database is missing").WithHint("write %s", forms))
	}
	d := &database{connectTimeout: op.Duration("connect_timeout", 0)}
	secure, fingerprint, problems := dial.TLS(op)
	if len(problems) > 0 {
		return nil, problems
	}
	d.roots, d.fingerprint = secure.RootCAs, fingerprint
	if op.Has("tls") {
		d.secure = secure
	}
	if f := d.parse(dsn, user, password, op.Has("password")); f != nil {
		return nil, append(errs, op.Errorf("dsn", "%s", f.message).WithHint("%s", f.hint))
	}
	return d, nil
}

func (d *database) parse(dsn, user, password string, override bool) *flaw {
	scheme, rest, ok := strings.Cut(dsn, ":")
	if lower := strings.ToLower(scheme); lower == "jdbc" && ok {
		return &flaw{message: "jdbc URLs are for Java", hint: "write " + forms}
	}
	if !ok || strings.ContainsAny(scheme, "=;@/ ") {
		return &flaw{message: "expected a URL", hint: "write " + forms}
	}
	kind, known := schemes[strings.ToLower(scheme)]
	if !known {
		f := &flaw{message: "the scheme is none of postgres, mysql, mariadb, sqlserver, sqlite", hint: "write " + forms}
		near := nearMisses[strings.ToLower(scheme)]
		if near == "" && len(scheme) > 3 {
			near = nearest(scheme, []string{"postgres", "postgresql", "mysql", "mariadb", "sqlserver", "sqlite"})
		}
		if near != "" {
			// What precedes the colon may be a user name, as in user:password@tcp(host)/db; it is repeated only where
			// it resembles a scheme.
			f.message = fmt.Sprintf("the scheme %q is none of postgres, mysql, mariadb, sqlserver, sqlite", scheme)
			f.hint = fmt.Sprintf("did you mean %s:?", near)
		}
		return f
	}
	d.dialect = kind
	if kind == sqlite {
		return d.parseSQLite(rest)
	}
	if !strings.HasPrefix(rest, "//") {
		return &flaw{message: fmt.Sprintf("expected // after %s:", scheme), hint: "write " + forms}
	}
	u, err := url.Parse(dsn)
	// The library lets colons pass in a host, as where a / in the password makes user and password one: "user:pass:/@host".
	if err != nil || u.Fragment != "" || strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Host, "[") {
		return &flaw{message: "this is not a valid URL", hint: "in a user name or password, write %40 for @, %3A for :, %2F for /, %23 for # and %3F for ?; or give them as user: and password:"}
	}
	u.Scheme = strings.ToLower(scheme)
	if strings.Contains(u.Host, ",") {
		return &flaw{message: "a DSN names one host", hint: "make each host a target of its own"}
	}
	query := u.Query()
	name, _ := first(user, u.User.Username())
	d.password = password
	if !override {
		d.password, _ = u.User.Password()
	}
	u.User = nil
	if name != "" {
		u.User = url.User(name)
	}
	// Passwords given as parameters are taken out as well, in whatever case.
	for key := range query {
		if k := strings.ToLower(key); k == "password" || k == "pwd" {
			if d.password == "" && !override {
				d.password = query.Get(key)
			}
			query.Del(key)
			u.RawQuery = query.Encode()
		}
	}
	var f *flaw
	switch kind {
	case postgres:
		f = d.parsePostgres(u, query)
	case mysql:
		f = d.parseMySQL(u, query)
	case sqlserver:
		f = d.parseSQLServer(u, query)
	}
	return f
}

func first(values ...string) (string, bool) {
	for _, v := range values {
		if v != "" {
			return v, true
		}
	}
	return "", false
}

// show makes the name of an endpoint.
func show(scheme, user, host, port, db string) string {
	u := url.URL{Scheme: scheme, Host: host, Path: "/" + db}
	if port != "" {
		u.Host = net.JoinHostPort(host, port)
	}
	if user != "" {
		u.User = url.User(user)
	}
	if db == "" {
		u.Path = ""
	}
	return u.String()
}

// duration takes a time-out out of a DSN's parameters. units is what a bare number counts; 0 takes Go's own form.
func duration(query url.Values, key string, units time.Duration) (time.Duration, bool, *flaw) {
	s := query.Get(key)
	if s == "" {
		return 0, false, nil
	}
	query.Del(key)
	var d time.Duration
	var err error
	if units > 0 {
		var n int
		n, err = strconv.Atoi(s)
		d = time.Duration(n) * units
	} else {
		d, err = time.ParseDuration(s)
	}
	if err != nil || d < 0 {
		return 0, false, &flaw{message: fmt.Sprintf("the parameter %s is not a time", key), hint: "give connect_timeout: to the step instead"}
	}
	return d, true, nil
}

// refuse finds parameters that would bend what a plan's own keys mean.
func refuse(query url.Values, instead string, keys ...string) *flaw {
	for key := range query {
		if slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, key) }) {
			return &flaw{message: fmt.Sprintf("the parameter %q is not taken from the DSN", key), hint: instead}
		}
	}
	return nil
}

// secured takes what the step says of TLS; false if the DSN decides. keys are the DSN's parameters for the same thing.
func (d *database) secured(query url.Values, keys ...string) (bool, *flaw) {
	if d.secure == nil {
		return false, nil
	}
	for key := range query {
		if slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, key) }) {
			return false, &flaw{message: fmt.Sprintf("both tls: and the parameter %q say how to connect", key), hint: "leave one of them out"}
		}
	}
	if d.secure.ServerName == "" {
		d.secure.ServerName = d.host
	}
	return true, nil
}
