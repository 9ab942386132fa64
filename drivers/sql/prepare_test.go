package sql

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

func TestFaultsOfAStep(t *testing.T) {
	const dsn = "postgres://app:s3cret@db.test/shop"
	list := func(v ...any) []any { return v }
	moving := drivertest.Func(func(*drivers.Input) any { return "postgres://db.test/shop" })
	for _, c := range []struct {
		name   string
		fields drivertest.Fields
		reads  string
		want   string // of the first fault, and how many there are
		count  int
	}{
		{name: "no dsn", fields: drivertest.Fields{"query": "SELECT 1"}, want: "dsn: the database is missing: write postgres://"},
		{name: "moving dsn", fields: drivertest.Fields{"dsn": moving, "query": "SELECT 1"}, want: "dsn: dsn must be known before the load"},
		{name: "mssql", fields: drivertest.Fields{"dsn": "mssql://sa:s3cret@db.test", "query": "SELECT 1"}, want: `dsn: the scheme "mssql" is none of postgres, mysql, mariadb, sqlserver, sqlite: did you mean sqlserver:?`},
		{name: "postgre", fields: drivertest.Fields{"dsn": "postgre://u:s3cret@db.test/x", "query": "SELECT 1"}, want: `did you mean postgres:?`},
		{name: "sqlite3", fields: drivertest.Fields{"dsn": "sqlite3:shop.db", "query": "SELECT 1"}, want: `did you mean sqlite:?`},
		{name: "jdbc", fields: drivertest.Fields{"dsn": "jdbc:postgresql://db.test/shop?password=s3cret", "query": "SELECT 1"}, want: "jdbc URLs are for Java"},
		{name: "oracle", fields: drivertest.Fields{"dsn": "oracle://u:s3cret@db.test", "query": "SELECT 1"}, want: "the scheme is none of"},
		{name: "mysql's own form", fields: drivertest.Fields{"dsn": "root:s3cret@tcp(db.test:3306)/shop", "query": "SELECT 1"}, want: "the scheme is none of"},
		{name: "keywords", fields: drivertest.Fields{"dsn": "host=db.test user=app password=s3cret", "query": "SELECT 1"}, want: "expected a URL"},
		{name: "ado", fields: drivertest.Fields{"dsn": "Server=db.test:1433;User Id=sa;Password=s3cret", "query": "SELECT 1"}, want: "expected a URL"},
		{name: "no slashes", fields: drivertest.Fields{"dsn": "postgres:app:s3cret@db.test", "query": "SELECT 1"}, want: "expected // after postgres:"},
		{name: "raw password", fields: drivertest.Fields{"dsn": "postgres://app:s3cret/%zz@db.test/shop", "query": "SELECT 1"}, want: "this is not a valid URL: in a user name or password, write %40 for @"},
		{name: "hash in password", fields: drivertest.Fields{"dsn": "mysql://app:12#s3cret@db.test/shop", "query": "SELECT 1"}, want: "this is not a valid URL"},
		{name: "two hosts", fields: drivertest.Fields{"dsn": "postgres://app:s3cret@a.test,b.test/shop", "query": "SELECT 1"}, want: "a DSN names one host: make each host a target of its own"},
		{name: "sslmode", fields: drivertest.Fields{"dsn": dsn + "?sslmode=maybe", "query": "SELECT 1"}, want: "sslmode"},
		{name: "allow", fields: drivertest.Fields{"dsn": dsn + "?sslmode=allow", "query": "SELECT 1"}, want: "sslmode=allow tries each connection twice"},
		{name: "exec mode", fields: drivertest.Fields{"dsn": dsn + "?default_query_exec_mode=exec", "query": "SELECT 1"}, want: "write prepare: true or false"},
		{name: "tls twice", fields: drivertest.Fields{"dsn": dsn + "?sslmode=require", "tls": drivertest.Fields{"insecure": true}, "query": "SELECT 1"}, want: `both tls: and the parameter "sslmode"`},
		{name: "mysql time-out", fields: drivertest.Fields{"dsn": "mysql://db.test/x?readTimeout=1s", "query": "SELECT 1"}, want: `the parameter "readTimeout" is not taken from the DSN: the step's own timeout: bounds a call`},
		{name: "sqlserver time-out", fields: drivertest.Fields{"dsn": "sqlserver://db.test?connection+timeout=30", "query": "SELECT 1"}, want: `the parameter "connection timeout" is not taken from the DSN`},
		{name: "sqlite tls", fields: drivertest.Fields{"dsn": "sqlite:x.db", "tls": drivertest.Fields{"insecure": true}, "query": "SELECT 1"}, want: "a file has no TLS"},

		{name: "no statement", fields: drivertest.Fields{"dsn": dsn}, want: "query: the statement is missing"},
		{name: "two statements", fields: drivertest.Fields{"dsn": dsn, "query": "SELECT 1", "exec": "SELECT 2"}, want: "exec: a step has one statement, but there is query as well"},
		{name: "empty", fields: drivertest.Fields{"dsn": dsn, "query": " \n"}, want: "query: the statement is empty"},
		{name: "no file", fields: drivertest.Fields{"dsn": dsn, "query_file": "/nowhere/x.sql"}, want: "query_file: can't be read"},
		{name: "rows of exec", fields: drivertest.Fields{"dsn": dsn, "exec": "DELETE FROM t"}, reads: "rows", want: "exec: an expectation reads rows, which exec doesn't keep: write query:"},
		{name: "affected of query", fields: drivertest.Fields{"dsn": dsn, "query": "DELETE FROM t"}, reads: "affected", want: "query: an expectation reads affected, which only exec knows: write exec:"},

		{name: "unknown name", fields: drivertest.Fields{"dsn": dsn, "query": "SELECT :idd", "args": drivertest.Fields{"id": 1}}, want: "query: the query names :idd, which args doesn't have: did you mean :id?", count: 2},
		{name: "slice", fields: drivertest.Fields{"dsn": dsn, "query": "SELECT a[1:n], :id", "args": drivertest.Fields{"id": 1}}, want: "put a space after it"},
		{name: "unused name", fields: drivertest.Fields{"dsn": dsn, "query": "SELECT :id", "args": drivertest.Fields{"id": 1, "other": 2}}, want: "args.other: the query has no :other: use it or leave it out"},
		{name: "names without args", fields: drivertest.Fields{"dsn": dsn, "query": "SELECT :id"}, want: "query: the query names :id, but there are no args"},
		{name: "names and a list", fields: drivertest.Fields{"dsn": dsn, "query": "SELECT :id", "args": list(1)}, want: "query: the query names :id, but args is a list: name the arguments, as in args: {id: ...}"},
		{name: "numbers and names", fields: drivertest.Fields{"dsn": dsn, "query": "SELECT $1, :id", "args": drivertest.Fields{"id": 1}}, want: "query: the query has the placeholder $1, but args gives names"},
		{name: "numbers without args", fields: drivertest.Fields{"dsn": dsn, "query": "SELECT $1"}, want: "query: the query has the placeholder $1, but there are no args"},
		{name: "too few", fields: drivertest.Fields{"dsn": dsn, "query": "SELECT $1, $2", "args": list(1)}, want: "args: the query takes 2 arguments, args has 1"},
		{name: "too many", fields: drivertest.Fields{"dsn": "mysql://db.test/x", "query": "SELECT ?", "args": list(1, 2)}, want: "args: the query takes 1 argument, args has 2"},
		{name: "another database's", fields: drivertest.Fields{"dsn": dsn, "query": "SELECT ?", "args": list(1)}, want: "args: the query takes 0 arguments, args has 1: mark them in the query with $1, $2, as PostgreSQL does"},
		{name: "zero", fields: drivertest.Fields{"dsn": dsn, "query": "SELECT $0", "args": list(1)}, want: "$0 is no placeholder: they count from 1", count: 2},
		{name: "a list as argument", fields: drivertest.Fields{"dsn": dsn, "query": "SELECT $1", "args": list(list(1))}, want: "args.0: an argument is text, a number, true, false or null"},
		{name: "all at once", fields: drivertest.Fields{"args": drivertest.Fields{"id": list(1)}, "exec": "", "query_file": "/nowhere"}, want: "dsn: the database is missing", count: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			var reads []string
			if c.reads != "" {
				reads = append(reads, c.reads)
			}
			_, err := New().Prepare(drivertest.NewOp(t, New(), c.fields, reads...))
			errs, ok := err.(drivers.FieldErrors)
			if !ok {
				t.Fatalf("got %v, want field errors", err)
			}
			if c.count == 0 {
				c.count = 1
			}
			if got := errs.Error(); !strings.Contains(got, c.want) || len(errs) != c.count {
				t.Errorf("got %d: %s\nwant %d: %s", len(errs), got, c.count, c.want)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the password is told: %v", err)
			}
		})
	}
}

