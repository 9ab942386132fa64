package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/planrun/planrun/lab"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if sharedOne != nil {
		sharedOne.Close()
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func listen(t testing.TB) *Postgres {
	t.Helper()
	p, err := Listen(t.Context(), lab.Service{Name: "db", Kind: lab.Postgres, Rows: 100, Payload: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *Postgres) dsn(options string) string {
	return "postgres://planrun@" + p.Address() + "/lab?sslmode=disable" + options
}

func connect(t testing.TB, p *Postgres, options string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), p.dsn(options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// The ways in which pgx can run a query.
var modes = []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"}

func eachMode(t *testing.T, p *Postgres, run func(t *testing.T, c *pgx.Conn)) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) { run(t, connect(t, p, "&default_query_exec_mode="+mode)) })
	}
}

func TestQueries(t *testing.T) {
	for _, test := range []struct {
		query string
		args  []any
		want  [][]any
	}{
		{"SELECT id, length(payload) FROM documents WHERE id = $1", []any{7}, [][]any{{int64(7), int64(1000)}}},
		{"select id from documents where id in ($1, $2) order by 1 desc", []any{3, 4}, [][]any{{int64(4)}, {int64(3)}}},
		{"SELECT id FROM documents WHERE id BETWEEN $1 AND $2", []any{5, 6}, [][]any{{int64(5)}, {int64(6)}}},
		{"SELECT id FROM documents ORDER BY id LIMIT $1 OFFSET $2", []any{1, 9}, [][]any{{int64(10)}}},
		{"SELECT count(*), max(id), avg(id) FROM documents", nil, [][]any{{int64(100), int64(100), 50.5}}},
		{"SELECT count(*) FROM documents WHERE length(payload) > $1", []any{999}, [][]any{{int64(100)}}},
		{"SELECT count(*) FROM accounts WHERE lower(owner) = $1", []any{"owner 5"}, [][]any{{int64(1)}}},
		{"SELECT count(*) FROM accounts WHERE substr(owner, 7) = $1", []any{"17"}, [][]any{{int64(1)}}},
		{"SELECT sum(amount) FROM accounts WHERE owner = $1", []any{"owner 3"}, [][]any{{int64(1000)}}},
		{"SELECT max(amount) FROM accounts WHERE owner = $1", []any{"nobody"}, [][]any{{nil}}},
		{"SELECT id FROM documents WHERE id = $1", []any{-1}, nil},
		{"SELECT 1, 1.5, 'it''s', NULL, true", nil, [][]any{{int64(1), 1.5, "it's", nil, int64(1)}}},
		{"SELECT $1::bigint + 1", []any{41}, [][]any{{int64(42)}}},
		{"SELECT $1::text || '!'", []any{"hey"}, [][]any{{"hey!"}}},
		{"SELECT length($1::text)", []any{"17"}, [][]any{{int64(2)}}},
		{"SELECT a.id FROM accounts AS a JOIN documents d ON d.id = a.id WHERE a.id = $1", []any{9}, [][]any{{int64(9)}}},
		{"SELECT /* a ; comment */ 'a;b' -- and another", nil, [][]any{{"a;b"}}},
		{"WITH few AS (SELECT id FROM documents LIMIT 3) SELECT count(*) FROM few", nil, [][]any{{int64(3)}}},
		{"SELECT current_database()", nil, [][]any{{"lab"}}},
		{"SELECT id FROM accounts WHERE owner ILIKE $1 FOR UPDATE", []any{"OWNER 12"}, [][]any{{int64(12)}}},
		{"VALUES (1, 'a'), (2, 'b')", nil, [][]any{{int64(1), "a"}, {int64(2), "b"}}},
		{"SHOW server_version", nil, [][]any{{version}}},
	} {
		t.Run(test.query, func(t *testing.T) {
			eachMode(t, shared(t), func(t *testing.T, c *pgx.Conn) {
				// Twice, for what is cached.
				for range 2 {
					rows, err := c.Query(t.Context(), test.query, test.args...)
					if err != nil {
						t.Fatal(err)
					}
					var got [][]any
					for rows.Next() {
						values, err := rows.Values()
						if err != nil {
							t.Fatal(err)
						}
						got = append(got, values)
					}
					if err := rows.Err(); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(test.want, got); diff != "" {
						t.Error(diff)
					}
				}
			})
		})
	}
}

var (
	sharedOnce sync.Once
	sharedOne  *Postgres
)

