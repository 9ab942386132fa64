// Package sql is the driver for databases: PostgreSQL, MySQL and MariaDB, SQL Server, and SQLite.
//
// The rules that its code obeys:
//
//   - One step sends one statement once. A connection that is known to be dead before anything was sent is replaced;
//     one that dies later fails the call, and the next call opens another.
//   - A user has a connection of its own, unless the plan lets users share fewer; waiting for one of those is reported
//     as Wait. database/sql is not used: its pool sends statements again and hides the waiting.
//   - An answer is read to the end, further result sets included, before a call counts as answered.
//   - The deadline of a call stands on the socket, so that it holds whatever the database's library does.
//   - A statement that fails inside a transaction has it rolled back before the call returns; a call that runs into
//     its deadline has its connection closed.
//   - Connect has the login in it. A TLS handshake is timed apart where this package makes it itself, which is with
//     PostgreSQL; the other libraries make their own, within Connect.
//   - No error text holds a password: passwords are taken out of a DSN before anything else reads it.
package sql

import (
	"context"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// Driver speaks to databases. The zero value is ready; it is safe for concurrent use.
type Driver struct{}

// New makes the driver.
func New() *Driver { return &Driver{} }

// Fields lists the keys of a sql step.
func (*Driver) Fields() []drivers.Field {
	return []drivers.Field{
		{
			Key: "dsn", Kind: drivers.Text, Title: "database",
			Doc: "The database, as a URL; its scheme picks the protocol: `postgres://`, `mysql://` (or `mariadb://`), `sqlserver://`, `sqlite:path`. " +
				"The part after `?` is handed to the protocol's library. The path of a SQLite file is relative to the working directory. " +
				"What a PostgreSQL URL leaves out comes from the environment variables of its own tools (`PGUSER`, `PGPASSWORD`, ...).",
			Examples: []string{"postgres://app@db.test:5432/shop?sslmode=verify-full", "mysql://app@db.test:3306/shop", "sqlserver://app@db.test:1433?database=shop", "sqlite:shop.db"},
		},
		{
			Key: "user", Kind: drivers.Text, Title: "login name",
			Doc: "Used instead of the name in `dsn`.", Examples: []string{"app"},
		},
		{
			Key: "password", Kind: drivers.Text, Title: "password",
			Doc: "Used instead of the password in `dsn`, so that the DSN needs none.", Examples: []string{"${secret.DB_PASSWORD}"},
		},
		{
			Key: "query", Kind: drivers.Text, Main: true, Payload: true, Title: "statement that answers rows",
			Doc:      "The statement; its rows are read to the last one. Text that is the same for every call is prepared once per connection.",
			Examples: []string{"SELECT payload FROM documents WHERE id = :id"},
		},
		{
			Key: "exec", Kind: drivers.Text, Payload: true, Title: "statement that changes rows",
			Doc:      "Like `query`, for a statement whose number of `affected` rows matters and whose rows don't.",
			Examples: []string{"UPDATE accounts SET amount = amount - 1 WHERE id = :id"},
		},
		{
			Key: "query_file", Kind: drivers.File, Payload: true, Title: "file with the query",
			Doc: "A file that holds the text of `query`. It is taken as it is: `${...}` in it is not replaced, so give values as `args`.", Examples: []string{"queries/report.sql"},
		},
		{
			Key: "args", Kind: drivers.Args, Payload: true, Title: "arguments",
			Doc: "A list binds the database's own placeholders (`$1`, `?`, `@p1`). A mapping binds `:name`, which is rewritten to the database's own form outside strings, quoted names, comments and casts. " +
				"Whole numbers, other numbers, truth values and null are sent as such; text is sent as text, and the server converts it to the type that it needs, such as a time. " +
				"Where it can't know that, a mapping says that a value is a time.",
			Examples: []string{"{id: 17}", "{since: {time: 2026-01-31T12:00:00Z}}"}, Fields: temporalFields(),
		},
		{
			Key: "prepare", Kind: drivers.Bool, Default: "true", Title: "prepare the statement",
			Doc: "`false` sends the statement without preparing it: for connection poolers that can't keep prepared statements, and for several statements in one text. " +
				"It makes no difference for SQL Server and SQLite.",
		},
		{
			Key: "connect_timeout", Kind: drivers.Duration, Title: "time-out for connecting",
			Doc: "How long opening a connection may take, login included. The step's `timeout` bounds it as well.", Examples: []string{"5s"},
		},
		tlsField(),
	}
}

func tlsField() drivers.Field {
	f := dial.TLSField()
	f.Doc += " A step that has this connects with TLS or not at all, whatever the database; without it, the DSN's parameters decide (`sslmode`, `tls`, `encrypt`)."
	return f
}

// Answer lists what an expectation may read.
func (*Driver) Answer() []drivers.Name {
	return []drivers.Name{
		{Name: "rows", Kind: drivers.ListName, Doc: "The rows of `query`, those of further result sets after them, each with its values by column: numbers (decimals to 15 digits), truth values, null, times as in RFC 3339 (without an offset where the database keeps none), all else as text. Columns without a name are `column1` and so on."},
		{Name: "affected", Kind: drivers.IntName, Doc: "How many rows `exec` inserted, changed or deleted."},
		{Name: "bytes", Kind: drivers.SizeName, Doc: "Size of the values of all rows."},
	}
}

// Connect makes what the users of a round share.
func (*Driver) Connect(_ context.Context, ep drivers.Endpoint, pool drivers.Pool) (drivers.Client, error) {
	return newClient(ep.Config.(*database), pool), nil
}

var (
	_ drivers.Driver    = (*Driver)(nil)
	_ drivers.Call      = (*call)(nil)
	_ drivers.Client    = (*client)(nil)
	_ drivers.Addressed = (*client)(nil)
	_ drivers.Session   = (*session)(nil)
	_ drivers.Answer    = (*answer)(nil)
)
