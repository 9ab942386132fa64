package sql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"

	gosqlite "modernc.org/sqlite"
)

func (d *database) parseSQLite(rest string) *flaw {
	if d.secure != nil {
		return &flaw{message: "a file has no TLS", hint: "leave tls: out"}
	}
	file, params, _ := strings.Cut(rest, "?")
	file = strings.TrimPrefix(file, "file:")
	switch {
	case strings.HasPrefix(file, "///"):
		file = file[2:]
	case strings.HasPrefix(file, "//"):
		file = file[2:]
	}
	if file == "" {
		return &flaw{message: "the path of the database file is missing", hint: "write sqlite:path"}
	}
	query, err := url.ParseQuery(params)
	if err != nil {
		return &flaw{message: "the DSN's parameters can't be used", hint: "write them as ?_pragma=busy_timeout(5000)&mode=ro"}
	}
	memory := file == ":memory:" || query.Get("mode") == "memory"
	if !memory && !query.Has("mode") {
		query.Set("mode", "rw") // a misspelt path is an error, not an empty database
	}
	d.name = "sqlite:" + file
	d.path = "file:" + (&url.URL{Path: file}).EscapedPath() + "?" + query.Encode()
	d.url = d.path
	return nil
}

func (c *client) openSQLite(ctx context.Context) (connection, error) {
	var conn driver.Conn
	var err error
	if err = ctx.Err(); err == nil {
		conn, err = (&gosqlite.Driver{}).Open(c.database.path)
	}
	return c.standard(&attempt{}, sqliteSaid, conn, err)
}

// sqliteSaid recognizes what the database answered.
func sqliteSaid(err error) error {
	e, ok := errors.AsType[*gosqlite.Error](err)
	if !ok {
		return err
	}
	text := e.Error()
	if code := fmt.Sprintf("(%d)", e.Code()); !strings.Contains(text, code) {
		text += " " + code
	}
	return &serverError{code: fmt.Sprint(e.Code()), text: text}
}
