// Command http measures planrun beside its peers: what a request costs the client, and how well it keeps time. It is run
// by bench/http.sh, which builds what it needs.
//
// Tools take turns, forward and then reversed, against one server on one machine in one go, and only what the server
// counted is believed. It prints medians over the rounds, and ratios within a round with their range. Ratios are what
// counts: figures of two machines, or of two moments of one, can't be compared.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

// options are the command line.
type options struct {
	server, planrun, plans string // the programs, and the folder of planrun's plans
	scratch                string // where tools write
	serverCPU, clientCPU   string // processors to pin to; "" does not pin
	only                   string
	rounds                 int
	duration               time.Duration
	users                  int // connections of the closed model
	rate                   int // requests a second of the open one
	delay                  string
}

func main() {
	var o options
	flag.StringVar(&o.server, "server", "", "the server's program")
	flag.StringVar(&o.planrun, "planrun", "", "planrun's program; empty leaves it out")
	flag.StringVar(&o.plans, "plans", "bench/plans", "folder of the plans that planrun runs")
	flag.StringVar(&o.scratch, "scratch", os.TempDir(), "folder for what tools write")
	flag.StringVar(&o.serverCPU, "server-cpu", "0", "processor for the server; empty does not pin it")
	flag.StringVar(&o.clientCPU, "client-cpu", "1", "processor for the client; empty does not pin it")
	flag.StringVar(&o.only, "only", "closed,open", "which measurements to make")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds; each tool runs once in each")
	flag.DurationVar(&o.duration, "duration", 5*time.Second, "length of one run")
	flag.IntVar(&o.users, "users", 50, "connections in the closed model")
	flag.IntVar(&o.rate, "rate", 600, "requests a second in the open model")
	flag.StringVar(&o.delay, "delay", "100ms..120ms", "what the server waits before it answers, in the open model")
	flag.Parse()
	if _, err := exec.LookPath("taskset"); err != nil || runtime.NumCPU() < 2 {
		o.serverCPU, o.clientCPU = "", ""
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.rounds < 1 || o.duration < time.Second || o.duration%time.Second != 0 || o.rate < 3 || o.users < 1 {
		return fmt.Errorf("expected at least one round, one user, 3/s, and whole seconds")
	}
	only := strings.Split(o.only, ",")
	if slices.Contains(only, "closed") {
		fmt.Printf("closed model: %d connections, HTTP/1.1, answers of 8 KiB, %d rounds of %v\n\n", o.users, o.rounds, o.duration)
		if err := measure(ctx, o, "0s", closed(o), closedReport); err != nil {
			return err
		}
	}
	if slices.Contains(only, "open") {
		fmt.Printf("open model: %d/s, HTTP/1.1, answers of 8 KiB after %s, %d rounds of %v\n\n", o.rate, o.delay, o.rounds, o.duration)
		if err := measure(ctx, o, o.delay, open(o), openReport); err != nil {
			return err
		}
	}
	return nil
}

// result is what one run of one tool came to.
type result struct {
	requests int64
	cpu      time.Duration // the client's, user and system, its children's included
	late     lateness
}

// perRequest is the processor time a request cost the client, in microseconds.
func (r result) perRequest() float64 {
	return float64(r.cpu.Nanoseconds()) / 1e3 / float64(r.requests)
}

// measure runs all tools in all rounds and has the report printed.
func measure(ctx context.Context, o options, delay string, tools []tool, report func(options, []tool, [][]result)) error {
	if len(tools) == 0 {
		return fmt.Errorf("none of the tools was found")
	}
	s, err := startServer(ctx, o, delay)
	if err != nil {
		return err
	}
	defer s.stop()
	results := make([][]result, len(tools)) // by tool, then round
	for round := range o.rounds {
		for i := range tools {
			if round%2 == 1 {
				i = len(tools) - 1 - i
			}
			r, err := tools[i].run(ctx, o, s)
			if err != nil {
				return fmt.Errorf("%s: %w", tools[i].name, err)
			}
			results[i] = append(results[i], r)
			fmt.Fprintf(os.Stderr, "round %d of %d, %s: %d requests, %.1f us of a processor each\n", round+1, o.rounds, tools[i].name, r.requests, r.perRequest())
		}
	}
	report(o, tools, results)
	return nil
}
