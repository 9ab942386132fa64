package main

import (
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// Nobody listens: every call fails, and fifty times as many calls take no more memory. The gate fails, and the results are
// whole.
func TestDeadTargetTakesNoMemory(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	peak := func(count int64) int64 {
		p := newPlanrun(t, "--quiet", "plan.yaml")
		p.write(t, "plan.yaml", fmt.Sprintf(`
preflight: false
results: {path: dead.msgpack, samples: false}
scenarios:
  dead:
    http: GET http://%s/
    phases:
      - parallel: {users: 10, count: %d}
    assert:
      - error_rate < 1%%
`, address, count))
		if code := p.run(t); code != 1 {
			t.Fatalf("exit %d, want 1\n%s\n%s", code, p.stdout.String(), p.stderr.String())
		}
		run, err := result.Open(p.dir + "/dead.msgpack")
		if err != nil {
			t.Fatal(err)
		}
		s := run.Cells[0].Stats(result.Pooled, result.Judged, record.Whole)
		if s.Failed != count || s.OK != 0 {
			t.Errorf("%d failed and %d did not, of %d", s.Failed, s.OK, count)
		}
		return int64(p.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	}
	few, many := peak(1000), peak(50_000)
	t.Logf("%d kB for 1000 calls, %d kB for 50000", few, many)
	if many > 2*few {
		t.Errorf("%d kB for 50000 calls, %d kB for 1000", many, few)
	}
}
