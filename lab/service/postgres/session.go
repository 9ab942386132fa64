package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// session is one connection of a client. All of it but cancel is for its own goroutine.
type session struct {
	service *Postgres
	conn    net.Conn
	backend *pgproto3.Backend
	db      *sql.Conn
	types   *pgtype.Map
	pending int // bytes of rows not flushed
	row     []byte

	ctx context.Context // ends with the connection

	prepared map[string]*prepared
	portals  map[string]*portal

	transaction bool
	readOnly    bool // the transaction changes nothing
	failed      bool // only a rollback helps
	writing     bool // holds the service's writer
	skipping    bool // until Sync, after an error

	number uint32
	secret []byte
	mu     sync.Mutex
	stop   context.CancelFunc // of the statement that runs; nil if none does
}

// prepared is a statement, and SQLite's form of it once it was run.
type prepared struct {
	*statement
	compiled *sql.Stmt
	busy     bool // a portal reads rows of compiled
}

// portal is a statement with its parameters. A query keeps its rows while it is suspended.
type portal struct {
	of      *prepared // nil for an empty statement
	args    []any
	formats []int16
	rows    *sql.Rows
	owner   bool  // of the compiled statement, while there are rows
	ahead   []any // a row that was read to tell the types
	sent    int64
	release func() // ends the statement's context
	done    bool
}

// flushAt is how many bytes of rows are collected before they are sent.
const flushAt = 32 << 10

// largestMessage bounds what a client may make the service hold.
const largestMessage = 64 << 20

func (s *session) run() error {
	s.backend = pgproto3.NewBackend(s.conn, s.conn)
	s.backend.SetMaxBodyLen(largestMessage)
	if started, err := s.startup(); !started {
		return err
	}
	var err error
	if s.db, err = s.service.db.Conn(s.ctx); err != nil {
		s.backend.Send(explain(err).response())
		return s.backend.Flush()
	}
	defer s.end()
	s.types = pgtype.NewMap()
	s.prepared, s.portals = map[string]*prepared{}, map[string]*portal{}
	s.ready()
	for {
		if err := s.backend.Flush(); err != nil {
			return err
		}
		for {
			message, err := s.backend.Receive()
			if err != nil {
				return err
			}
			if _, ok := message.(*pgproto3.Terminate); ok {
				return nil
			}
			if flush := s.handle(message); flush {
				break
			}
		}
	}
}

// startup greets the client. It is false when the connection was for something else.
func (s *session) startup() (bool, error) {
	for {
		message, err := s.backend.ReceiveStartupMessage()
		if err != nil {
			return false, err
		}
		switch m := message.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			if _, err := s.conn.Write([]byte("N")); err != nil {
				return false, err
			}
		case *pgproto3.CancelRequest:
			s.service.cancel(m.ProcessID, m.SecretKey)
			return false, nil
		case *pgproto3.StartupMessage:
			s.secret = make([]byte, 4)
			rand.Read(s.secret)
			s.service.enter(s)
			s.backend.Send(&pgproto3.AuthenticationOk{})
			for _, name := range []string{
				"server_version", "server_encoding", "client_encoding", "DateStyle", "IntervalStyle", "TimeZone",
				"integer_datetimes", "standard_conforming_strings", "is_superuser",
			} {
				s.backend.Send(&pgproto3.ParameterStatus{Name: name, Value: setting(name)})
			}
			for _, name := range []string{"application_name", "user"} {
				if value := m.Parameters[name]; value != "" {
					if name == "user" {
						name = "session_authorization"
					}
					s.backend.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
				}
			}
			s.backend.Send(&pgproto3.BackendKeyData{ProcessID: s.number, SecretKey: s.secret})
			return true, nil
		default:
			return false, fmt.Errorf("unexpected message %T", m)
		}
	}
}

// end gives back what the session holds.
func (s *session) end() {
	s.service.leave(s)
	for name := range s.portals {
		s.closePortal(name)
	}
	for name := range s.prepared {
		s.closePrepared(name)
	}
	if s.transaction {
		s.db.ExecContext(context.Background(), "ROLLBACK")
	}
	s.stopWriting()
	s.db.Close()
}

