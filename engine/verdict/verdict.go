// Package verdict judges a run from its results stream: assertions expanded to rows, with "no data" and "inconclusive" as
// outcomes of their own, so that a gate fails closed.
package verdict

import (
	"fmt"

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

// Judgement is every row of a run and what they come to.
type Judgement struct {
	Rows    []result.Verdict
	Outcome result.Outcome
	Exit    int
}

// Judge judges a run by assertions: those of its own header, or of another plan. A fault of an assertion, such as a name
// that the run does not have, is an error that begins with its place.
func Judge(run *result.Run, assertions []result.Assertion, vars map[string]string) (*Judgement, error) {
	b := newBench(run, vars)
	parsed := make([]*expression.Assertion, len(assertions))
	for i, a := range assertions {
		p, errs := expression.ParseAssertion(a.Text, b)
		if len(errs) > 0 {
			return nil, fmt.Errorf("%s: %s: %s", a.Place, a.Text, errs[0].Message)
		}
		parsed[i] = p
	}
	j := &Judgement{}
	for i, a := range assertions {
		j.Rows = append(j.Rows, b.rows(parsed[i], a)...)
	}
	j.Rows = append(j.Rows, b.implied(parsed, assertions)...)
	j.conclude()
	return j, nil
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
