package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// inside is set in the process that runs in a network of its own; cantBegin is its exit code where that can't be set up.
const (
	inside    = "PLANRUN_TEST_PORTS"
	cantBegin = 77
)

// Ports run out when every call opens a connection and few ports are to be had. That is no fault of the server: the calls
// fail as local, with what to do about it, the run ends on time, and what those failures decide is inconclusive.
//
// It takes place in a network of its own, in which this test runs again.
func TestPortsUsedUp(t *testing.T) {
	if os.Getenv(inside) != "" {
		useUpPorts(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestPortsUsedUp$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ended && exit.ExitCode() == cantBegin:
		t.Skipf("this system sets up no network for a test: %s", out)
	case err != nil && !ended:
		t.Skipf("this system gives a test no network of its own: %v", err)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
}

// narrow readies the network: it has no device but the loopback, and a few dozen ports for those who connect. A port is
// kept for a minute after a connection, even on the loopback.
func narrow(ports int) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, loopback); err != nil {
		return fmt.Errorf("the loopback device: %w", err)
	}
	const folder = "/proc/sys/net/ipv4/"
	if err := os.WriteFile(folder+"ip_local_port_range", fmt.Appendf(nil, "40000 %d", 40000+ports-1), 0); err != nil {
		return err
	}
	return os.WriteFile(folder+"tcp_tw_reuse", []byte("0"), 0)
}

func useUpPorts(t *testing.T) {
	const ports, calls, hold = 40, 200, 2 * time.Second
	if err := narrow(ports); err != nil {
		fmt.Println(err)
		os.Exit(cantBegin)
	}
	l, err := net.Listen("tcp", "127.0.0.1:30000")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			// The client closes first, so that it is the client's port that is kept.
			go func() {
				defer c.Close()
				request := make([]byte, 4096)
				for {
					if _, err := c.Read(request); err != nil {
						return
					}
					c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
				}
			}()
		}
	}()

	t.Chdir(t.TempDir())
	plan := fmt.Sprintf(`
results: {path: run.msgpack}
scenarios:
  many:
    http: {get: "http://127.0.0.1:30000/", keep_alive: false}
    phases:
      - ramp-and-hold: {rate: %d/s, hold: %s, timeout: 30s}
    assert:
      - error_rate < 1%%
      - p50 < 30s
`, calls/int(hold.Seconds()), hold)
	if err := os.WriteFile("plan.yaml", []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := Main([]string{"--quiet", "plan.yaml"}, strings.NewReader(""), &stdout, &stderr); code != 3 {
		t.Errorf("exit %d, want 3", code)
	}
	text := stdout.String() + stderr.String()
	contains(t, strings.Join(strings.Fields(text), " "), "no descriptors, ports or memory left", "this machine has no local port left: keep connections alive, or widen its range of ephemeral ports")

	run, err := result.Open("run.msgpack")
	if err != nil {
		t.Fatal(err)
	}
	c := run.Cells[0]
	s := c.Stats(result.Pooled, result.Judged, record.Whole)
	if s.Due() != calls || s.Dropped != 0 {
		t.Errorf("%d calls were due and %d dropped, want %d and 0", s.Due(), s.Dropped, calls)
	}
	// One port was the preflight's.
	if s.OK < ports/2 || s.OK > ports || s.Failures[drivers.Local] != s.Failed || s.Failed != calls-s.OK {
		t.Errorf("%d calls succeeded with %d ports, %d failed: %v", s.OK, ports, s.Failed, s.Failures)
	}
	// Failing takes no time: without ports, nobody waits for one until the time-out.
	if took := c.Rounds[0].End.Length; took > 5*hold {
		t.Errorf("a phase of %s took %s", hold, took)
	}
	addresses := c.Rounds[0].End.Addresses
	if want := (drivers.Address{Addr: "127.0.0.1:30000", Opened: s.OK}); len(addresses) != 1 || addresses[0] != want {
		t.Errorf("connections went to %v, want %v", addresses, want)
	}
	for _, v := range run.Verdicts {
		want := result.Passed
		if v.Assertion == "error_rate < 1%" {
			want = result.Inconclusive
		}
		if v.Outcome != want {
			t.Errorf("%s: %s, want %s", v.Assertion, v.Outcome, want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}
