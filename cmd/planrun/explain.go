package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/planrun/planrun/engine"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/verdict"
)

type explainCommand struct {
	planFlags
	Plans []string `arg:"" name:"plan" help:"Plan files."`
}

func (c *explainCommand) run(p *program) (int, error) {
	opt := c.options()
	opt.Offline = true
	plans, good := p.load(c.Plans, opt)
	for i, pl := range plans {
		if i > 0 {
			fmt.Fprintln(p.stdout)
		}
		p.explain(pl)
	}
	if !good {
		return verdict.ExitUsage, nil
	}
	return verdict.ExitPassed, nil
}

// explain says what a plan would run, in the order in which it would.
func (p *program) explain(pl *plan.Plan) {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintf(w, "plan\t%s\n", pl.Name)
	if pl.Description != "" {
		fmt.Fprintf(w, "\t%s\n", strings.TrimSpace(pl.Description))
	}
	for i, t := range pl.Targets {
		notes := ""
		if i == pl.Reference {
			notes += " (reference)"
		}
		if t.Lab {
			notes += " (the lab in the box)"
		}
		fmt.Fprintf(w, "target\t%s%s\n", t.Name, notes)
	}
	var iterations int64
	var least time.Duration
	timed := true
	for _, s := range pl.Scenarios {
		fmt.Fprintf(w, "\nscenario\t%s\n", titled(s.Name, s.Title))
		for t, target := range pl.Targets {
			for _, step := range s.Steps {
				a := step.Actions[t]
				fmt.Fprintf(w, "\t%s: %s %s, %s\n", target.Name, a.Driver, a.Call.Endpoint().Name, expectations(a))
			}
		}
		for _, ph := range s.Phases {
			load, err := engine.LoadOf(ph)
			if err != nil {
				fmt.Fprintf(w, "  %s\t%s\n", ph.Name, err)
				continue
			}
			cells := int64(ph.Rounds * len(pl.Targets))
			iterations += cells * load.Iterations
			least += time.Duration(cells) * load.Length
			timed = timed && (load.Length > 0 || load.Iterations > 0)
			fmt.Fprintf(w, "  %s\t%s, for each of %d targets; timeout %s%s\n", titled(ph.Name, ph.Title), engine.Shape(ph), len(pl.Targets), ph.Timeout, settings(ph, load))
		}
	}
	fmt.Fprintf(w, "\nin all\t%d cells", len(engine.Cells(pl)))
	if iterations > 0 {
		fmt.Fprintf(w, ", %d iterations that are known before", iterations)
	}
	if least > 0 {
		fmt.Fprintf(w, ", at least %s of load", least)
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "assertions\t%d written, and for each cell: ok > 0, dropped == 0, error_rate == 0%% unless the plan says otherwise\n", len(pl.Assertions))
	for _, a := range pl.Assertions {
		fmt.Fprintf(w, "\t%s  (%s)\n", a.Text, a.Place)
	}
	for _, s := range pl.Sinks {
		fmt.Fprintf(w, "report\t%s: %s\n", s.Kind, s.Path)
	}
	results := pl.Results.Path
	if results == "" {
		results = "results/<plan>-<UTC time>-<4 hex>.msgpack"
	}
	fmt.Fprintf(w, "results\t%s\n", results)
}

func titled(name, title string) string {
	if title == "" {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, title)
}

func expectations(a plan.Action) string {
	if len(a.Expect) == 0 {
		return "the protocol's own rule of success"
	}
	var texts []string
	for _, e := range a.Expect {
		texts = append(texts, e.String())
	}
	return "expects " + strings.Join(texts, " and ")
}

// settings are the parameters of a phase that are not in its shape.
func settings(ph *plan.Phase, load engine.Load) string {
	var s string
	if ph.Rounds > 1 {
		s += fmt.Sprintf(", %d rounds", ph.Rounds)
	}
	switch {
	case ph.Warmup.Duration > 0:
		s += ", warm-up " + ph.Warmup.Duration.String()
	case ph.Warmup.Count > 0:
		s += fmt.Sprintf(", warm-up %d a user", ph.Warmup.Count)
	}
	if ph.Pause.Max > 0 {
		s += ", pause " + ph.Pause.Min.String()
		if ph.Pause.Max > ph.Pause.Min {
			s += ".." + ph.Pause.Max.String()
		}
	}
	if ph.Connections > 0 {
		s += fmt.Sprintf(", %d connections", ph.Connections)
	}
	if ph.Open {
		s += fmt.Sprintf(", at most %d in flight, patience %s", load.MaxInFlight, quantity.Value{F: float64(ph.Patience), Dim: quantity.Time})
	}
	return s
}
