package sql

import (
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
	"github.com/planrun/planrun/drivers/sql/sqltest"
)

// setGlobal changes a setting of the server until restore. Sessions that are open may keep the old one.
func setGlobal(t *testing.T, s *sqltest.Server, name string, value int) (restore func()) {
	t.Helper()
	a := newAdmin(t, s.MySQLURL())
	before := a.count("SELECT @@GLOBAL." + name)
	a.exec(fmt.Sprintf("SET GLOBAL %s = %d", name, value))
	return func() { a.exec(fmt.Sprintf("SET GLOBAL %s = %d", name, before)) }
}

func TestMySQLConformance(t *testing.T) {
	s := mariadbServer(t)
	a := newAdmin(t, s.MySQLURL())
	a.exec("DO 0") // connects before the suite looks for what is left open
	var calls int
	drivertest.Run(t, drivertest.Suite{
		Driver: New(),
		Serve: func(t testing.TB) drivertest.Server {
			calls++
			name := fmt.Sprintf("calls_%d", calls)
			a.exec("DROP FUNCTION IF EXISTS hit")
			a.exec("DROP SEQUENCE IF EXISTS " + name)
			a.exec("CREATE SEQUENCE " + name + " NOCACHE")
			a.exec("CREATE FUNCTION hit() RETURNS BIGINT NOT DETERMINISTIC RETURN NEXTVAL(" + name + ")")
			return drivertest.Server{Addr: s.Addr, Requests: func() int {
				return a.count("SELECT next_not_cached_value - 1 FROM " + name)
			}}
		},
		Fields: func(addr string) drivertest.Fields {
			return drivertest.Fields{"dsn": mysqlDSN(s, addr), "query": "SELECT repeat('x', 64), hit() > :zero", "args": drivertest.Fields{"zero": 0}}
		},
		// The library's, for statements with their arguments and for rows.
		Allocs: 10,
		// The server speaks first, and garbage only answers: see TestMySQLGarbage.
		Skip: []string{"garbage"},
	})
}

