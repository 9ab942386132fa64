//go:build !unix

package sqltest

import "testing"

// StartPostgres fails the test: servers are started on Unix systems alone.
func StartPostgres(t testing.TB, _ Options) *Server { return unsupported(t) }

// StartMariaDB fails the test: servers are started on Unix systems alone.
func StartMariaDB(t testing.TB, _ Options) *Server { return unsupported(t) }

func unsupported(t testing.TB) *Server {
	t.Helper()
	t.Fatal("the tests of databases start their servers on Unix systems alone")
	return nil
}
