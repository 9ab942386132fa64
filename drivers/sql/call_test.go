package sql

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// A call says its statement as the plan has it, on one line, without what is in its arguments and its DSN.
func TestCallsDescribeThemselves(t *testing.T) {
	file := filepath.Join(t.TempDir(), "q.sql")
	if err := os.WriteFile(file, []byte("SELECT 1\n  FROM t -- all\n  WHERE a = '--b'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dynamic := drivertest.Func(func(*drivers.Input) any { return "hunter2" })
	ten := "a" + strings.Repeat("b", 8) + " "
	for _, c := range []struct {
		fields drivertest.Fields
		want   string
	}{
		{drivertest.Fields{"query": "SELECT x FROM t WHERE id = :id", "args": drivertest.Fields{"id": "hunter2"}}, "SELECT x FROM t WHERE id = :id"},
		{drivertest.Fields{"query": "/* why */ SELECT\n\t1"}, "SELECT 1"},
		{drivertest.Fields{"exec": drivertest.Mix{"DELETE FROM ", dynamic, " WHERE x"}}, "DELETE FROM ${...} WHERE x"},
		{drivertest.Fields{"query": dynamic}, "${...}"},
		{drivertest.Fields{"query_file": file}, "SELECT 1 FROM t WHERE a = '--b'"},
		{drivertest.Fields{"query": strings.Repeat(ten, 8)}, strings.TrimSpace(strings.Repeat(ten, 8))},
		{drivertest.Fields{"query": strings.Repeat(ten, 9)}, strings.TrimSpace(strings.Repeat(ten, 8)) + " ..."},
		{drivertest.Fields{"query": "SELECT '" + strings.Repeat("x", 90) + "'"}, "SELECT ..."},
		{drivertest.Fields{"query": strings.Repeat("é", 80)}, strings.Repeat("é", 80)},
	} {
		c.fields["dsn"] = "postgres://me:hunter2@db.test/app"
		if got := fmt.Sprint(prepare(t, c.fields)); got != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.fields, got, c.want)
		}
	}
}
