package verdict

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// The published runs of the server-to-server study, judged by its own words: count the answers within 1 s.
func TestStudyOfServers(t *testing.T) {
	for _, test := range []struct {
		name         string
		rate         int
		ok, failed   int
		p50, p99     int64 // of the answered ones, ms
		beyond       int   // answered after 1 s, as far as p99 tells
		value        string
		outcome      result.Outcome
		least, limit string
	}{
		{"Windows, HTTP", 600, 71_819, 181, 245, 732, 0, "99.75%", result.Passed, "", ""},
		{"Linux, HTTP", 500, 58_164, 1_836, 299, 794, 0, "96.94%", result.Failed, "", ""},
		{"Linux, HTTP", 600, 69_167, 2_833, 346, 750, 0, "96.07%", result.Failed, "", ""},
		{"Linux, gRPC", 800, 95_989, 11, 492, 867, 0, "99.99%", result.Passed, "", ""},
		{"Linux, gRPC", 900, 41_525, 66_475, 768, 1107, 416, "38.06%", result.Failed, "", ""},
	} {
		r := newRecorded(t, "main")
		c := r.cell("main", 2*time.Minute)
		var list []record.Sample
		for i := range test.ok {
			latency := test.p50 * 2 * int64(i) / int64(test.ok) // up to the median
			if 2*i > test.ok {
				latency = test.p50 + (test.p99-1-test.p50)*int64(2*i-test.ok)/int64(test.ok)
			}
			latency = min(latency, 999)
			if i >= test.ok-test.beyond {
				latency = test.p99
			}
			list = append(list, sample(int64(i)*ms, latency*ms, drivers.OK))
		}
		for i := range test.failed {
			list = append(list, sample(int64(i)*ms, 1000*ms, drivers.Timeout))
		}
		if want := test.rate * 120; len(list) != want {
			t.Fatalf("%s at %d/s: %d calls, want %d", test.name, test.rate, len(list), want)
		}
		r.round(c, list)
		j := r.judge("within(1s) >= 99%")
		row := j.Rows[0]
		if row.Outcome != test.outcome || row.Value != test.value || row.Limit != "99%" || row.N != int64(len(list)) {
			t.Errorf("%s at %d/s: %s, %s of %d against %s; want %s with %s", test.name, test.rate, row.Outcome, row.Value, row.N, row.Limit, test.outcome, test.value)
		}
		if passed := j.Exit == ExitPassed; passed != (test.outcome == result.Passed) {
			t.Errorf("%s at %d/s: exit %d", test.name, test.rate, j.Exit)
		}
		if row.Interval == "" {
			t.Errorf("%s at %d/s: a share has an interval", test.name, test.rate)
		}
	}
}

