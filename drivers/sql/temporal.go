package sql

import (
	"fmt"
	"time"

	"github.com/golang-sql/civil"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/planrun/planrun/drivers"
)

// temporal is the type of an argument that a plan gives as {time: ...}, {datetime: ...} or {date: ...}.
type temporal uint8

const (
	untyped   temporal = iota // none of them
	instant                   // a moment: date, time of day, and offset from UTC
	wallClock                 // date and time of day, wherever that is
	day                       // a date
)

var temporals = [...]struct {
	key     string
	layout  string // what a plan writes
	example string
	oid     uint32 // PostgreSQL's type
	cast    string // MySQL's, whose library sends times as text
	plain   string // for SQLite, which has no such types: the form that its own functions make
}{
	instant:   {"time", time.RFC3339Nano, "2026-01-31T12:00:00Z", pgtype.TimestamptzOID, "DATETIME(6)", "2006-01-02 15:04:05.999999999"},
	wallClock: {"datetime", "2006-01-02T15:04:05.999999999", "2026-01-31T12:00:00", pgtype.TimestampOID, "DATETIME(6)", "2006-01-02 15:04:05.999999999"},
	day:       {"date", time.DateOnly, "2026-01-31", pgtype.DateOID, "DATE", time.DateOnly},
}

// temporalFields are the types that an argument may be given.
func temporalFields() []drivers.Field {
	return []drivers.Field{
		{
			Key: "time", Kind: drivers.Scalar, Title: "moment",
			Doc: "A moment, with its offset from UTC (RFC 3339). PostgreSQL gets it as `timestamptz`, SQL Server as `datetimeoffset`; MySQL as `DATETIME(6)` in the zone that the DSN's `loc` names, " +
				"UTC without one; SQLite as text in UTC. `null` stays null.", Examples: []string{temporals[instant].example},
		},
		{
			Key: "datetime", Kind: drivers.Scalar, Title: "date and time of day",
			Doc: "A date and a time of day without an offset: `timestamp`, `datetime2`, `DATETIME(6)`, text for SQLite.", Examples: []string{temporals[wallClock].example},
		},
		{
			Key: "date", Kind: drivers.Scalar, Title: "date",
			Doc: "A date: `date`, and text for SQLite.", Examples: []string{temporals[day].example},
		},
	}
}

func temporalOf(key string) temporal {
	for k, t := range temporals {
		if t.key == key {
			return temporal(k)
		}
	}
	return untyped
}

// parse reads a value as a plan or its data has it. known is false for null.
func (k temporal) parse(v any) (t time.Time, known bool, err error) {
	if v == nil {
		return t, false, nil
	}
	s, ok := v.(string)
	if !ok {
		s = string(drivers.AppendText(nil, v))
		return t, false, fmt.Errorf("%s is a number or a truth value, not %s: write it as in %s", s, k.what(), temporals[k].example)
	}
	if t, err = time.Parse(temporals[k].layout, joined(s)); err == nil && t.Year() > 0 {
		return t, true, nil
	}
	hint := "write it as in " + temporals[k].example
	for other := instant; other <= day; other++ {
		if _, err := time.Parse(temporals[other].layout, joined(s)); other != k && err == nil {
			hint = fmt.Sprintf("%s, or %s: for %s", hint, temporals[other].key, other.what())
		}
	}
	return t, false, fmt.Errorf("%q is not %s: %s", s, k.what(), hint)
}

// joined has a T between date and time, for which a space may stand as well (RFC 3339, section 5.6).
func joined(s string) string {
	if len(s) > 10 && s[10] == ' ' {
		return s[:10] + "T" + s[11:]
	}
	return s
}

// what is what a value is, with its article.
func (k temporal) what() string {
	switch k {
	case instant:
		return "a time with an offset"
	case wallClock:
		return "a time without an offset"
	}
	return "a date"
}

// value is what the database's library gets: text whose type the statement says, or a value that has one.
func (k temporal) value(db *database, v any) (any, error) {
	t, known, err := k.parse(v)
	if err != nil || !known {
		return nil, err
	}
	switch db.dialect {
	case postgres:
		return t.Format(temporals[k].layout), nil
	case sqlserver:
		switch k {
		case wallClock:
			return civil.DateTimeOf(t), nil
		case day:
			return civil.DateOf(t), nil
		}
		return t, nil
	case mysql:
		if k == instant {
			t = t.In(db.mysql.Loc)
		}
	case sqlite:
		t = t.UTC()
	}
	return t.Format(temporals[k].plain), nil
}

// marked is a placeholder of MySQL for an argument of the type.
func (k temporal) marked(placeholder string) string {
	if k == untyped {
		return placeholder
	}
	return "CAST(" + placeholder + " AS " + temporals[k].cast + ")"
}
