package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
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
	e := &explanation{Writer: w, plan: pl, certain: true}
	e.line("plan\t%s", pl.Name)
	if text := strings.TrimSpace(pl.Description); text != "" {
		for line := range strings.Lines(text) {
			e.line("\t%s", strings.TrimSpace(line))
		}
	}
	for i, t := range pl.Targets {
		notes := ""
		if i == pl.Reference && len(pl.Targets) > 1 {
			notes += " (reference)"
		}
		if t.Lab {
			notes += " (the lab in the box)"
		}
		e.line("target\t%s%s", t.Name, notes)
	}
	for _, key := range slices.Sorted(maps.Keys(pl.Settings)) {
		e.line("changed\t%s = %s", key, pl.Settings[key])
	}
	e.around("before", pl.Before)
	for _, s := range pl.Scenarios {
		e.scenario(s)
	}
	e.around("after", pl.After)

	fmt.Fprintf(w, "\nin all\t%s", counted(len(engine.Cells(pl)), "cell"))
	if e.iterations > 0 {
		fmt.Fprintf(w, ", %d iterations that are known before", e.iterations)
	}
	if e.at > 0 {
		fmt.Fprintf(w, ", at least %s of load", lasting(e.at))
	}
	fmt.Fprintln(w)
	e.line("assertions\t%d written, and for each cell: ok > 0, dropped == 0, error_rate == 0%% unless the plan says otherwise", len(pl.Assertions))
	for _, a := range pl.Assertions {
		where := strings.Trim(a.Scenario+"."+a.Phase, ".")
		if where != "" {
			where = "of " + where + ", "
		}
		e.line("\t%s  (%s%s)", a.Text, where, a.Place)
	}
	for _, s := range pl.Sinks {
		e.line("report\t%s: %s", s.Kind, s.Path)
	}
	results := pl.Results.Path
	if results == "" {
		results = "results/<plan>-<UTC time>-<4 hex>.msgpack"
	}
	e.line("results\t%s", results)
	w.Flush()
	if smells := pl.Smells(); len(smells) > 0 {
		fmt.Fprintln(p.stdout, "\nworth knowing")
		for _, f := range smells {
			fmt.Fprintf(p.stdout, "  %s\n", f)
		}
	}
}

// explanation writes what a plan would run, and adds up how much that is.
type explanation struct {
	io.Writer
	plan       *plan.Plan
	iterations int64
	at         time.Duration // the least time until what is explained next
	certain    bool          // at is exact but for the time of answers
}

func (e *explanation) line(format string, args ...any) {
	fmt.Fprintln(e, e.plan.Secrets.Clean(fmt.Sprintf(format, args...)))
}

func (e *explanation) around(what string, s *plan.Scenario) {
	if s == nil {
		return
	}
	e.line("\n%s\tonce for each target, not measured", what)
	e.calls(s, "\t")
}

func (e *explanation) scenario(s *plan.Scenario) {
	e.line("\nscenario\t%s", titled(s.Name, s.Title))
	if len(s.Tags) > 0 {
		e.line("\ttags %s", strings.Join(s.Tags, ", "))
	}
	if s.MostBy != "" {
		e.line("\tat most %d iterations a round: each uses up a row of %s", s.Most, s.MostBy)
	}
	if s.Before != nil {
		e.line("  before\tonce for each target, not measured")
		e.calls(s.Before, "\t")
	}
	if s.Before != nil || s.After != nil {
		e.line("  iteration\t")
	}
	e.calls(s, "\t")
	if s.After != nil {
		e.line("  after\tonce for each target, not measured")
		e.calls(s.After, "\t")
	}
	for _, ph := range s.Phases {
		load, err := engine.LoadOf(ph)
		if err != nil {
			e.line("  %s\t%s", ph.Name, err)
			continue
		}
		when := "at " + lasting(e.at)
		if !e.certain && e.at > 0 {
			when = "after at least " + lasting(e.at)
		} else if !e.certain {
			when = "then"
		}
		each := ""
		if n := len(e.plan.Targets); n > 1 {
			each = fmt.Sprintf(", on each of %d targets", n)
		}
		e.line("  %s\t%s: %s%s; %s", titled(ph.Name, ph.Title), when, shape(ph), each, settings(ph, load))
		if bg := ph.Background; bg != nil {
			e.line("\t%s runs along, %d at a time", bg.Scenario.Name, bg.Users)
		}
		cells := int64(ph.Rounds * len(e.plan.Targets))
		e.iterations += cells * load.Iterations
		e.at += time.Duration(cells) * (load.Length + ph.Warmup.Duration)
		e.certain = e.certain && load.Length > 0 && ph.Capacity == nil
	}
	if len(s.Phases) == 0 {
		e.line("\tin the background of other scenarios")
	}
}

