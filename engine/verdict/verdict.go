// Package verdict judges a run from its results stream: assertions expanded to rows, with "no data" and "inconclusive" as
// outcomes of their own, so that a gate fails closed and does not blame a target for what the generator did.
package verdict

import (
	"fmt"
	"slices"

	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/result"
)

// Exit codes of planrun; the first that applies, in the order 2, 130, 1, 3, 0.
const (
	ExitPassed       = 0
	ExitFailed       = 1
	ExitUsage        = 2 // the plan or the command line is wrong; nothing was sent
	ExitInconclusive = 3 // or it could not measure
	ExitInterrupted  = 130
)

// Case is what a run is judged by.
type Case struct {
	Assertions []result.Assertion
	Vars       map[string]string // that assertions may read
	// Previous is what previous stands for in assertions; nil if there is nothing.
	Previous *result.Run
	// Strict makes a verdict on a percentile inconclusive when there are too few samples for it.
	Strict bool
}

// CaseOf is what a run's own plan judges it by, but for the earlier run.
func CaseOf(run *result.Run) Case {
	return Case{Assertions: run.Assertions, Vars: run.Vars, Strict: run.Strict}
}

// Judgement is every row of a run and what they come to.
type Judgement struct {
	Rows    []result.Verdict
	Outcome result.Outcome
	Exit    int
	Notes   []string // what a reader should know and what changed no verdict
}

// Judge judges a run. A fault of an assertion, such as a name that the run does not have, or previous without an earlier
// run, is an error that begins with its place.
func Judge(run *result.Run, c Case) (*Judgement, error) {
	b := newBench(run, c)
	parsed := make([]*expression.Assertion, len(c.Assertions))
	for i, a := range c.Assertions {
		p, errs := expression.ParseAssertion(a.Text, b)
		if len(errs) > 0 {
			return nil, fmt.Errorf("%s: %s: %s", a.Place, a.Text, errs[0].Message)
		}
		if p.ReadsPrevious() && c.Previous == nil {
			return nil, fmt.Errorf("%s: %s reads previous: name the results of an earlier run by against: in the plan, or by --against", a.Place, a.Text)
		}
		parsed[i] = p
	}
	if err := b.readWindows(c.Assertions); err != nil {
		return nil, err
	}
	j := &Judgement{}
	for i, a := range c.Assertions {
		j.Rows = append(j.Rows, b.rows(parsed[i], a)...)
	}
	j.Rows = append(j.Rows, b.implied(parsed, c.Assertions)...)
	j.Notes = b.notes()
	j.conclude()
	return j, nil
}

// ReadsPrevious tells whether an assertion of a case reads the results of an earlier run.
func ReadsPrevious(run *result.Run, c Case) bool {
	b := newBench(run, c)
	return slices.ContainsFunc(c.Assertions, func(a result.Assertion) bool {
		p, _ := expression.ParseAssertion(a.Text, b)
		return p != nil && p.ReadsPrevious()
	})
}

// conclude draws the outcome of the run from its rows. A run that judged nothing has not passed.
func (j *Judgement) conclude() {
	count := map[result.Outcome]int{}
	for _, r := range j.Rows {
		if r.Severity != "warn" {
			count[r.Outcome]++
		}
	}
	switch {
	case count[result.Failed]+count[result.NoData] > 0:
		j.Outcome, j.Exit = result.Failed, ExitFailed
	case count[result.Inconclusive] > 0, count[result.Passed] == 0:
		j.Outcome, j.Exit = result.Inconclusive, ExitInconclusive
	default:
		j.Outcome, j.Exit = result.Passed, ExitPassed
	}
}

// note adds a remark on the run, once.
func (b *bench) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(b.remarks, s) {
		b.remarks = append(b.remarks, s)
	}
}