func TestOutcomes(t *testing.T) {
	mixed := fail(same(100, 1), 80, drivers.Status) // fast error pages
	for i := 80; i < 100; i++ {
		mixed[i].End = mixed[i].Due + 500*ms
	}
	for _, test := range []struct {
		name    string
		samples []record.Sample
		text    string
		outcome result.Outcome
		exit    int
		value   string
	}{
		{"three samples", oks(10, 20, 100), "p50 == 20ms and p99 == 100ms", result.Passed, 0, "20ms"},
		{"one sample", oks(20), "p50 == 20ms and p99 == 20ms and min == 20ms", result.Passed, 0, "20ms"},
		{"eight samples above the limit", same(8, 50), "p95 < 10ms", result.Failed, 1, "50ms"},
		{"a limit that is crossed", same(100, 200), "p95 < 100ms", result.Failed, 1, "200ms"},
		{"a greatest one that is crossed", oks(1, 1, 1, 300), "max < 100ms", result.Failed, 1, "300ms"},
		{"an error rate that is crossed", fail(same(100, 1), 2, drivers.Status), "error_rate < 1%", result.Failed, 1, "2%"},
		{"a limit that is kept", same(10, 300), "p75 < 1000ms", result.Passed, 0, "300ms"},
		{"an empty cell", nil, "p50 < 30ms", result.NoData, 1, "no data"},
		{"an empty cell turned round", nil, "not (p50 >= 30ms)", result.NoData, 1, "no data"},
		{"a stddev of one", oks(20), "stddev < 1h", result.NoData, 1, "no data"},
		{"nothing by nothing", same(5, 1), "failed / dropped < 2", result.NoData, 1, "no data"},
		{"all of 10", same(10, 1), "error_rate == 0% and ok / count == 1 and within(1s) == 100%", result.Passed, 0, "0%"},
		{"all of 3", same(3, 1), "error_rate == 0% and ok / count == 100%", result.Passed, 0, "0%"},
		{"all of 7", same(7, 1), "100% - error_rate == 100%", result.Passed, 0, "100%"},
		{"half failed and half may", fail(same(10, 1), 5, drivers.Refused), "error_rate <= 100%", result.Passed, 0, "50%"},
		{"half failed and nobody said so", fail(same(10, 1), 5, drivers.Refused), "p50 < 1s", result.Passed, 1, "1ms"},
		{"one of 1000 timed out", fail(same(1000, 1), 1, drivers.Timeout), `failures("timeout") == 1 and failed == 1 and count == 1000 and error_rate == 0.1%`, result.Passed, 0, "1"},
		{"successes of a mixture", mixed, "p50 == 500ms and all.p50 == 1ms and error_rate == 80%", result.Passed, 0, "500ms"},
		{"all failed", fail(same(10, 1), 10, drivers.Timeout), "error_rate <= 100%", result.Passed, 1, "100%"},
		{"99 % failed", fail(same(100, 1), 99, drivers.Timeout), "p99 < 1s", result.Passed, 1, "1ms"},
	} {
		r := newRecorded(t, "a")
		r.round(r.cell("a", 0), test.samples)
		j := r.judge(test.text)
		row := j.Rows[0]
		if row.Outcome != test.outcome || j.Exit != test.exit || row.Value != test.value {
			t.Errorf("%s: %s is %s with %q, exit %d; want %s with %q, exit %d\n%s",
				test.name, test.text, row.Outcome, row.Value, j.Exit, test.outcome, test.value, test.exit, strings.Join(row.Detail, "\n"))
		}
	}
}

func TestNothingJudgedIsNotPassed(t *testing.T) {
	r := newRecorded(t, "a")
	r.cell("a", 0, func(c *result.Cell) { c.Stages[0].Judged = false })
	if j := r.judge(); j.Exit != ExitInconclusive {
		t.Errorf("exit %d", j.Exit)
	}
}

func TestAStepThatNeverRanIsNoData(t *testing.T) {
	r := newRecorded(t, "a")
	c := r.cell("a", 0, func(c *result.Cell) { c.Steps = []result.Step{{Name: "login"}, {Name: "pay"}} })
	list := fail(same(10, 5), 10, drivers.Status)
	for i := range list {
		login := list[i]
		login.Step = 0
		list = append(list, login)
	}
	r.round(c, list)
	j := r.judge("pay.p50 < 30ms", "login.count == 10", "error_rate <= 100%", "login.p50 < 30ms")
	for i, want := range map[int]string{0: "a.pay: nothing was called", 3: "a.login: 10 of 10 failed: status"} {
		if row := j.Rows[i]; row.Outcome != result.NoData || !slices.Contains(row.Detail, want) {
			t.Errorf("%s is %s: %q, want %q", row.Assertion, row.Outcome, row.Detail, want)
		}
	}
	if j.Rows[0].Outcome != result.NoData || j.Rows[1].Outcome != result.Passed || j.Exit != ExitFailed {
		t.Errorf("%s, %s, exit %d", j.Rows[0].Outcome, j.Rows[1].Outcome, j.Exit)
	}
}

