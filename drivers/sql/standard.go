package sql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"time"
)

// standard is a connection of a library made for database/sql, used without database/sql: its pool would send
// statements again when a connection breaks.
type standard struct {
	dialect dialect
	conn    driver.Conn
	wire    *wire // nil where there is no network
	// said turns what the server answered into a *serverError; other errors come back as they are.
	said func(error) error

	prepared statements[driver.Stmt]
	// open says that a transaction may be open; manual that one is whenever a statement has run.
	open, manual bool
	deadline     time.Time
	args         []driver.NamedValue
	values       []driver.Value
}

func (s *standard) run(ctx context.Context, r *request) error {
	st := r.statement
	s.manual = s.manual || st.manual
	s.open = s.open || st.opens || s.manual
	ctx, stop := s.context(ctx)
	defer stop()
	err := s.send(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // only without a network: elsewhere ctx never ends
		}
		return s.said(err)
	}
	if st.ends {
		s.open = false
	}
	return nil
}

// context is what the library gets. Where there is a network, the deadline is on the socket, and a context that never
// ends spares the library the goroutines that wait for its end.
func (s *standard) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.wire != nil {
		return context.Background(), func() {}
	}
	return context.WithDeadline(ctx, s.deadline)
}

func (s *standard) send(ctx context.Context, r *request) error {
	s.args = s.args[:0]
	for i, a := range r.args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	if !r.call.prepare && s.dialect != sqlserver {
		err := s.direct(ctx, r)
		if err != driver.ErrSkip {
			return err
		}
		// Nothing was sent: the library can't put the arguments into the text.
	}
	stmt := s.prepared.byCall[r.call]
	if stmt == nil {
		var err error
		if stmt, err = s.conn.(driver.ConnPrepareContext).PrepareContext(ctx, r.statement.text); err != nil {
			return err
		}
		if r.call.text != nil || !r.call.prepare {
			defer stmt.Close()
		} else if old, full := s.prepared.add(r.call, stmt); full {
			old.Close()
		}
	}
	if r.call.exec {
		result, err := stmt.(driver.StmtExecContext).ExecContext(ctx, s.args)
		return s.result(r, result, err)
	}
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(ctx, s.args)
	return s.read(r, rows, err)
}

// direct sends text without preparing it.
func (s *standard) direct(ctx context.Context, r *request) error {
	if r.call.exec {
		result, err := s.conn.(driver.ExecerContext).ExecContext(ctx, r.statement.text, s.args)
		return s.result(r, result, err)
	}
	rows, err := s.conn.(driver.QueryerContext).QueryContext(ctx, r.statement.text, s.args)
	return s.read(r, rows, err)
}

func (s *standard) result(r *request, result driver.Result, err error) error {
	if err != nil {
		return err
	}
	r.begin()
	// A library that does not know the number says so with an error; a statement that changes nothing has none.
	if n, err := result.RowsAffected(); err == nil {
		r.answer.affected = n
	}
	return nil
}

// read reads all rows of all result sets.
func (s *standard) read(r *request, rows driver.Rows, err error) (failure error) {
	if err != nil {
		return err
	}
	// An error that the server sent after the last row may only be found on closing.
	defer func() {
		if err := rows.Close(); failure == nil {
			failure = err
		}
	}()
	for {
		names := rows.Columns()
		if cap(s.values) < len(names) {
			s.values = make([]driver.Value, len(names))
		}
		s.values = s.values[:len(names)]
		for len(names) > 0 {
			if err := rows.Next(s.values); err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			var n int64
			for _, v := range s.values {
				n += size(v)
			}
			r.arrive(n)
			if r.answer.keeping() {
				r.answer.keep(s.row(rows, names), n)
			}
		}
		r.begin()
		more, ok := rows.(driver.RowsNextResultSet)
		if !ok || !more.HasNextResultSet() {
			return nil
		}
		if err := more.NextResultSet(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// row is the row in s.values as an expectation sees it.
func (s *standard) row(rows driver.Rows, names []string) map[string]any {
	types, _ := rows.(driver.RowsColumnTypeDatabaseTypeName)
	row := make(map[string]any, len(names))
	for i, name := range names {
		if name == "" {
			name = unnamed(i)
		}
		kind := ""
		if types != nil {
			kind = types.ColumnTypeDatabaseTypeName(i)
		}
		row[name] = value(s.values[i], kind)
	}
	return row
}

func (s *standard) inTransaction() bool { return s.open }

func (s *standard) rollback(ctx context.Context) error {
	ctx, stop := s.context(ctx)
	defer stop()
	text := "ROLLBACK"
	if s.dialect == sqlserver {
		text = "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION"
	}
	stmt, err := s.conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
	if err == nil {
		_, err = stmt.(driver.StmtExecContext).ExecContext(ctx, nil)
		stmt.Close()
	}
	if err != nil {
		if _, ok := errors.AsType[*serverError](s.said(err)); !ok {
			return err
		}
	}
	// An answer that there was nothing to roll back is as good.
	s.open = false
	return nil
}

func (s *standard) limit(deadline time.Time) bool {
	s.deadline = deadline
	if s.wire == nil {
		return true
	}
	s.wire.limit(deadline)
	// These servers say nothing unasked, except why they are about to close.
	return !s.wire.idle.Readable()
}

func (s *standard) expire() {
	if s.wire != nil {
		s.wire.expire()
	}
}

func (s *standard) cause() error {
	if s.wire == nil {
		return nil
	}
	return s.wire.err()
}

func (s *standard) abandon(bool) {
	if s.wire != nil {
		s.wire.Conn.Close()
	}
	s.conn.Close()
}

func (s *standard) close() {
	// Statements go with the connection at a server; a library that holds them itself wants them closed.
	if s.wire == nil {
		for _, stmt := range s.prepared.byCall {
			stmt.Close()
		}
	}
	s.conn.Close()
	if s.wire != nil {
		s.wire.Conn.Close()
	}
}

var (
	_ connection = (*standard)(nil)
	_ connection = (*postgresConn)(nil)
)

// standard makes a connection of what a library has logged in at over the wire of a.
func (c *client) standard(a *attempt, said func(error) error, conn driver.Conn, err error) (connection, error) {
	if err != nil {
		if a.wire != nil {
			a.wire.Conn.Close()
		}
		return nil, said(err)
	}
	return &standard{dialect: c.database.dialect, conn: conn, wire: a.wire, said: said}, nil
}
