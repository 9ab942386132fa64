package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planrun/planrun/engine"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/engine/verdict"
	"github.com/planrun/planrun/sinks/prometheus"
)

type runCommand struct {
	planFlags
	pipelineFlags
	againstFlags
	Plans      []string `arg:"" name:"plan" help:"Plan files, run one after the other."`
	Output     []string `short:"o" placeholder:"KIND=PATH" sep:"none" help:"Write a report: ${outputs}. May be given several times."`
	Results    string   `placeholder:"PATH" help:"Where the results file goes (results/<plan>-<time>-<hex>.msgpack)."`
	Prometheus string   `placeholder:"ADDRESS" help:"Answer scrapes while it runs, at http://ADDRESS/metrics: a loopback address and a port, such as 127.0.0.1:9464."`
	Seed       string   `default:"1" help:"Fixes every random choice, so that runs can be compared."`
}

func (c *runCommand) run(p *program) (exit int, err error) {
	seed, err := seed(c.Seed)
	if err != nil {
		return verdict.ExitUsage, err
	}
	extra, err := parseOutputs(c.Output)
	if err != nil {
		return verdict.ExitUsage, err
	}
	if c.Results != "" && len(c.Plans) > 1 {
		return verdict.ExitUsage, errors.New("--results names one file, but there are several plans")
	}
	if len(extra) > 0 && len(c.Plans) > 1 {
		return verdict.ExitUsage, errors.New("-o names one file, but there are several plans; the sinks of each plan write its reports")
	}
	leave := c.enter(p)
	defer func() { leave(exit) }()
	opt := c.options()
	plans, good := p.load(c.Plans, opt)
	if !good {
		return verdict.ExitUsage, nil
	}
	outputs := allOutputs(plans, extra)
	if err := checkOutputs(outputs); err != nil {
		return verdict.ExitUsage, err
	}
	if slices.ContainsFunc(outputs, func(o output) bool { return c.Results != "" && absolute(o.path) == absolute(c.Results) }) {
		return verdict.ExitUsage, fmt.Errorf("a report and the results are both written to %s; each needs a file of its own", c.Results)
	}
	for _, pl := range plans {
		if err := checkResults(cmp.Or(c.Results, pl.Results.Path)); err != nil {
			return verdict.ExitUsage, err
		}
	}
	previous := make([]*result.Run, len(plans))
	for i, pl := range plans {
		if previous[i], err = c.previousOf(p, pl); err != nil {
			return verdict.ExitUsage, err
		}
	}
	var live *prometheus.Live
	if c.Prometheus != "" {
		if live, err = prometheus.Listen(c.Prometheus); err != nil {
			return verdict.ExitUsage, fmt.Errorf("--prometheus: %w", err)
		}
		defer live.Close()
	}
	ctx, stop, release := p.interrupts("waiting for what is in flight, then writing what was measured; a second interrupt leaves at once")
	defer release()
	exit = verdict.ExitPassed
	var lines []string
	for i, pl := range plans {
		if exit == verdict.ExitInterrupted {
			lines = append(lines, pl.File+": not run")
			continue
		}
		if c.Results != "" {
			pl.Results.Path = c.Results
		}
		one := p.runPlan(ctx, stop, pl, opt, engine.Options{Seed: seed, Previous: previous[i]}, extra, live)
		lines = append(lines, pl.File+": "+outcomeOf(one))
		exit = worse(exit, one)
	}
	if len(plans) > 1 {
		fmt.Fprintf(p.stdout, "\n%s\noverall: %s\n", strings.Join(lines, "\n"), outcomeOf(exit))
	}
	return exit, nil
}

// allOutputs are the reports of some plans and of the command line.
func allOutputs(plans []*plan.Plan, extra []output) []output {
	list := slices.Clone(extra)
	for _, pl := range plans {
		list = append(list, planOutputs(pl.Sinks)...)
	}
	return list
}

// outcomeOf is an exit code in a word.
func outcomeOf(exit int) string {
	switch exit {
	case verdict.ExitPassed:
		return "passed"
	case verdict.ExitFailed:
		return "failed"
	case verdict.ExitUsage:
		return "refused"
	case verdict.ExitInterrupted:
		return "interrupted"
	}
	return "inconclusive"
}

// worse returns the exit code that applies first.
func worse(a, b int) int {
	order := []int{verdict.ExitUsage, verdict.ExitInterrupted, verdict.ExitFailed, verdict.ExitInconclusive, verdict.ExitPassed}
	return order[min(slices.Index(order, a), slices.Index(order, b))]
}

// resultsOf is where the results of a run that has just begun are written; nil if that can't be told.
func resultsOf(path string, h *result.Header) *string {
	if path != "" {
		return &path
	}
	// The name that a results file is given ends in four digits that only its maker knows.
	found, _ := filepath.Glob(filepath.Join("results", result.Slug(h.Plan)+"-"+h.Start.UTC().Format("20060102T150405Z")+"-*.msgpack"))
	if len(found) != 1 {
		return nil
	}
	return &found[0]
}

// runPlan runs one plan from lab to reports.
func (p *program) runPlan(ctx context.Context, stop chan struct{}, pl *plan.Plan, opt plan.Options, how engine.Options, extra []output, live *prometheus.Live) int {
	resultsPath := pl.Results.Path
	pl, l, err := p.startLab(ctx, pl, opt)
	if err != nil {
		p.message("%s", err)
		return verdict.ExitInconclusive
	}
	pl.Results.Path = cmp.Or(resultsPath, pl.Results.Path)
	if l != nil {
		// A lab that ends by itself takes the systems under test along, so nothing that follows means anything.
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-l.Done():
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	progress := p.newProgress(pl)
	how.Drivers, how.Tool, how.Stop = opt.Drivers, version(), stop
	defer p.results.Store(nil)
	how.Watch = func(f result.Frame) {
		if h, ok := f.(*result.Header); ok {
			p.results.Store(resultsOf(pl.Results.Path, h))
		}
		progress.watch(f)
		live.Watch(f)
	}
	report := engine.Run(ctx, pl, how)
	progress.close()
	exit := report.Exit
	if l != nil {
		select {
		case <-l.Done():
			report.Err = errors.Join(report.Err, errors.New("the lab ended while it was measured"), l.Err())
			exit = verdict.ExitInconclusive
		default:
		}
		if err := l.Close(); err != nil {
			p.message("the lab did not end as it should: %s", err)
		}
	}
	if report.Err != nil {
		p.message("%s", report.Err)
	}
	if report.Run != nil {
		exit = worse(exit, p.reports(report.Run, report.Path, append(planOutputs(pl.Sinks), extra...)))
	}
	return exit
}
