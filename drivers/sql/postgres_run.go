package sql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/planrun/planrun/drivers"
)

// run sends a statement in one of three ways: prepared before, and then bound in one round trip; parsed, bound and
// run in one round trip without a name; or, without arguments, as a simple query, which may hold several statements.
func (p *postgresConn) run(_ context.Context, r *request) error {
	c, f := r.call, p.frontend
	p.extended = c.prepare || len(r.args) > 0
	var st *postgresStatement
	switch {
	case c.prepare && c.text == nil:
		if st = p.prepared.byCall[c]; st == nil {
			var err error
			if st, err = p.prepareStatement(c, r.statement); err != nil {
				return err
			}
		}
		p.columns = st.columns
		p.encode(r.args)
		p.bind.PreparedStatement, p.bind.ResultFormatCodes = st.name, st.formats
		f.SendBind(&p.bind)
		f.SendExecute(&p.execute)
		f.SendSync(&p.sync)
	case c.prepare || len(r.args) > 0:
		p.encode(r.args)
		p.bind.PreparedStatement, p.bind.ResultFormatCodes = "", nil
		p.parse.Query, p.parse.ParameterOIDs, p.describe.ObjectType = r.statement.text, r.statement.types, 'P'
		f.SendParse(&p.parse)
		f.SendBind(&p.bind)
		f.SendDescribe(&p.describe)
		f.SendExecute(&p.execute)
		f.SendSync(&p.sync)
	default:
		p.query.String = r.statement.text
		f.SendQuery(&p.query)
	}
	if err := f.Flush(); err != nil {
		return err
	}
	err := p.read(r)
	if err != nil && st != nil {
		if said, ok := errors.AsType[*serverError](err); ok && stale(said) {
			p.prepared.forget(c)
			f.SendClose(&pgproto3.Close{ObjectType: 'S', Name: st.name}) // along with the next statement
		}
	}
	return err
}

// read reads up to the server's ReadyForQuery. r is nil for a statement of the driver's own.
func (p *postgresConn) read(r *request) error {
	var failure *serverError
	for {
		msg, err := p.frontend.Receive()
		if err != nil {
			if failure != nil {
				return failure // FATAL: the server said why, and closed
			}
			return err
		}
		switch m := msg.(type) {
		case *pgproto3.RowDescription:
			// Names cost allocations, so they are read only for those who look at them.
			if r == nil || r.call.keep {
				p.columns = describe(m)
			}
		case *pgproto3.DataRow:
			if r != nil {
				p.row(r, m.Values)
			}
		case *pgproto3.CopyData:
			if r != nil {
				r.arrive(int64(len(m.Data)))
			}
		case *pgproto3.CommandComplete:
			if r != nil {
				r.begin()
				r.answer.affected += affected(m.CommandTag)
			}
		case *pgproto3.EmptyQueryResponse:
			if r != nil {
				r.begin()
			}
		case *pgproto3.CopyInResponse:
			p.frontend.Send(&pgproto3.CopyFail{Message: "there is nothing to copy"})
			if p.extended {
				p.frontend.SendSync(&p.sync) // the server has ignored the one before
			}
			if err := p.frontend.Flush(); err != nil {
				return err
			}
		case *pgproto3.ErrorResponse:
			if r != nil {
				r.begin()
			}
			if failure == nil {
				failure = postgresError(m.SeverityUnlocalized, m.Code, m.Message, m.Detail, advice(r, m))
			}
		case *pgproto3.ReadyForQuery:
			p.status = m.TxStatus
			if failure != nil {
				return failure
			}
			return nil
		}
	}
}

// row counts a row, and keeps it if an expectation reads it.
func (p *postgresConn) row(r *request, values [][]byte) {
	var n int64
	for _, v := range values {
		n += int64(len(v))
	}
	r.arrive(n)
	if !r.answer.keeping() {
		return
	}
	row := make(map[string]any, len(values))
	for i, v := range values {
		if i < len(p.columns) {
			row[p.columns[i].name] = p.columns[i].value(v)
		}
	}
	r.answer.keep(row, n)
}

