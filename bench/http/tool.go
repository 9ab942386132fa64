package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tool is a load generator with the arguments for one measurement. In all of them URL stands for the server's address.
type tool struct {
	name  string
	args  []string // program first
	stdin string
	// doubts is an exit code that says that the tool measured, but doubts what it measured. 0 is none.
	doubts int
}

const url = "URL"

// closed lists the tools that are there, set to keep users connections busy.
func closed(o options) []tool {
	seconds := fmt.Sprintf("%.0fs", o.duration.Seconds())
	n := strconv.Itoa(o.users)
	return present(o, "closed.yaml", set("url", url, "users", n, "duration", seconds), []tool{
		{name: "wrk", args: []string{"wrk", "-t1", "-c" + n, "-d" + seconds, url}},
		{name: "bombardier", args: []string{"bombardier", "-c", n, "-d", seconds, "-p", "r", url}},
		// A rate of 0 is as fast as the workers can. vegeta records every request too, as planrun does.
		{name: "vegeta", args: []string{"vegeta", "attack", "-rate", "0", "-workers", n, "-max-workers", n, "-connections", n, "-http2=false", "-duration", seconds, "-output", filepath.Join(o.scratch, "vegeta.bin")}, stdin: "GET " + url},
	})
}

// open lists the tools that are there and can keep a rate.
func open(o options) []tool {
	seconds := fmt.Sprintf("%.0fs", o.duration.Seconds())
	return present(o, "open.yaml", set("url", url, "rate", fmt.Sprintf("%d/s", o.rate), "duration", seconds), []tool{
		{name: "vegeta", args: []string{"vegeta", "attack", "-rate", fmt.Sprintf("%d/1s", o.rate), "-http2=false", "-duration", seconds, "-output", filepath.Join(o.scratch, "vegeta.bin")}, stdin: "GET " + url},
		// bombardier limits the rate of a closed loop, so it needs more connections than there will be requests under way.
		{name: "bombardier", args: []string{"bombardier", "-c", strconv.Itoa(o.rate / 3), "-r", strconv.Itoa(o.rate), "-d", seconds, "-p", "r", url}},
	})
}

// set makes planrun's flags for variables, given as names and values in turn.
func set(pairs ...string) []string {
	var flags []string
	for pair := range slices.Chunk(pairs, 2) {
		flags = append(flags, "--set", "vars."+strings.Join(pair, "="))
	}
	return flags
}

// present puts planrun in front of those peers that are on PATH.
func present(o options, plan string, settings []string, peers []tool) []tool {
	var tools []tool
	if o.planrun != "" {
		tools = append(tools, tool{
			name: "planrun",
			args: append([]string{o.planrun, filepath.Join(o.plans, plan), "--results", filepath.Join(o.scratch, "planrun.msgpack")}, settings...),
			// It is inconclusive when the generator was late, which is what is to be measured here.
			doubts: 3,
		})
	}
	for _, t := range peers {
		if _, err := exec.LookPath(t.args[0]); err == nil {
			tools = append(tools, t)
		} else {
			fmt.Fprintf(os.Stderr, "%s is not on PATH and left out\n", t.args[0])
		}
	}
	return tools
}

// run runs the tool once, and asks the server what came of it.
func (t tool) run(ctx context.Context, o options, s *server) (result, error) {
	if err := os.RemoveAll(filepath.Join(o.scratch, "planrun.msgpack")); err != nil {
		return result{}, err
	}
	if _, err := s.control("reset"); err != nil {
		return result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.duration+time.Minute)
	defer cancel()
	fill := func(text string) string { return strings.ReplaceAll(text, url, s.url+"/strings") }
	var args []string
	for _, a := range t.args {
		args = append(args, fill(a))
	}
	cmd := pinned(ctx, o.clientCPU, args)
	cmd.Stdin = strings.NewReader(fill(t.stdin))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		if cmd.ProcessState == nil || t.doubts == 0 || cmd.ProcessState.ExitCode() != t.doubts {
			return result{}, fmt.Errorf("%w\n%s", err, output.Bytes())
		}
		fmt.Fprintf(os.Stderr, "%s doubts its figures:\n%s", t.name, output.Bytes())
	}
	count, err := s.control("count")
	if err != nil {
		return result{}, err
	}
	r := result{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if r.requests, err = strconv.ParseInt(string(count), 10, 64); err != nil {
		return result{}, err
	}
	if r.requests == 0 {
		return result{}, fmt.Errorf("the server saw no request\n%s", output.Bytes())
	}
	arrivals, err := s.arrivals()
	if err != nil {
		return result{}, err
	}
	r.late = latenessOf(arrivals, float64(o.rate))
	return r, nil
}

// pinned makes a command that runs on one processor.
func pinned(ctx context.Context, cpu string, args []string) *exec.Cmd {
	if cpu != "" {
		args = append([]string{"taskset", "-c", cpu}, args...)
	}
	return exec.CommandContext(ctx, args[0], args[1:]...)
}