func TestMySQLValues(t *testing.T) {
	s := mariadbServer(t)
	a := newAdmin(t, s.MySQLURL())
	a.exec("DROP TABLE IF EXISTS vals")
	a.exec("CREATE TABLE vals (small SMALLINT, big BIGINT UNSIGNED, f DOUBLE, price DECIMAL(10,2), yes BOOL, nothing INT, txt VARCHAR(20), bytes BLOB, at DATETIME(3), day DATE, span TIME)")
	a.exec("INSERT INTO vals VALUES (1, 2, 1.5, 12.50, true, NULL, 'text', x'00ff', '2026-01-02 03:04:05.6', '2026-01-02', '01:02:03')")
	b, session := open(t, drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT 1"})
	want := map[string]any{"small": int64(1), "big": int64(2), "f": 1.5, "price": 12.5, "yes": int64(1), "nothing": nil, "txt": "text", "bytes": "\x00\xff",
		"at": "2026-01-02T03:04:05.600", "day": "2026-01-02", "span": "01:02:03"}
	for _, prepared := range []bool{true, false} {
		call := prepare(t, drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT * FROM vals WHERE small = ?", "args": []any{1}, "prepare": prepared}, "rows")
		if got := rows(t, b, session, call); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("prepare %v:\n got %#v\nwant %#v", prepared, got, want)
		}
	}
}

func TestMySQLArguments(t *testing.T) {
	s := mariadbServer(t)
	b, session := open(t, drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT 1"})
	for _, prepared := range []bool{true, false} {
		var n int64 = 41
		call := prepare(t, drivertest.Fields{
			"dsn":     s.MySQLURL(),
			"query":   "SELECT :n + 0 AS n, :f AS f, :t AS t, :b = true AS b, :null AS none, :n + 1 AS more, ':n ?' AS literal -- :n",
			"prepare": prepared,
			"args":    drivertest.Fields{"n": drivertest.Func(func(*drivers.Input) any { n++; return n }), "f": 0.5, "t": "O'Hara; ? :n", "b": true, "null": nil},
		}, "rows")
		got := rows(t, b, session, call)
		if len(got) != 1 {
			t.Fatalf("prepare %v: %v", prepared, got)
		}
		for key, want := range map[string]any{"t": "O'Hara; ? :n", "b": int64(1), "none": nil, "literal": ":n ?", "n": int64(42), "more": int64(43), "f": 0.5} {
			if got[0][key] != want {
				t.Errorf("prepare %v: %s is %#v, want %#v", prepared, key, got[0][key], want)
			}
		}
	}
}

func TestMySQLReadsToTheEnd(t *testing.T) {
	s := mariadbServer(t)
	a := newAdmin(t, s.MySQLURL())
	a.exec("DROP PROCEDURE IF EXISTS two")
	a.exec("CREATE PROCEDURE two() BEGIN SELECT 1 AS a; SELECT 'x' AS b UNION ALL SELECT 'y'; END")
	a.exec("DROP PROCEDURE IF EXISTS broken")
	a.exec("CREATE PROCEDURE broken() BEGIN SELECT 1 AS a; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'late trouble'; END")
	a.exec("DROP TABLE IF EXISTS changed")
	a.exec("CREATE TABLE changed (id INT)")
	b, session := open(t, drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT 1"})
	for _, prepared := range []bool{true, false} {
		step := func(key, text string) drivers.Call {
			return prepare(t, drivertest.Fields{"dsn": s.MySQLURL(), key: text, "prepare": prepared}, map[string]string{"query": "rows", "exec": "affected"}[key])
		}
		got := rows(t, b, session, step("query", "CALL two()"))
		if want := []map[string]any{{"a": int64(1)}, {"b": "x"}, {"b": "y"}}; !reflect.DeepEqual(got, want) {
			t.Errorf("prepare %v: several result sets: %v, want %v", prepared, got, want)
		}
		fails(t, b, session, step("query", "CALL broken()"), long, drivers.Status, "late trouble (error 1644, SQLSTATE 45000)")
		fails(t, b, session, step("exec", "CALL broken()"), long, drivers.Status, "late trouble")
		if got := rows(t, b, session, step("query", "SELECT 1 AS x FROM dual WHERE false")); len(got) != 0 {
			t.Errorf("no rows: %v", got)
		}
		if got := rows(t, b, session, step("query", "SELECT NULL AS x")); len(got) != 1 || got[0]["x"] != nil {
			t.Errorf("NULL: %v", got)
		}
		r := must(t, b, session, step("exec", "INSERT INTO changed VALUES (1), (2), (3)"))
		if n, _ := r.Answer.Number("affected"); n != 3 {
			t.Errorf("affected %v, want 3", n)
		}
		if r := must(t, b, session, step("exec", "DELETE FROM changed")); r.Opened {
			t.Error("an error of the server cost the connection")
		}
	}
}

func TestMySQLTransactionIsRolledBack(t *testing.T) {
	s := mariadbServer(t)
	a := newAdmin(t, s.MySQLURL())
	b, session := open(t, drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT 1"})
	step := func(exec string) drivers.Call {
		return prepare(t, drivertest.Fields{"dsn": s.MySQLURL(), "exec": exec, "prepare": false})
	}
	a.exec("DROP TABLE IF EXISTS ledger")
	a.exec("CREATE TABLE ledger (id INT) ENGINE=InnoDB")
	a.exec("INSERT INTO ledger VALUES (1)")
	locked := prepare(t, drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT id FROM ledger FOR UPDATE NOWAIT", "prepare": false}, "rows")
	must(t, b, session, step("START TRANSACTION"))
	must(t, b, session, step("UPDATE ledger SET id = 2"))
	fails(t, a.b, a.s, locked, long, drivers.Status, "1205")
	fails(t, b, session, step("INSERT INTO nothing_of_the_kind VALUES (1)"), long, drivers.Status, "1146")
	if got := rows(t, a.b, a.s, locked); len(got) != 1 || got[0]["id"] != int64(1) {
		t.Errorf("after an error in a transaction the table has %v, want what it had before", got)
	}
	if r := must(t, b, session, step("SELECT 1")); r.Opened {
		t.Error("the rollback cost the connection")
	}
}

// A server that closes idle connections: the next call succeeds over another one.
func TestMySQLIdleConnectionIsReplaced(t *testing.T) {
	s := mariadbServer(t)
	defer setGlobal(t, s, "wait_timeout", 1)()
	b, session := open(t, drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT repeat('x', 64)"})
	for i := range 2 {
		if r := b.Must(session); !r.Opened {
			t.Errorf("call %d used the connection that the server has closed", i)
		}
		if r := b.Must(session); r.Opened {
			t.Errorf("call %d opened another connection", i)
		}
		time.Sleep(1500 * time.Millisecond)
	}
}

func TestMySQLKilled(t *testing.T) {
	s := mariadbServer(t)
	a := newAdmin(t, s.MySQLURL())
	b, session := open(t, drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT 1"})
	id := prepare(t, drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT connection_id() AS id"}, "rows")
	sleep := prepare(t, drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT sleep(20)"})
	number := rows(t, b, session, id)[0]["id"]
	var killer sync.WaitGroup
	killer.Go(func() {
		time.Sleep(300 * time.Millisecond)
		a.exec(fmt.Sprintf("KILL %d", number))
	})
	fails(t, b, session, sleep, long, drivers.Reset, "")
	killer.Wait()
	if r := must(t, b, session, id); !r.Opened {
		t.Error("the next call did not open a connection")
	}
	number = rows(t, b, session, id)[0]["id"]
	a.exec(fmt.Sprintf("KILL %d", number))
	eventually(t, "the session is gone", func() bool {
		return a.count(fmt.Sprintf("SELECT count(*) FROM information_schema.processlist WHERE id = %d", number)) == 0
	})
	if r := must(t, b, session, id); !r.Opened {
		t.Error("the session that was killed while idle was not replaced")
	}
}

func TestMySQLGarbage(t *testing.T) {
	for _, greeting := range []string{"HTTP/1.1 400 Bad Request\r\n\r\n", "\x00\x00\x00\x00", "\xff\xff\xff\x00", "\x05\x00\x00\x00\x0a5.5"} {
		peer := drivertest.NewPeer(t, func(c net.Conn) {
			c.Write([]byte(greeting))
			c.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, c)
		})
		b, session := open(t, drivertest.Fields{"dsn": "mysql://tester@" + peer.Addr() + "/app", "query": "SELECT 1"})
		b.Fails(t.Context(), session, long, drivers.Protocol, drivers.Reset)
		if n := peer.Opened(); n != 1 {
			t.Errorf("%q: %d connections were opened, want 1", greeting, n)
		}
	}
}

func TestMySQLSilence(t *testing.T) {
	s := mariadbServer(t)
	relay := drivertest.NewRelay(t, s.Addr)
	b, session := open(t, drivertest.Fields{"dsn": mysqlDSN(s, relay.Addr()), "query": "SELECT repeat('x', 1000) FROM seq_1_to_10000"})
	const timeout = 300 * time.Millisecond
	for _, after := range []int64{0, 5, 100, 1_000_000} {
		relay.FreezeAfter(after)
		if r := b.Fails(t.Context(), session, timeout, drivers.Timeout); r.Service > timeout+10*time.Second {
			t.Errorf("silent after %d bytes: the call took %v", after, r.Service)
		}
		relay.Thaw()
	}
	if r := b.Must(session); r.BytesIn != 10_000_000 {
		t.Errorf("%d bytes in, want 10000000", r.BytesIn)
	}
}

// Statements do not pile up at the server, and the error is named when the plan itself has too many.
func TestMySQLPreparedStatements(t *testing.T) {
	const users, limit = 20, 50
	s := mariadbServer(t)
	defer setGlobal(t, s, "max_prepared_stmt_count", limit)()
	a := newAdmin(t, s.MySQLURL())
	changing := prepare(t, drivertest.Fields{"dsn": s.MySQLURL(), "args": []any{1},
		"query": drivertest.Mix{"SELECT ", func(in *drivers.Input) any { return in.Iteration }, " + ?"}})
	b := drivertest.NewBench(t, New(), drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT 1"}, drivers.Pool{Users: users})
	var sessions []drivers.Session
	for range users {
		sessions = append(sessions, b.Open())
	}
	var wg sync.WaitGroup
	for u, session := range sessions {
		wg.Go(func() {
			for i := range 10 {
				in := drivers.Input{Iteration: int64(u*10 + i), User: u, Deadline: time.Now().Add(long)}
				var out drivers.Outcome
				out.Reset()
				if err := session.Do(t.Context(), changing, &in, &out); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	status := func() string {
		call := prepare(t, drivertest.Fields{"dsn": s.MySQLURL(), "query": "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'", "prepare": false}, "rows")
		return fmt.Sprint(rows(t, b, a.s, call)[0]["Value"])
	}
	if n := status(); n != "0" {
		t.Errorf("%s statements are prepared, want none", n)
	}
	// Three statements a user, kept: 60 of them.
	var refused int
	for _, session := range sessions {
		for i := range 3 {
			r := b.DoCall(t.Context(), session, prepare(t, drivertest.Fields{"dsn": s.MySQLURL(), "query": fmt.Sprintf("SELECT %d + ?", i), "args": []any{1}}), long)
			if r.Err == nil {
				continue
			}
			refused++
			if drivers.KindOf(r.Err) != drivers.Status || !strings.Contains(r.Err.Error(), "1461") || !strings.Contains(r.Err.Error(), "prepare: false") {
				t.Errorf("%v: %v", drivers.KindOf(r.Err), r.Err)
			}
		}
	}
	if refused != users*3-limit {
		t.Errorf("%d statements were refused, want %d", refused, users*3-limit)
	}
}

func TestMySQLTooManyClients(t *testing.T) {
	s := mariadbServer(t)
	defer setGlobal(t, s, "max_connections", 10)()
	b := drivertest.NewBench(t, New(), drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT 1"}, drivers.Pool{Users: 12})
	var refused int
	for range 14 {
		r := b.Do(t.Context(), b.Open(), long)
		if r.Err == nil {
			continue
		}
		refused++
		if drivers.KindOf(r.Err) != drivers.Refused || !strings.Contains(r.Err.Error(), "1040") {
			t.Errorf("%v: %v", drivers.KindOf(r.Err), r.Err)
		}
	}
	if refused == 0 {
		t.Error("no connection was refused")
	}
}

func BenchmarkMySQL(b *testing.B) {
	s := mariadbServer(b)
	for _, bb := range []struct {
		name     string
		prepared bool
	}{{"prepared", true}, {"unprepared", false}} {
		b.Run(bb.name, func(b *testing.B) {
			benchmark(b, drivertest.Fields{"dsn": s.MySQLURL(), "query": "SELECT repeat('x', 8192) WHERE :id > 0", "prepare": bb.prepared, "args": drivertest.Fields{"id": 7}})
		})
	}
}
