package sql

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

func TestSQLite(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "a folder", "shop.db")
	b, session := open(t, drivertest.Fields{"dsn": dsn, "query": "SELECT 1"})
	if r := b.Fails(t.Context(), session, long, drivers.Refused); !strings.Contains(r.Err.Error(), "unable to open") {
		t.Errorf("a missing file: %v", r.Err)
	}

	dsn = "sqlite:" + filepath.Join(t.TempDir(), "shop.db")
	a := newAdmin(t, dsn+"?mode=rwc")
	a.exec("CREATE TABLE docs (id INTEGER PRIMARY KEY, price DECIMAL, name TEXT, data BLOB, at DATETIME, f REAL); INSERT INTO docs VALUES (1, 12.5, 'text', x'00ff', '2026-01-02 03:04:05', 1.5), (2, NULL, NULL, NULL, NULL, NULL)")
	b, session = open(t, drivertest.Fields{"dsn": dsn, "query": "SELECT 1"})
	for _, prepared := range []bool{true, false} {
		step := func(key, text string, args any) drivers.Call {
			f := drivertest.Fields{"dsn": dsn, key: text, "prepare": prepared}
			if args != nil {
				f["args"] = args
			}
			return prepare(t, f, map[string]string{"query": "rows", "exec": "affected"}[key])
		}
		for _, c := range []struct {
			query string
			args  any
		}{
			{"SELECT * FROM docs WHERE id = :id OR name = :name", drivertest.Fields{"id": 1, "name": ":id"}},
			{"SELECT * FROM docs WHERE id = ? AND id < ?", []any{1, 5}},
			{"SELECT * FROM docs WHERE id = ?1 AND id < ?2", []any{1, 5}},
			{"SELECT * FROM docs WHERE id = $1 AND id < $2", []any{1, 5}},
		} {
			want := []map[string]any{{"id": int64(1), "price": 12.5, "name": "text", "data": "\x00\xff", "at": "2026-01-02T03:04:05", "f": 1.5}}
			if got := rows(t, b, session, step("query", c.query, c.args)); !reflect.DeepEqual(got, want) {
				t.Errorf("prepare %v, %s:\n got %#v\nwant %#v", prepared, c.query, got, want)
			}
		}
		if got := rows(t, b, session, step("query", "SELECT * FROM docs WHERE id > ?", []any{100})); len(got) != 0 {
			t.Errorf("no rows: %v", got)
		}
		r := must(t, b, session, step("exec", "UPDATE docs SET name = :n WHERE id > :id", drivertest.Fields{"n": nil, "id": 1}))
		if n, _ := r.Answer.Number("affected"); n != 1 {
			t.Errorf("affected %v, want 1", n)
		}
		must(t, b, session, step("exec", "BEGIN", nil))
		must(t, b, session, step("exec", "DELETE FROM docs", nil))
		fails(t, b, session, step("exec", "INSERT INTO missing VALUES (1)", nil), long, drivers.Status, "no such table")
		if n := a.count("SELECT count(*) FROM docs"); n != 2 {
			t.Errorf("%d rows are left after an error in a transaction, want 2", n)
		}
		// A query that would run for ever ends at its deadline, and leaves the database usable.
		forever := step("query", "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n", nil)
		r = fails(t, b, session, forever, 200*time.Millisecond, drivers.Timeout, "")
		if r.Service > 10*time.Second {
			t.Errorf("the call took %v", r.Service)
		}
		must(t, b, session, step("query", "SELECT 1", nil))
	}
	if err := b.Client.Probe(t.Context()); err != nil {
		t.Error(err)
	}
}

func BenchmarkSQLite(b *testing.B) {
	dsn := "sqlite:" + filepath.Join(b.TempDir(), "bench.db") + "?mode=rwc"
	newAdmin(b, dsn).exec("CREATE TABLE documents (id INTEGER PRIMARY KEY, payload TEXT); INSERT INTO documents VALUES (7, '" + strings.Repeat("x", 8192) + "')")
	benchmark(b, drivertest.Fields{"dsn": dsn, "query": "SELECT payload FROM documents WHERE id = :id", "args": drivertest.Fields{"id": 7}})
}