// A step may be named with the groups and branches around it; elsewhere a step of that name is another one.
func TestStepsWithinBranches(t *testing.T) {
	r := newRecorded(t, "a")
	for scenario, steps := range map[string][]result.Step{
		"shop": {{Name: "login", Driver: "http", Around: "first"}, {Name: "first", Around: "buy"}, {Name: "buy"}},
		"walk": {{Name: "login", Driver: "http"}, {Name: "look", Driver: "http"}},
	} {
		c := r.cell("a", 0, func(c *result.Cell) { c.Scenario, c.Steps = scenario, steps })
		list := same(10, 50)
		for _, x := range list {
			x.Step = 0
			list = append(list, x)
		}
		r.round(c, list)
	}
	for text, rows := range map[string]int{
		"login.p95 < 100ms": 2, "buy.login.p95 < 100ms": 1, "first.buy.login.p95 < 100ms": 1, "shop.login.p95 < 100ms": 1,
	} {
		n := 0
		for _, row := range r.judge(text).Rows {
			if !row.Implied {
				n++
				if row.Outcome != result.Passed || row.Step != "login" {
					t.Errorf("%s: %s of step %s", text, row.Outcome, row.Step)
				}
			}
		}
		if n != rows {
			t.Errorf("%s has %d rows, want %d", text, n, rows)
		}
	}
	c := Case{Assertions: []result.Assertion{{Text: "look.login.p95 < 1s", Place: "plan.yaml:1:1"}}}
	if _, err := Judge(r.Run, c); err == nil || !strings.Contains(err.Error(), "look and login are both steps, and neither lies within the other") {
		t.Errorf("%v", err)
	}
}

func TestFailedRowsShowTheirTree(t *testing.T) {
	r := newRecorded(t, "direct", "hybrid")
	r.round(r.cell("direct", 0), same(10, 13))
	r.round(r.cell("hybrid", 0), same(10, 24))
	row := r.judge("hybrid.p50 - direct.p50 < 5ms").Rows[0]
	want := []string{"hybrid.p50 - direct.p50 < 5ms: false", "  hybrid.p50 - direct.p50 = 11ms", "    hybrid.p50 = 24ms", "    direct.p50 = 13ms"}
	if !slices.Equal(row.Detail, want) {
		t.Errorf("got\n%s", strings.Join(row.Detail, "\n"))
	}
}

// late makes n samples late by a time that the generator is to blame for.
func late(list []record.Sample, n int, by int64) []record.Sample {
	for i := range n {
		list[i].Start += by
		list[i].End += by
		list[i].Lag = by
	}
	return list
}

// dropped makes the last n samples of a list arrivals that were never sent, through the generator's lateness.
func dropped(list []record.Sample, n int) []record.Sample {
	for i := range n {
		s := &list[len(list)-1-i]
		s.Flags = record.Dropped
		s.Start = s.Due + 1000*ms
		s.End, s.Lag = s.Start, 1000*ms
	}
	return list
}

