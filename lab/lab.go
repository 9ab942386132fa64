package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Lab is a running lab. It is safe for concurrent use.
type Lab struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	stderr  *tail
	ready   Ready

	replies chan []byte // lines of its standard output; closed at their end
	asking  chan struct{}

	stopping sync.Once
	done     chan struct{}
	mu       sync.Mutex
	closed   bool
	err      error
}

// grace is how long Close waits for the process to end by itself.
const grace = 3 * time.Second

// Start starts a lab in a process of its own: command is a program and its arguments that end up in server.Serve. It
// returns once every service can be reached. The lab runs until Close, whatever becomes of ctx.
//
// The process ends with this one, even if this one is killed, because then its standard input ends. An interrupt from the
// terminal does not reach it, so that a run can be brought to an orderly end with its lab still there.
func Start(ctx context.Context, spec Spec, command []string) (*Lab, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	if len(command) == 0 {
		return nil, errors.New("start the lab: no command given")
	}
	l := &Lab{
		command: exec.Command(command[0], command[1:]...),
		stderr:  &tail{limit: 4 << 10},
		replies: make(chan []byte, 1),
		asking:  make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	l.command.SysProcAttr = apart()
	l.command.Stderr = l.stderr
	// Whatever keeps its standard error open shall not keep Wait.
	l.command.WaitDelay = time.Second
	var err error
	if l.stdin, err = l.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the lab: %w", err)
	}
	stdout, err := l.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the lab: %w", err)
	}
	if err := l.command.Start(); err != nil {
		return nil, fmt.Errorf("start the lab: %w", err)
	}
	go l.watch(stdout)

	if err := l.ask(ctx, spec, &l.ready); err != nil {
		l.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("start the lab: %w", context.Cause(ctx))
		}
		return nil, fmt.Errorf("start the lab: %w", err)
	}
	if l.ready.Error != "" {
		l.Close()
		return nil, fmt.Errorf("start the lab: %s", l.ready.Error)
	}
	return l, nil
}

// watch reads what the process says until it ends.
func (l *Lab) watch(stdout io.Reader) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		select {
		case l.replies <- line:
		default: // nobody has asked
		}
	}
	err := l.command.Wait()
	l.mu.Lock()
	if !l.closed {
		l.err = ended(err, l.stderr.String())
	}
	l.mu.Unlock()
	close(l.done)
}

// ended says how a process ended that should not have.
func ended(err error, stderr string) error {
	how := "it ended"
	if err != nil {
		how = err.Error()
	}
	if stderr = strings.TrimSpace(stderr); stderr != "" {
		return fmt.Errorf("the lab is gone: %s\n%s", how, stderr)
	}
	return fmt.Errorf("the lab is gone: %s", how)
}

// ask sends a request and waits for the answer.
func (l *Lab) ask(ctx context.Context, request, answer any) error {
	select {
	case l.asking <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	answered := func() { <-l.asking }
	line, err := json.Marshal(request)
	if err != nil {
		answered()
		return err
	}
	// A failure to write means that the process is gone; why, its end tells.
	_, _ = l.stdin.Write(append(line, '\n'))
	select {
	case line = <-l.replies:
		answered()
	case <-l.done:
		answered()
		if err := l.Err(); err != nil {
			return err
		}
		return errors.New("the lab is closed")
	case <-ctx.Done():
		// The answer still comes, and must not be taken for that to the next request.
		go func() {
			select {
			case <-l.replies:
			case <-l.done:
			}
			answered()
		}()
		return ctx.Err()
	}
	if err := json.Unmarshal(line, answer); err != nil {
		return fmt.Errorf("the lab answered %.100q, which is not understood: %w", line, err)
	}
	return nil
}

// Addresses is where to reach each service by each route: by the route's name, then the service's. It is a URL for http
// and gateway, host and port for grpc, a DSN for postgres. The caller may not change it.
func (l *Lab) Addresses() map[string]map[string]string { return l.ready.Addresses }

// CA is the authority that signed the certificate of services over TLS, in PEM; nil if there are none.
func (l *Lab) CA() []byte { return l.ready.CA }

// Counts asks the lab what it has seen so far.
func (l *Lab) Counts(ctx context.Context) (Counts, error) {
	var c Counts
	err := l.ask(ctx, AskCounts, &c)
	return c, err
}

// Done is closed when the process has ended.
func (l *Lab) Done() <-chan struct{} { return l.done }

// Err says why the process has ended, with the last that it wrote to its standard error; nil while it runs, and after
// Close.
func (l *Lab) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close ends the process, within seconds, and waits for its end. It returns the error with which the process ended before.
func (l *Lab) Close() error {
	l.stopping.Do(func() {
		l.mu.Lock()
		select {
		case <-l.done:
		default:
			l.closed = true
		}
		l.mu.Unlock()
		l.stdin.Close()
		select {
		case <-l.done:
		case <-time.After(grace):
			l.command.Process.Kill()
			<-l.done
		}
	})
	<-l.done
	return l.Err()
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int

	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - t.limit; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