func TestEndpoints(t *testing.T) {
	for _, c := range []struct{ dsn, user, name string }{
		{"postgres://app:s3cret@db.test:5433/shop?sslmode=disable", "", "postgres://app@db.test:5433/shop"},
		{"POSTGRESQL://app:s3cret@db.test/shop", "", "postgres://app@db.test:5432/shop"},
		{"postgres://app@[::1]/shop?password=s3cret", "", "postgres://app@[::1]:5432/shop"},
		{"postgres:///shop?host=/run/postgresql&user=app", "", "postgres://app@/shop?host=/run/postgresql"},
		{"mysql://app:s3cret@db.test/shop", "", "mysql://app@db.test:3306/shop"},
		{"mariadb://app:s%40cret@db.test:3307/shop?charset=utf8mb4", "other", "mysql://other@db.test:3307/shop"},
		{"sqlserver://sa:s3cret@db.test:1433?database=shop", "", "sqlserver://sa@db.test:1433/shop"},
		{"sqlserver://sa:s3cret@db.test/express?database=shop&password=s3cret", "", "sqlserver://sa@db.test/express/shop"},
		{"sqlite:a folder/shop.db?mode=ro", "", "sqlite:a folder/shop.db"},
		{"sqlite:///var/shop.db", "", "sqlite:/var/shop.db"},
		{"sqlite::memory:", "", "sqlite::memory:"},
	} {
		fields := drivertest.Fields{"dsn": c.dsn, "query": "SELECT 1"}
		if c.user != "" {
			fields["user"] = c.user
		}
		ep := prepare(t, fields).Endpoint()
		if ep.Name != c.name {
			t.Errorf("%s is called %s, want %s", c.dsn, ep.Name, c.name)
		}
	}
	// Everything that a connection depends on tells endpoints apart; what belongs to the statement does not.
	base := drivertest.Fields{"dsn": "postgres://app@db.test/shop", "query": "SELECT 1"}
	key := prepare(t, base).Endpoint().Key
	for field, v := range (drivertest.Fields{"user": "x", "password": "x", "connect_timeout": time.Second, "tls": drivertest.Fields{"insecure": true}, "dsn": "postgres://app@db.test/shop?application_name=x"}) {
		with := drivertest.Fields{"dsn": base["dsn"], "query": base["query"], field: v}
		if prepare(t, with).Endpoint().Key == key {
			t.Errorf("%s makes no difference", field)
		}
	}
	for field, v := range (drivertest.Fields{"prepare": false, "query": "SELECT 2"}) {
		with := drivertest.Fields{"dsn": base["dsn"], "query": base["query"], field: v}
		if prepare(t, with).Endpoint().Key != key {
			t.Errorf("%s makes another endpoint, so that steps would not share a connection", field)
		}
	}
}

