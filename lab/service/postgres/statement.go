package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// action is what a statement asks of a session.
type action uint8

const (
	query    action = iota // of SQLite, with rows
	command                // of SQLite, without rows
	begin                  // of a transaction
	commit                 //
	rollback               //
	show                   // of a setting
	nothing                // accepted without effect
)

// statement is one statement of SQL, read but not run.
type statement struct {
	tokens     []token
	sql        string // SQLite's
	action     action
	writes     bool
	readOnly   bool // of begin
	defines    bool // tables or the like
	tag        string
	counts     bool // the tag is followed by a number of rows
	parameters []oid
	columns    []column // once described, or if they are fixed
	described  bool
	describing sync.Mutex
}

func upperCase(s string) string { return strings.ToUpper(s) }

func parseWhole(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// parse reads one statement, which is not empty.
func (s *schema) parse(tokens []token, given []uint32) (*statement, error) {
	first, second := upperCase(tokens[0].text), ""
	if len(tokens) > 1 {
		second = upperCase(tokens[1].text)
	}
	st := &statement{tokens: tokens, tag: first}
	contains := func(words ...string) bool {
		for _, t := range tokens {
			for _, w := range words {
				if t.is(w) {
					return true
				}
			}
		}
		return false
	}
	switch first {
	case "SELECT", "VALUES", "(":
		st.action, st.tag, st.counts = query, "SELECT", true
	case "TABLE":
		st.action, st.tag, st.counts = query, "SELECT", true
		tokens = append(scan("SELECT * FROM"), tokens[1:]...)
	case "EXPLAIN":
		st.action = query
	case "WITH":
		st.action, st.tag, st.counts = query, "SELECT", true
		for _, verb := range []string{"INSERT", "UPDATE", "DELETE"} {
			if contains(verb) {
				st.data(verb, contains("RETURNING"))
			}
		}
	case "INSERT", "UPDATE", "DELETE", "REPLACE":
		st.data(first, contains("RETURNING"))
	case "CREATE", "DROP", "ALTER":
		st.action, st.writes, st.defines, st.tag = command, true, true, first+" "+second
	case "REINDEX", "ANALYZE":
		st.action, st.writes = command, true
	case "TRUNCATE":
		st.action, st.writes, st.tag = command, true, "TRUNCATE TABLE"
		rest := tokens[1:]
		if second == "TABLE" {
			rest = rest[1:]
		}
		tokens = append(scan("DELETE FROM"), rest...)
	case "BEGIN", "START":
		st.action, st.tag = begin, map[string]string{"BEGIN": "BEGIN", "START": "START TRANSACTION"}[first]
		st.readOnly = contains("ONLY")
	case "COMMIT", "END":
		st.action, st.tag = commit, "COMMIT"
	case "ROLLBACK", "ABORT":
		st.action, st.tag = rollback, "ROLLBACK"
		if contains("TO") {
			st.action = command
		}
	case "SAVEPOINT", "RELEASE":
		st.action = command
	case "SHOW":
		st.action = show
		st.columns = []column{{strings.ToLower(second), text}}
		if second == "TRANSACTION" {
			st.columns[0].name = "transaction_isolation"
		}
		st.described = true
	case "SET", "RESET", "DISCARD", "LISTEN", "UNLISTEN", "NOTIFY", "VACUUM", "CHECKPOINT", "GRANT", "REVOKE", "COMMENT", "LOCK":
		st.action = nothing
		if first == "DISCARD" {
			st.tag = "DISCARD ALL"
		}
		if first == "LOCK" {
			st.tag = "LOCK TABLE"
		}
	default:
		if tokens[0].kind != word {
			return nil, fail(syntaxError, "syntax error at or near %q", tokens[0].text)
		}
		switch first {
		case "COPY", "PRAGMA", "ATTACH", "DETACH", "DECLARE", "FETCH", "CLOSE", "MOVE", "CALL", "DO", "PREPARE", "EXECUTE", "DEALLOCATE", "MERGE":
			return nil, fail(featureNotSupported, "%s is not supported by the lab", first)
		}
		return nil, fail(syntaxError, "syntax error at or near %q", tokens[0].text)
	}
	if st.action != query {
		st.described = true
	}
	var err error
	if st.parameters, err = s.parameters(tokens, given); err != nil {
		return nil, err
	}
	st.tokens = s.unquote(withoutLocks(tokens))
	st.sql = translate(st.tokens)
	return st, nil
}

// data makes st a statement that changes rows.
func (st *statement) data(verb string, returning bool) {
	st.action, st.writes, st.counts, st.tag = command, true, true, verb
	if verb == "INSERT" || verb == "REPLACE" {
		st.tag = "INSERT 0"
	}
	if returning {
		st.action = query
	}
}

// withoutLocks leaves out FOR UPDATE and the like at the end: SQLite locks no rows.
func withoutLocks(tokens []token) []token {
	for i := len(tokens) - 2; i > 0 && i > len(tokens)-8; i-- {
		if tokens[i].is("FOR") && (tokens[i+1].is("UPDATE") || tokens[i+1].is("SHARE") || tokens[i+1].is("NO") || tokens[i+1].is("KEY")) {
			return tokens[:i]
		}
	}
	return tokens
}

// complete is the tag of a CommandComplete message.
func (st *statement) complete(rows int64) string {
	if st.counts {
		return st.tag + " " + strconv.FormatInt(rows, 10)
	}
	return st.tag
}

// describe finds the columns of a query that was not run. It tries the query with NULL for every parameter, unless it
// changes something; what that leaves open it tells by the expression.
func (st *statement) describe(ctx context.Context, conn *sql.Conn, s *schema) error {
	if st.described {
		return nil
	}
	sample, list := st.sql, 1
	if st.writes {
		var err error
		if sample, list, err = st.returned(); err != nil {
			return err
		}
	}
	rows, err := conn.QueryContext(ctx, sample, st.samples()...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := declared(rows)
	if err != nil {
		return err
	}
	st.columns = columns
	if !complete(columns) && rows.Next() {
		values := make([]any, len(columns))
		if err := scanRow(rows, values); err != nil {
			return err
		}
		for i := range columns {
			if columns[i].kind == unknown {
				columns[i].kind = typeOf(values[i])
			}
		}
	}
	st.finish(s, list)
	st.described = true
	return nil
}

// samples are parameters to try a query with: NULL, but numbers where SQLite insists on them.
func (st *statement) samples() []any {
	all := make([]any, len(st.parameters))
	for i, t := range st.tokens[1:] {
		if t.kind == parameter {
			switch before := st.tokens[i]; {
			case before.is("LIMIT"):
				all[t.index()-1] = 1
			case before.is("OFFSET"):
				all[t.index()-1] = 0
			}
		}
	}
	return all
}

// list is where the expressions of a statement's columns begin.
func (st *statement) list() int {
	for i, t := range st.tokens {
		if t.is("RETURNING") {
			return i + 1
		}
	}
	return 1
}

// finish tells the types that are still unknown, by the expressions of the list that begins at the token from, and names
// what SQLite names after its expression as PostgreSQL does.
func (st *statement) finish(s *schema, from int) {
	for from < len(st.tokens) && (st.tokens[from].is("DISTINCT") || st.tokens[from].is("ALL")) {
		from++
	}
	list := expressions(st.tokens, from)
	for i := range st.columns {
		c := &st.columns[i]
		if len(list) == len(st.columns) && len(list[i]) > 0 {
			if c.kind == unknown {
				c.kind = s.expression(list[i])
			}
			if len(list[i]) > 1 || list[i][0].kind != word {
				c.rename(list[i])
			}
		}
		if c.kind == unknown {
			c.kind = text
		}
	}
}

// rename gives a column that has no name of its own the one that PostgreSQL would give it: the function's, or ?column?.
func (c *column) rename(expression []token) {
	if c.name != translate(expression) {
		return
	}
	if n := len(expression); n > 1 && expression[0].kind == word && expression[1].is("(") {
		c.name = expression[0].name()
		return
	}
	c.name = "?column?"
}

func complete(columns []column) bool {
	for _, c := range columns {
		if c.kind == unknown {
			return false
		}
	}
	return true
}

// returned is a query for the columns of RETURNING that changes nothing, and where their list begins.
func (st *statement) returned() (string, int, error) {
	table := ""
	for i, t := range st.tokens {
		if (t.is("INTO") || t.is("FROM") || t.is("UPDATE")) && i+1 < len(st.tokens) && table == "" {
			table = st.tokens[i+1].text
		}
		if t.is("RETURNING") && table != "" {
			list := translate(st.tokens[i+1:])
			return fmt.Sprintf("SELECT %s FROM %s LIMIT 0", list, table), i + 1, nil
		}
	}
	return "", 0, fail(featureNotSupported, "this use of RETURNING is not supported by the lab")
}

// declared are the columns of an answer, with the types that their tables declare.
func declared(rows *sql.Rows) ([]column, error) {
	kinds, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	columns := make([]column, len(kinds))
	for i, k := range kinds {
		columns[i] = column{k.Name(), typeByName(k.DatabaseTypeName())}
	}
	return columns, nil
}

// scanRow reads a row.
func scanRow(rows *sql.Rows, values []any) error {
	into := make([]any, len(values))
	for i := range values {
		into[i] = &values[i]
	}
	return rows.Scan(into...)
}
