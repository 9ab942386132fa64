//go:build unix

package sqltest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// StartPostgres starts PostgreSQL and stops it when the test ends. It is found in PATH, or where Debian has it.
func StartPostgres(t testing.TB, o Options) *Server {
	t.Helper()
	const debian = "/usr/lib/postgresql/*/bin"
	initdb, postgres := find(t, "initdb", debian), find(t, "postgres", debian)
	owner := unprivileged(t, "postgres")
	dir := folder(t, owner)
	s := &Server{User: "tester", Password: "s3cret-pg", Database: "postgres"}

	write := func(name string, content []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if owner != nil {
			if err := os.Chown(file, int(owner.Uid), int(owner.Gid)); err != nil {
				t.Fatal(err)
			}
		}
		return file
	}
	data := filepath.Join(dir, "data")
	init := command(dir, owner, initdb, "-D", data, "-U", s.User, "--pwfile", write("password", []byte(s.Password)),
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	port := freePort(t)
	s.Addr = "127.0.0.1:" + port
	settings := []string{"listen_addresses='127.0.0.1'", "fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=16MB",
		"max_wal_size=64MB", "autovacuum=off", "timezone=UTC", "log_timezone=UTC",
		"hba_file=" + quote(filepath.Join(data, "pg_hba.conf"))}
	if o.Certificate != nil {
		settings = append(settings, "ssl=on", "ssl_cert_file="+quote(write("server.crt", o.Certificate)), "ssl_key_file="+quote(write("server.key", o.Key)))
	}
	// A file of its own, so that tests may change settings while the server runs.
	config := write("postgresql.conf", []byte(strings.Join(append(settings, o.Settings...), "\n")+"\n"))
	p := start(t, command(dir, owner, postgres, "-D", data, "-p", port, "-k", dir, "-c", "config_file="+config), syscall.SIGQUIT)
	s.PID = p.cmd.Process.Pid
	p.await(t, func() error {
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		conn, err := pgx.Connect(ctx, s.PostgresURL())
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	return s
}

// quote makes a string of PostgreSQL's configuration.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
