//go:build unix

package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// measuring waits until the results file holds samples.
func (p *planrun) measuring(t *testing.T) {
	t.Helper()
	waitFor(t, "samples in the results file", func() bool {
		run, err := result.Open(p.results())
		return err == nil && len(run.Cells) > 0 && run.Cells[0].Stats(result.Pooled, result.Judged, record.Whole).Count() > 50
	})
}

func TestInterruptWritesWhatWasMeasured(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		p := newPlanrun(t, "plan.yaml", "-o", "markdown=report.md")
		p.write(t, "plan.yaml", labPlan)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		p.measuring(t)
		p.Process.Signal(sig)
		p.Process.Signal(sig) // as timeout does: the same interrupt, to the process and to its group
		if code := exitOf(t, p.Wait()); code != 130 {
			t.Errorf("%v: exit %d, want 130\n%s", sig, code, p.stderr.String())
		}
		contains(t, p.stderr.String(), "interrupted: waiting for what is in flight")
		contains(t, p.stdout.String(), "interrupted")
		if _, err := os.Stat(p.dir + "/report.md"); err != nil {
			t.Error(err)
		}
		run, err := result.Open(p.results())
		if err != nil {
			t.Fatal(err)
		}
		s := run.Cells[0].Stats(result.Pooled, result.Judged, record.Whole)
		if run.End == nil || !run.End.Interrupted || s.Failed != 0 || s.OK < 50 {
			t.Errorf("%v: end %+v, %d ok, %d failed", sig, run.End, s.OK, s.Failed)
		}
	}
}

func TestSecondInterruptLeavesAtOnce(t *testing.T) {
	p := newPlanrun(t, "plan.yaml")
	// What is in flight would take a minute to drain.
	p.write(t, "plan.yaml", strings.NewReplacer("delay: 10ms", "delay: 60s", "rate: 100/s", "rate: 5/s").Replace(labPlan)+`
defaults: {timeout: 90s}
`)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the load to begin", func() bool {
		run, err := result.Open(p.results())
		return err == nil && len(run.Cells) > 0 && len(run.Cells[0].Rounds) > 0
	})
	began := time.Now()
	p.Process.Signal(os.Interrupt)
	// The second one may come too early on a machine that is slow to notice the first.
	again := time.NewTicker(time.Second)
	defer again.Stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	var err error
	for waiting := true; waiting; {
		select {
		case err = <-ended:
			waiting = false
		case <-again.C:
			p.Process.Signal(os.Interrupt)
		}
	}
	if code := exitOf(t, err); code != 130 {
		t.Errorf("exit %d, want 130", code)
	}
	contains(t, p.stderr.String(), "interrupted again: left at once", strings.TrimPrefix(p.results(), p.dir+"/"))
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v to leave", took)
	}
}

func TestKilledRunLeavesItsResultsAndNoLab(t *testing.T) {
	p := newPlanrun(t, "plan.yaml")
	p.write(t, "plan.yaml", labPlan)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.measuring(t)
	lab := childOf(t, p.Process.Pid)
	p.Process.Kill()
	p.Wait()
	waitFor(t, "the lab to end", func() bool { return syscall.Kill(lab, 0) != nil })

	again := newPlanrun(t, "report", p.results(), "-o", "csv=cells.csv")
	if code := again.run(t); code != 0 {
		t.Errorf("report: exit %d\n%s", code, again.stderr.String())
	}
	contains(t, again.stderr.String(), "cut off")
	contains(t, again.stdout.String(), "ramp_and_hold.target")
	if _, err := os.Stat(again.dir + "/cells.csv"); err != nil {
		t.Error(err)
	}
	// Nobody knows how it would have gone on, so it does not pass.
	check := newPlanrun(t, "check", p.results())
	if code := check.run(t); code != 3 {
		t.Errorf("check: exit %d, want 3\n%s", code, check.stdout.String())
	}
}

// childOf returns the only child of a process.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "ppid=,pid=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) == 2 && f[0] == strconv.Itoa(parent) {
			return atoi(t, f[1])
		}
	}
	t.Fatal("the lab does not run")
	return 0
}
