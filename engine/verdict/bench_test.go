package verdict

import (
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

const ms = int64(time.Millisecond)

// recorded is a run that a test makes up, sample by sample.
type recorded struct {
	t testing.TB
	*result.Run
}

func newRecorded(t testing.TB, targets ...string) *recorded {
	r := &recorded{t, result.NewRun()}
	h := &result.Header{Version: result.Version, Samples: true}
	for _, name := range targets {
		h.Targets = append(h.Targets, result.Target{Name: name})
	}
	r.add(h)
	return r
}

func (r *recorded) add(f result.Frame) {
	r.t.Helper()
	if err := r.Add(f); err != nil {
		r.t.Fatal(err)
	}
}

// cell adds a cell http.load.<target>, whose only stage is a judged hold of a length, and returns its index.
func (r *recorded) cell(target string, length time.Duration, change ...func(*result.Cell)) int {
	c := &result.Cell{
		Scenario: "http", Phase: "load", Target: target, Kind: "ramp-and-hold", Open: true, Rounds: 1,
		Stages: []result.Stage{{Kind: "hold", Judged: true, Length: length}},
	}
	for _, f := range change {
		f(c)
	}
	r.add(c)
	return len(r.Cells) - 1
}

// round adds a round of samples, and its end.
func (r *recorded) round(cell int, samples []record.Sample, change ...func(*result.RoundEnd)) {
	n := len(r.Cells[cell].Rounds)
	r.add(&result.Round{Cell: cell, Round: n})
	r.add(&result.Block{Cell: cell, Round: n, Samples: samples})
	end := &result.RoundEnd{Cell: cell, Round: n, Length: 10 * time.Second, Cores: 2}
	for _, f := range change {
		f(end)
	}
	r.add(end)
}

// sample is an iteration that was due at a time and took as long.
func sample(due, latency int64, failure drivers.Failure) record.Sample {
	return record.Sample{
		Due: due, Start: due, End: due + latency, Step: record.Whole, Failure: failure,
		DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1,
	}
}

// oks are successful iterations, one each millisecond, with these latencies in milliseconds.
func oks(latencies ...int64) []record.Sample {
	var list []record.Sample
	for i, l := range latencies {
		list = append(list, sample(int64(i)*ms, l*ms, drivers.OK))
	}
	return list
}

// same are n equal successes.
func same(n int, latency int64) []record.Sample {
	list := make([]int64, n)
	for i := range list {
		list[i] = latency
	}
	return oks(list...)
}

// fail makes the first n samples of a list failures of a kind.
func fail(list []record.Sample, n int, kind drivers.Failure) []record.Sample {
	for i := range n {
		list[i].Failure = kind
	}
	return list
}

func (r *recorded) judge(texts ...string) *Judgement {
	r.t.Helper()
	return r.judgeCase(Case{}, texts...)
}

func (r *recorded) judgeCase(c Case, texts ...string) *Judgement {
	r.t.Helper()
	for _, text := range texts {
		c.Assertions = append(c.Assertions, result.Assertion{Text: text, Place: "plan.yaml:1:1"})
	}
	j, err := Judge(r.Run, c)
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}
