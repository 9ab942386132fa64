package sql

// dialect is a database's way of writing SQL, and the name of its protocol.
type dialect uint8

const (
	postgres dialect = iota
	mysql
	sqlserver
	sqlite
)

// String is the name as people write it; Outcome.Protocol has it too.
func (d dialect) String() string {
	return [...]string{"PostgreSQL", "MySQL", "SQL Server", "SQLite"}[d]
}

// placeholders shows how a query of the dialect marks its arguments.
func (d dialect) placeholders() string {
	return [...]string{"$1, $2", "?", "@p1, @p2", "?"}[d]
}
