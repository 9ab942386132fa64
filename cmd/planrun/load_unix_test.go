//go:build unix

package main

import (
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Whoever takes the processors away from the generator makes it see slow answers. That fails no gate: it is inconclusive
// where it decides, and a note where it does not.
func TestOthersOnTheProcessors(t *testing.T) {
	const polite = "19" // and so is all that competes here, or other tests would suffer
	burn := func(n int) (stop func()) {
		var burners []*exec.Cmd
		for range n {
			c := exec.Command("nice", "-n", polite, "timeout", "100", "sh", "-c", "while :; do :; done")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			burners = append(burners, c)
		}
		return func() {
			for _, c := range burners {
				c.Process.Signal(syscall.SIGTERM) // timeout passes it on
				c.Wait()
			}
		}
	}
	for _, each := range []int{4, 8, 16} {
		p := newPlanrun(t, "--quiet", "plan.yaml")
		p.write(t, "plan.yaml", `
targets:
  lab: {url: "${lab.near.api}"}
scenarios:
  calls:
    http: GET /strings?bytes=64
    timeout: 60s
    phases:
      - ramp-and-hold: {rate: 200/s, hold: 3s}
    assert:
      - p99 < 25ms
      - max < 1h
lab:
  services:
    api: {http: {delay: 10ms}}
  routes: {near: {}}
`)
		p.Args = append([]string{"nice", "-n", polite, p.Path}, p.Args[1:]...)
		nice, err := exec.LookPath("nice")
		if err != nil {
			t.Fatal(err)
		}
		p.Path = nice

		stop := burn(each * runtime.NumCPU())
		code := p.run(t)
		stop()
		out := p.stdout.String()
		switch {
		case code == 3:
			if !strings.Contains(out, "inconclusive calls.ramp_and_hold.lab: p99 < 25ms") || !strings.Contains(out, "passed       calls.ramp_and_hold.lab: max < 1h") {
				t.Errorf("%d processes a processor:\n%s", each, out)
			}
			contains(t, out, "held up")
			return
		case code != 0:
			t.Fatalf("%d processes a processor: exit %d, want 3, or 0 where they do no harm\n%s\n%s", each, code, out, p.stderr.String())
		}
	}
	t.Error("sixteen processes a processor have made no difference")
}
