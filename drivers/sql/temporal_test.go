package sql

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
	"github.com/planrun/planrun/drivers/sql/sqltest"
)

// times are the arguments of the tests below: a moment 500 ms after noon in UTC, written in another zone.
func times() drivertest.Fields {
	return drivertest.Fields{
		"at":    drivertest.Fields{"time": "2026-01-31T13:00:00.5+01:00"},
		"local": drivertest.Fields{"datetime": "2026-01-31 12:00:00"},
		"day":   drivertest.Fields{"date": "2026-01-31"},
		"none":  drivertest.Fields{"time": nil},
		"moves": drivertest.Fields{"time": drivertest.Func(func(*drivers.Input) any { return "2026-02-28T00:00:00Z" })},
	}
}

// The server is told what the arguments are: it could not know it from the statement, and takes text for text.
func TestPostgresTimes(t *testing.T) {
	s := postgresServer(t)
	b, session := open(t, drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT 1"})
	const query = `SELECT pg_typeof(:at)::text AS at, extract(epoch FROM :at)::float8 AS epoch, pg_typeof(:local)::text AS local, pg_typeof(:day)::text AS day,
		pg_typeof(:none)::text AS none, :none IS NULL AS null, extract(month FROM :moves AT TIME ZONE 'UTC')::int AS month, :text || '' AS text`
	want := []map[string]any{{"at": "timestamp with time zone", "epoch": 1769860800.5, "local": "timestamp without time zone", "day": "date",
		"none": "timestamp with time zone", "null": true, "month": int64(2), "text": "2026-01-31"}}
	for _, prepared := range []bool{true, false} {
		for _, moving := range []bool{true, false} { // the text of the statement
			args := times()
			args["text"] = "2026-01-31"
			fields := drivertest.Fields{"dsn": s.PostgresURL(), "query": query, "args": args, "prepare": prepared}
			if moving {
				fields["query"] = drivertest.Func(func(*drivers.Input) any { return query })
			}
			for range 2 {
				if got := rows(t, b, session, prepare(t, fields, "rows")); !reflect.DeepEqual(got, want) {
					t.Errorf("prepare %v, moving %v:\n got %#v\nwant %#v", prepared, moving, got, want)
				}
			}
		}
	}
	list := drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT pg_typeof($2)::text AS b, pg_typeof($1)::text AS a, $3 + 1 AS c",
		"args": []any{drivertest.Fields{"date": "2026-01-31"}, drivertest.Fields{"time": "2026-01-31T12:00:00Z"}, 41}}
	if got := rows(t, b, session, prepare(t, list, "rows")); !reflect.DeepEqual(got, []map[string]any{{"a": "date", "b": "timestamp with time zone", "c": int64(42)}}) {
		t.Errorf("a list: %v", got)
	}
	// The very same text is refused.
	fails(t, b, session, prepare(t, drivertest.Fields{"dsn": s.PostgresURL(), "query": "SELECT extract(epoch FROM :at)", "args": drivertest.Fields{"at": "2026-01-31T12:00:00Z"}}),
		long, drivers.Status, "SQLSTATE")
}

// As text, the value would be the number 2026 in a sum.
func TestMySQLTimes(t *testing.T) {
	s := mariadbServer(t)
	for _, c := range []struct{ parameters, at string }{
		{"", "20260131120000.500000"},
		{"?loc=Asia%2FTokyo", "20260131210000.500000"},
	} {
		dsn := s.MySQLURL() + c.parameters
		b, session := open(t, drivertest.Fields{"dsn": dsn, "query": "SELECT 1"})
		for _, prepared := range []bool{true, false} {
			const query = "SELECT CAST(:at + 0 AS CHAR) AS at, CAST(:local + 0 AS CHAR) AS local, CAST(:day + 0 AS CHAR) AS day, :none IS NULL AS none, MONTH(:moves) AS month"
			want := []map[string]any{{"at": c.at, "local": "20260131120000.000000", "day": "20260131", "none": int64(1), "month": int64(2)}}
			if got := rows(t, b, session, prepare(t, drivertest.Fields{"dsn": dsn, "query": query, "args": times(), "prepare": prepared}, "rows")); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, prepare %v:\n got %#v\nwant %#v", c.parameters, prepared, got, want)
			}
			list := drivertest.Fields{"dsn": dsn, "query": "SELECT '?' AS q, ? + 1 AS n, CAST(? + 0 AS CHAR) AS day /* ? */", "prepare": prepared,
				"args": []any{41, drivertest.Fields{"date": "2026-01-31"}}}
			if got := rows(t, b, session, prepare(t, list, "rows")); len(got) != 1 || got[0]["q"] != "?" || got[0]["n"] != int64(42) || got[0]["day"] != "20260131" {
				t.Errorf("a list: %v", got)
			}
		}
	}
}

