package sql

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// greeter speaks first, and then listens.
func greeter(t testing.TB, greeting string) string {
	return drivertest.NewPeer(t, func(c net.Conn) {
		io.WriteString(c, greeting)
		io.Copy(io.Discard, c)
	}).Addr()
}

// answerer answers what it reads first.
func answerer(t testing.TB, answer string) string {
	return drivertest.NewPeer(t, func(c net.Conn) {
		if _, err := bufio.NewReader(c).ReadByte(); err == nil {
			io.WriteString(c, answer)
		}
	}).Addr()
}

// mysqlGreeting is a greeting of n bytes: n is its first byte, which a client of PostgreSQL takes for an answer.
func mysqlGreeting(n int) string {
	s := string(rune(n)) + "\x00\x00\x00\x0a8.4.3\x00" + "\x01\x00\x00\x00abcdefgh\x00"
	return s + strings.Repeat("x", max(0, n+4-len(s)))
}

// A server of another protocol is told by what it says, whatever the library makes of that.
func TestOtherProtocols(t *testing.T) {
	const bad = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n400 Bad Request"
	const fatal = "E\x00\x00\x00\x29SFATAL\x00C0A000\x00Munsupported protocol\x00\x00"
	for _, c := range []struct {
		scheme, params, addr, want string
	}{
		{"postgres", "", greeter(t, mysqlGreeting(74)), "the server does not speak PostgreSQL: it looks like MySQL"},
		{"postgres", "", greeter(t, mysqlGreeting('S')), "the server does not speak PostgreSQL: it looks like MySQL"},
		{"postgres", "", greeter(t, mysqlGreeting('N')), "the server does not speak PostgreSQL: it looks like MySQL"},
		{"postgres", "?sslmode=disable", greeter(t, mysqlGreeting(74)), "the server does not speak PostgreSQL: it looks like MySQL"},
		{"postgres", "?sslmode=disable", greeter(t, mysqlGreeting('E')), "the server does not speak PostgreSQL: it looks like MySQL"},
		{"postgres", "", greeter(t, "\x17\x00\x00\x00\xff\x10\x04Too many connections"), "the server does not speak PostgreSQL: it looks like MySQL"},
		{"postgres", "", answerer(t, bad), "the server does not speak PostgreSQL: it looks like HTTP"},
		{"postgres", "?sslmode=disable", answerer(t, bad), "the server does not speak PostgreSQL: it looks like HTTP"},
		{"postgres", "", greeter(t, "SSH-2.0-OpenSSH_9.9\r\n"), "the server does not speak PostgreSQL: it looks like SSH"},
		{"mysql", "", greeter(t, "SSH-2.0-OpenSSH_9.9\r\n"), "the server does not speak MySQL: it looks like SSH"},
		{"mysql", "", greeter(t, bad), "the server does not speak MySQL: it looks like HTTP"},
		{"sqlserver", "", greeter(t, mysqlGreeting(74)), "the server does not speak SQL Server: it looks like MySQL"},
		{"sqlserver", "", answerer(t, bad), "the server does not speak SQL Server: it looks like HTTP"},
		{"sqlserver", "", answerer(t, fatal), "the server does not speak SQL Server: it looks like PostgreSQL"},
	} {
		b, session := open(t, drivertest.Fields{"dsn": c.scheme + "://me@" + c.addr + c.params, "query": "SELECT 1"})
		for _, err := range []error{b.Client.Probe(t.Context()), b.Do(t.Context(), session, long).Err} {
			if drivers.KindOf(err) != drivers.Protocol || err.Error() != c.want {
				t.Errorf("%s%s:\n got %v: %v\nwant protocol: %s", c.scheme, c.params, drivers.KindOf(err), err, c.want)
			}
		}
	}
}

// Servers that wait for their client's protocol say nothing, which is a time-out with a question.
func TestServersThatSayNothing(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	for _, scheme := range []string{"postgres", "mysql"} {
		b, session := open(t, drivertest.Fields{"dsn": scheme + "://me@" + web.Listener.Addr().String(), "query": "SELECT 1", "connect_timeout": 300 * time.Millisecond})
		name := map[string]string{"postgres": "PostgreSQL", "mysql": "MySQL"}[scheme]
		want := "timed out: the server said nothing; does it speak " + name + "?"
		for _, err := range []error{b.Client.Probe(t.Context()), b.Do(t.Context(), session, long).Err} {
			if drivers.KindOf(err) != drivers.Timeout || err.Error() != want {
				t.Errorf("%s: %v: %v, want %s", scheme, drivers.KindOf(err), err, want)
			}
		}
	}
}

// Real servers under the other's name.
func TestRealServersOfAnotherProtocol(t *testing.T) {
	pg, my := postgresServer(t), mariadbServer(t)
	b, session := open(t, drivertest.Fields{"dsn": "postgres://me@" + my.Addr + "/app", "query": "SELECT 1"})
	fails(t, b, session, b.Call, long, drivers.Protocol, "the server does not speak PostgreSQL: it looks like MySQL")
	b, session = open(t, drivertest.Fields{"dsn": "mysql://me@" + pg.Addr + "/app", "query": "SELECT 1", "connect_timeout": 300 * time.Millisecond})
	fails(t, b, session, b.Call, long, drivers.Timeout, "timed out: the server said nothing; does it speak MySQL?")
}