func shape(ph *plan.Phase) string {
	if ph.Capacity != nil {
		text := func(v float64) string { return quantity.Value{F: v, Dim: quantity.Rate}.String() }
		return fmt.Sprintf("a search from %s to %s, in holds of %s", text(ph.Capacity.From), text(ph.Capacity.To), lasting(ph.Capacity.Hold))
	}
	return engine.Shape(ph)
}

func lasting(d time.Duration) string {
	return quantity.Value{F: float64(d), Dim: quantity.Time}.String()
}

// calls lists what an iteration of a scenario does.
func (e *explanation) calls(s *plan.Scenario, indent string) {
	if s.Flow == nil {
		for _, step := range s.Steps {
			e.call(step, indent, "")
		}
		return
	}
	e.parts(s, s.Flow, indent)
}

func (e *explanation) parts(s *plan.Scenario, parts []*plan.Part, indent string) {
	for _, p := range parts {
		extra := ""
		if p.Repeat > 1 {
			extra += fmt.Sprintf(", %d times", p.Repeat)
		}
		if len(p.When) > 0 {
			extra += ", when " + p.When[0].String()
		}
		name := "group"
		if i := p.Sample - len(s.Steps); p.Sample != plan.NoCall && i < len(s.Groups) {
			name = s.Groups[i]
		}
		switch {
		case p.Call != plan.NoCall:
			e.call(s.Steps[p.Call], indent, extra)
		case p.Mix != nil:
			e.line("%sone of%s", indent, extra)
			for i, branch := range p.Mix.Branches {
				e.line("%s  %.4g%% of iterations", indent, 100*p.Mix.Share(i))
				e.parts(s, []*plan.Part{branch}, indent+"    ")
			}
		case p.Transaction != nil:
			e.line("%stransaction%s", indent, extra)
			e.parts(s, p.Parts, indent+"  ")
		case p.Parts != nil:
			e.line("%s%s%s", indent, name, extra)
			e.parts(s, p.Parts, indent+"  ")
		default:
			e.line("%spause %s%s", indent, span(p.Pause), extra)
		}
	}
}

// call is one step: on one line where all targets are alike but for the address.
func (e *explanation) call(step *plan.Step, indent, extra string) {
	name := ""
	if step.Name != "" {
		name = step.Name + ": "
	}
	if step.Continue {
		extra += ", going on if it fails"
	}
	if step.Timeout > 0 {
		extra += ", time-out " + lasting(step.Timeout)
	}
	for t, target := range e.plan.Targets {
		a := step.Actions[t]
		at := a.Call.Endpoint().Name
		for host, lab := range e.plan.Placeholders {
			at = strings.ReplaceAll(at, host, lab)
		}
		if call, ok := a.Call.(fmt.Stringer); ok {
			at = call.String() + " at " + at
		}
		on := ""
		if len(e.plan.Targets) > 1 {
			on = target.Name + ": "
		}
		captures := ""
		for _, c := range a.Captures {
			captures += ", captures " + c.Name
		}
		e.line("%s%s%s%s %s, %s%s%s", indent, on, name, a.Driver, at, expectations(a), captures, extra)
	}
}

// counted is a number of things: "1 cell", "2 cells".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func span(s plan.Span) string {
	if s.Max > s.Min {
		return lasting(s.Min) + ".." + lasting(s.Max)
	}
	return lasting(s.Min)
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
	s := "time-out " + lasting(ph.Timeout)
	if ph.Rounds > 1 {
		s += fmt.Sprintf(", %d rounds", ph.Rounds)
	}
	switch {
	case ph.Warmup.Duration > 0:
		s += ", warm-up " + lasting(ph.Warmup.Duration)
	case ph.Warmup.Count > 0:
		s += fmt.Sprintf(", warm-up %d a user", ph.Warmup.Count)
	}
	if ph.Pause.Max > 0 {
		s += ", pause " + span(ph.Pause)
	}
	if ph.Connections > 0 {
		s += fmt.Sprintf(", %d connections", ph.Connections)
	}
	if ph.Open {
		s += fmt.Sprintf(", at most %d in flight, patience %s", load.MaxInFlight, lasting(ph.Patience))
	}
	return s
}
