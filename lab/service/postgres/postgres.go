// Package postgres is the lab's database: PostgreSQL's protocol in front of an SQLite that lives in memory.
//
// It speaks the simple and the extended protocol, version 3.0 (https://www.postgresql.org/docs/current/protocol.html),
// with prepared statements, parameters and results in text and binary, transactions, suspended portals, cancellation, and
// SQLSTATE codes. The SQL is SQLite's, with PostgreSQL's parameters and casts translated, and now(), version(),
// current_database() and pg_sleep(seconds) added. Integers are all of 64 bits.
//
// There are two tables:
//
//	documents (id integer primary key, payload text)                     rows of random text, numbered from 1
//	accounts  (id integer primary key, owner text, amount bigint)        1000 rows with an amount of 1000
//
// One session writes at a time: from its first change to the end of its transaction the others wait, first come first
// served. Reading never waits; in exchange it sees what others have not committed yet.
package postgres

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"github.com/planrun/planrun/lab"
)

// What a plan gets that does not say.
const (
	defaultRows    = 1000
	defaultPayload = 8 << 10
	accounts       = 1000
)

// Postgres is a running database. It is safe for concurrent use.
type Postgres struct {
	listener *net.TCPListener
	db       *sql.DB
	keep     *sql.Conn // an SQLite in memory lives as long as someone is connected to it
	writer   chan struct{}
	schema   atomic.Pointer[schema]

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	connections, requests atomic.Int64

	mu       sync.Mutex
	sessions map[uint32]*session
	last     uint32
	known    map[string]*statement // by their text
}

// mostKnown is how many statements are kept. Who writes numbers into the text instead of using parameters gains nothing.
const mostKnown = 1000

var databases atomic.Int64

// Listen starts a service of kind postgres, with its tables filled.
func Listen(ctx context.Context, spec lab.Service) (*Postgres, error) {
	if err := addFunctions(); err != nil {
		return nil, fmt.Errorf("start service %s: %w", spec.Name, err)
	}
	db, err := sql.Open("sqlite", fmt.Sprintf("file:planrun-lab-%d?mode=memory&cache=shared&_pragma=read_uncommitted(1)", databases.Add(1)))
	if err != nil {
		return nil, fmt.Errorf("start service %s: %w", spec.Name, err)
	}
	db.SetMaxIdleConns(100)
	p := &Postgres{
		db: db, writer: make(chan struct{}, 1),
		sessions: map[uint32]*session{}, known: map[string]*statement{},
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	if p.keep, err = db.Conn(ctx); err == nil {
		if err = p.fill(ctx, spec); err == nil {
			err = p.learn(ctx, p.keep)
		}
	}
	if err == nil {
		p.listener, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	}
	if err != nil {
		p.stop()
		if p.keep != nil {
			p.keep.Close()
		}
		db.Close()
		return nil, fmt.Errorf("start service %s: %w", spec.Name, err)
	}
	p.running.Go(p.accept)
	return p, nil
}

// Address is host and port of the service.
func (p *Postgres) Address() string { return p.listener.Addr().String() }

// Connections is how many connections the service has accepted.
func (p *Postgres) Connections() int64 { return p.connections.Load() }

// Requests is how many statements the service has run.
func (p *Postgres) Requests() int64 { return p.requests.Load() }

// Close breaks off all sessions and returns when nothing runs any more.
func (p *Postgres) Close() error {
	p.stop()
	err := p.listener.Close()
	p.running.Wait()
	return errors.Join(err, p.keep.Close(), p.db.Close())
}

func (p *Postgres) accept() {
	for {
		conn, err := p.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, most likely.
			select {
			case <-time.After(5 * time.Millisecond):
			case <-p.ctx.Done():
				return
			}
			continue
		}
		p.connections.Add(1)
		p.running.Go(func() {
			ctx, cancel := context.WithCancel(p.ctx)
			defer cancel()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			s := &session{service: p, conn: conn, ctx: ctx}
			// How a session ends is known to its client; there is no other reader.
			_ = s.run()
		})
	}
}

