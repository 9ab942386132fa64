//go:build unix

package sqltest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a server's main process and what it says.
type process struct {
	cmd    *exec.Cmd
	output lockedBuffer
	done   chan struct{} // closed when the process has ended
}

// lockedBuffer takes the output of a process that may still run when it is read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// find returns the path of a program, in PATH or in one of the folders that patterns match. A missing one fails the
// test: a test that is skipped proves nothing.
func find(t testing.TB, program string, patterns ...string) string {
	t.Helper()
	if p, err := exec.LookPath(program); err == nil {
		return p
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(filepath.Join(pattern, program))
		if len(found) > 0 {
			return found[len(found)-1]
		}
	}
	t.Fatalf("%s is not installed: run ./test.sh, which installs what the tests need", program)
	return ""
}

// folder makes a private folder that the servers' user owns.
func folder(t testing.TB, owner *syscall.Credential) string {
	t.Helper()
	// Not t.TempDir: its parents are closed to other users, and a socket's path has to be short.
	dir, err := os.MkdirTemp("", "sqltest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if owner != nil {
		if err := os.Chown(dir, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// unprivileged returns whom a server should run as, nil for the user of the test: the servers refuse to run as root.
func unprivileged(t testing.TB, names ...string) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range append(names, "nobody") {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Fatalf("the tests run as root, and there is no other user to run a server as: tried %v and nobody", names)
	return nil
}

// command makes a command in dir.
func command(dir string, owner *syscall.Credential, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = attributes(owner)
	return cmd
}

// start runs a server until the test ends. It is stopped by stop, and killed if it does not heed that.
func start(t testing.TB, cmd *exec.Cmd, stop os.Signal) *process {
	t.Helper()
	p := &process{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		cmd.Wait()
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(stop)
		select {
		case <-p.done:
		case <-time.After(20 * time.Second):
			t.Errorf("%s did not stop", cmd.Path)
			cmd.Process.Kill()
			<-p.done
		}
		if t.Failed() {
			t.Logf("output of %s:\n%s", cmd.Path, p.output.String())
		}
	})
	return p
}

// await waits until a server answers ready without an error.
func (p *process) await(t testing.TB, ready func() error) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := ready()
		if err == nil {
			return
		}
		select {
		case <-p.done:
			t.Fatalf("%s ended:\n%s", p.cmd.Path, p.output.String())
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not ready: %v\n%s", p.cmd.Path, err, p.output.String())
		}
	}
}

// freePort returns a port of 127.0.0.1 that was free a moment ago.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}