// handle answers one message, and tells whether the client waits for what was answered.
func (s *session) handle(message pgproto3.FrontendMessage) (flush bool) {
	if m, ok := message.(*pgproto3.Query); ok {
		s.skipping = false
		if err := s.simple(m.String); err != nil {
			s.report(err)
		}
		s.ready()
		return true
	}
	switch message.(type) {
	case *pgproto3.Sync:
		s.skipping = false
		s.ready()
		return true
	case *pgproto3.Flush:
		return true
	}
	if s.skipping {
		return false
	}
	var err error
	switch m := message.(type) {
	case *pgproto3.Parse:
		err = s.parse(m)
	case *pgproto3.Bind:
		err = s.bind(m)
	case *pgproto3.Describe:
		err = s.describe(m)
	case *pgproto3.Execute:
		err = s.execute(m)
	case *pgproto3.Close:
		if m.ObjectType == 'S' {
			s.closePrepared(m.Name)
		} else {
			s.closePortal(m.Name)
		}
		s.backend.Send(&pgproto3.CloseComplete{})
	default:
		err = fail(protocolViolation, "unexpected message")
	}
	if err != nil {
		s.report(err)
		s.skipping = true
	}
	return false
}

func (s *session) report(err error) {
	f := explain(err)
	if s.service.ctx.Err() != nil {
		f = &failure{adminShutdown, "terminating connection due to administrator command"}
	}
	s.failed = s.transaction
	s.backend.Send(f.response())
}

// ready tells the client that it may go on, and in which state of a transaction. Outside of one, portals do not live on.
func (s *session) ready() {
	status := byte('I')
	switch {
	case s.failed:
		status = 'E'
	case s.transaction:
		status = 'T'
	}
	if !s.transaction {
		for name := range s.portals {
			s.closePortal(name)
		}
	}
	s.backend.Send(&pgproto3.ReadyForQuery{TxStatus: status})
}

// simple runs the statements of one Query message. Several are one transaction, unless they begin or end one themselves.
func (s *session) simple(text string) error {
	all := split(scan(text))
	if len(all) == 0 {
		s.backend.Send(&pgproto3.EmptyQueryResponse{})
		return nil
	}
	implicit := len(all) > 1 && !s.transaction
	for _, tokens := range all {
		for _, verb := range []string{"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"} {
			implicit = implicit && !tokens[0].is(verb)
		}
	}
	if implicit {
		if _, err := s.db.ExecContext(s.ctx, "BEGIN"); err != nil {
			return err
		}
		s.transaction = true
	}
	err := s.simpleEach(all)
	if implicit {
		s.transaction, s.failed = false, false
		how := "COMMIT"
		if err != nil {
			how = "ROLLBACK"
		}
		if _, end := s.db.ExecContext(s.ctx, how); err == nil {
			err = end
		}
		s.stopWriting()
	}
	return err
}