// fill makes the tables.
func (p *Postgres) fill(ctx context.Context, spec lab.Service) error {
	rows, payload := spec.Rows, spec.Payload
	if rows == 0 {
		rows = defaultRows
	}
	if payload == 0 {
		payload = defaultPayload
	}
	for _, statement := range []string{
		"BEGIN",
		"CREATE TABLE documents (id integer PRIMARY KEY, payload text)",
		"CREATE TABLE accounts (id integer PRIMARY KEY, owner text, amount bigint)",
	} {
		if _, err := p.keep.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	insert, err := p.keep.PrepareContext(ctx, "INSERT INTO documents VALUES (?1, ?2)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for i := range rows {
		if _, err := insert.ExecContext(ctx, i+1, randomText(payload)); err != nil {
			return err
		}
	}
	open, err := p.keep.PrepareContext(ctx, "INSERT INTO accounts VALUES (?1, ?2, 1000)")
	if err != nil {
		return err
	}
	defer open.Close()
	for i := range accounts {
		if _, err := open.ExecContext(ctx, i+1, fmt.Sprintf("owner %d", i+1)); err != nil {
			return err
		}
	}
	_, err = p.keep.ExecContext(ctx, "COMMIT")
	return err
}

const printable = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"

func randomText(n int64) string {
	var b strings.Builder
	b.Grow(int(n))
	for r, left := uint64(0), 0; int64(b.Len()) < n; left-- {
		if left == 0 {
			r, left = rand.Uint64(), 10
		}
		b.WriteByte(printable[r&63])
		r >>= 6
	}
	return b.String()
}

// learn reads the schema anew, and forgets what was known of statements.
func (p *Postgres) learn(ctx context.Context, conn *sql.Conn) error {
	s, err := readSchema(ctx, conn)
	if err != nil {
		return err
	}
	p.schema.Store(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.known)
	return nil
}

// parse reads a statement, or finds that it did so before.
func (p *Postgres) parse(text string, tokens []token, given []uint32) (*statement, error) {
	key := text
	if len(given) > 0 {
		key = fmt.Sprint(given, text)
	}
	p.mu.Lock()
	st := p.known[key]
	p.mu.Unlock()
	if st != nil {
		return st, nil
	}
	st, err := p.schema.Load().parse(tokens, given)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= mostKnown {
		clear(p.known)
	}
	p.known[key] = st
	return st, nil
}

// describe finds the columns of a statement that sessions share.
func (p *Postgres) describe(ctx context.Context, conn *sql.Conn, st *statement) error {
	st.describing.Lock()
	defer st.describing.Unlock()
	return st.describe(ctx, conn, p.schema.Load())
}

// enter makes a session known, so that it can be cancelled.
func (p *Postgres) enter(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	s.number = p.last
	p.sessions[s.number] = s
}

func (p *Postgres) leave(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, s.number)
}

// cancel stops what a session runs, if the secret is the session's.
func (p *Postgres) cancel(number uint32, secret []byte) {
	p.mu.Lock()
	s := p.sessions[number]
	p.mu.Unlock()
	if s == nil || subtle.ConstantTimeCompare(s.secret, secret) != 1 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
	}
}

// version is what the service says it is.
const version = "15.0 (planrun lab, SQLite)"

// setting is what SHOW answers.
func setting(name string) string {
	switch strings.ToLower(name) {
	case "server_version":
		return version
	case "server_encoding", "client_encoding":
		return "UTF8"
	case "datestyle":
		return "ISO, MDY"
	case "intervalstyle":
		return "postgres"
	case "timezone":
		return "UTC"
	case "integer_datetimes", "standard_conforming_strings":
		return "on"
	case "transaction_isolation", "default_transaction_isolation":
		return "read uncommitted"
	case "is_superuser", "transaction_read_only", "default_transaction_read_only":
		return "off"
	case "search_path":
		return "public"
	}
	return ""
}

// longestSleep bounds pg_sleep, which holds a thread.
const longestSleep = time.Minute

// addFunctions adds functions of PostgreSQL to the SQLites of this process.
var addFunctions = sync.OnceValue(func() error {
	var faults []error
	add := func(name string, args int32, f func([]driver.Value) (driver.Value, error)) {
		faults = append(faults, sqlite.RegisterScalarFunction(name, args, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			return f(args)
		}))
	}
	add("version", 0, func([]driver.Value) (driver.Value, error) { return "PostgreSQL " + version, nil })
	add("current_database", 0, func([]driver.Value) (driver.Value, error) { return "lab", nil })
	add("now", 0, func([]driver.Value) (driver.Value, error) {
		return time.Now().UTC().Format("2006-01-02 15:04:05.999999+00"), nil
	})
	add("pg_sleep", 1, func(args []driver.Value) (driver.Value, error) {
		var seconds float64
		switch v := args[0].(type) {
		case int64:
			seconds = float64(v)
		case float64:
			seconds = v
		default:
			return nil, errors.New("pg_sleep needs a number of seconds")
		}
		time.Sleep(time.Duration(min(max(seconds, 0), longestSleep.Seconds()) * float64(time.Second)))
		return "", nil
	})
	return errors.Join(faults...)
})
