package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// server is a running bench/server.
type server struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer
}

func startServer(ctx context.Context, o options, delay string) (*server, error) {
	cmd := pinned(ctx, o.serverCPU, []string{o.server, "-delay", delay})
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s := &server{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("server: it ended before it listened: %w", err)
	}
	s.url = "http://" + strings.TrimSpace(line)
	return s, nil
}

// stop lets the server end, and sees that it does.
func (s *server) stop() {
	s.stdin.Close()
	kill := time.AfterFunc(5*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer kill.Stop()
	_ = s.cmd.Wait()
}

// control asks for one of the server's control paths.
func (s *server) control(name string) ([]byte, error) {
	resp, err := http.Get(s.url + "/control/" + name)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// arrivals returns when the requests since the last reset arrived, in order.
func (s *server) arrivals() ([]time.Duration, error) {
	raw, err := s.control("arrivals")
	if err != nil {
		return nil, err
	}
	at := make([]time.Duration, len(raw)/8)
	for i := range at {
		at[i] = time.Duration(binary.LittleEndian.Uint64(raw[i*8:]))
	}
	slices.Sort(at)
	return at, nil
}
