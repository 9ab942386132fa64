package sql

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
	"github.com/planrun/planrun/drivers/sql/sqltest"
)

func payload(sqltest.TDSRequest) sqltest.TDSAnswer {
	return sqltest.TDSAnswer{Sets: []sqltest.TDSSet{{Columns: []string{"payload"}, Rows: [][]any{{strings.Repeat("x", 64)}}}}}
}

func TestSQLServerConformance(t *testing.T) {
	for _, args := range []any{nil, drivertest.Fields{"id": 7}} {
		name, query := "batch", "SELECT payload FROM documents"
		if args != nil {
			name, query = "procedure", query+" WHERE id = :id"
		}
		t.Run(name, func(t *testing.T) {
			var s *sqltest.TDS
			drivertest.Run(t, drivertest.Suite{
				Driver: New(),
				Serve: func(t testing.TB) drivertest.Server {
					s = sqltest.StartTDS(t, payload)
					return drivertest.Server{Addr: s.Addr, Requests: func() int { return len(s.Requests()) }}
				},
				Fields: func(addr string) drivertest.Fields {
					dsn := "sqlserver://" + addr + "?encrypt=disable"
					if s != nil {
						dsn = s.URLAt(addr)
					}
					f := drivertest.Fields{"dsn": dsn, "query": query}
					if args != nil {
						f["args"] = args
					}
					return f
				},
				// The library's, and those of the stand-in, which runs in the same process.
				Allocs: 200,
			})
		})
	}
}

func TestSQLServerArguments(t *testing.T) {
	s := sqltest.StartTDS(t, nil)
	b, session := open(t, drivertest.Fields{"dsn": s.URL(), "query": "SELECT 1"})
	long8k := strings.Repeat("y", 8192)
	must(t, b, session, prepare(t, drivertest.Fields{"dsn": s.URL(),
		"query": "SELECT :n, :f, :t, :b, :null, :long, :n, [a:t], ':n', @local FROM #tmp",
		"args":  drivertest.Fields{"n": 7, "f": 0.5, "t": "O'Hara", "b": true, "null": nil, "long": long8k}}))
	must(t, b, session, prepare(t, drivertest.Fields{"dsn": s.URL(), "exec": "DELETE FROM t WHERE id = @p1 AND x = @p2", "args": []any{1, "a"}}))
	must(t, b, session, prepare(t, drivertest.Fields{"dsn": s.URL(), "query": "SELECT 1"}))
	want := []sqltest.TDSRequest{
		{Procedure: true, Text: "SELECT @p1, @p2, @p3, @p4, @p5, @p6, @p1, [a:t], ':n', @local FROM #tmp", Args: []any{int64(7), 0.5, "O'Hara", true, nil, long8k}},
		{Procedure: true, Text: "DELETE FROM t WHERE id = @p1 AND x = @p2", Args: []any{int64(1), "a"}},
		{Text: "SELECT 1"},
	}
	if got := s.Requests(); !reflect.DeepEqual(got, want) {
		t.Errorf("the server received\n%#v\nwant\n%#v", got, want)
	}
}