// The libraries have time-outs of their own, which would act as something that the plan has other keys for.
func TestTimeoutsAreThePlans(t *testing.T) {
	database := func(dsn string) *database {
		return prepare(t, drivertest.Fields{"dsn": dsn, "query": "SELECT 1"}).Endpoint().Config.(*database)
	}
	if d := database("postgres://db.test/x?connect_timeout=7"); d.connectTimeout != 7*time.Second || d.postgres.ConnectTimeout != 0 {
		t.Errorf("PostgreSQL: %v, the library's own is %v", d.connectTimeout, d.postgres.ConnectTimeout)
	}
	if d := database("mysql://db.test/x?timeout=7s"); d.connectTimeout != 7*time.Second || d.mysql.Timeout+d.mysql.ReadTimeout+d.mysql.WriteTimeout != 0 {
		t.Errorf("MySQL: %v, the library's own are %v, %v, %v", d.connectTimeout, d.mysql.Timeout, d.mysql.ReadTimeout, d.mysql.WriteTimeout)
	}
	if d := database("sqlserver://db.test?dial+timeout=7"); d.connectTimeout != 7*time.Second || d.sqlserver.ConnTimeout != 0 || d.sqlserver.DialTimeout >= 0 {
		t.Errorf("SQL Server: %v, the library's own are %v, %v", d.connectTimeout, d.sqlserver.ConnTimeout, d.sqlserver.DialTimeout)
	}
}