// What the generator itself did turns a verdict into an inconclusive one where it decides it, and nowhere else.
func TestTheGeneratorIsNotTheTarget(t *testing.T) {
	busy := func(e *result.RoundEnd) { e.CPU = 19 * time.Second }
	for _, test := range []struct {
		name    string
		samples []record.Sample
		end     func(*result.RoundEnd)
		strict  bool
		text    string
		outcome result.Outcome
		exit    int
		says    string
	}{
		{"lateness decides", late(same(100, 10), 100, 50*ms), nil, false, "p95 < 30ms", result.Inconclusive, 3, "the generator's own lateness decides it: without it the value is 10ms"},
		{"lateness changes nothing", late(same(100, 10), 100, 5*ms), nil, false, "p95 < 30ms", result.Passed, 0, ""},
		{"slow even without lateness", late(same(100, 40), 100, 50*ms), nil, false, "p95 < 30ms", result.Failed, 1, ""},
		{"lateness makes it pass", late(same(100, 10), 100, 50*ms), nil, false, "p50 > 30ms", result.Inconclusive, 3, "lateness"},
		{"arrivals missed", dropped(same(100, 10), 2), nil, false, "p95 < 30ms", result.Inconclusive, 3, "too late to send 2 of 100 arrivals, 2%"},
		{"few arrivals missed", dropped(same(1000, 10), 5), nil, false, "p95 < 30ms", result.Passed, 3, ""},
		{"samples lost", same(100, 10), func(e *result.RoundEnd) { e.Lost = 3 }, false, "p95 < 30ms", result.Inconclusive, 3, "3 samples"},
		{"no ports left", fail(same(100, 10), 5, drivers.Local), nil, false, "error_rate < 1%", result.Inconclusive, 3, "no descriptors, ports or memory left"},
		{"no ports left, and worse", fail(fail(same(100, 10), 50, drivers.Refused), 5, drivers.Local), nil, false, "error_rate < 1%", result.Failed, 1, ""},
		{"busy and slow", same(100, 40), busy, false, "p95 < 30ms", result.Inconclusive, 3, "used 95% of its 2 processors in round 1"},
		{"busy and fast all the same", same(100, 10), busy, false, "p95 < 30ms", result.Passed, 0, ""},
		{"busy and refused", fail(same(100, 10), 50, drivers.Refused), busy, false, "error_rate < 1%", result.Failed, 1, ""},
		{"collecting garbage", same(100, 40), func(e *result.RoundEnd) { e.GC = time.Second }, false, "p95 < 30ms", result.Inconclusive, 3, "garbage collection"},
		{"the clock was set", same(100, 10), func(e *result.RoundEnd) { e.ClockStep = -time.Hour }, false, "p95 < 30ms", result.Passed, 0, ""},
		{"58 samples for p95", same(58, 10), nil, true, "p95 < 30ms", result.Inconclusive, 3, "58 samples, and an upper bound for it needs 59"},
		{"59 samples for p95", same(59, 10), nil, true, "p95 < 30ms", result.Passed, 0, ""},
		{"58 samples and nobody is strict", same(58, 10), nil, false, "p95 < 30ms", result.Passed, 0, ""},
		{"298 samples for p99", same(298, 10), nil, true, "p99 < 30ms", result.Inconclusive, 3, "needs 299"},
	} {
		r := newRecorded(t, "a")
		var change []func(*result.RoundEnd)
		if test.end != nil {
			change = append(change, test.end)
		}
		r.round(r.cell("a", 0), test.samples, change...)
		j := r.judgeCase(Case{Strict: test.strict}, test.text)
		row := j.Rows[0]
		if row.Outcome != test.outcome || j.Exit != test.exit || !strings.Contains(strings.Join(row.Detail, "\n"), test.says) {
			t.Errorf("%s: %s, exit %d; want %s, exit %d\n%s", test.name, row.Outcome, j.Exit, test.outcome, test.exit, strings.Join(row.Detail, "\n"))
		}
	}
}

// held is a probe that was late for some of a hundred moments, by so many milliseconds.
func held(moments, late int64) func(*result.RoundEnd) {
	return func(e *result.RoundEnd) {
		e.Probe = new(record.Histogram)
		e.Probe.RecordN(0, 100-moments)
		e.Probe.RecordN(late*ms, moments)
	}
}

