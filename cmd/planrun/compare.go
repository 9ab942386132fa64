package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/engine/verdict"
)

type compareCommand struct {
	pipelineFlags
	Before         string   `arg:"" help:"The results of the earlier run."`
	After          string   `arg:"" help:"The results of the later run."`
	Assert         []string `placeholder:"EXPR" sep:"none" help:"Judge the later run, and exit as a run does: change(p95, previous) < 10%. May be given several times."`
	Force          bool     `help:"Compare runs of unlike plans too, by what they have in common."`
	AnyEnvironment bool     `help:"Compare runs from unlike machines too."`
	Output         []string `short:"o" placeholder:"KIND=PATH" sep:"none" help:"Write a report: ${outputs}. May be given several times."`
}

func (c *compareCommand) run(p *program) (int, error) {
	outputs, err := parseOutputs(c.Output)
	if err != nil {
		return verdict.ExitUsage, err
	}
	before, err := openResults(p, c.Before)
	if err != nil {
		return verdict.ExitUsage, err
	}
	after, err := openResults(p, c.After)
	if err != nil {
		return verdict.ExitUsage, err
	}
	plans := unlikePlans(before, after)
	if len(plans) > 0 && !c.Force {
		return verdict.ExitUsage, fmt.Errorf("the runs are of unlike plans: %s; --force compares what they have in common", strings.Join(plans, "; "))
	}
	machines := append(unlikeMachines(before.Environment, after.Environment), unlikeTargets(before.Targets, after.Targets)...)
	if len(machines) > 0 && !c.AnyEnvironment {
		return verdict.ExitUsage, fmt.Errorf("the runs are not comparable: %s; --any-environment compares all the same", strings.Join(machines, ", "))
	}
	both := result.Versus(before, after, labels(c.Before, c.After))
	if len(both.Cells) == 0 {
		return verdict.ExitUsage, errNothingInCommon
	}
	end := &result.End{At: 0}
	for _, d := range append(plans, machines...) {
		end.Notes = append(end.Notes, "the runs differ: "+d)
	}
	end.Notes = append(end.Notes, "the runs were measured at different times: whatever else changed in between is in the differences, and an interval knows nothing of it")
	if len(c.Assert) > 0 {
		by := verdict.Case{Vars: after.Vars, Previous: before, Strict: after.Strict}
		for _, text := range c.Assert {
			by.Assertions = append(by.Assertions, result.Assertion{Text: text, Place: "--assert"})
		}
		j, err := verdict.Judge(after, by)
		if err != nil {
			return verdict.ExitUsage, err
		}
		end.Outcome, end.Exit = j.Outcome, j.Exit
		both.Verdicts = j.Rows
	}
	both.End = end
	if len(c.Assert) == 0 {
		return p.reports(both, "", outputs), nil
	}
	leave := c.enter(p)
	exit := worse(end.Exit, p.reports(both, "", outputs))
	leave(exit)
	return exit, nil
}

// labels are the names of two files without what they have in common: the folders and the ending.
func labels(before, after string) [2]string {
	name := func(path string) string {
		base := filepath.Base(path)
		return strings.TrimSuffix(base, filepath.Ext(base))
	}
	if a, b := name(before), name(after); a != b {
		return [2]string{a, b}
	}
	return [2]string{"before", "after"}
}

type saveCommand struct {
	Results string `arg:"" help:"A results file."`
	Path    string `arg:"" help:"The small file to write, such as baselines/v4.2.msgpack. One that is there is replaced."`
	Force   bool   `help:"Save a run that did not pass too."`
}

func (c *saveCommand) run(p *program) (int, error) {
	run, err := openResults(p, c.Results)
	if err != nil {
		return verdict.ExitUsage, err
	}
	if passed := run.End != nil && run.End.Outcome == result.Passed; !passed && !c.Force {
		return verdict.ExitUsage, fmt.Errorf("%s did not pass, so it is no baseline to hold others against; --force saves it all the same", c.Results)
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o755); err != nil {
		return verdict.ExitInconclusive, err
	}
	f, err := os.CreateTemp(filepath.Dir(c.Path), "."+filepath.Base(c.Path)+"-*")
	if err != nil {
		return verdict.ExitInconclusive, err
	}
	defer os.Remove(f.Name())
	if err := result.Save(f, run); err != nil {
		f.Close()
		return verdict.ExitInconclusive, err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return verdict.ExitInconclusive, err
	}
	if err := f.Close(); err != nil {
		return verdict.ExitInconclusive, err
	}
	if err := os.Rename(f.Name(), c.Path); err != nil {
		return verdict.ExitInconclusive, err
	}
	p.message("saved %s", c.Path)
	return verdict.ExitPassed, nil
}