// connect_timeout bounds the login with a server that takes connections and says nothing.
func TestConnectTimeout(t *testing.T) {
	peer := drivertest.NewPeer(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	for _, dsn := range []string{"postgres://u@" + peer.Addr(), "postgres://u@" + peer.Addr() + "?sslmode=disable", "mysql://u@" + peer.Addr(), "sqlserver://u@" + peer.Addr()} {
		b, session := open(t, drivertest.Fields{"dsn": dsn, "query": "SELECT 1", "connect_timeout": 200 * time.Millisecond})
		before := peer.Opened()
		r := b.Fails(t.Context(), session, 10*long, drivers.Timeout)
		if r.Service < 200*time.Millisecond || r.Service > 10*time.Second || !strings.HasPrefix(r.Err.Error(), "timed out: the server said nothing; does it speak ") {
			t.Errorf("%s: after %v: %v", dsn, r.Service, r.Err)
		}
		if n := peer.Opened() - before; n != 1 {
			t.Errorf("%s: %d connections were opened, want 1", dsn, n)
		}
	}
}

func TestQueryFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "q.sql")
	if err := os.WriteFile(file, []byte("\ufeffSELECT :id AS x -- ${not.a.template}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call := prepare(t, drivertest.Fields{"dsn": "sqlite::memory:", "query_file": file, "args": drivertest.Fields{"id": 5}}, "rows")
	b, session := open(t, drivertest.Fields{"dsn": "sqlite::memory:", "query": "SELECT 1"})
	if got := rows(t, b, session, call); len(got) != 1 || got[0]["x"] != int64(5) {
		t.Errorf("got %v", got)
	}
}

// A password is in no message, whatever goes wrong with a connection.
func TestPasswordsAreNotTold(t *testing.T) {
	const secret = "s3cret+%25word"
	pg, my := postgresServer(t), mariadbServer(t)
	refused := drivertest.RefusedAddr(t)
	for _, c := range []struct {
		dsn  string
		want drivers.Failure
		text string
	}{
		{"postgres://tester:" + secret + "@" + pg.Addr + "/postgres", drivers.Refused, "SQLSTATE 28P01"},
		{"postgres://nobody:" + secret + "@" + pg.Addr + "/nowhere", drivers.Refused, "SQLSTATE 28P01"},
		{"postgres://tester:" + secret + "@" + refused + "/postgres", drivers.Refused, "refused"},
		{"postgres://tester:" + secret + "@no-such-host.invalid/postgres", drivers.DNS, "no-such-host.invalid"},
		{"postgres://tester@" + refused + "/postgres?password=" + secret, drivers.Refused, "refused"},
		{"mysql://tester:" + secret + "@" + my.Addr + "/app", drivers.Refused, "error 1045"},
		{"mysql://tester:" + my.Password + "@" + my.Addr + "/nowhere", drivers.Refused, "error 1049"},
		{"mysql://tester:" + secret + "@" + refused + "/app", drivers.Refused, "refused"},
		{"mysql://tester:" + secret + "@no-such-host.invalid/app", drivers.DNS, "no-such-host.invalid"},
		{"sqlserver://tester:" + secret + "@" + refused, drivers.Refused, "refused"},
		{"sqlserver://tester:" + secret + "@no-such-host.invalid", drivers.DNS, "no-such-host.invalid"},
	} {
		b, session := open(t, drivertest.Fields{"dsn": c.dsn, "query": "SELECT 1"})
		for _, err := range []error{b.Client.Probe(t.Context()), b.Do(t.Context(), session, long).Err} {
			if err == nil || drivers.KindOf(err) != c.want || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v: %v, want %v: ...%s...", c.dsn, drivers.KindOf(err), err, c.want, c.text)
				continue
			}
			if strings.HasPrefix(err.Error(), b.Call.Endpoint().Name) {
				t.Errorf("the name of the database is told again: %v", err)
			}
			for _, p := range []string{"s3cret", my.Password} {
				if strings.Contains(err.Error(), p) {
					t.Errorf("the password is told: %v", err)
				}
			}
		}
		if name := b.Call.Endpoint().Name; strings.Contains(name, "s3cret") {
			t.Errorf("the password is in the name: %s", name)
		}
	}
}