// Whoever holds the generator's processors makes answers look late, which no sample shows by itself.
func TestHoldUpsOfTheGenerator(t *testing.T) {
	tail := func(slow int, latency int64) []record.Sample {
		return append(same(1000-slow, 10), same(slow, latency)...)
	}
	for _, test := range []struct {
		name    string
		samples []record.Sample
		held    func(*result.RoundEnd)
		text    string
		outcome result.Outcome
		says    string
	}{
		{"never held up", tail(50, 90), held(0, 0), "p99 < 25ms", result.Failed, ""},
		{"held up as long as the tail", tail(50, 90), held(5, 30), "p99 < 25ms", result.Inconclusive, "held up for 5% of the time, by up to 30ms, and that may decide it: without it, at best, the value is 10ms, the limit 25ms"},
		{"held up less than the tail", tail(50, 90), held(5, 4), "p99 < 25ms", result.Failed, ""},
		{"held up seldomer than the tail", tail(50, 90), held(1, 30), "p99 < 25ms", result.Failed, ""},
		{"the median is beyond doubt", same(1000, 40), held(20, 200), "p50 < 25ms", result.Failed, ""},
		{"often, and costs add up", tail(500, 900), held(20, 30), "p99 < 25ms", result.Inconclusive, "held up for 20% of the time"},
		{"passed all the same", tail(5, 90), held(20, 30), "p99 < 25ms", result.Passed, ""},
		{"most of the time", same(1000, 40), held(60, 30), "p50 < 25ms", result.Inconclusive, "held up for 60% of the time, by up to 30ms: what was measured may be its own slowness"},
		{"most of the time, and passed", same(1000, 40), held(60, 30), "p50 < 50ms", result.Passed, ""},
		{"refusals are not slow", fail(same(1000, 10), 100, drivers.Refused), held(60, 30), "error_rate < 1%", result.Failed, ""},
		{"time-outs are", fail(same(1000, 10), 100, drivers.Timeout), held(20, 30), "error_rate < 1%", result.Inconclusive, ""},
		{"a share in time", tail(50, 900), held(20, 30), "within(100ms) >= 99%", result.Inconclusive, "at best, the value is 100%"},
		{"a rate", same(100, 10), held(20, 30), "rps >= 12/s", result.Inconclusive, ""},
		{"a rate far too low", same(100, 10), held(5, 30), "rps >= 100/s", result.Failed, ""},
		{"long through hold-ups", append(same(40, 20), same(60, 40)...), held(5, 30), "p50 > 35ms", result.Inconclusive, "held up for 5% of the time"},
		{"longer than hold-ups make it", same(100, 400), held(5, 30), "p50 > 35ms", result.Passed, ""},
		{"a rate that is low through hold-ups", same(100, 10), held(20, 30), "rps < 12/s", result.Inconclusive, ""},
		{"time-outs that are wanted", fail(same(1000, 10), 100, drivers.Timeout), held(20, 30), "error_rate > 5%", result.Inconclusive, ""},
		{"refusals that are wanted", fail(same(1000, 10), 100, drivers.Refused), held(60, 30), "error_rate > 5%", result.Passed, ""},
		{"late through a hold-up", late(same(100, 10), 100, 50*ms), held(20, 50), "lag.p99 < 1ms", result.Failed, ""},
	} {
		r := newRecorded(t, "a")
		r.round(r.cell("a", 10*time.Second), test.samples, test.held)
		row := r.judge(test.text).Rows[0]
		if row.Outcome != test.outcome || !strings.Contains(strings.Join(row.Detail, "\n"), test.says) {
			t.Errorf("%s: %s, want %s\n%s", test.name, row.Outcome, test.outcome, strings.Join(row.Detail, "\n"))
		}
	}
}

// A hold-up during one target's rounds may turn a comparison either way.
func TestHoldUpsOfOneTarget(t *testing.T) {
	for _, test := range []struct {
		text    string
		held    func(*result.RoundEnd)
		outcome result.Outcome
	}{
		{"a.p95 < b.p95", held(0, 0), result.Passed},
		{"a.p95 < b.p95", held(20, 30), result.Inconclusive},
		{"a.p95 > b.p95", held(20, 30), result.Inconclusive},
		{"a.p95 < b.p95", held(60, 30), result.Inconclusive},
		{"a.p50 < b.p50", held(60, 30), result.Failed}, // b would be the quicker for it
	} {
		r := newRecorded(t, "a", "b")
		r.round(r.cell("a", 0), same(100, 20))
		r.round(r.cell("b", 0), append(same(80, 10), same(20, 60)...), test.held)
		if row := r.judge(test.text).Rows[0]; row.Outcome != test.outcome {
			t.Errorf("%s: %s, want %s\n%s", test.text, row.Outcome, test.outcome, strings.Join(row.Detail, "\n"))
		}
	}
}

// What the probe found in the ramp says nothing of the hold.
func TestHoldUpsAreThoseOfTheStage(t *testing.T) {
	for second, outcome := range []result.Outcome{result.Failed, result.Inconclusive, result.Inconclusive} {
		r := newRecorded(t, "a")
		c := r.cell("a", 0, func(c *result.Cell) {
			c.Stages = []result.Stage{
				{Name: "ramp", Kind: "ramp", Length: time.Second},
				{Kind: "hold", Judged: true, Start: time.Second, Length: 2 * time.Second},
			}
		})
		list := append(same(80, 10), same(20, 60)...)
		for i := range list {
			list[i].Stage = 1
		}
		r.round(c, list)
		for i := range 3 {
			h := new(record.Histogram)
			h.RecordN(0, 70)
			if i == second {
				h.RecordN(100*ms, 30)
			}
			r.add(&result.Interval{Cell: c, Second: i, Probe: h})
		}
		if row := r.judge("p99 < 25ms").Rows[0]; row.Outcome != outcome {
			t.Errorf("held up in second %d: %s, want %s\n%s", second, row.Outcome, outcome, strings.Join(row.Detail, "\n"))
		}
	}
}

