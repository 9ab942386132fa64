// Package sqltest starts real database servers for tests, each with a private folder and port, and stops them when the
// test ends; and a stand-in for SQL Server, which can't be had everywhere.
package sqltest

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
