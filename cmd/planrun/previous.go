package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/planrun/planrun/engine"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/result"
)

// againstFlags name the earlier run that previous stands for in assertions.
type againstFlags struct {
	Against        string `placeholder:"RESULTS" help:"The results of an earlier run, which previous stands for in assertions; instead of the plan's against:."`
	AnyEnvironment bool   `help:"Compare with a run from another kind of machine too."`
}

// open reads the earlier run: the flag's, or the one that the plan names. It is nil if there is none. environment and
// targets are those of the run that is compared with it.
func (f *againstFlags) open(p *program, named plan.Against, environment map[string]string, targets []result.Target) (*result.Run, error) {
	if f.Against != "" {
		named.Path = f.Against
	}
	if named.Path == "" {
		return nil, nil
	}
	previous, err := openResults(p, named.Path)
	if err != nil {
		return nil, fmt.Errorf("can't read the earlier run: %w", err)
	}
	if f.AnyEnvironment || named.AnyEnvironment {
		return previous, nil
	}
	if unlike := append(unlikeMachines(previous.Environment, environment), unlikeTargets(previous.Targets, targets)...); len(unlike) > 0 {
		return nil, fmt.Errorf("%s is not comparable: %s; --any-environment compares all the same", named.Path, strings.Join(unlike, ", "))
	}
	return previous, nil
}

// unlikeMachines lists in what the generators of two runs differ, as far as it changes figures. Names of hosts do not.
func unlikeMachines(before, after map[string]string) []string {
	var list []string
	for _, key := range []string{"os", "arch", "cpus"} {
		if a, b := before[key], after[key]; a != b && a != "" && b != "" {
			list = append(list, fmt.Sprintf("%s was %s and is %s", key, a, b))
		}
	}
	return list
}

// unlikeTargets lists the targets that were the lab in one run and are a real system in the other.
func unlikeTargets(before, after []result.Target) []string {
	what := map[bool]string{true: "the lab", false: "a real system"}
	var list []string
	for _, t := range after {
		i := slices.IndexFunc(before, func(x result.Target) bool { return x.Name == t.Name })
		if i >= 0 && before[i].Lab != t.Lab {
			list = append(list, fmt.Sprintf("target %s was %s and is %s", t.Name, what[before[i].Lab], what[t.Lab]))
		}
	}
	return list
}

// previousOf opens the earlier run of a plan before its load.
func (f *againstFlags) previousOf(p *program, pl *plan.Plan) (*result.Run, error) {
	var targets []result.Target
	for _, t := range pl.Targets {
		targets = append(targets, result.Target{Name: t.Name, Lab: t.Lab})
	}
	previous, err := f.open(p, pl.Against, engine.Environment(), targets)
	if err != nil {
		return nil, err
	}
	if previous != nil {
		if !slices.ContainsFunc(engine.Cells(pl), func(c result.Cell) bool { return previous.Find(c.Scenario, c.Phase, c.Target) != nil }) {
			return nil, fmt.Errorf("%s is of another plan, %s: it has no scenario, phase and target in common with %s", previous.Path, previous.Plan, pl.File)
		}
		return previous, nil
	}
	for _, a := range pl.Assertions {
		if a.ReadsPrevious() {
			return nil, fmt.Errorf("%s: %s reads previous, and there is no earlier run: name one by against: in the plan, or by --against", a.Place, a.Text)
		}
	}
	return nil, nil
}

// unlikePlans lists in what two runs did not do the same.
func unlikePlans(before, after *result.Run) []string {
	if before.Hash == after.Hash && len(before.Settings)+len(after.Settings) == 0 {
		return nil
	}
	var list []string
	for _, c := range after.Cells {
		old := before.Find(c.Scenario, c.Phase, c.Target)
		name := strings.Join([]string{c.Scenario, c.Phase, c.Target}, ".")
		switch {
		case old == nil:
			list = append(list, name+" is new")
		case old.Shape != c.Shape:
			list = append(list, fmt.Sprintf("%s was %s and is %s", name, old.Shape, c.Shape))
		case old.Timeout != c.Timeout:
			list = append(list, fmt.Sprintf("the time-out of %s was %s and is %s", name, old.Timeout, c.Timeout))
		case !slices.Equal(old.Steps, c.Steps):
			list = append(list, "the steps of "+name+" are others")
		}
	}
	for _, c := range before.Cells {
		if after.Find(c.Scenario, c.Phase, c.Target) == nil {
			list = append(list, strings.Join([]string{c.Scenario, c.Phase, c.Target}, ".")+" is gone")
		}
	}
	return list
}

var errNothingInCommon = errors.New("the two runs have no cell in common")
