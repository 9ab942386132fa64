package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// JudgeHold judges one hold by a condition whose addresses name a step at most. stats returns what the hold came to for a
// step, "" for whole iterations. As everywhere, something has to have succeeded, nothing may have been dropped, and
// nothing may have failed unless the condition takes a stand on failures. What is not true for want of data has failed;
// what the generator's own lateness decides is inconclusive. The reason has the figures in either case.
func JudgeHold(while *expression.Assertion, stats func(step string) *record.Stats) (result.Outcome, string) {
	addresses := while.Addresses()
	judge := func(v view) expression.Judgement {
		return while.Judge(func(i int) (float64, bool) {
			return metric.Value(v(stats(addresses[i].Step)), MetricOf(addresses[i].Metric))
		})
	}
	measured := judge(asMeasured)
	whole := stats("")
	if float64(whole.DroppedByLag) > tolerated*float64(whole.Due()) {
		return result.Inconclusive, tooLate(whole)
	}
	if reason := counterfactual(measured, judge); reason != "" {
		return result.Inconclusive, reason
	}
	if measured.Truth != expression.True {
		return result.Failed, strings.Join(measured.Why, "; ")
	}
	switch {
	case whole.OK == 0:
		return result.Failed, "nothing succeeded"
	case whole.Dropped > whole.DroppedByLag:
		return result.Failed, fmt.Sprintf("%d of %d arrivals were dropped: all that may be in flight were", whole.Dropped-whole.DroppedByLag, whole.Due())
	case whole.Failed > 0 && !slices.ContainsFunc(addresses, readsFailures):
		if local := whole.Failures[drivers.Local]; local == whole.Failed {
			return result.Inconclusive, fmt.Sprintf("%d of %d iterations failed because this machine had no descriptors, ports or memory left", local, whole.Count())
		}
		return result.Failed, fmt.Sprintf("%d of %d iterations failed, %s", whole.Failed, whole.Count(), share(whole.Failed, whole.Count()))
	}
	return result.Passed, strings.Join(measured.Values, ", ")
}
