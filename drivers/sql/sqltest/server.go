// Package sqltest starts real database servers for tests, each with a private folder and port, and stops them when the
// test ends; and a stand-in for SQL Server, which can't be had everywhere.
package sqltest

import "fmt"

// Server is a running database server.
type Server struct {
	// Addr is where it listens, as host:port.
	Addr string
	// User and Password log in.
	User, Password string
	// Database exists and is empty.
	Database string
	// PID is the server's main process.
	PID int
}

// Options bend a server for a test.
type Options struct {
	// Settings are lines of PostgreSQL's configuration, or options of MariaDB's command line without the dashes.
	Settings []string
	// Certificate and Key are PEM files for TLS; empty for none.
	Certificate, Key []byte
}

// PostgresURL is the DSN of a PostgreSQL server, password included.
func (s *Server) PostgresURL() string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", s.User, s.Password, s.Addr, s.Database)
}

// MySQLURL is the DSN of a MariaDB server, password included.
func (s *Server) MySQLURL() string {
	return fmt.Sprintf("mysql://%s:%s@%s/%s", s.User, s.Password, s.Addr, s.Database)
}
