package main

import (
	"errors"
	"os"

	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/ci"
)

// pipelineFlags are the flags of commands whose verdict a pipeline waits for.
type pipelineFlags struct {
	NoCI bool `name:"no-ci" help:"No annotations, summaries and outputs on GitHub Actions and Azure Pipelines."`
}

// pipeline is where the run shows itself in a pipeline, and what keeps texts of servers from giving commands there.
type pipeline struct {
	session        *ci.Session
	stdout, stderr *ci.Guard
}

// enter finds out whether this is a pipeline. leave tells it what all came to.
func (f *pipelineFlags) enter(p *program) (leave func(exit int)) {
	hide := f.show(p)
	return func(exit int) {
		if p.pipeline != nil {
			if err := p.pipeline.session.Close(exit); err != nil {
				p.message("can't show everything in the pipeline: %s", err)
			}
		}
		hide()
	}
}

// show is enter for commands that have no outcome of a run to tell.
func (f *pipelineFlags) show(p *program) (hide func()) {
	if f.NoCI {
		return func() {}
	}
	session := ci.New(os.Getenv, p.stdout)
	if session == nil {
		return func() {}
	}
	p.pipeline = &pipeline{session, ci.NewGuard(p.stdout), ci.NewGuard(p.stderr)}
	p.stdout, p.stderr = p.pipeline.stdout, p.pipeline.stderr
	return func() {
		p.pipeline.stdout.Flush()
		p.pipeline.stderr.Flush()
	}
}

// plan shows one run. What was printed before is flushed, so that a command begins a line of its own.
func (l *pipeline) plan(run *result.Run, results string, reports []string) error {
	if l == nil {
		return nil
	}
	return errors.Join(l.stdout.Flush(), l.session.Plan(run, results, reports))
}

// findings shows faults of plans at their lines.
func (l *pipeline) findings(list diag.Findings) error {
	if l == nil {
		return nil
	}
	errs := []error{l.stdout.Flush()}
	for _, f := range list {
		errs = append(errs, l.session.Finding(ci.Finding{
			Warning: f.Severity == diag.Warning, File: f.File, Line: f.Line, Column: f.Column, EndColumn: f.EndColumn, Message: f.Message, Detail: f.Hint,
		}))
	}
	return errors.Join(errs...)
}