func (s *session) simpleEach(all [][]token) error {
	for _, tokens := range all {
		st, err := s.service.schema.Load().parse(tokens, nil)
		if err != nil {
			return err
		}
		if len(st.parameters) > 0 {
			return fail(syntaxError, "there is no parameter $1")
		}
		p := &portal{of: &prepared{statement: st}}
		err = s.runPortal(p, 0, true)
		p.close()
		p.of.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) parse(m *pgproto3.Parse) error {
	all := split(scan(m.Query))
	if len(all) > 1 {
		return fail(syntaxError, "cannot insert multiple commands into a prepared statement")
	}
	var p *prepared
	if len(all) == 1 {
		st, err := s.service.parse(m.Query, all[0], m.ParameterOIDs)
		if err != nil {
			return err
		}
		p = &prepared{statement: st}
		if old := s.prepared[m.Name]; old != nil && old.statement == st {
			p = old // what was compiled serves again
		} else if st.action == query || st.action == command {
			if err := s.compile(p); err != nil {
				return err
			}
		}
	}
	if old := s.prepared[m.Name]; old != p {
		s.closePrepared(m.Name)
	}
	s.prepared[m.Name] = p
	s.backend.Send(&pgproto3.ParseComplete{})
	return nil
}

// compile has SQLite compile a statement, which tells whether it makes sense.
func (s *session) compile(p *prepared) error {
	if p.compiled != nil {
		return nil
	}
	var err error
	p.compiled, err = s.db.PrepareContext(s.ctx, p.sql)
	return err
}

func (p *prepared) close() {
	if p != nil && p.compiled != nil {
		p.compiled.Close()
		p.compiled = nil
	}
}

func (s *session) closePrepared(name string) {
	s.prepared[name].close()
	delete(s.prepared, name)
}

func (s *session) closePortal(name string) {
	if p := s.portals[name]; p != nil {
		p.close()
		delete(s.portals, name)
	}
}

func (p *portal) close() {
	if p.rows != nil {
		p.rows.Close()
		p.rows = nil
	}
	if p.owner {
		p.owner, p.of.busy = false, false
	}
	if p.release != nil {
		p.release()
		p.release = nil
	}
}

func (s *session) bind(m *pgproto3.Bind) error {
	of, ok := s.prepared[m.PreparedStatement]
	if !ok {
		return fail(undefinedStatement, "prepared statement %q does not exist", m.PreparedStatement)
	}
	p := &portal{of: of, formats: m.ResultFormatCodes}
	if of != nil {
		if len(m.Parameters) != len(of.parameters) {
			return fail(protocolViolation, "bind message supplies %d parameters, but prepared statement %q requires %d",
				len(m.Parameters), m.PreparedStatement, len(of.parameters))
		}
		p.args = make([]any, len(m.Parameters))
		for i, b := range m.Parameters {
			v, err := decode(s.types, of.parameters[i], formatAt(m.ParameterFormatCodes, i), b)
			if err != nil {
				return err
			}
			// Bytes are the message's, which the next one overwrites.
			if b, ok := v.([]byte); ok {
				v = append([]byte{}, b...)
			}
			p.args[i] = v
		}
	}
	s.closePortal(m.DestinationPortal)
	s.portals[m.DestinationPortal] = p
	s.backend.Send(&pgproto3.BindComplete{})
	return nil
}

// formatAt is the format of the value at i: none given is text, one given is for all.
func formatAt(formats []int16, i int) int16 {
	switch {
	case len(formats) == 1:
		return formats[0]
	case i < len(formats):
		return formats[i]
	}
	return asText
}

func (s *session) describe(m *pgproto3.Describe) error {
	if m.ObjectType == 'S' {
		of, ok := s.prepared[m.Name]
		if !ok {
			return fail(undefinedStatement, "prepared statement %q does not exist", m.Name)
		}
		if of == nil {
			s.backend.Send(&pgproto3.ParameterDescription{})
			s.backend.Send(&pgproto3.NoData{})
			return nil
		}
		if err := s.describeStatement(of); err != nil {
			return err
		}
		kinds := make([]uint32, len(of.parameters))
		for i, k := range of.parameters {
			kinds[i] = uint32(k)
		}
		s.backend.Send(&pgproto3.ParameterDescription{ParameterOIDs: kinds})
		s.rowDescription(of.columns, nil)
		return nil
	}
	p, ok := s.portals[m.Name]
	if !ok {
		return fail(undefinedCursor, "portal %q does not exist", m.Name)
	}
	if p.of == nil {
		s.backend.Send(&pgproto3.NoData{})
		return nil
	}
	if err := s.describeStatement(p.of); err != nil {
		return err
	}
	s.rowDescription(p.of.columns, p.formats)
	return nil
}

// describeStatement finds a statement's columns, once for all sessions.
func (s *session) describeStatement(p *prepared) error {
	if err := s.usable(p.statement); err != nil {
		return err
	}
	return s.service.describe(s.ctx, s.db, p.statement)
}

func (s *session) rowDescription(columns []column, formats []int16) {
	if len(columns) == 0 {
		s.backend.Send(&pgproto3.NoData{})
		return
	}
	fields := make([]pgproto3.FieldDescription, len(columns))
	for i, c := range columns {
		fields[i] = pgproto3.FieldDescription{
			Name: []byte(c.name), DataTypeOID: uint32(c.kind), DataTypeSize: c.kind.size(), TypeModifier: -1,
			Format: formatAt(formats, i),
		}
	}
	s.backend.Send(&pgproto3.RowDescription{Fields: fields})
}

func (s *session) execute(m *pgproto3.Execute) error {
	p, ok := s.portals[m.Portal]
	if !ok {
		return fail(undefinedCursor, "portal %q does not exist", m.Portal)
	}
	return s.runPortal(p, int64(m.MaxRows), false)
}

// usable is an error when a transaction has failed and a statement does not end it, or is to change nothing and a
// statement does.
func (s *session) usable(st *statement) error {
	if s.failed && st.action != rollback && st.action != commit && !(st.tokens[0].is("ROLLBACK") && st.action == command) {
		return fail(failedTransaction, "current transaction is aborted, commands ignored until end of transaction block")
	}
	if s.readOnly && st.writes {
		return fail(readOnlyTransaction, "cannot execute %s in a read-only transaction", upperCase(st.tokens[0].text))
	}
	return nil
}

// runPortal runs a statement, or goes on with it, and answers with up to most rows; 0 is no limit. With described, the
// answer begins with what the rows are.
func (s *session) runPortal(p *portal, most int64, described bool) error {
	if p.of == nil {
		s.backend.Send(&pgproto3.EmptyQueryResponse{})
		return nil
	}
	st := p.of.statement
	if p.done {
		s.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(st.complete(0))})
		return nil
	}
	if err := s.usable(st); err != nil {
		return err
	}
	switch st.action {
	case query:
		return s.query(p, most, described)
	case command:
		return s.command(p)
	case show:
		if described {
			s.rowDescription(st.columns, nil)
		}
		s.backend.Send(&pgproto3.DataRow{Values: [][]byte{[]byte(setting(st.columns[0].name))}})
	case begin, commit, rollback:
		return s.transact(p)
	}
	p.done = true
	s.service.requests.Add(1)
	s.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(st.complete(0))})
	return nil
}

