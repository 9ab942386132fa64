package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/download"
	"github.com/planrun/planrun/drivers/grpc"
	"github.com/planrun/planrun/drivers/http"
	"github.com/planrun/planrun/drivers/sql"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/lab"
)

// allDrivers are the drivers of this program, by the key of a step.
func allDrivers() map[string]drivers.Driver {
	return map[string]drivers.Driver{
		"http":     http.New(),
		"download": download.New(),
		"grpc":     grpc.New(),
		"sql":      sql.New(),
	}
}

// planFlags are the flags of every command that reads plans.
type planFlags struct {
	Set   []string `placeholder:"vars.NAME=VALUE" sep:"none" help:"Replace the value of a variable. May be given several times."`
	Vars  []string `placeholder:"FILE" sep:"none" help:"Replace the values of variables by those of a YAML file. May be given several times."`
	Env   string   `placeholder:"NAME" help:"Take the values of one of the plan's environments."`
	Only  []string `placeholder:"NAME[.NAME...]" help:"Only these scenarios, phases or targets, or those with a tag: @TAG. May be given several times."`
	NoLab bool     `help:"Refuse to measure the lab in the box: what a pipeline that means business uses."`
}

func (f *planFlags) options() plan.Options {
	return plan.Options{Drivers: allDrivers(), Sinks: sinkKinds(), Set: f.Set, VarFiles: f.Vars, Environment: f.Env, Only: f.Only, NoLab: f.NoLab}
}

// load reads plans and prints every finding. All of them are read before any is run; false means that one is wrong.
func (p *program) load(files []string, opt plan.Options) ([]*plan.Plan, bool) {
	var plans []*plan.Plan
	good := true
	for _, file := range files {
		pl, findings := plan.Load(file, opt)
		p.missing(file, findings)
		p.findings(findings)
		if findings.HasErrors() {
			good = false
			continue
		}
		plans = append(plans, pl)
	}
	return plans, good
}

// missing says that a plan that does not exist may have been meant as a command.
func (p *program) missing(file string, findings diag.Findings) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) && len(findings) > 0 {
		if near := diag.Suggest(file, p.commands); near != "" {
			findings[0].Hint = "did you mean the command " + near + "?"
		}
	}
}

// findings prints what there is to say about a plan.
func (p *program) findings(list diag.Findings) {
	var style diag.Style
	if colours(p.stderr) {
		style = diag.Colour
	}
	list.Write(p.stderr, style)
	if err := p.pipeline.findings(list); err != nil {
		p.message("can't show everything in the pipeline: %s", err)
	}
}

// startLab starts the lab of a plan, if it has one in use, and returns the plan with the lab's addresses in it.
func (p *program) startLab(ctx context.Context, pl *plan.Plan, opt plan.Options) (*plan.Plan, *lab.Lab, error) {
	if pl.Lab == nil {
		return pl, nil, nil
	}
	if os.Getenv("CI") != "" {
		p.message("WARNING: %s measures the lab in the box, not a real system; a release gate uses --no-lab", pl.File)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("can't start the lab: %w", err)
	}
	l, err := lab.Start(ctx, *pl.Lab, []string{self, "lab", "serve"})
	if err != nil {
		return nil, nil, fmt.Errorf("can't start the lab: %w", err)
	}
	opt.Lab, opt.Roots = l.Addresses(), l.CA()
	resolved, findings := plan.Parse(pl.File, pl.Text, opt)
	if findings.HasErrors() {
		l.Close()
		p.findings(findings)
		return nil, nil, fmt.Errorf("%s: the plan does not hold with the lab's addresses", pl.File)
	}
	return resolved, l, nil
}

// seed parses --seed.
func seed(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("--seed: expected a whole number, got %q", text)
	}
	return n, nil
}