// Stages follow each other, so that the generator may have been held up in one and not in the other.
func TestHoldUpsOfOneStage(t *testing.T) {
	for _, test := range []struct {
		late    int64
		outcome result.Outcome
	}{{0, result.Passed}, {30, result.Inconclusive}} {
		r := newRecorded(t, "a")
		c := r.cell("a", 0, func(c *result.Cell) {
			c.Stages = []result.Stage{
				{Name: "calm", Kind: "hold", Judged: true, Length: time.Second},
				{Name: "peak", Kind: "hold", Judged: true, Start: time.Second, Length: time.Second},
			}
		})
		list := slices.Concat(same(80, 10), same(20, 60), same(100, 50))
		for i := range list[100:] {
			list[100+i].Stage = 1
		}
		r.round(c, list)
		for i, late := range []int64{test.late, 0} {
			h := new(record.Histogram)
			h.RecordN(0, 40)
			h.RecordN(late*ms, 60)
			r.add(&result.Interval{Cell: c, Second: i, Probe: h})
		}
		if row := r.judge("peak.p95 < calm.p95").Rows[0]; row.Outcome != test.outcome {
			t.Errorf("held up by %d ms before the peak: %s, want %s\n%s", test.late, row.Outcome, test.outcome, strings.Join(row.Detail, "\n"))
		}
	}
}

// An earlier run may lack the cell that a window is compared with, whatever a results file asks for.
func TestWindowsWithoutAnEarlierCell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.msgpack")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := result.NewWriter(file)
	for _, f := range []result.Frame{
		&result.Header{Version: result.Version, Samples: true, Targets: []result.Target{{Name: "a"}}},
		&result.Cell{Scenario: "http", Phase: "load", Target: "a", Rounds: 1, Stages: []result.Stage{{Kind: "hold", Judged: true, Length: time.Second}}},
		&result.Round{},
		&result.Block{Samples: same(100, 10)},
		&result.RoundEnd{Length: time.Second},
	} {
		if err := w.Frame(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(), file.Close()); err != nil {
		t.Fatal(err)
	}
	run, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	earlier := newRecorded(t, "a")
	j, err := Judge(run, Case{
		Assertions: []result.Assertion{{Text: "change(p50, previous) < 10%", Place: "plan.yaml:1:1", Window: time.Second}},
		Previous:   earlier.Run,
	})
	if err != nil {
		t.Fatal(err)
	}
	if row := j.Rows[0]; row.Outcome != result.NoData {
		t.Errorf("%s, want no data: %q", row.Outcome, row.Detail)
	}
}

func TestNotes(t *testing.T) {
	r := newRecorded(t, "a")
	c := r.cell("a", 8*time.Second)
	r.round(c, same(50, 10), func(e *result.RoundEnd) {
		e.CPU, e.ClockStep, e.GCLongest, e.Opened, e.MaxInFlight = 20*time.Second, time.Minute, 30*time.Millisecond, 40, 5
	})
	for second := range 8 {
		h := new(record.Histogram)
		for range 50 {
			h.Record(int64(40-4*second) * ms)
		}
		r.add(&result.Interval{Cell: c, Second: second, OK: 50, Latency: h})
	}
	notes := strings.Join(r.judge("p95 < 30ms").Notes, "\n")
	for _, want := range []string{
		"too few samples for an upper bound of p95, which is asserted: as few as 50, and it needs 59",
		"used 100% of its 2 processors", "the wall clock was set forward by 1m", "garbage collection stopped the generator for up to 30ms",
		"connections were opened again in mid-run, 40 in round 1 for at most 5", "latency was still falling during the hold, from a median of 36",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is missing in\n%s", want, notes)
		}
	}
}

// rounds adds a cell of rounds whose samples all take as long.
func (r *recorded) rounds(target string, latencies ...int64) {
	c := r.cell(target, 0, func(c *result.Cell) { c.Rounds = len(latencies) })
	for _, l := range latencies {
		r.round(c, same(20, l))
	}
}

