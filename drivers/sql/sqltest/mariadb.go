//go:build unix

package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// StartMariaDB starts MariaDB and stops it when the test ends. It is found in PATH, or where Debian has it.
func StartMariaDB(t testing.TB, o Options) *Server {
	t.Helper()
	install, mariadbd := find(t, "mariadb-install-db", "/usr/bin"), find(t, "mariadbd", "/usr/sbin", "/usr/libexec")
	owner := unprivileged(t, "mysql")
	dir := folder(t, owner)
	s := &Server{User: "tester", Password: "s3cret-my", Database: "app"}

	// InnoDB's files are as small as it allows, so that making them takes less time than starting the server.
	common := []string{"--datadir=" + filepath.Join(dir, "data"), "--tmpdir=" + dir, "--innodb-log-file-size=4M", "--innodb-buffer-pool-size=16M",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-fast-shutdown=2"}
	init := command(dir, owner, install, append([]string{"--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"}, common...)...)
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, out)
	}
	script := filepath.Join(dir, "init.sql")
	users := fmt.Sprintf("CREATE DATABASE %s;\nCREATE USER %s@'%%' IDENTIFIED BY '%s';\nGRANT ALL ON *.* TO %s@'%%';\n", s.Database, s.User, s.Password, s.User)
	if err := os.WriteFile(script, []byte(users), 0o644); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	s.Addr = "127.0.0.1:" + port
	args := append([]string{"--no-defaults"}, common...)
	args = append(args, "--bind-address=127.0.0.1", "--port="+port, "--socket="+filepath.Join(dir, "socket"), "--pid-file="+filepath.Join(dir, "pid"),
		"--skip-name-resolve", "--init-file="+script, "--skip-log-bin", "--skip-external-locking", "--performance-schema=off")
	if o.Certificate != nil {
		certificate, key := filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
		for file, content := range map[string][]byte{certificate: o.Certificate, key: o.Key} {
			if err := os.WriteFile(file, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		args = append(args, "--ssl-cert="+certificate, "--ssl-key="+key)
	}
	for _, c := range o.Settings {
		args = append(args, "--"+c)
	}
	p := start(t, command(dir, owner, mariadbd, args...), syscall.SIGTERM)
	s.PID = p.cmd.Process.Pid

	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName = s.User, s.Password, "tcp", s.Addr, s.Database
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	p.await(t, func() error {
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		return db.PingContext(ctx)
	})
	return s
}