func TestSQLServerReadsToTheEnd(t *testing.T) {
	many := sqltest.TDSSet{Columns: []string{"id", "name"}}
	for i := range 1000 {
		many.Rows = append(many.Rows, []any{int64(i), "row"})
	}
	missing := &sqltest.TDSError{Number: 208, Class: 16, Message: "Invalid object name 'boom'."}
	s := sqltest.StartTDS(t, func(r sqltest.TDSRequest) sqltest.TDSAnswer {
		switch {
		case strings.Contains(r.Text, "many"):
			return sqltest.TDSAnswer{Sets: []sqltest.TDSSet{many}}
		case strings.Contains(r.Text, "two"):
			return sqltest.TDSAnswer{Sets: []sqltest.TDSSet{
				{Columns: []string{"a", ""}, Rows: [][]any{{int64(1), nil}}},
				{Columns: []string{"b"}, Rows: [][]any{{"x"}, {"y"}}},
				{Columns: []string{"c"}}}}
		case strings.Contains(r.Text, "late"):
			return sqltest.TDSAnswer{Sets: []sqltest.TDSSet{many}, Error: missing}
		case strings.Contains(r.Text, "boom"):
			return sqltest.TDSAnswer{Error: missing}
		case strings.Contains(r.Text, "killed"):
			return sqltest.TDSAnswer{Error: &sqltest.TDSError{Number: 596, Class: 21, Message: "Cannot continue the execution because the session is in the kill state."}, Close: true}
		}
		return sqltest.TDSAnswer{Affected: 3}
	})
	b, session := open(t, drivertest.Fields{"dsn": s.URL(), "query": "SELECT 1"})
	for _, args := range []any{nil, []any{1}} {
		step := func(key, text string) drivers.Call {
			f := drivertest.Fields{"dsn": s.URL(), key: "SELECT * FROM " + text}
			if args != nil {
				f[key], f["args"] = f[key].(string)+" WHERE id = @p1", args
			}
			return prepare(t, f, map[string]string{"query": "rows", "exec": "affected"}[key])
		}
		if got := rows(t, b, session, step("query", "many")); len(got) != 1000 || !reflect.DeepEqual(got[999], map[string]any{"id": int64(999), "name": "row"}) {
			t.Errorf("%d rows, the last is %v", len(got), got[len(got)-1])
		}
		got := rows(t, b, session, step("query", "two"))
		if want := []map[string]any{{"a": int64(1), "column2": nil}, {"b": "x"}, {"b": "y"}}; !reflect.DeepEqual(got, want) {
			t.Errorf("several result sets: %v, want %v", got, want)
		}
		fails(t, b, session, step("query", "late"), long, drivers.Status, "Invalid object name 'boom'. (error 208)")
		fails(t, b, session, step("query", "boom"), long, drivers.Status, "208")
		fails(t, b, session, step("exec", "boom"), long, drivers.Status, "208")
		r := must(t, b, session, step("exec", "change"))
		if n, _ := r.Answer.Value("affected"); n != int64(3) {
			t.Errorf("affected %v, want 3", n)
		}
		if r.Opened {
			t.Error("an error of the server cost the connection")
		}
		fails(t, b, session, step("query", "killed"), long, drivers.Reset, "596")
		if r := must(t, b, session, step("query", "many")); !r.Opened {
			t.Error("the next call did not open a connection")
		}
	}
}

func TestSQLServerTransactionIsRolledBack(t *testing.T) {
	answer, inTransaction := sqltest.Transactions(func(sqltest.TDSRequest) sqltest.TDSAnswer {
		return sqltest.TDSAnswer{Error: &sqltest.TDSError{Number: 2627, Class: 14, Message: "Violation of PRIMARY KEY constraint."}}
	})
	s := sqltest.StartTDS(t, answer)
	b, session := open(t, drivertest.Fields{"dsn": s.URL(), "query": "SELECT 1"})
	must(t, b, session, prepare(t, drivertest.Fields{"dsn": s.URL(), "exec": "BEGIN TRANSACTION"}))
	if n := inTransaction(); n != 1 {
		t.Fatalf("%d transactions are open, want 1", n)
	}
	fails(t, b, session, prepare(t, drivertest.Fields{"dsn": s.URL(), "exec": "INSERT INTO t VALUES (1)"}), long, drivers.Status, "2627")
	if n := inTransaction(); n != 0 {
		t.Errorf("%d transactions are open after an error", n)
	}
	if n := s.Logins(); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}

func TestSQLServerLogin(t *testing.T) {
	s := sqltest.StartTDS(t, payload)
	b, session := open(t, drivertest.Fields{"dsn": s.URL(), "password": "wr0ng-secret", "query": "SELECT 1"})
	r := b.Fails(t.Context(), session, long, drivers.Refused)
	if text := r.Err.Error(); !strings.Contains(text, "Login failed for user 'tester'. (error 18456)") || strings.Contains(text, "secret") {
		t.Error(text)
	}
}

func TestSQLServerSilence(t *testing.T) {
	s := sqltest.StartTDS(t, func(sqltest.TDSRequest) sqltest.TDSAnswer { return sqltest.TDSAnswer{Hang: true} })
	b, session := open(t, drivertest.Fields{"dsn": s.URL(), "query": "SELECT 1"})
	const timeout = 300 * time.Millisecond
	for range 2 {
		if r := b.Fails(t.Context(), session, timeout, drivers.Timeout); !r.Opened || r.Service > timeout+10*time.Second {
			t.Errorf("opened %v, took %v", r.Opened, r.Service)
		}
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("the server received %d statements, want 2", n)
	}
}
