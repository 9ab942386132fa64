package sql

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
	"github.com/planrun/planrun/drivers/sql/sqltest"
)

// The servers take seconds to start, so the tests share one of each, and put back what they change of its settings.
var servers struct {
	postgres, mariadb shared
	identity          sync.Once
	options           sqltest.Options
}

type shared struct {
	once   sync.Once
	server *sqltest.Server
	stop   func()
}

// outlives is a test whose servers stop after all tests.
type outlives struct {
	testing.TB
	cleanups *[]func()
}

func (o outlives) Cleanup(f func())               { *o.cleanups = append(*o.cleanups, f) }
func (o outlives) Failed() bool                   { return false }
func (o outlives) Errorf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// get starts the server for the first test that asks.
func (s *shared) get(t testing.TB, start func(testing.TB) *sqltest.Server) *sqltest.Server {
	t.Helper()
	s.once.Do(func() {
		var cleanups []func()
		s.stop = func() {
			for i := len(cleanups) - 1; i >= 0; i-- {
				cleanups[i]()
			}
		}
		s.server = start(outlives{t, &cleanups})
	})
	if s.server == nil {
		t.Fatal("the server did not start for the first test that needed it")
	}
	return s.server
}

// said is what MySQL's library has logged on its own: nothing, whatever happens to connections, as it would stand among the
// output of a run.
var said logged

type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Print(v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprint(v...))
}

func TestMain(m *testing.M) {
	gomysql.SetLogger(&said)
	code := m.Run()
	if len(said.lines) > 0 {
		fmt.Printf("the library logged\n%s\n", strings.Join(said.lines, "\n"))
		code = 1
	}
	for _, s := range []*shared{&servers.postgres, &servers.mariadb} {
		if s.stop != nil {
			s.stop()
		}
	}
	os.Exit(code)
}

// identity is the certificate of all servers.
func identity(t testing.TB) sqltest.Options {
	t.Helper()
	servers.identity.Do(func() { servers.options.Certificate, servers.options.Key = certificate(t) })
	return servers.options
}

func postgresServer(t testing.TB) *sqltest.Server {
	t.Helper()
	return servers.postgres.get(t, func(t testing.TB) *sqltest.Server { return sqltest.StartPostgres(t, identity(t)) })
}

const long = 30 * time.Second

// open makes one session for the fields of a step.
func open(t testing.TB, fields drivertest.Fields, reads ...string) (*drivertest.Bench, drivers.Session) {
	t.Helper()
	b := drivertest.NewBench(t, New(), fields, drivers.Pool{Users: 1}, reads...)
	return b, b.Open()
}

// call prepares a step.
func prepare(t testing.TB, fields drivertest.Fields, reads ...string) drivers.Call {
	t.Helper()
	return drivertest.Prepare(t, New(), fields, reads...)
}

// rows does a call and returns its rows.
func rows(t testing.TB, b *drivertest.Bench, s drivers.Session, call drivers.Call) []map[string]any {
	t.Helper()
	r := b.DoCall(t.Context(), s, call, long)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	v, err := r.Answer.Value("rows")
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, row := range v.([]any) {
		out = append(out, row.(map[string]any))
	}
	return out
}

// must does a call that has to succeed.
func must(t testing.TB, b *drivertest.Bench, s drivers.Session, call drivers.Call) drivertest.Result {
	t.Helper()
	r := b.DoCall(t.Context(), s, call, long)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return r
}

// fails does a call that has to fail with kind, with text in its message.
func fails(t testing.TB, b *drivertest.Bench, s drivers.Session, call drivers.Call, timeout time.Duration, kind drivers.Failure, text string) drivertest.Result {
	t.Helper()
	r := b.DoCall(t.Context(), s, call, timeout)
	if r.Err == nil {
		t.Fatalf("the call did not fail, want %v", kind)
	}
	if got := drivers.KindOf(r.Err); got != kind || !strings.Contains(r.Err.Error(), text) {
		t.Fatalf("the call failed with %v: %v\nwant %v: ...%s...", got, r.Err, kind, text)
	}
	return r
}

// eventually waits for what a server does in its own time.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("does not happen: %s", what)
		}
	}
}

// admin is a session of its own that looks at and changes a server.
type admin struct {
	t testing.TB
	b *drivertest.Bench
	s drivers.Session
	f drivertest.Fields
}

func newAdmin(t testing.TB, dsn string) *admin {
	fields := drivertest.Fields{"dsn": dsn, "query": "SELECT 1"}
	b, s := open(t, fields)
	return &admin{t, b, s, fields}
}

// exec runs a statement, which may be several.
func (a *admin) exec(text string) {
	a.t.Helper()
	must(a.t, a.b, a.s, prepare(a.t, drivertest.Fields{"dsn": a.f["dsn"], "exec": text, "prepare": false}))
}

// one returns the only value of the only row.
func (a *admin) one(text string) any {
	a.t.Helper()
	got := rows(a.t, a.b, a.s, prepare(a.t, drivertest.Fields{"dsn": a.f["dsn"], "query": text, "prepare": false}, "rows"))
	if len(got) != 1 || len(got[0]) != 1 {
		a.t.Fatalf("%s: %v, want one value", text, got)
	}
	for _, v := range got[0] {
		return v
	}
	return nil
}

func (a *admin) count(text string) int { a.t.Helper(); return int(a.one(text).(int64)) }

func postgresDSN(s *sqltest.Server, addr string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", s.User, s.Password, addr, s.Database)
}

func mariadbServer(t testing.TB) *sqltest.Server {
	t.Helper()
	return servers.mariadb.get(t, func(t testing.TB) *sqltest.Server { return sqltest.StartMariaDB(t, identity(t)) })
}

func mysqlDSN(s *sqltest.Server, addr string) string {
	return fmt.Sprintf("mysql://%s:%s@%s/%s", s.User, s.Password, addr, s.Database)
}
