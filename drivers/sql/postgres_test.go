package sql

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

func TestPostgresConformance(t *testing.T) {
	s := postgresServer(t)
	a := newAdmin(t, s.PostgresURL())
	drivertest.Run(t, drivertest.Suite{
		Driver: New(),
		Serve: func(t testing.TB) drivertest.Server {
			name := fmt.Sprintf("calls_%d", time.Now().UnixNano())
			a.exec("DROP TABLE IF EXISTS current; CREATE SEQUENCE " + name + "; CREATE TABLE current AS SELECT '" + name + "'::regclass AS name")
			return drivertest.Server{Addr: s.Addr, Requests: func() int {
				return a.count("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM " + name)
			}}
		},
		Fields: func(addr string) drivertest.Fields {
			return drivertest.Fields{"dsn": postgresDSN(s, addr), "query": "SELECT repeat('x', 64), nextval(name) > :zero FROM current", "args": drivertest.Fields{"zero": 0}}
		},
	})
}

func TestPostgresValues(t *testing.T) {
	s := postgresServer(t)
	b, session := open(t, drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT 1"})
	const query = `SELECT 1::int2 AS small, 2::int8 AS big, 1.5::float8 AS float, 12.50::numeric AS dec, 12::numeric AS whole, true AS yes, NULL::int AS nothing,
		'text' AS text, '\x00ff'::bytea AS bytes, '2026-01-02 03:04:05.6+00'::timestamptz AS at, '2026-01-02 03:04:05'::timestamp AS local,
		'2026-01-02'::date AS day, '{1,2}'::int[] AS list, 'infinity'::timestamp AS never, 'NaN'::float8::text AS nan`
	want := map[string]any{"small": int64(1), "big": int64(2), "float": 1.5, "dec": 12.5, "whole": int64(12), "yes": true, "nothing": nil,
		"text": "text", "bytes": "\x00\xff", "at": "2026-01-02T03:04:05.6Z", "local": "2026-01-02T03:04:05",
		"day": "2026-01-02", "list": "{1,2}", "never": "infinity", "nan": "NaN"}
	for _, prepared := range []bool{true, false} {
		for _, args := range []any{nil, []any{1}} {
			fields := drivertest.Fields{"dsn": s.PostgresURL(), "query": query, "prepare": prepared}
			if args != nil {
				fields["query"], fields["args"] = query+" WHERE 1 = $1", args
			}
			got := rows(t, b, session, prepare(t, fields, "rows"))
			if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
				t.Errorf("prepare %v, args %v:\n got %#v\nwant %#v", prepared, args, got, want)
			}
		}
	}
}

func TestPostgresArguments(t *testing.T) {
	s := postgresServer(t)
	b, session := open(t, drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT 1"})
	var in int64
	for _, prepared := range []bool{true, false} {
		call := prepare(t, drivertest.Fields{
			"dsn":     s.PostgresURL(),
			"query":   "SELECT :n::int AS n, :f::float8 AS f, :t AS t, :b::bool AS b, :null::text AS none, :at::timestamptz AS at, :n + 1 AS more, ':n' AS literal",
			"prepare": prepared,
			"args": drivertest.Fields{"n": drivertest.Func(func(*drivers.Input) any { in++; return in }), "f": 0.5, "t": "O'Hara; $1 :n", "b": true, "null": nil,
				"at": "2026-01-02T03:04:05Z"},
		}, "rows")
		in = 41
		want := map[string]any{"n": int64(42), "f": 0.5, "t": "O'Hara; $1 :n", "b": true, "none": nil, "at": "2026-01-02T03:04:05Z", "more": int64(43), "literal": ":n"}
		if got := rows(t, b, session, call); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("prepare %v:\n got %#v\nwant %#v", prepared, got, want)
		}
	}
}