// shared is a service for tests that change nothing.
func shared(t *testing.T) *Postgres {
	t.Helper()
	sharedOnce.Do(func() {
		p, err := Listen(context.Background(), lab.Service{Name: "db", Kind: lab.Postgres, Rows: 100, Payload: 1000})
		if err != nil {
			t.Fatal(err)
		}
		sharedOne = p
	})
	return sharedOne
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		query, code, message string
	}{
		{"SELECT * FROM nowhere", undefinedTable, `relation "nowhere" does not exist`},
		{"SELECT colour FROM documents", undefinedColumn, `column "colour" does not exist`},
		{"SELEC 1", syntaxError, `syntax error at or near "SELEC"`},
		{"SELECT 1 FROM FROM", syntaxError, `syntax error at or near "FROM"`},
		{"SELECT (", syntaxError, "syntax error at end of input"},
		{"SELECT strange(1)", undefinedFunction, "function strange does not exist"},
		{"INSERT INTO accounts (id) VALUES (1)", uniqueViolation, "duplicate key value violates unique constraint on accounts.id"},
		{"INSERT INTO accounts (colour) VALUES (1)", undefinedColumn, `column "colour" of relation "accounts" does not exist`},
		{"INSERT INTO accounts VALUES (1)", syntaxError, "INSERT has not as many expressions as target columns"},
		{"CREATE TABLE documents (id int)", duplicateTable, `relation "documents" already exists`},
		{"COPY documents TO STDOUT", featureNotSupported, "COPY is not supported by the lab"},
		{"ATTACH DATABASE '/tmp/x' AS x", featureNotSupported, "ATTACH is not supported by the lab"},
	} {
		t.Run(test.query, func(t *testing.T) {
			eachMode(t, shared(t), func(t *testing.T, c *pgx.Conn) {
				_, err := c.Exec(t.Context(), test.query)
				got, ok := errors.AsType[*pgconn.PgError](err)
				if !ok {
					t.Fatalf("got %v, want %s", err, test.code)
				}
				if got.Code != test.code || got.Message != test.message {
					t.Errorf("got %s %q, want %s %q", got.Code, got.Message, test.code, test.message)
				}
				// The session goes on.
				var one int
				if err := c.QueryRow(t.Context(), "SELECT 1").Scan(&one); err != nil || one != 1 {
					t.Errorf("afterwards: %d, %v", one, err)
				}
			})
		})
	}
}

func TestChangesAndTags(t *testing.T) {
	eachMode(t, listen(t), func(t *testing.T, c *pgx.Conn) {
		for _, test := range []struct {
			query string
			args  []any
			want  string
		}{
			{"CREATE TABLE t (id integer primary key, n bigint, s text, f double precision, b bytea, ok boolean)", nil, "CREATE TABLE"},
			{"INSERT INTO t (n, s, f, b, ok) VALUES ($1, $2, $3, $4, $5), (NULL, NULL, NULL, NULL, NULL)",
				[]any{int64(1) << 40, "x", 2.5, []byte{0, 255}, true}, "INSERT 0 2"},
			{"UPDATE t SET n = n + $1 WHERE id = $2", []any{2, 1}, "UPDATE 1"},
			{"UPDATE t SET n = 0 WHERE id = 99", nil, "UPDATE 0"},
			{"DELETE FROM t WHERE n IS NULL", nil, "DELETE 1"},
			{"SET statement_timeout = 0", nil, "SET"},
			{"SELECT * FROM t", nil, "SELECT 1"},
			{"BEGIN", nil, "BEGIN"},
			{"COMMIT", nil, "COMMIT"},
			{"ROLLBACK", nil, "ROLLBACK"},
		} {
			tag, err := c.Exec(t.Context(), test.query, test.args...)
			if err != nil || tag.String() != test.want {
				t.Fatalf("%s: %q, %v, want %q", test.query, tag, err, test.want)
			}
		}
		var n int64
		var s string
		var f float64
		var b []byte
		var ok bool
		err := c.QueryRow(t.Context(), "SELECT n, s, f, b, ok FROM t WHERE id = $1", 1).Scan(&n, &s, &f, &b, &ok)
		if err != nil || n != 1<<40+2 || s != "x" || f != 2.5 || string(b) != "\x00\xff" || !ok {
			t.Errorf("%d %q %v %x %v, %v", n, s, f, b, ok, err)
		}
		if err := c.QueryRow(t.Context(), "INSERT INTO t (n) VALUES ($1) RETURNING id, n * 2", 21).Scan(&n, &f); err != nil || f != 42 {
			t.Errorf("returned %v, %v, %v", n, f, err)
		}
		if tag, err := c.Exec(t.Context(), "DROP TABLE t"); err != nil || tag.String() != "DROP TABLE" {
			t.Error(tag, err)
		}
	})
}