func TestSQLServerTimes(t *testing.T) {
	s := sqltest.StartTDS(t, nil)
	b, session := open(t, drivertest.Fields{"dsn": s.URL(), "query": "SELECT 1"})
	must(t, b, session, prepare(t, drivertest.Fields{"dsn": s.URL(), "query": "SELECT :at, :local, :day, :none, :moves", "args": times()}))
	want := []any{
		sqltest.TDSTime{Type: "datetimeoffset", Text: "2026-01-31T13:00:00.5+01:00"}, sqltest.TDSTime{Type: "datetime2", Text: "2026-01-31T12:00:00"},
		sqltest.TDSTime{Type: "date", Text: "2026-01-31"}, nil, sqltest.TDSTime{Type: "datetimeoffset", Text: "2026-02-28T00:00:00Z"},
	}
	if got := s.Requests(); len(got) != 1 || !reflect.DeepEqual(got[0].Args, want) {
		t.Errorf("the server received\n%v\nwant\n%v", got, want)
	}
}

// SQLite has no type for times. Their text is what its own functions make, so that it compares with them.
func TestSQLiteTimes(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "x.db") + "?mode=rwc"
	b, session := open(t, drivertest.Fields{"dsn": dsn, "query": "SELECT 1"})
	args := times()
	args["whole"] = drivertest.Fields{"time": "2026-01-31T13:00:00+01:00"}
	query := `SELECT :at AS at, :whole = datetime('2026-01-31 12:00:00') AS same, :local = datetime('2026-01-31 12:00:00') AS local, :day = date('2026-01-31 12:00:00') AS day,
		strftime('%m', :moves) AS month, :none IS NULL AS none`
	want := []map[string]any{{"at": "2026-01-31 12:00:00.5", "same": int64(1), "local": int64(1), "day": int64(1), "month": "02", "none": int64(1)}}
	if got := rows(t, b, session, prepare(t, drivertest.Fields{"dsn": dsn, "query": query, "args": args}, "rows")); !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v\nwant %#v", got, want)
	}
}

func TestFaultsOfTimes(t *testing.T) {
	for _, c := range []struct {
		typed any
		want  string
	}{
		{drivertest.Fields{"time": "2026-01-31T12:00:00"}, `args.at.time: "2026-01-31T12:00:00" is not a time with an offset: write it as in 2026-01-31T12:00:00Z, or datetime: for a time without an offset`},
		{drivertest.Fields{"time": "2026-01-31"}, `args.at.time: "2026-01-31" is not a time with an offset: write it as in 2026-01-31T12:00:00Z, or date: for a date`},
		{drivertest.Fields{"time": "tomorrow"}, `args.at.time: "tomorrow" is not a time with an offset: write it as in 2026-01-31T12:00:00Z`},
		{drivertest.Fields{"time": "2026-02-30T12:00:00Z"}, `args.at.time: "2026-02-30T12:00:00Z" is not a time with an offset`},
		{drivertest.Fields{"time": "0000-01-01T12:00:00Z"}, `args.at.time: "0000-01-01T12:00:00Z" is not a time with an offset`},
		{drivertest.Fields{"time": 1769860800}, "args.at.time: 1769860800 is a number or a truth value, not a time with an offset: write it as in 2026-01-31T12:00:00Z"},
		{drivertest.Fields{"datetime": "2026-01-31T12:00:00Z"}, `args.at.datetime: "2026-01-31T12:00:00Z" is not a time without an offset: write it as in 2026-01-31T12:00:00, or time: for a time with an offset`},
		{drivertest.Fields{"date": "31.1.2026"}, `args.at.date: "31.1.2026" is not a date: write it as in 2026-01-31`},
		{drivertest.Fields{"date": "2026-01-31", "time": "2026-01-31T12:00:00Z"}, "args.at: an argument has one type: write one of time, datetime and date, with a value"},
		{drivertest.Fields{}, "args.at: an argument has one type: write one of time, datetime and date, with a value"},
	} {
		for _, dsn := range []string{"postgres://db.test/x", "mysql://db.test/x", "sqlserver://db.test", "sqlite:x.db"} {
			_, err := New().Prepare(drivertest.NewOp(t, New(), drivertest.Fields{"dsn": dsn, "query": "SELECT :at", "args": drivertest.Fields{"at": c.typed}}))
			if errs, ok := err.(drivers.FieldErrors); !ok || len(errs) != 1 || len(errs.Error()) < len(c.want) || errs.Error()[:len(c.want)] != c.want {
				t.Errorf("%v: got %v\nwant %s", c.typed, err, c.want)
			}
		}
	}
}

// What only the call shows to be wrong fails the call, and nothing is sent.
func TestWrongTimeOfACall(t *testing.T) {
	s := sqltest.StartTDS(t, nil)
	b, session := open(t, drivertest.Fields{"dsn": s.URL(), "query": "SELECT 1"})
	wrong := drivertest.Func(func(*drivers.Input) any { return "12:00" })
	call := prepare(t, drivertest.Fields{"dsn": s.URL(), "query": "SELECT :at", "args": drivertest.Fields{"at": drivertest.Fields{"time": wrong}}})
	fails(t, b, session, call, long, drivers.Expectation, `args: "12:00" is not a time with an offset`)
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d statements were sent", n)
	}
}