func TestDifferences(t *testing.T) {
	r := newRecorded(t, "direct", "hybrid", "slow")
	r.rounds("direct", 10, 12, 11, 13, 10, 12)
	r.rounds("hybrid", 20, 22, 22, 23, 20, 23)
	r.rounds("slow", 30, 32)
	before := newRecorded(t, "direct", "hybrid")
	before.rounds("direct", 10, 10, 10, 10, 10, 10)
	before.rounds("hybrid", 20, 20, 20, 20, 20, 20)
	for _, test := range []struct {
		text    string
		outcome result.Outcome
		value   string
	}{
		{"delta(hybrid.p50) < 10.6ms", result.Passed, "10.5ms"},
		{"delta(hybrid.p50).high <= 11ms", result.Passed, "11ms"},
		{"delta(hybrid.p50).low >= 10ms", result.Passed, "10ms"},
		{"change(hybrid.mean).high < 80%", result.Failed, "100%"},
		{"delta(slow.p50) < 30ms", result.Passed, "19ms"}, // two rounds: of the pooled values,
		{"delta(slow.p50).high < 30ms", result.NoData, "no data"},
		{"direct.p50 < 1.2 * previous.direct.p50", result.Passed, "11ms"},
		{"delta(hybrid.p50, previous).low > 0ms", result.Failed, "0s"},
		{"change(direct.p50, previous) < 20%", result.Passed, "14.02%"},
		{"change(slow.p50, previous) < 20%", result.NoData, "no data"},
		{"previous.slow.p50 < 1h", result.NoData, "no data"},
	} {
		row := r.judgeCase(Case{Previous: before.Run}, test.text).Rows[0]
		if row.Outcome != test.outcome || row.Value != test.value {
			t.Errorf("%s: %s with %s, want %s with %s", test.text, row.Outcome, row.Value, test.outcome, test.value)
		}
	}
	if i := r.judge("delta(hybrid.p50) < 1s").Rows[0].Interval; i != "10ms to 11ms" {
		t.Errorf("the interval is %q", i)
	}
	if rows := r.judge("delta(p50) < 1s").Rows; rows[0].Target != "hybrid" || rows[1].Target != "slow" {
		t.Error("a difference without an address judges each target but the reference")
	}
	_, err := Judge(r.Run, Case{Assertions: []result.Assertion{{Text: "p50 < previous.p50", Place: "plan.yaml:3:5"}}})
	if err == nil || !strings.HasPrefix(err.Error(), "plan.yaml:3:5: ") {
		t.Errorf("without an earlier run: %v", err)
	}
}

func TestCapacityRows(t *testing.T) {
	search := func(c *result.Cell) { c.Kind, c.Stages, c.Phase = "capacity", nil, "most" }
	r := newRecorded(t, "rest", "grpc", "dead", "late")
	for i, held := range []float64{500, 800} {
		c := r.cell(r.Targets[i].Name, 0, search)
		r.add(&result.Round{Cell: c})
		r.add(&result.Trial{Cell: c, Rate: held, Length: 10 * time.Second})
		r.add(&result.Block{Cell: c, Samples: same(200, 20)})
		r.add(&result.Capacity{Cell: c, Outcome: result.Passed, Held: held, Confirmed: 0, Above: -1})
		r.add(&result.RoundEnd{Cell: c})
	}
	c := r.cell("dead", 0, search)
	r.add(&result.Round{Cell: c})
	r.add(&result.Capacity{Cell: c, Outcome: result.Failed, Failed: 100, Confirmed: -1, Above: -1, Reason: "p95 was 2s"})
	c = r.cell("late", 0, search)
	r.add(&result.Round{Cell: c})
	r.add(&result.Capacity{Cell: c, Outcome: result.Inconclusive, Confirmed: -1, Above: -1, Reason: "the generator is the limit at 900/s"})

	j := r.judge("grpc.rate_held >= 1.3 * rest.rate_held", "rest.p95 < 1s", "dead.rate_held > 1/s", "late.rate_held > 1/s", "dead.p95 < 1s")
	for i, want := range []result.Outcome{result.Passed, result.Passed, result.NoData, result.Inconclusive, result.NoData} {
		if j.Rows[i].Outcome != want {
			t.Errorf("%s: %s, want %s", j.Rows[i].Assertion, j.Rows[i].Outcome, want)
		}
	}
	var implied []string
	for _, row := range j.Rows[5:] {
		implied = append(implied, row.Target+" "+row.Assertion+" "+string(row.Outcome))
		if row.Target == "dead" && row.Implied && !strings.Contains(strings.Join(row.Detail, "\n"), "even 100/s, the lowest rate, was not held: p95 was 2s") {
			t.Errorf("dead: %q", row.Detail)
		}
	}
	want := []string{"rest rate_held > 0/s passed", "grpc rate_held > 0/s passed", "dead rate_held > 0/s no data", "late rate_held > 0/s inconclusive"}
	if !slices.Equal(implied, want) {
		t.Errorf("implied %q", implied)
	}
}

