package sinktest

import (
	"fmt"
	"testing"
	"time"

	"github.com/planrun/planrun/engine/result"
)

// Trend returns four runs of the first study, a few days apart: the third slower, in the last one a phase with another load, and
// one added that failed. They come out of order.
func Trend(t testing.TB) []*result.Run {
	t.Helper()
	var runs []*result.Run
	for _, i := range []int{2, 0, 3, 1} {
		latency := []float64{1, 1.02, 1.4, 0.9}[i]
		b := build("hybrid | nightly", direct, hybrid)
		b.frames[0].(*result.Header).Start = time.Date(2026, 11, 20+3*i, 3, 0, 0, 0, time.UTC)
		shape := "50 iterations"
		if i == 3 {
			shape = "100 iterations"
		}
		for k, target := range []string{"direct", "hybrid"} {
			b.closed(result.Cell{
				Scenario: "http", ScenarioTitle: "HTTP <requests>", Phase: "sequential", Kind: "sequential", Target: target, Shape: shape,
			}, 1, 50, latency*[]float64{13, 34}[k])
			if i >= 2 {
				b.open(result.Cell{Scenario: "http", ScenarioTitle: "HTTP <requests>", Phase: "load", Shape: "100/s for 3s", Target: target}, 5*latency, i == 3)
			}
		}
		end := result.End{Outcome: result.Passed}
		if i == 3 {
			b.add(&result.Verdict{Assertion: "p50 < 1ms", Scenario: "http", Phase: "load", Target: "direct", Outcome: result.Failed, Value: "9ms", Limit: "1ms", N: 700})
			end = result.End{Outcome: result.Failed, Exit: 1}
		}
		run := Case{Name: fmt.Sprintf("run%d", i), Frames: b.end(end)}.Open(t)
		run.Path = fmt.Sprintf("results/hybrid-%d.msgpack", i)
		runs = append(runs, run)
	}
	return runs
}
