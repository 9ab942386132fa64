package main

import (
	"fmt"

	"github.com/planrun/planrun/engine/verdict"
)

type validateCommand struct {
	planFlags
	pipelineFlags
	Plans []string `arg:"" name:"plan" help:"Plan files."`
}

func (c *validateCommand) run(p *program) (int, error) {
	defer c.show(p)()
	plans, good := p.load(c.Plans, c.options())
	for _, pl := range plans {
		fmt.Fprintf(p.stdout, "%s: ok\n", pl.File)
	}
	if !good {
		return verdict.ExitUsage, nil
	}
	return verdict.ExitPassed, nil
}