func TestTransactions(t *testing.T) {
	p := listen(t)
	c, other := connect(t, p, ""), connect(t, p, "")
	amount := func(c interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	}, id int) (n int64) {
		t.Helper()
		if err := c.QueryRow(t.Context(), "SELECT amount FROM accounts WHERE id = $1", id).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "UPDATE accounts SET amount = amount - $1 WHERE id = 1", 300); err != nil {
		t.Fatal(err)
	}
	if got := amount(tx, 1); got != 700 {
		t.Errorf("within the transaction: %d", got)
	}
	// Another that writes waits for the end; one that reads does not.
	amount(other, 2)
	done := make(chan error, 1)
	go func() {
		_, err := other.Exec(context.Background(), "UPDATE accounts SET amount = 5 WHERE id = 2")
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("two write at a time: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := amount(c, 1); got != 1000 {
		t.Errorf("after a rollback: %d", got)
	}

	// An error spoils a transaction.
	tx, err = c.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.Serializable})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "UPDATE accounts SET amount = 1 WHERE id = 3"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT wrong"); err == nil {
		t.Error("no error")
	}
	_, err = tx.Exec(t.Context(), "SELECT 1")
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != failedTransaction {
		t.Errorf("in a failed transaction: %v", err)
	}
	if c.PgConn().TxStatus() != 'E' {
		t.Errorf("state %c", c.PgConn().TxStatus())
	}
	if err := tx.Commit(t.Context()); !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Errorf("committing a failed transaction: %v", err)
	}
	if got := amount(c, 3); got != 1000 {
		t.Errorf("after a failed transaction: %d", got)
	}

	// One that is to change nothing.
	tx, err = c.BeginTx(t.Context(), pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	amount(tx, 1)
	_, err = tx.Exec(t.Context(), "DELETE FROM accounts")
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != readOnlyTransaction {
		t.Errorf("changing in a read-only transaction: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	// Savepoints, as pgx makes them.
	tx, err = c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tx.Exec(t.Context(), "UPDATE accounts SET amount = 1 WHERE id = 4")
	inner, err := tx.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	inner.Exec(t.Context(), "UPDATE accounts SET amount = 2 WHERE id = 4")
	inner.Exec(t.Context(), "SELECT wrong")
	if err := inner.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := amount(c, 4); got != 1 {
		t.Errorf("after a savepoint: %d", got)
	}
}

func TestSessionThatGoesLetsOthersWrite(t *testing.T) {
	p := listen(t)
	c := connect(t, p, "")
	if _, err := c.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "UPDATE accounts SET amount = 0"); err != nil {
		t.Fatal(err)
	}
	c.PgConn().Conn().(*net.TCPConn).SetLinger(0)
	c.PgConn().Conn().Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	other := connect(t, p, "")
	if _, err := other.Exec(ctx, "UPDATE accounts SET amount = amount + 1 WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := other.QueryRow(ctx, "SELECT amount FROM accounts WHERE id = 1").Scan(&n); err != nil || n != 1001 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestTransfersAtTheSameTime(t *testing.T) {
	p := listen(t)
	var running sync.WaitGroup
	for user := range 10 {
		running.Go(func() {
			c, err := pgx.Connect(t.Context(), p.dsn(""))
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close(context.Background())
			for i := range 10 {
				err := pgx.BeginFunc(t.Context(), c, func(tx pgx.Tx) error {
					var amount int
					if err := tx.QueryRow(t.Context(), "SELECT amount FROM accounts WHERE id = $1", user+1).Scan(&amount); err != nil {
						return err
					}
					if _, err := tx.Exec(t.Context(), "UPDATE accounts SET amount = amount - 1 WHERE id = $1", user+1); err != nil {
						return err
					}
					_, err := tx.Exec(t.Context(), "UPDATE accounts SET amount = amount + 1 WHERE id = $1", (user+i)%10+1)
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	var sum int
	if err := connect(t, p, "").QueryRow(t.Context(), "SELECT sum(amount) FROM accounts").Scan(&sum); err != nil || sum != 1_000_000 {
		t.Errorf("%d, %v", sum, err)
	}
}

func TestDatabaseSQL(t *testing.T) {
	p := listen(t)
	db, err := sql.Open("pgx", p.dsn(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	st, err := conn.PrepareContext(t.Context(), "SELECT payload FROM documents WHERE id = $1")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	before := p.Requests()
	for i := range 20 {
		var payload string
		if err := st.QueryRowContext(t.Context(), 1+i).Scan(&payload); err != nil || len(payload) != 1000 {
			t.Fatalf("%d bytes, %v", len(payload), err)
		}
	}
	if got := p.Requests() - before; got != 20 {
		t.Errorf("%d statements for 20 queries", got)
	}
	if p.Connections() != 1 {
		t.Errorf("%d connections", p.Connections())
	}
	var owner any
	var amount any
	if err := conn.QueryRowContext(t.Context(), "SELECT owner, amount FROM accounts WHERE id = $1", 17).Scan(&owner, &amount); err != nil ||
		owner != "owner 17" || amount != int64(1000) {
		t.Errorf("%v %v, %v", owner, amount, err)
	}
	var nothing sql.NullInt64
	if err := conn.QueryRowContext(t.Context(), "SELECT NULL").Scan(&nothing); err != nil || nothing.Valid {
		t.Errorf("%v, %v", nothing, err)
	}
	result, err := conn.ExecContext(t.Context(), "UPDATE accounts SET amount = $1 WHERE id < $2", 5, 4)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := result.RowsAffected(); n != 3 {
		t.Errorf("%d rows affected", n)
	}
}

func TestNames(t *testing.T) {
	eachMode(t, shared(t), func(t *testing.T, c *pgx.Conn) {
		rows, err := c.Query(t.Context(), `SELECT id, d.id, count(*), 1+1, id AS number, upper(payload) "Loud", max(id) m FROM documents d`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var got []string
		for _, f := range rows.FieldDescriptions() {
			got = append(got, f.Name)
		}
		if want := "id id count ?column? number Loud m"; strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestSeveralStatementsAtOnce(t *testing.T) {
	p := listen(t)
	c := connect(t, p, "")
	results, err := c.PgConn().Exec(t.Context(), "UPDATE accounts SET amount = 1 WHERE id = 1; SELECT 'a;b';; SELECT 2").ReadAll()
	if err != nil || len(results) != 3 || string(results[2].Rows[0][0]) != "2" {
		t.Errorf("%d results, %v", len(results), err)
	}
	// The first is undone when the second fails.
	if _, err := c.PgConn().Exec(t.Context(), "UPDATE accounts SET amount = 2 WHERE id = 1; SELECT wrong").ReadAll(); err == nil {
		t.Error("no error")
	}
	var n int
	if err := c.QueryRow(t.Context(), "SELECT amount FROM accounts WHERE id = 1").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	for _, empty := range []string{"", ";", "-- ping", " /* nothing */ ; "} {
		if results, err := c.PgConn().Exec(t.Context(), empty).ReadAll(); err != nil || len(results) > 1 {
			t.Errorf("%q: %d results, %v", empty, len(results), err)
		}
		if _, err := c.Exec(t.Context(), empty); err != nil {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestBatch(t *testing.T) {
	c := connect(t, listen(t), "")
	var b pgx.Batch
	for i := range 5 {
		b.Queue("SELECT id FROM documents WHERE id = $1", i+1)
	}
	b.Queue("SELECT wrong")
	b.Queue("SELECT 1")
	r := c.SendBatch(t.Context(), &b)
	defer r.Close()
	if _, err := r.Exec(); err == nil {
		// pgx prepares before it sends: the wrong one fails all, or its own place does.
		for range 4 {
			r.Exec()
		}
		if _, err := r.Exec(); err == nil {
			t.Error("a wrong statement in a batch succeeds")
		}
	}
}

func TestCancel(t *testing.T) {
	c := connect(t, listen(t), "")
	ctx, cancel := context.WithCancel(t.Context())
	const slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT count(*) FROM n"
	done := make(chan error, 1)
	go func() {
		_, err := c.PgConn().Exec(context.Background(), slow).ReadAll()
		done <- err
	}()
	time.Sleep(50 * time.Millisecond)
	if err := c.PgConn().CancelRequest(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-done:
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != queryCanceled {
			t.Errorf("got %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the query goes on")
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// What pgx does not do: asking for some of the rows, and then for more.
func TestSuspendedPortal(t *testing.T) {
	p := listen(t)
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	f := pgproto3.NewFrontend(conn, conn)
	f.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "planrun"}})
	f.Send(&pgproto3.Parse{Query: "BEGIN"})
	f.Send(&pgproto3.Bind{})
	f.Send(&pgproto3.Execute{})
	f.Send(&pgproto3.Parse{Query: "SELECT id FROM documents ORDER BY id"})
	f.Send(&pgproto3.Bind{})
	f.Send(&pgproto3.Describe{ObjectType: 'P'})
	f.Send(&pgproto3.Execute{MaxRows: 40})
	f.Send(&pgproto3.Sync{})
	f.Send(&pgproto3.Bind{DestinationPortal: "again"})
	f.Send(&pgproto3.Execute{Portal: "again"})
	f.Send(&pgproto3.Execute{MaxRows: 40})
	f.Send(&pgproto3.Execute{})
	f.Send(&pgproto3.Execute{})
	f.Send(&pgproto3.Sync{})
	f.Send(&pgproto3.Execute{Portal: "none"})
	f.Send(&pgproto3.Parse{Query: "never seen"})
	f.Send(&pgproto3.Sync{})
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	var got []string
	rows := 0
	for len(got) == 0 || got[len(got)-1] != "ready E" {
		m, err := f.Receive()
		if err != nil {
			t.Fatal(err, got)
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			rows++
		case *pgproto3.PortalSuspended:
			got = append(got, fmt.Sprintf("%d rows, suspended", rows))
		case *pgproto3.CommandComplete:
			got = append(got, string(m.CommandTag))
		case *pgproto3.ReadyForQuery:
			got = append(got, fmt.Sprintf("ready %c", m.TxStatus))
		case *pgproto3.ErrorResponse:
			got = append(got, m.Code)
		}
	}
	want := []string{
		"ready I", "BEGIN", "40 rows, suspended", "ready T", "SELECT 100",
		"180 rows, suspended", "SELECT 100", "SELECT 0", "ready T", undefinedCursor, "ready E",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCloseEndsSessions(t *testing.T) {
	p, err := Listen(t.Context(), lab.Service{Name: "db", Kind: lab.Postgres, Rows: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, p, "")
	done := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.Background(), "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
		done <- err
	}()
	time.Sleep(50 * time.Millisecond)
	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	for range 2 {
		select {
		case err := <-done:
			if err == nil {
				t.Error("an endless query ended well")
			}
		case err := <-closed:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("Close hangs")
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range []string{
		"SELECT $1::int, 'a''b', \"c\"\"d\", 1.5e-3 /* x /* y */ z */ -- w", "INSERT INTO t (a) VALUES ($1)", "'", "\"", "/*", "$", "$0", "x'ff",
		"(a).b::text", "f(x)::numeric(10,2)", "::", "SELECT a FROM b WHERE c IN ($1,$2) FOR UPDATE", "BEGIN;;COMMIT", "$99999999999",
		"UPDATE t SET a=$1 RETURNING a", "TABLE x", "TRUNCATE", "CAST($1 AS", "SHOW", "WITH", "LIMIT $1", "(,",
	} {
		f.Add(s)
	}
	s := &schema{
		tables:  map[string][]column{"t": {{"a", int8}, {"b", text}}},
		columns: map[string]oid{"a": int8, "b": text},
	}
	f.Fuzz(func(t *testing.T, sql string) {
		tokens := scan(sql)
		end := 0
		for _, tok := range tokens {
			if tok.from < end || tok.text == "" || sql[tok.from:tok.from+len(tok.text)] != tok.text {
				t.Fatalf("token %q at %d of %q", tok.text, tok.from, sql)
			}
			end = tok.from + len(tok.text)
		}
		for _, one := range split(tokens) {
			st, err := s.parse(one, nil)
			if err != nil {
				continue
			}
			if len(st.parameters) > 65535 {
				t.Fatal("too many parameters")
			}
			st.columns = []column{{"x", unknown}}
			st.finish(s, st.list())
		}
	})
}

func BenchmarkQuery(b *testing.B) {
	p, err := Listen(b.Context(), lab.Service{Name: "db", Kind: lab.Postgres})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	c := connect(b, p, "")
	defer c.Close(b.Context())
	i := 0
	for b.Loop() {
		i++
		var s string
		if err := c.QueryRow(b.Context(), "SELECT payload FROM documents WHERE id = $1", 1+i%1000).Scan(&s); err != nil {
			b.Fatal(err)
		}
	}
}