func TestSamplesThatAnUpperBoundNeeds(t *testing.T) {
	for p, want := range map[float64]int64{50: 5, 95: 59, 99: 299, 99.9: 2995} {
		if n := enough(p); n != want {
			t.Errorf("p%v needs %d, want %d", p, n, want)
		}
	}
}

func TestIntervals(t *testing.T) {
	// Tabulated: the median of 10 lies between the 2nd and the 9th with 97.9 %, p90 of 100 between the 84th and the 96th.
	for _, test := range []struct {
		n         int64
		q         float64
		low, high int64
	}{{10, 0.5, 2, 9}, {5, 0.5, 0, 6}, {100, 0.5, 40, 61}, {58, 0.95, 51, 59}, {100_000, 0.5, 49690, 50311}} {
		if l, u := ranks(test.n, test.q); l != test.low || u != test.high {
			t.Errorf("n %d, q %v: ranks %d and %d, want %d and %d", test.n, test.q, l, u, test.low, test.high)
		}
	}
	// Wilson's interval of 1 in 10 is 1.8 % to 40.4 %.
	low, high, _ := wilson(1, 10)
	if math.Abs(low-0.0179) > 1e-4 || math.Abs(high-0.4042) > 1e-4 {
		t.Errorf("%v to %v", low, high)
	}
	if low, high, _ := wilson(0, 100); low != 0 || math.Abs(high-0.0370) > 1e-4 {
		t.Errorf("none of 100: %v to %v", low, high)
	}
	for n := range int64(500) {
		if low, high, ok := wilson(0, n+1); !ok || low != 0 || high >= 1 {
			t.Errorf("none of %d: %v to %v", n+1, low, high)
		}
		if low, high, ok := wilson(n+1, n+1); !ok || low <= 0 || high != 1 {
			t.Errorf("all of %d: %v to %v", n+1, low, high)
		}
	}
}

// What a plan tolerates of one step says nothing about the others.
func TestAStandOnOneStepLeavesTheOthers(t *testing.T) {
	r := newRecorded(t, "a")
	c := r.cell("a", 0, func(c *result.Cell) {
		c.Steps = []result.Step{{Name: "login", Driver: "http"}, {Name: "pay", Driver: "http"}, {Name: "never", Driver: "http"}}
	})
	var list []record.Sample
	for i := range int64(10) {
		failure := drivers.OK
		if i == 0 {
			failure = drivers.Status
		}
		list = append(list, sample(i*ms, 5*ms, failure))
		for step := range int16(2) {
			s := sample(i*ms, 5*ms, failure)
			s.Step = step
			list = append(list, s)
		}
	}
	r.round(c, list)
	j := r.judge("pay.error_rate < 50%")
	var failed []string
	for _, row := range j.Rows {
		if row.Outcome != result.Passed {
			failed = append(failed, row.Assertion)
		}
	}
	if j.Exit != ExitFailed || !slices.Equal(failed, []string{"login.error_rate == 0%"}) {
		t.Errorf("exit %d, failed %v; want the login's", j.Exit, failed)
	}
	if j := r.judge("pay.error_rate < 50%", "login.error_rate < 50%"); j.Exit != ExitPassed {
		t.Errorf("exit %d with a stand on each step that ran", j.Exit)
	}
}
