package main

import (
	"github.com/planrun/planrun/engine/plan"
)

type schemaCommand struct{}

func (schemaCommand) run(p *program) (int, error) {
	_, err := p.stdout.Write(plan.Schema(allDrivers(), sinkKinds()...))
	return 0, err
}
