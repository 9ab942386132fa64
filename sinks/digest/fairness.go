package digest

import (
	"math"
	"slices"
	"strings"

	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

const (
	unequalRate    = 0.01 // share by which offered rates may differ
	unequalPayload = 0.1  // share by which answers may differ in size, beyond a few bytes
	fewBytes       = 64
)

// fairness says how targets were measured in turn, and what differs between those that are compared besides the target.
func fairness(run *result.Run, add func(string, ...any)) {
	if len(run.Targets) < 2 {
		return
	}
	if !run.Compared {
		order(run, add)
	}
	reference := run.Targets[run.Reference].Name
	for _, c := range run.Cells {
		r := run.Find(c.Scenario, c.Phase, reference)
		if c.Target == reference || r == nil || c.IsCapacity() {
			continue
		}
		place := Name(c.Scenario, c.Phase)
		a, b := r.Stats(result.Pooled, result.Judged, record.Whole), c.Stats(result.Pooled, result.Judged, record.Whole)
		x, knownX := metric.Value(a, metric.Metric{Name: "offered_rps"})
		y, knownY := metric.Value(b, metric.Metric{Name: "offered_rps"})
		if c.Open && knownX && knownY && math.Abs(x-y) > unequalRate*x {
			add("%s: unequal loads are compared, %s/s offered to %s and %s/s to %s.", place, amount(x), Clean(reference), amount(y), Clean(c.Target))
		}
		if a.OK > 0 && b.OK > 0 {
			x, y := float64(a.BytesInOK)/float64(a.OK), float64(b.BytesInOK)/float64(b.OK)
			if d := math.Abs(x - y); d > fewBytes && d > unequalPayload*max(x, y) {
				add("%s: unequal payloads are compared, %.0f bytes an answer from %s and %.0f from %s.", place, x, Clean(reference), y, Clean(c.Target))
			}
		}
		if p, q := strings.Join(Protocols(r), " and "), strings.Join(Protocols(c), " and "); p != q && p != "" && q != "" {
			add("%s: different protocols are compared, %s with %s and %s with %s.", place, p, Clean(reference), q, Clean(c.Target))
		}
	}
}

func amount(v float64) string { return Scale{factor: 1}.Text(v) }

// order says whether targets took turns.
func order(run *result.Run, add func(string, ...any)) {
	turns := 0
	for _, c := range run.Cells {
		if c.Target != run.Targets[run.Reference].Name || len(c.Rounds) < 2 {
			continue
		}
		first, last := c.Rounds[0].Release, c.Rounds[len(c.Rounds)-1].Release
		between := false
		for _, x := range run.Cells {
			if x.Scenario != c.Scenario || x.Phase != c.Phase || x.Target == c.Target {
				continue
			}
			for _, r := range x.Rounds {
				between = between || r.Release > first && r.Release < last
			}
		}
		if between {
			turns++
		}
	}
	several := slices.ContainsFunc(run.Cells, func(c *result.CellResult) bool { return len(c.Rounds) > 0 })
	switch {
	case turns > 0:
		add("Targets took turns, round by round: what drifted meanwhile fell on all of them.")
	case several:
		add("Targets ran one after the other: what drifted in between is in the differences; rounds: 6 or more lets them take turns.")
	}
}

// Protocols lists what a cell negotiated.
func Protocols(c *result.CellResult) []string {
	var names []string
	for _, r := range c.Rounds {
		if r.End == nil {
			continue
		}
		for _, p := range r.End.Protocols {
			if p = Clean(p); !slices.Contains(names, p) {
				names = append(names, p)
			}
		}
	}
	slices.Sort(names)
	return names
}