// transact begins or ends a transaction.
func (s *session) transact(p *portal) error {
	st := p.of.statement
	s.service.requests.Add(1)
	tag := st.tag
	switch {
	case st.action == begin:
		if !s.transaction {
			if _, err := s.db.ExecContext(s.ctx, "BEGIN"); err != nil {
				return err
			}
			s.transaction, s.readOnly = true, st.readOnly
		}
	case s.transaction:
		how := "COMMIT"
		if st.action == rollback || s.failed {
			how, tag = "ROLLBACK", "ROLLBACK"
		}
		for _, open := range s.portals {
			open.close()
		}
		_, err := s.db.ExecContext(s.ctx, how)
		if how == "ROLLBACK" {
			err = nil // SQLite has rolled back by itself, as it does after some errors
		} else if err != nil {
			s.db.ExecContext(s.ctx, "ROLLBACK")
		}
		s.transaction, s.readOnly, s.failed = false, false, false
		s.stopWriting()
		if err != nil {
			return err
		}
	}
	p.done = true
	s.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
	return nil
}

// start readies a statement to run: its context, and the right to write if it needs that.
func (s *session) start(p *portal) (context.Context, error) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	s.stop = cancel
	s.mu.Unlock()
	p.release = func() {
		s.mu.Lock()
		s.stop = nil
		s.mu.Unlock()
		cancel()
	}
	s.service.requests.Add(1)
	if p.of.writes && !s.writing {
		select {
		case s.service.writer <- struct{}{}:
			s.writing = true
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return ctx, nil
}

// finish is called when a statement has run. Outside of a transaction, others may write then.
func (s *session) finish(p *portal) {
	p.close()
	if !s.transaction {
		s.stopWriting()
	}
}

func (s *session) stopWriting() {
	if s.writing {
		s.writing = false
		<-s.service.writer
	}
}

func (s *session) command(p *portal) error {
	ctx, err := s.start(p)
	defer s.finish(p)
	if err != nil {
		return err
	}
	if err := s.compile(p.of); err != nil {
		return err
	}
	result, err := p.of.compiled.ExecContext(ctx, p.args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if p.of.defines {
		if err := s.service.learn(s.ctx, s.db); err != nil {
			return err
		}
	}
	if s.failed {
		s.failed = false // back at a savepoint
	}
	p.done = true
	s.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(p.of.complete(n))})
	return nil
}