func TestPostgresAffected(t *testing.T) {
	s := postgresServer(t)
	a := newAdmin(t, s.PostgresURL())
	a.exec("DROP TABLE IF EXISTS changed; CREATE TABLE changed (id int)")
	b, session := open(t, drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT 1"})
	for _, c := range []struct {
		exec string
		want int64
	}{
		{"INSERT INTO changed SELECT generate_series(1, 10)", 10},
		{"UPDATE changed SET id = id + 1 WHERE id > 5", 5},
		{"DELETE FROM changed WHERE id > 100", 0},
		{"SELECT * FROM changed", 0},
		{"DELETE FROM changed", 10},
	} {
		r := must(t, b, session, prepare(t, drivertest.Fields{"dsn": s.PostgresURL(), "exec": c.exec}, "affected"))
		if got, _ := r.Answer.Value("affected"); got != c.want {
			t.Errorf("%s: affected %v, want %d", c.exec, got, c.want)
		}
		if n, ok := r.Answer.Number("affected"); !ok || n != float64(c.want) {
			t.Errorf("%s: affected as number %v, %v", c.exec, n, ok)
		}
	}
}

// NULL, no rows, several result sets, an error after rows: all is read to the end.
func TestPostgresReadsToTheEnd(t *testing.T) {
	s := postgresServer(t)
	b, session := open(t, drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT 1"})
	step := func(query string, prepared bool) drivers.Call {
		return prepare(t, drivertest.Fields{"dsn": s.PostgresURL(), "query": query, "prepare": prepared}, "rows")
	}
	if got := rows(t, b, session, step("SELECT 1 AS x WHERE false", true)); len(got) != 0 {
		t.Errorf("no rows: %v", got)
	}
	if got := rows(t, b, session, step("SELECT NULL::text AS x", true)); len(got) != 1 || got[0]["x"] != nil {
		t.Errorf("NULL: %v", got)
	}
	got := rows(t, b, session, step("SELECT 1 AS a; SELECT 'x' AS b UNION ALL SELECT 'y'; SELECT 2 AS c WHERE false", false))
	if want := []map[string]any{{"a": int64(1)}, {"b": "x"}, {"b": "y"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("several result sets: %v, want %v", got, want)
	}
	r := fails(t, b, session, step("SELECT 10 / (5 - n) FROM generate_series(1, 9) n", true), long, drivers.Status, "SQLSTATE 22012")
	if r.Success {
		t.Error("an answer that ends in an error is a success")
	}
	fails(t, b, session, step("SELECT 1; SELECT 1 / 0; SELECT 3", false), long, drivers.Status, "22012")
	fails(t, b, session, step("SELECT 1; SELECT 2", true), long, drivers.Status, "write prepare: false")
	for _, prepared := range []bool{true, false} {
		fails(t, b, session, step("COPY pg_type FROM STDIN", prepared), long, drivers.Status, "57014")
		if r := must(t, b, session, step("COPY (SELECT repeat('x', 100) FROM generate_series(1, 10)) TO STDOUT", prepared)); r.BytesIn != 1010 {
			t.Errorf("copying out gave %d bytes, want 1010", r.BytesIn)
		}
		must(t, b, session, step("-- nothing", prepared))
	}
	// The connection is still in order, and the same.
	if r := must(t, b, session, step("SELECT 1", true)); r.Opened {
		t.Error("an error of the server cost the connection")
	}
}

func TestPostgresTransactionIsRolledBack(t *testing.T) {
	s := postgresServer(t)
	a := newAdmin(t, s.PostgresURL())
	b, session := open(t, drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT 1"})
	step := func(exec string) drivers.Call {
		return prepare(t, drivertest.Fields{"dsn": s.PostgresURL(), "exec": exec})
	}
	inTransaction := func() int {
		return a.count("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'")
	}
	must(t, b, session, step("BEGIN"))
	if n := inTransaction(); n != 1 {
		t.Fatalf("%d sessions are in a transaction, want 1", n)
	}
	fails(t, b, session, step("SELECT * FROM nothing_of_the_kind"), long, drivers.Status, "42P01")
	if n := inTransaction(); n != 0 {
		t.Errorf("%d sessions are in a transaction after an error", n)
	}
	if r := must(t, b, session, step("SELECT 1")); r.Opened {
		t.Error("the rollback cost the connection")
	}
	must(t, b, session, step("BEGIN"))
	must(t, b, session, step("COMMIT"))
	if n := inTransaction(); n != 0 {
		t.Errorf("%d sessions are in a transaction after a commit", n)
	}
	// A timeout inside a transaction ends it with the connection.
	must(t, b, session, step("BEGIN"))
	fails(t, b, session, step("SELECT pg_sleep(30)"), 100*time.Millisecond, drivers.Timeout, "")
	eventually(t, "the transaction is over", func() bool {
		return a.count("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' OR query LIKE '%pg_sleep(30)' AND state = 'active' AND pid <> pg_backend_pid()") == 0
	})
	if r := must(t, b, session, step("SELECT 1")); !r.Opened {
		t.Error("the connection of a timeout was used again")
	}
}

// A session that is ended by the server, in the middle of a statement and while idle.
func TestPostgresTerminated(t *testing.T) {
	s := postgresServer(t)
	a := newAdmin(t, s.PostgresURL())
	b, session := open(t, drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT 1"})
	pid := prepare(t, drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT pg_backend_pid() AS pid"}, "rows")
	first := rows(t, b, session, pid)[0]["pid"]

	a.exec(fmt.Sprintf("SELECT pg_terminate_backend(%d)", first))
	eventually(t, "the session is gone", func() bool {
		return a.count(fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE pid = %d", first)) == 0
	})
	r := must(t, b, session, pid)
	if !r.Opened {
		t.Error("the session that was terminated while idle was not replaced")
	}
	second := rows(t, b, session, pid)[0]["pid"]

	var killer sync.WaitGroup
	killer.Go(func() {
		time.Sleep(200 * time.Millisecond)
		a.exec(fmt.Sprintf("SELECT pg_terminate_backend(%d)", second))
	})
	sleep := prepare(t, drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT pg_sleep(20)"})
	fails(t, b, session, sleep, long, drivers.Reset, "57P01")
	killer.Wait()
	if r := must(t, b, session, pid); !r.Opened {
		t.Error("the next call did not open a connection")
	}
	// One that ends inside a transaction is not: the next statement belongs into it.
	must(t, b, session, prepare(t, drivertest.Fields{"dsn": s.PostgresURL(), "exec": "BEGIN"}))
	third := rows(t, b, session, pid)[0]["pid"]
	a.exec(fmt.Sprintf("SELECT pg_terminate_backend(%d)", third))
	eventually(t, "the session is gone", func() bool {
		return a.count(fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE pid = %d", third)) == 0
	})
	fails(t, b, session, pid, long, drivers.Reset, "inside a transaction")
	must(t, b, session, pid)
	// What the server says unasked is no reason to give a connection up.
	a.exec("ALTER SYSTEM SET DateStyle = 'ISO, DMY'")
	a.exec("SELECT pg_reload_conf()")
	time.Sleep(100 * time.Millisecond)
	if r := must(t, b, session, pid); r.Opened {
		t.Error("a changed setting cost the connection")
	}
	a.exec("ALTER SYSTEM RESET DateStyle")
	a.exec("SELECT pg_reload_conf()")
}

func TestPostgresPreparesOnce(t *testing.T) {
	s := postgresServer(t)
	b, session := open(t, drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT 1"})
	step := func(fields drivertest.Fields) drivers.Call {
		fields["dsn"] = s.PostgresURL()
		return prepare(t, fields, "rows")
	}
	known := func() int64 {
		return rows(t, b, session, step(drivertest.Fields{"query": "SELECT count(*) AS n FROM pg_prepared_statements", "prepare": false}))[0]["n"].(int64)
	}
	call := step(drivertest.Fields{"query": "SELECT $1::int", "args": []any{1}})
	for range 5 {
		must(t, b, session, call)
	}
	if n := known(); n != 1 {
		t.Errorf("%d statements are prepared after 5 calls, want 1", n)
	}
	// Text that changes from call to call is not kept at the server.
	changing := step(drivertest.Fields{"query": drivertest.Mix{"SELECT ", func(in *drivers.Input) any { return in.Iteration }, " + $1"}, "args": []any{1}})
	for range 5 {
		must(t, b, session, changing)
	}
	if n := known(); n != 1 {
		t.Errorf("%d statements are prepared after changing text, want 1", n)
	}
	for i := range maxPrepared + 20 {
		must(t, b, session, step(drivertest.Fields{"query": fmt.Sprintf("SELECT %d + $1", i), "args": []any{1}}))
	}
	if n := known(); n != maxPrepared {
		t.Errorf("%d statements are prepared after %d, want %d", n, maxPrepared+21, maxPrepared)
	}
	must(t, b, session, call) // given up meanwhile, so prepared again
	// A table that changed its shape makes a prepared statement useless once, not for good.
	a := newAdmin(t, s.PostgresURL())
	a.exec("DROP TABLE IF EXISTS shape; CREATE TABLE shape (x int)")
	shape := step(drivertest.Fields{"query": "SELECT * FROM shape"})
	must(t, b, session, shape)
	a.exec("ALTER TABLE shape ALTER x TYPE text")
	fails(t, b, session, shape, long, drivers.Status, "0A000")
	must(t, b, session, shape)
}

// The deadline holds when the server goes silent in the handshake, and within a large answer.
func TestPostgresSilence(t *testing.T) {
	s := postgresServer(t)
	relay := drivertest.NewRelay(t, s.Addr)
	b, session := open(t, drivertest.Fields{"dsn": postgresDSN(s, relay.Addr()), "query": "SELECT repeat('x', 1000) FROM generate_series(1, 10000)"})
	for _, after := range []int64{0, 5, 100, 1_000_000} {
		timeout := 300 * time.Millisecond
		if after == 1_000_000 {
			timeout = 2 * time.Second // for the login and some of the answer
		}
		relay.FreezeAfter(after)
		r := b.Fails(t.Context(), session, timeout, drivers.Timeout)
		if r.Service > timeout+10*time.Second {
			t.Errorf("silent after %d bytes: the call took %v", after, r.Service)
		}
		if after == 1_000_000 && (r.BytesIn < 100_000 || r.BytesIn > 1_000_000) {
			t.Errorf("silent after %d bytes: %d bytes in", after, r.BytesIn)
		}
		relay.Thaw()
	}
	if r := b.Must(session); r.BytesIn != 10_000_000 {
		t.Errorf("%d bytes in, want 10000000", r.BytesIn)
	}
}

// connect_timeout bounds connecting alone, timeout the whole call.
func TestPostgresTimeouts(t *testing.T) {
	s := postgresServer(t)
	relay := drivertest.NewRelay(t, s.Addr)
	relay.FreezeAfter(0)
	b, session := open(t, drivertest.Fields{"dsn": postgresDSN(s, relay.Addr()), "query": "SELECT pg_sleep(0.5)", "connect_timeout": 2 * time.Second})
	if r := b.Fails(t.Context(), session, long, drivers.Timeout); r.Service > long/2 || !strings.Contains(r.Err.Error(), "the server said nothing") {
		t.Errorf("connect_timeout: %v after %v", r.Err, r.Service)
	}
	relay.Thaw()
	if r := b.Must(session); r.TTFB < 500*time.Millisecond {
		t.Errorf("a query of 0.5 s had its first row after %v", r.TTFB)
	}
	b.Must(session)
	b.Fails(t.Context(), session, 100*time.Millisecond, drivers.Timeout)
}

func TestPostgresTooManyClients(t *testing.T) {
	s := postgresServer(t)
	newAdmin(t, s.PostgresURL()).exec("DROP ROLE IF EXISTS limited; CREATE ROLE limited LOGIN PASSWORD 's3cret-limited' CONNECTION LIMIT 5")
	fields := drivertest.Fields{"dsn": s.PostgresURL(), "user": "limited", "password": "s3cret-limited", "query": "SELECT pg_sleep(0.02)"}
	b := drivertest.NewBench(t, New(), fields, drivers.Pool{Users: 7})
	var refused, ok int
	for range 7 {
		session := b.Open()
		r := b.Do(t.Context(), session, long)
		switch {
		case r.Err == nil:
			ok++
		case drivers.KindOf(r.Err) == drivers.Refused && strings.Contains(r.Err.Error(), "53300"):
			refused++
		default:
			t.Errorf("%v: %v", drivers.KindOf(r.Err), r.Err)
		}
	}
	if ok != 5 || refused != 2 {
		t.Errorf("%d calls were answered and %d refused, want 5 and 2", ok, refused)
	}
}
