package digest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planrun/planrun/engine/result"
)

// Verdict is one row of the judgement.
type Verdict struct {
	Outcome   result.Outcome
	Warning   bool   // it did not pass, but its severity lets the run pass
	Implied   bool   // not written in the plan
	Place     string // scenario.phase.stage.step.target, as far as it was bound
	Assertion string
	Value     string
	Limit     string
	N         int64
	Interval  string   // 95 % interval of Value; "" if it has none
	Window    string   // the window that Value is of, the worst one; "" without windows
	Source    string   // file:line:column; "" for implied ones
	Detail    []string // values of the names in it, and reasons
}

// Mark is the outcome in a word.
func (v Verdict) Mark() string {
	if v.Warning {
		return "warning"
	}
	return string(v.Outcome)
}

// Figures is what the outcome rests on: "2.41s, limit 2s, n = 50".
func (v Verdict) Figures() string {
	var parts []string
	value := v.Value
	if value == string(result.NoData) {
		value = "" // the outcome says so
	}
	switch {
	case value != "" && v.Limit != "":
		parts = append(parts, value+", limit "+v.Limit)
	case value != "":
		parts = append(parts, value)
	case v.Limit != "":
		parts = append(parts, "limit "+v.Limit)
	}
	if v.Interval != "" {
		parts = append(parts, "95% interval "+v.Interval)
	}
	if v.Window != "" {
		parts = append(parts, "worst window "+v.Window)
	}
	if v.N > 0 {
		parts = append(parts, fmt.Sprintf("n = %d", v.N))
	}
	return strings.Join(parts, ", ")
}

// weight orders outcomes by how much they matter.
func weight(v Verdict) int {
	switch {
	case v.Warning:
		return 3
	case v.Outcome == result.Failed:
		return 0
	case v.Outcome == result.NoData:
		return 1
	case v.Outcome == result.Inconclusive:
		return 2
	case v.Implied:
		return 5
	}
	return 4
}

func verdicts(run *result.Run) []Verdict {
	var list []Verdict
	for _, v := range run.Verdicts {
		x := Verdict{
			Outcome: v.Outcome, Warning: v.Severity == "warn" && v.Outcome != result.Passed, Implied: v.Implied,
			Place:     Name(v.Scenario, v.Phase, v.Stage, v.Step, v.Target),
			Assertion: Clean(v.Assertion), Value: Clean(v.Value), Limit: Clean(v.Limit), N: v.N, Interval: Clean(v.Interval), Window: Clean(v.Window), Source: Clean(v.Place),
		}
		for _, d := range Reasons(v) {
			x.Detail = append(x.Detail, Shorten(d, 400))
		}
		list = append(list, x)
	}
	slices.SortStableFunc(list, func(a, b Verdict) int { return weight(a) - weight(b) })
	return list
}

// Reasons is what a verdict rests on, Clean line by line, the depth of a part kept as blanks before it. What the row of the
// verdict says already is left out: the root of the tree, which is the assertion itself, and the tree of a single part.
func Reasons(v result.Verdict) []string {
	var list []string
	rooted := len(v.Detail) > 0 && strings.HasPrefix(v.Detail[0], v.Assertion+": ")
	tree := 0 // lines of it below the root
	for i, line := range v.Detail {
		if i == 0 && rooted {
			continue
		}
		if rooted && i == tree+1 && strings.HasPrefix(line, depth) {
			tree++
			line = line[len(depth):]
		}
		inner := strings.TrimLeft(line, " ")
		list = append(list, line[:len(line)-len(inner)]+Clean(inner))
	}
	if tree == 1 && strings.HasSuffix(list[0], " = "+Clean(v.Value)) {
		list = list[1:]
	}
	return list
}

// depth is how far a part of an assertion is set in below what it is a part of.
const depth = "  "

// Outcome is what the run comes to.
type Outcome struct {
	Word string // passed, failed, inconclusive, interrupted, incomplete, or Compared
	Line string // the word and the reason: "failed: 2 of 14 assertions"
}

// Compared is the word for two runs that were set against each other without an assertion.
const Compared = "compared"

// Good says that the run passed, or that there was nothing to pass.
func (o Outcome) Good() bool { return o.Word == string(result.Passed) || o.Word == Compared }

func outcome(run *result.Run, verdicts []Verdict) Outcome {
	count := map[string]int{}
	for _, v := range verdicts {
		count[v.Mark()]++
	}
	all := len(verdicts)
	bad := count[string(result.Failed)] + count[string(result.NoData)]
	var warnings string
	if n := count["warning"]; n > 0 {
		warnings = ", " + plural(n, "warning")
	}
	judged := "nothing was judged"
	if all > 0 {
		switch {
		case bad > 0:
			judged = fmt.Sprintf("%d of %s", bad, plural(all, "assertion"))
			if n := count[string(result.NoData)]; n > 0 && n < bad {
				judged += fmt.Sprintf(", %d of them for want of data", n)
			} else if n == bad {
				judged += ", for want of data"
			}
		case count[string(result.Inconclusive)] > 0:
			judged = fmt.Sprintf("%d of %s can't be trusted", count[string(result.Inconclusive)], plural(all, "assertion"))
		default:
			judged = plural(all-count["warning"], "assertion") + " held"
		}
	}
	judged += warnings
	if run.End == nil {
		return Outcome{"incomplete", "incomplete: the run did not get to its end"}
	}
	switch {
	case run.End.Interrupted:
		// What was measured was judged all the same.
		switch {
		case all == 0:
			return Outcome{"interrupted", "interrupted: nothing was judged"}
		case bad > 0:
			return Outcome{"interrupted", "interrupted, and failed so far: " + judged}
		}
		return Outcome{"interrupted", "interrupted: so far " + judged}
	case run.End.Outcome == "" && all == 0:
		return Outcome{Compared, "compared: " + judged}
	case run.End.Outcome == result.Passed:
		return Outcome{"passed", "passed: " + judged}
	case run.End.Outcome == result.Inconclusive:
		if len(run.End.Notes) > 0 && all == 0 {
			return Outcome{"inconclusive", "inconclusive: " + Clean(run.End.Notes[0])}
		}
		return Outcome{"inconclusive", "inconclusive: " + judged}
	}
	return Outcome{"failed", "failed: " + judged}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
