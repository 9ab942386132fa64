package main

import (
	"fmt"
	"io"

	"github.com/planrun/planrun/engine/verdict"
	"github.com/planrun/planrun/sinks/digest"
	"github.com/planrun/planrun/sinks/html"
	"github.com/planrun/planrun/sinks/markdown"
)

type reportCommand struct {
	Results []string `arg:"" help:"Results files. Of several, the runs are set side by side."`
	Output  []string `short:"o" placeholder:"KIND=PATH" sep:"none" help:"Write a report: ${outputs}. May be given several times."`
}

func (c *reportCommand) run(p *program) (int, error) {
	outputs, err := parseOutputs(c.Output)
	if err != nil {
		return verdict.ExitUsage, err
	}
	if len(c.Results) > 1 {
		return c.trend(p, outputs)
	}
	run, err := openResults(p, c.Results[0])
	if err != nil {
		return verdict.ExitUsage, err
	}
	return p.reports(run, "", outputs), nil
}

// trend sets several runs side by side. Only one of them is in memory at a time.
func (c *reportCommand) trend(p *program, outputs []output) (int, error) {
	for _, o := range outputs {
		if o.kind != "html" && o.kind != "markdown" {
			return verdict.ExitUsage, fmt.Errorf("-o %s: several runs side by side are written as html or markdown", o.kind)
		}
	}
	t := &digest.Trend{}
	for _, path := range c.Results {
		run, err := openResults(p, path)
		if err != nil {
			return verdict.ExitUsage, err
		}
		t.Add(run)
	}
	exit := verdict.ExitPassed
	for _, o := range outputs {
		err := writeReport(o.path, func(w io.Writer) error {
			if o.kind == "html" {
				return html.New(html.Options{}).WriteTrend(w, t)
			}
			return markdown.New(markdown.Options{}).WriteTrend(w, t)
		})
		if err != nil {
			p.message("can't write the %s report: %s", o.kind, err)
			exit = verdict.ExitInconclusive
		}
	}
	if len(outputs) > 0 {
		return exit, nil
	}
	return exit, markdown.New(markdown.Options{Limit: 1 << 30}).WriteTrend(p.stdout, t)
}
