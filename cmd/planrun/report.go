package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/planrun/planrun/engine"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/engine/verdict"
)

// openResults reads a results file. One that was cut off is read as far as it goes, and that is said.
func openResults(p *program, path string) (*result.Run, error) {
	run, err := result.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: the file does not exist", path)
	}
	if err != nil {
		return nil, err
	}
	if run.Cut != nil {
		p.message("%s: %s", path, run.Cut)
	}
	return run, nil
}

type checkCommand struct {
	planFlags
	pipelineFlags
	againstFlags
	Results string `arg:"" help:"A results file."`
	Plan    string `arg:"" optional:"" help:"A plan whose assertions judge it instead of its own."`
}

func (c *checkCommand) run(p *program) (int, error) {
	run, err := openResults(p, c.Results)
	if err != nil {
		return verdict.ExitUsage, err
	}
	by, against := verdict.CaseOf(run), plan.Against{Path: run.Against}
	if c.Plan != "" {
		plans, good := p.load([]string{c.Plan}, c.options())
		if !good {
			return verdict.ExitUsage, nil
		}
		by, against = engine.Case(plans[0]), plans[0].Against
	}
	if c.Against != "" || verdict.ReadsPrevious(run, by) {
		if by.Previous, err = c.open(p, against, run.Environment, run.Targets); err != nil {
			return verdict.ExitUsage, err
		}
	}
	j, err := verdict.Judge(run, by)
	if err != nil {
		return verdict.ExitUsage, err
	}
	run.Verdicts = j.Rows
	switch {
	case run.End == nil, run.End.Interrupted:
		// Nobody knows how it would have gone on, so it can fail but not pass.
		if j.Exit == verdict.ExitPassed {
			j.Outcome, j.Exit = result.Inconclusive, verdict.ExitInconclusive
		}
		run.End = &result.End{Interrupted: true, At: endOf(run)}
	default:
		end := *run.End
		run.End = &end
	}
	run.End.Outcome, run.End.Exit, run.End.Notes = j.Outcome, j.Exit, j.Notes
	leave := c.enter(p)
	exit := worse(j.Exit, p.reports(run, "", nil))
	leave(exit)
	return exit, nil
}

// endOf is when a run that was cut short ended, as far as its results tell.
func endOf(run *result.Run) time.Duration {
	if run.End != nil {
		return run.End.At
	}
	var at time.Duration
	for _, c := range run.Cells {
		for _, v := range c.Intervals {
			at = max(at, c.Rounds[v.Round].Release+time.Duration(v.Second+1)*time.Second)
		}
	}
	return at
}