func (s *session) query(p *portal, most int64, described bool) (err error) {
	suspended := false
	defer func() {
		if !suspended {
			s.finish(p)
		}
	}()
	st := p.of.statement
	if p.rows == nil {
		ctx, err := s.start(p)
		if err != nil {
			return err
		}
		if p.of.busy {
			// The same statement is suspended with other parameters.
			p.rows, err = s.db.QueryContext(ctx, p.of.sql, p.args...)
		} else if err = s.compile(p.of); err == nil {
			p.owner, p.of.busy = true, true
			p.rows, err = p.of.compiled.QueryContext(ctx, p.args...)
		}
		if err != nil {
			return err
		}
		if described {
			if err := s.describeRows(p); err != nil {
				return err
			}
		} else if err := s.service.describe(s.ctx, s.db, st); err != nil {
			return err
		}
	}
	values := make([]any, len(st.columns))
	row := pgproto3.DataRow{Values: make([][]byte, len(st.columns))}
	for n := int64(0); ; n++ {
		if most > 0 && n == most {
			suspended = true
			s.backend.Send(&pgproto3.PortalSuspended{})
			return nil
		}
		if p.ahead != nil {
			values, p.ahead = p.ahead, nil
		} else {
			if !p.rows.Next() {
				break
			}
			if err := scanRow(p.rows, values); err != nil {
				return err
			}
		}
		if err := s.send(&row, st.columns, p.formats, values); err != nil {
			return err
		}
		p.sent++
	}
	if err := p.rows.Err(); err != nil {
		return err
	}
	p.done = true
	s.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(st.complete(p.sent))})
	return nil
}

// describeRows tells what rows are by the rows themselves. The first is kept for later.
func (s *session) describeRows(p *portal) error {
	columns, err := declared(p.rows)
	if err != nil {
		return err
	}
	if !complete(columns) && p.rows.Next() {
		p.ahead = make([]any, len(columns))
		if err := scanRow(p.rows, p.ahead); err != nil {
			return err
		}
		for i := range columns {
			if columns[i].kind == unknown {
				columns[i].kind = typeOf(p.ahead[i])
			}
		}
	}
	st := p.of.statement
	st.columns = columns
	st.finish(s.service.schema.Load(), st.list())
	s.rowDescription(st.columns, p.formats)
	return nil
}

// send sends a row. Rows are collected, but not without bound.
func (s *session) send(row *pgproto3.DataRow, columns []column, formats []int16, values []any) error {
	buffer := s.row[:0]
	ends := make([]int, len(values))
	for i, v := range values {
		if v != nil {
			var err error
			if buffer, err = encode(buffer, s.types, columns[i].kind, formatAt(formats, i), v); err != nil {
				return err
			}
		}
		ends[i] = len(buffer)
	}
	from := 0
	for i, v := range values {
		row.Values[i] = nil
		if v != nil {
			row.Values[i] = buffer[from:ends[i]:ends[i]]
			if row.Values[i] == nil {
				row.Values[i] = []byte{}
			}
		}
		from = ends[i]
	}
	s.backend.Send(row)
	s.row = buffer
	if cap(s.row) > 4*flushAt {
		s.row = nil
	}
	if s.pending += len(buffer); s.pending >= flushAt {
		s.pending = 0
		if err := s.backend.Flush(); err != nil {
			return errors.Join(errGone, err)
		}
	}
	return nil
}

// errGone ends a query whose client takes no more rows.
var errGone = errors.New("the client has gone")
