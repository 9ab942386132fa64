package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/verdict"
	"github.com/planrun/planrun/lab"
	"github.com/planrun/planrun/lab/calibration"
	"github.com/planrun/planrun/lab/server"
)

type labCommand struct {
	Start     labStartCommand     `cmd:"" default:"withargs" help:"Run the lab of a plan alone and print its addresses (the default)."`
	Calibrate labCalibrateCommand `cmd:"" help:"Measure what each route of a plan's lab really injects."`
	Serve     labServeCommand     `cmd:"" hidden:"" help:"Be the lab's own process."`
}

type labStartCommand struct {
	Plan string `arg:"" help:"A plan with a lab."`
}

func (c *labStartCommand) run(p *program) (int, error) {
	ctx, stop, release := p.interrupts("stopping the lab")
	defer release()
	_, l, code, err := p.openLab(ctx, c.Plan)
	if l == nil {
		return code, err
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	addresses := l.Addresses()
	for _, route := range sortedKeys(addresses) {
		for _, service := range sortedKeys(addresses[route]) {
			fmt.Fprintf(w, "lab.%s.%s\t%s\n", route, service, addresses[route][service])
		}
	}
	w.Flush()
	p.message("the lab runs until it is interrupted")
	select {
	case <-stop:
		return verdict.ExitPassed, l.Close()
	case <-l.Done():
		return verdict.ExitInconclusive, errors.Join(errors.New("the lab ended by itself"), l.Err())
	}
}

type labCalibrateCommand struct {
	Plan string `arg:"" help:"A plan with a lab."`
}

func (c *labCalibrateCommand) run(p *program) (int, error) {
	ctx, _, release := p.interrupts("stopping the lab")
	defer release()
	spec, l, code, err := p.openLab(ctx, c.Plan)
	if l == nil {
		return code, err
	}
	rows, err := calibration.Measure(ctx, *spec, l.Addresses(), l.CA())
	p.calibration(rows)
	return verdict.ExitPassed, errors.Join(err, l.Close())
}

// calibration prints what each route really does below what was asked of it.
func (p *program) calibration(rows []calibration.Row) {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	fmt.Fprintln(w, "route to service\t\tcall p50\tp99\tnew connection\tits rendezvous\tdown\tup\t")
	for _, r := range rows {
		for _, line := range []struct {
			what string
			calibration.Figures
		}{{"asked", r.Asked}, {"measured", r.Measured}} {
			name := ""
			if line.what == "asked" {
				name = r.Route + " to " + r.Service
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, line.what, duration(line.P50), duration(line.P99),
				duration(line.Connection), duration(line.Rendezvous), speed(line.Down), speed(line.Up))
		}
	}
}

func duration(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return quantity.Value{F: float64(d), Dim: quantity.Time}.String()
}

func speed(perSecond float64) string {
	if perSecond == 0 {
		return "-"
	}
	return quantity.Value{F: perSecond, Dim: quantity.Speed}.String()
}

// openLab starts the lab that a plan describes, whether or not its targets lead there.
func (p *program) openLab(ctx context.Context, file string) (*lab.Spec, *lab.Lab, int, error) {
	plans, good := p.load([]string{file}, plan.Options{Drivers: allDrivers(), Sinks: sinkKinds(), LabOnly: true})
	if !good {
		return nil, nil, verdict.ExitUsage, nil
	}
	spec := plans[0].Described
	if spec == nil {
		return nil, nil, verdict.ExitUsage, fmt.Errorf("%s has no lab", file)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, verdict.ExitInconclusive, err
	}
	l, err := lab.Start(ctx, *spec, []string{self, "lab", "serve"})
	if err != nil {
		return nil, nil, verdict.ExitInconclusive, err
	}
	return spec, l, verdict.ExitPassed, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

type labServeCommand struct{}

func (labServeCommand) run(p *program) (int, error) {
	return verdict.ExitPassed, server.Serve(context.Background(), p.stdin, p.stdout)
}
