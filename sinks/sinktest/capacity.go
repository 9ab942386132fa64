package sinktest

import (
	"fmt"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// capacity is a search for the highest rate, as the second of the two studies needed one: one target breaks down between
// 200 and 230 a second, the other holds whatever was asked for, and a third not even the lowest rate.
func capacity() []result.Frame {
	b := build("cliff", result.Target{Name: "http"}, result.Target{Name: "grpc"}, result.Target{Name: "broken"})
	const hold = 2 * time.Second
	for _, x := range []struct {
		target string
		rates  []float64
		breaks float64 // the rate from which on it does
		found  result.Capacity
	}{
		{"http", []float64{50, 100, 200, 400, 300, 250, 225, 225, 210}, 215, result.Capacity{
			Outcome: result.Passed, Held: 210, Confirmed: 8, Failed: 225, Above: 7, InFlight: 24, Reason: "within(1s) = 61%, limit 99%",
		}},
		{"grpc", []float64{50, 100, 200, 400, 400}, 1e9, result.Capacity{
			Outcome: result.Passed, Held: 400, Confirmed: 4, Above: -1, InFlight: 46, Reason: "the highest rate allowed was held",
		}},
		{"broken", []float64{50}, 0, result.Capacity{
			Outcome: result.Failed, Confirmed: -1, Failed: 50, Above: 0, Reason: "within(1s) = 58%, limit 99%",
		}},
	} {
		cell := b.cell(result.Cell{
			Scenario: "main", ScenarioTitle: "Main API", Phase: "most", Kind: "capacity", Open: true, Target: x.target,
			Shape: "50/s to 400/s, holds of 2s", Timeout: time.Second,
		})
		b.add(&result.Round{Cell: cell, Release: time.Second})
		var iteration int64
		var at time.Duration
		for i, rate := range x.rates {
			b.add(&result.Trial{Cell: cell, Stage: i, Rate: rate, Start: at, Length: hold})
			block := &result.Block{Cell: cell}
			n := int(rate * hold.Seconds())
			broken := rate >= x.breaks
			for k := range n {
				due := int64(at) + int64(hold)*int64(k)/int64(n)
				took := int64((100 + 20*b.random.Float64() + rate/20) * float64(ms))
				s := record.Sample{
					Due: due, Start: due, Stage: int16(i), Step: record.Whole, Status: 200, Iteration: iteration, User: int32(k % 100),
					DNS: -1, Connect: -1, TLS: -1, Wait: -1, BytesIn: 200, BytesOut: 60,
				}
				if broken {
					took += int64(k) * 2 * ms
				}
				if took > 1000*ms {
					took, s.Failure, s.Status, s.BytesIn = 1000*ms, drivers.Timeout, 0, 0
				}
				s.End, s.TTFB, s.Transfer = due+took, took*9/10, took/10
				iteration++
				block.Samples = append(block.Samples, s)
			}
			end := &result.TrialEnd{Cell: cell, Stage: i, Outcome: result.Passed, Reason: "within(1s) = 100%, limit 99%"}
			if broken {
				end.Outcome, end.Reason = result.Failed, "within(1s) = 60%, limit 99%"
			}
			b.add(block, end)
			at += hold + time.Second
		}
		x.found.Cell = cell
		b.add(&x.found,
			&result.RoundEnd{Cell: cell, Length: at, Opened: 100, MaxInFlight: 100, Protocols: []string{"HTTP/2"}},
			&result.Verdict{
				Assertion: "rate_held > 100/s", Place: "plans/cliff.yaml:20:9", Scenario: "main", Phase: "most", Target: x.target,
				Outcome: map[bool]result.Outcome{true: result.Passed, false: result.NoData}[x.found.Held > 0],
				Value:   map[bool]string{true: fmt.Sprintf("%g/s", x.found.Held), false: ""}[x.found.Held > 0], Limit: "100/s", N: 1,
			})
	}
	return b.end(result.End{Outcome: result.Failed, Exit: 1})
}