// prepareStatement has the server parse and describe a statement, and closes the oldest one if there are too many.
func (p *postgresConn) prepareStatement(c *call, s statement) (*postgresStatement, error) {
	p.names++
	st := &postgresStatement{name: "planrun_" + strconv.Itoa(p.names)}
	f := p.frontend
	f.SendParse(&pgproto3.Parse{Name: st.name, Query: s.text, ParameterOIDs: s.types})
	f.SendDescribe(&pgproto3.Describe{ObjectType: 'S', Name: st.name})
	f.SendSync(&pgproto3.Sync{})
	if err := f.Flush(); err != nil {
		return nil, err
	}
	p.columns = nil
	if err := p.read(nil); err != nil {
		return nil, err
	}
	st.columns = p.columns
	for i := range st.columns {
		// Text keeps what the server would show. Bytes are twice as long as text, so they come as they are.
		if st.columns[i].oid == oidBytea {
			st.columns[i].binary = true
		}
	}
	for _, col := range st.columns {
		if col.binary && st.formats == nil {
			st.formats = make([]int16, len(st.columns))
			for i := range st.columns {
				if st.columns[i].binary {
					st.formats[i] = pgproto3.BinaryFormat
				}
			}
		}
	}
	if old, full := p.prepared.add(c, st); full {
		// Sent along with what follows.
		f.SendClose(&pgproto3.Close{ObjectType: 'S', Name: old.name})
	}
	return st, nil
}

// encode puts arguments into the Bind message, as text, whose types the server knows or was told.
func (p *postgresConn) encode(args []any) {
	p.scratch = p.scratch[:0]
	params := p.bind.Parameters[:0]
	for _, a := range args {
		from := len(p.scratch)
		p.scratch = drivers.AppendText(p.scratch, a)
		if a == nil {
			params = append(params, nil)
			continue
		}
		params = append(params, p.scratch[from:len(p.scratch):len(p.scratch)])
	}
	// Growing has left earlier pieces in the old array, where they are still whole.
	p.bind.Parameters = params
}

// stale tells errors after which a prepared statement can't be used again: its result has another type since the
// tables were altered (0A000), or it is gone (26000).
func stale(e *serverError) bool { return e.code == "0A000" || e.code == "26000" }

// advice says what to do about errors that come of how the driver sends statements.
func advice(r *request, m *pgproto3.ErrorResponse) string {
	switch {
	case m.Code == "26000", m.Code == "42P05":
		return "write prepare: false if a pooler is in front of the database"
	case m.Code == "42601" && bytes.Contains([]byte(m.Message), []byte("multiple commands")):
		return "write prepare: false, without args, to send several statements in one text"
	}
	return ""
}

// affected returns the number of rows in the tag of a statement that changes rows, such as "INSERT 0 5".
func affected(tag []byte) int64 {
	verb, _, _ := bytes.Cut(tag, []byte{' '})
	switch string(verb) {
	case "INSERT", "UPDATE", "DELETE", "MERGE", "COPY":
		i := bytes.LastIndexByte(tag, ' ')
		n, _ := strconv.ParseInt(string(tag[i+1:]), 10, 64)
		return n
	}
	return 0
}

func describe(m *pgproto3.RowDescription) []postgresColumn {
	columns := make([]postgresColumn, 0, len(m.Fields))
	for i, f := range m.Fields {
		name := string(f.Name)
		if name == "" {
			name = unnamed(i)
		}
		columns = append(columns, postgresColumn{name: name, oid: f.DataTypeOID, binary: f.Format == pgproto3.BinaryFormat})
	}
	return columns
}

// unnamed names column i of a result that gives it no name.
func unnamed(i int) string { return fmt.Sprintf("column%d", i+1) }
