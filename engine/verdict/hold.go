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
// what the generator's own lateness or hold-ups decide is inconclusive. The reason has the figures in either case.
func JudgeHold(while *expression.Assertion, stats func(step string) *record.Stats) (result.Outcome, string) {
	whole := stats("")
	if float64(whole.DroppedByLag) > tolerated*float64(whole.Due()) {
		return result.Inconclusive, tooLate(whole)
	}
	r := &Reading{Addresses: while.Addresses()}
	for _, a := range r.Addresses {
		r.Stats = append(r.Stats, stats(a.Step))
	}
	r.Judge = func(v View) expression.Judgement {
		return while.Judge(func(i int) (float64, bool) { return metric.Value(v(r.Stats[i]), MetricOf(r.Addresses[i].Metric)) })
	}
	measured := r.Judge(AsMeasured)
	if reason := r.Doubt(measured); reason != "" {
		return result.Inconclusive, reason
	}
	if measured.Truth != expression.True {
		return result.Failed, strings.Join(measured.Why, "; ")
	}
	switch {
	case whole.OK == 0:
		if whole.Dropped+whole.Failures[drivers.Timeout] > 0 {
			return doubted(whole, "nothing succeeded")
		}
		return result.Failed, "nothing succeeded"
	case whole.Dropped > whole.DroppedByLag:
		return doubted(whole, fmt.Sprintf("%d of %d arrivals were dropped: all that may be in flight were", whole.Dropped-whole.DroppedByLag, whole.Due()))
	case whole.Failed > 0 && !slices.ContainsFunc(r.Addresses, readsFailures):
		if local := whole.Failures[drivers.Local]; local == whole.Failed {
			return result.Inconclusive, fmt.Sprintf("%d of %d iterations failed because this machine had no descriptors, ports or memory left", local, whole.Count())
		}
		failed := fmt.Sprintf("%d of %d iterations failed, %s", whole.Failed, whole.Count(), share(whole.Failed, whole.Count()))
		if whole.Failures[drivers.Timeout] == whole.Failed {
			return doubted(whole, failed)
		}
		return result.Failed, failed
	}
	return result.Passed, strings.Join(measured.Values, ", ")
}

// doubted is a failure that many hold-ups of the generator can bring about as well as the target.
func doubted(s *record.Stats, failed string) (result.Outcome, string) {
	if why := Crowded(s); why != "" {
		return result.Inconclusive, failed + ", but " + why
	}
	return result.Failed, failed
}

// Crowded says that the generator was held up so often while some samples were taken that what it had to wait for piled up;
// "" if it was not.
func Crowded(s *record.Stats) string {
	if share, text := heldUp([]*record.Stats{s}); share > crowded {
		return text
	}
	return ""
}
