package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// programFile is planrun as a file of its own, so that it can start its lab as a user's would: the test binary itself, which
// is planrun when it is called so.
func programFile(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "planrun")
	if os.Link(self, path) == nil {
		return path
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// planrun is a run of the program in a folder of its own.
type planrun struct {
	*exec.Cmd
	dir            string
	stdout, stderr bytes.Buffer
}

func newPlanrun(t *testing.T, args ...string) *planrun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	p := &planrun{Cmd: exec.CommandContext(ctx, programFile(t), args...), dir: t.TempDir()}
	p.Dir = p.dir
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	p.WaitDelay = 10 * time.Second
	return p
}

// run waits for the end and returns the exit code.
func (p *planrun) run(t *testing.T) int {
	t.Helper()
	return exitOf(t, p.Run())
}

// runCalmly runs as run does, and up to twice again where the run was inconclusive: tests keep the machine busy, and a run that
// compares what it measured then may say so.
func (p *planrun) runCalmly(t *testing.T) int {
	t.Helper()
	code := p.run(t)
	for again := 0; code == 3 && again < 2 && strings.Contains(p.stdout.String(), "\ninconclusive: "); again++ {
		t.Logf("inconclusive, and tried again:\n%s", p.stdout.String())
		os.RemoveAll(filepath.Join(p.dir, "results"))
		next := newPlanrun(t, p.Args[1:]...)
		next.Dir, next.Env = p.Dir, p.Env
		p.stdout.Reset()
		p.stderr.Reset()
		p.Cmd = next.Cmd
		p.Stdout, p.Stderr = &p.stdout, &p.stderr
		code = p.run(t)
	}
	return code
}

func exitOf(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

// write puts a file into the folder of the run.
func (p *planrun) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 600 {
		if holds() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("timed out waiting for %s", what)
}

// results returns the only results file of the run, "" while there is none.
func (p *planrun) results() string {
	files, _ := filepath.Glob(filepath.Join(p.dir, "results", "*.msgpack"))
	if len(files) != 1 {
		return ""
	}
	return files[0]
}

const labPlan = `
targets: {target: {api: "${lab.near.api}"}}
scenarios:
  s:
    http: GET ${target.api}/strings?bytes=64
    phases:
      - ramp-and-hold: {rate: 100/s, hold: 60s}
lab:
  services: {api: {http: {delay: 10ms}}}
  routes: {near: {}}
`

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in:\n%s", part, text)
		}
	}
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
