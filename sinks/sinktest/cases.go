package sinktest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

const ms = int64(time.Millisecond)

// Cases returns the runs, the same at every call.
func Cases() []Case {
	return []Case{
		{Name: "study", Frames: study()},
		{Name: "rounds", Frames: rounds()},
		{Name: "stages", Frames: stages()},
		{Name: "steps", Frames: steps()},
		{Name: "hostile", Frames: hostile()},
		{Name: "nodata", Frames: noData()},
		{Name: "inconclusive", Frames: inconclusive()},
		{Name: "three", Frames: three()},
		{Name: "one", Frames: one()},
		{Name: "many", Frames: many()},
		{Name: "interrupted", Frames: interrupted()},
		{Name: "cut", Frames: study(), Cut: 700},
		{Name: "empty", Frames: empty()},
		{Name: "capacity", Frames: capacity()},
	}
}

// builder makes frames with little ceremony.
type builder struct {
	random *rand.Rand
	frames []result.Frame
	cells  int
	bytes  int64 // body bytes of answers to come
}

func build(plan string, targets ...result.Target) *builder {
	return &builder{
		random: rand.New(rand.NewPCG(4, 2)),
		bytes:  8192,
		frames: []result.Frame{&result.Header{
			Version: result.Version, Tool: "1.0.0", Plan: plan, File: "plans/" + plan + ".yaml", Text: []byte("plan: " + plan + "\n"),
			Hash: "5e8848", Start: time.Date(2026, 11, 30, 15, 4, 5, 0, time.UTC), Seed: 42, Targets: targets, Samples: true,
			Environment: map[string]string{"os": "linux", "arch": "amd64", "cpus": "2", "go": "go1.26.8"},
		}},
	}
}

func (b *builder) add(f ...result.Frame) { b.frames = append(b.frames, f...) }

// cell adds a cell and returns its index.
func (b *builder) cell(c result.Cell) int {
	if c.Rounds == 0 {
		c.Rounds = 1
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Steps == nil {
		c.Steps = []result.Step{{Driver: "http"}}
	}
	b.add(&c)
	b.cells++
	return b.cells - 1
}

// closed adds a cell of one round in which users make n calls each, one after the other, of about a latency in ms.
func (b *builder) closed(c result.Cell, users, n int, latency float64) int {
	i := b.cell(c)
	b.add(&result.Round{Cell: i, Release: time.Second})
	b.round(i, 0, users, n, latency)
	return i
}

func (b *builder) round(cell, round, users, n int, latency float64) {
	block := &result.Block{Cell: cell, Round: round}
	var end int64
	for u := range users {
		at := int64(0)
		for k := range n {
			took := int64(latency * float64(ms) * (0.9 + 0.2*b.random.Float64()))
			s := record.Sample{
				Due: at, Start: at, End: at + took, Step: record.Whole, Status: 200, User: int32(u), Iteration: int64(u*n + k),
				DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: took * 9 / 10, Transfer: took / 10,
				BytesIn: b.bytes, BytesOut: 40,
			}
			if k == 0 {
				s.Connect, s.Flags = took/4, record.Opened
				s.TTFB -= s.Connect
			}
			block.Samples = append(block.Samples, s)
			at += took
		}
		end = max(end, at)
	}
	b.add(block, &result.RoundEnd{
		Cell: cell, Round: round, Length: time.Duration(end), Opened: int64(users), MaxInFlight: users, Protocols: []string{"HTTP/2"},
		CPU: 20 * time.Millisecond, Addresses: []drivers.Address{{Addr: "10.0.0.1:443", Opened: int64(users)}},
	})
}

// last is the block that was added last.
func (b *builder) last() *result.Block {
	for i := len(b.frames) - 1; ; i-- {
		if x, ok := b.frames[i].(*result.Block); ok {
			return x
		}
	}
}

// fail makes every nth sample of the last block fail.
func (b *builder) fail(every int, kind drivers.Failure, status int32, text string) {
	block := b.last()
	for i := range block.Samples {
		if s := &block.Samples[i]; i%every == 0 && s.Failure == drivers.OK {
			s.Failure, s.Status = kind, status
			if status == 0 {
				s.BytesIn, s.TTFB, s.Transfer = 0, -1, -1
			}
		}
	}
	b.add(&result.Example{Cell: block.Cell, Round: block.Round, Step: record.Whole, Failure: kind, At: time.Second, Text: text})
}

func (b *builder) end(e result.End) []result.Frame {
	if e.At == 0 {
		e.At = time.Minute
	}
	b.add(&e)
	return withIntervals(b.frames)
}

// withIntervals puts before the end of each round what its samples come to by the second, as the engine does.
func withIntervals(frames []result.Frame) []result.Frame {
	var list []result.Frame
	var samples []record.Sample // of the round
	for _, f := range frames {
		switch f := f.(type) {
		case *result.Round:
			samples = nil
		case *result.Block:
			for _, s := range f.Samples {
				if s.Step == record.Whole {
					samples = append(samples, s)
				}
			}
		case *result.RoundEnd:
			for _, v := range intervals(f.Cell, f.Round, samples) {
				list = append(list, v)
			}
			samples = nil
		}
		list = append(list, f)
	}
	return list
}

func intervals(cell, round int, samples []record.Sample) []*result.Interval {
	const second = int64(time.Second)
	var list []*result.Interval
	at := func(t int64) *result.Interval {
		for int64(len(list)) <= t/second {
			list = append(list, &result.Interval{Cell: cell, Round: round, Second: len(list)})
		}
		return list[t/second]
	}
	for i := range samples {
		s := &samples[i]
		v := at(s.End)
		v.MaxLag = max(v.MaxLag, time.Duration(s.Lag))
		switch {
		case s.Flags&record.Dropped != 0:
			v.Dropped++
			continue
		case s.Failure != drivers.OK:
			v.Failed++
		default:
			v.OK++
			if v.Latency == nil {
				v.Latency = new(record.Histogram)
			}
			v.Latency.Record(s.Latency())
		}
		// The body comes evenly, and whoever has not ended is in flight.
		for t := s.Start / second; t <= s.End/second; t++ {
			from, to := max(s.Start, t*second), min(s.End, (t+1)*second)
			at(t * second).BytesIn += int64(float64(s.BytesIn) * float64(to-from) / float64(max(1, s.End-s.Start)))
			if s.End > (t+1)*second {
				at(t*second).InFlight++
			}
		}
	}
	return list
}

var (
	direct = result.Target{Name: "direct", Lab: true}
	hybrid = result.Target{Name: "hybrid", Lab: true}
)

// study is the first of the two studies: three scenarios, three ways of calling, two routes.
func study() []result.Frame {
	b := build("hybrid", direct, hybrid)
	b.frames[0].(*result.Header).Description = "What a hybrid connection costs, against the direct route."
	scenarios := []struct {
		name, title, driver string
		latency             [2][3]float64 // of direct and hybrid: single, sequential, parallel
	}{
		{"http", "HTTP requests", "http", [2][3]float64{{13, 13, 50}, {24, 34, 60}}},
		{"sql", "Database queries", "sql", [2][3]float64{{13, 13, 13}, {13, 27, 30}}},
	}
	for _, s := range scenarios {
		for k, phase := range []struct {
			name, kind, shape string
			users, n          int
		}{
			{"single", "single", "", 1, 1},
			{"sequential", "sequential", "50 iterations", 1, 50},
			{"parallel", "parallel", "50 users, 50 iterations", 50, 1},
		} {
			for t, target := range []string{"direct", "hybrid"} {
				b.closed(result.Cell{
					Scenario: s.name, ScenarioTitle: s.title, Phase: phase.name, Kind: phase.kind, Target: target, Shape: phase.shape,
					Steps: []result.Step{{Driver: s.driver}},
				}, phase.users, phase.n, s.latency[t][k])
			}
		}
	}
	b.bytes = 1 << 30
	for t, target := range []string{"direct", "hybrid"} {
		b.closed(result.Cell{
			Scenario: "download", ScenarioTitle: "Large download", Phase: "single", Kind: "single", Target: target,
			Steps: []result.Step{{Driver: "download"}},
		}, 1, 1, []float64{39768, 53687}[t])
	}
	for _, target := range []string{"direct", "hybrid"} {
		b.add(&result.Verdict{
			Assertion: "p50 < 2s", Place: "plans/hybrid.yaml:41:9", Scenario: "http", Phase: "sequential", Target: target,
			Outcome: result.Passed, Value: "13.1ms", Limit: "2s", N: 50, Interval: "12.9ms to 13.4ms", Detail: []string{"p50 = 13.1ms"},
		})
	}
	b.add(
		&result.Verdict{
			Assertion: "hybrid.sequential.mean - direct.sequential.mean < 60ms", Place: "plans/hybrid.yaml:42:9", Scenario: "http",
			Phase: "sequential", Outcome: result.Passed, Value: "20.9ms", Limit: "60ms", N: 50,
			Detail: []string{"hybrid.sequential.mean = 34ms", "direct.sequential.mean = 13ms"},
		},
		&result.Verdict{
			Assertion: "ok > 0", Implied: true, Scenario: "http", Phase: "single", Target: "direct", Outcome: result.Passed, Value: "1", Limit: "0", N: 1,
		},
	)
	return b.end(result.End{Outcome: result.Passed})
}

// rounds has enough of them for intervals: one phase with a difference, one without.
func rounds() []result.Frame {
	b := build("rounds", result.Target{Name: "old"}, result.Target{Name: "new"})
	b.frames[0].(*result.Header).Reference = 1
	for _, phase := range []struct {
		name     string
		old, new float64
	}{{"changed", 30, 24}, {"same", 20, 20}} {
		var cells [2]int
		for t, target := range []string{"old", "new"} {
			cells[t] = b.cell(result.Cell{
				Scenario: "home", Phase: phase.name, Kind: "sequential", Target: target, Shape: "20 iterations", Rounds: 8,
			})
		}
		for r := range 8 {
			mood := 1 + 0.2*b.random.Float64()
			for t, latency := range []float64{phase.old, phase.new} {
				b.add(&result.Round{Cell: cells[t], Round: r, Release: time.Duration(r) * time.Second})
				b.round(cells[t], r, 1, 20, latency*mood)
			}
		}
	}
	return b.end(result.End{Outcome: result.Inconclusive})
}

// open adds a cell with a ramp and two holds at a rate, with failures, drops, backlog and lag as asked.
func (b *builder) open(c result.Cell, latency float64, trouble bool) {
	c.Open, c.Kind = true, "ramp-and-hold"
	c.Stages = []result.Stage{
		{Name: "ramp", Kind: "ramp", Length: 2 * time.Second, To: 100},
		{Name: "calm", Kind: "hold", Judged: true, Start: 2 * time.Second, Length: 3 * time.Second, From: 100, To: 100},
		{Name: "peak", Kind: "hold", Judged: true, Start: 5 * time.Second, Length: 2 * time.Second, From: 200, To: 200},
	}
	i := b.cell(c)
	b.add(&result.Round{Cell: i, Release: time.Second})
	block := &result.Block{Cell: i}
	var end int64
	for stage, n := range []int{100, 300, 400} {
		for k := range n {
			g := c.Stages[stage]
			due := int64(g.Start) + int64(g.Length)*int64(k)/int64(n)
			took := int64(latency * float64(ms) * (0.5 + b.random.ExpFloat64()/2) * float64(stage+1))
			s := record.Sample{
				Due: due, Lag: b.random.Int64N(60_000), Step: record.Whole, Stage: int16(stage), Status: 200, User: int32(k % 20),
				Iteration: int64(len(block.Samples)), DNS: -1, Connect: -1, TLS: -1, Wait: 2000, TTFB: took - took/8 - 2000, Transfer: took / 8,
				BytesIn: 512, BytesOut: 12,
			}
			s.Start = due + s.Lag
			if trouble && stage == 2 {
				s.Start += int64(k) * ms // what waits behind others waits longer and longer
			}
			s.End = s.Start + took
			switch {
			case k == 0:
				s.Connect, s.TLS, s.DNS, s.Flags = took/8, took/6, 30_000, record.Opened
				s.TTFB -= s.Connect + s.TLS + s.DNS
			case trouble && stage == 2 && k > 380:
				s = record.Sample{
					Due: due, Start: due + 1000*ms, End: due + 1000*ms, Step: record.Whole, Stage: 2, Flags: record.Dropped,
					DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1, Iteration: s.Iteration,
				}
			}
			end = max(end, s.End)
			block.Samples = append(block.Samples, s)
		}
	}
	b.add(block)
	if trouble {
		for i := range block.Samples {
			s := &block.Samples[i]
			if s.Flags&record.Dropped != 0 || s.Stage == 0 {
				continue
			}
			switch {
			case i%90 == 0:
				s.Failure, s.Status, s.End = drivers.Timeout, 0, s.Start+1000*ms
				s.TTFB, s.Transfer, s.BytesIn = -1, -1, 0
			case i%50 == 7:
				s.Failure, s.Status, s.BytesIn = drivers.Status, 503, 20
			case i%200 == 9:
				s.Failure, s.Status = drivers.Status, 500
			case i%170 == 11:
				s.Failure = drivers.Expectation
			}
		}
		for _, x := range []result.Example{
			{Failure: drivers.Timeout, Text: "no answer within 1s"},
			{Failure: drivers.Status, Text: "503 Service Unavailable: upstream connect error or disconnect/reset before headers"},
			{Failure: drivers.Expectation, Text: `json.total > 0 is false: json.total = 0`},
		} {
			x.Cell, x.Step, x.At = i, record.Whole, 3*time.Second
			b.add(&x)
		}
	}
	ended := &result.RoundEnd{
		Cell: i, Length: time.Duration(end), Opened: 20, MaxInFlight: 20, Protocols: []string{"HTTP/1.1"}, CPU: time.Second,
	}
	if trouble {
		ended.Backlogged, ended.Lost = 390, 3
		ended.Notes = []string{"the server closed 4 connections that were in use"}
		ended.Addresses = []drivers.Address{{Addr: "10.0.0.1:443", Opened: 17}, {Addr: "10.0.0.2:443", Opened: 3, Failed: 5}, {Addr: "[2001:db8::1]:443", Failed: 4}}
		ended.MoreAddresses = 2
	}
	b.add(ended)
}

func stages() []result.Frame {
	b := build("stages", result.Target{Name: "linux"}, result.Target{Name: "windows"})
	for t, target := range []string{"linux", "windows"} {
		b.open(result.Cell{
			Scenario: "main", ScenarioTitle: "Main API", Phase: "load", PhaseTitle: "Load",
			Shape: "0 to 100/s in 2s, hold 3s, 200/s for 2s", Target: target, Timeout: time.Second,
		}, 40, t == 1)
	}
	b.add(
		&result.Verdict{
			Assertion: "within(1s) >= 99%", Place: "plans/stages.yaml:12:9", Scenario: "main", Phase: "load", Target: "linux",
			Outcome: result.Passed, Value: "100%", Limit: "99%", N: 700,
		},
		&result.Verdict{
			Assertion: "within(1s) >= 99%", Place: "plans/stages.yaml:12:9", Scenario: "main", Phase: "load", Target: "windows",
			Outcome: result.Failed, Value: "94.14%", Limit: "99%", N: 681,
			Detail: []string{"within(1s) >= 99%: false", "  within(1s) = 94.14%"},
		},
		&result.Verdict{
			Assertion: "peak.p99 < 200ms", Place: "plans/stages.yaml:13:9", Severity: "warn", Scenario: "main", Phase: "load", Stage: "peak",
			Target: "windows", Outcome: result.Failed, Value: "702ms", Limit: "200ms", N: 183, Interval: "641ms to 735ms", Window: "6s to 7s",
			Detail: []string{"peak.p99 < 200ms: false", "  peak.p99 = 702ms", "judged by 2 windows of 1s"},
		},
		&result.Verdict{
			Assertion: "dropped == 0", Implied: true, Scenario: "main", Phase: "load", Target: "windows", Outcome: result.Failed,
			Value: "19", Limit: "0", N: 700, Detail: []string{"dropped == 0: false", "  dropped = 19"},
		},
	)
	return b.end(result.End{Outcome: result.Failed, Exit: 1})
}

// steps is a scenario of two steps, the second of which runs only sometimes.
func steps() []result.Frame {
	b := build("shop", result.Target{Name: "target"})
	i := b.cell(result.Cell{
		Scenario: "buy", ScenarioTitle: "Log in and pay", Phase: "parallel", Kind: "parallel", Shape: "10 users, 200 iterations", Target: "target",
		Steps: []result.Step{{Name: "login", Driver: "http"}, {Name: "pay", Driver: "grpc"}},
	})
	b.add(&result.Round{Cell: i})
	block := &result.Block{Cell: i}
	for k := range int64(200) {
		none := record.Sample{DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1, Iteration: k, User: int32(k % 10)}
		login, pay, whole := none, none, none
		at := k / 10 * 60 * ms
		login.Step, login.Due, login.Start, login.Status, login.BytesIn = 0, at, at, 200, 300
		login.End = at + 10*ms + b.random.Int64N(5*ms)
		login.TTFB, login.Transfer = login.End-at-1000, 1000
		pay.Step, pay.Due, pay.Start, pay.BytesIn = 1, login.End, login.End, 50
		pay.End = login.End + 30*ms + b.random.Int64N(10*ms)
		pay.TTFB = pay.End - pay.Start
		whole.Step, whole.Due, whole.Start, whole.End, whole.BytesIn = record.Whole, at, at, pay.End, 350
		if k%20 == 3 {
			login.Status, login.Failure = 401, drivers.Status
			whole.Failure, whole.End, whole.BytesIn, whole.Status = drivers.Status, login.End, 300, 401
			block.Samples = append(block.Samples, login, whole)
			continue
		}
		block.Samples = append(block.Samples, login, pay, whole)
	}
	b.add(block,
		&result.Example{Cell: i, Step: 0, Failure: drivers.Status, Text: "401 Unauthorized: {\"error\":\"unknown user\"}"},
		&result.RoundEnd{Cell: i, Length: 1200 * time.Millisecond, Opened: 20, MaxInFlight: 10, Protocols: []string{"HTTP/1.1", "HTTP/2"}},
		&result.Verdict{
			Assertion: "pay.p95 < 50ms", Place: "plans/shop.yaml:30:9", Scenario: "buy", Phase: "parallel", Step: "pay", Target: "target",
			Outcome: result.Passed, Value: "39.6ms", Limit: "50ms", N: 190,
		},
		&result.Verdict{
			Assertion: "error_rate == 0%", Implied: true, Scenario: "buy", Phase: "parallel", Target: "target", Outcome: result.Failed,
			Value: "5%", Limit: "0%", N: 200, Detail: []string{"error_rate == 0%: false", "  error_rate = 5%", "10 of 200 failed: status"},
		},
	)
	return b.end(result.End{Outcome: result.Failed, Exit: 1})
}

// hostile has text that means something to every format it may be put into.
func hostile() []result.Frame {
	b := build("=cmd|' /C calc'!A0", result.Target{Name: "direct"}, result.Target{Name: "hybrid"})
	h := b.frames[0].(*result.Header)
	h.Description = "<script>alert(1)</script> | `code` **bold**\r\n@team #12 ![x](http://x.test/y.png) 测试 👩‍👩‍👧"
	h.Tool = "1.0.0\x1b[31m"
	titles := []struct{ title, phase, shape string }{
		{"<script>alert(1)</script>", "pipe | and `tick`", "50 users | 1"},
		{"=1+1", "@team fixes #12\nin two lines", "+1"},
		{"数据库查询 (database)", "-2 👩‍👩‍👧 emoji", "50 iterations"},
		{"a\tb\x00c\x1b[2Jd \u202ereversed\u202c \xff", `"quoted", 'it' & <img src=x>`, "]]>"},
	}
	for k, x := range titles {
		for t, target := range []string{"direct", "hybrid"} {
			b.closed(result.Cell{
				Scenario: fmt.Sprintf("s%d", k), ScenarioTitle: x.title, Phase: "sequential", PhaseTitle: x.phase, Kind: "sequential", Target: target, Shape: x.shape,
			}, 1, 20, 10*float64(t+1))
		}
		b.fail(7, drivers.Reset, 0, "\x00\x01\x1b[31mred\x1b[0m \x7f \ufffe ]]> & < > \" ' | ` \r\n@team #1 \xff\xfe done")
		b.fail(5, drivers.Protocol, 200, "=HYPERLINK(\"http://x.test\")")
	}
	for _, f := range b.frames {
		if r, ok := f.(*result.RoundEnd); ok {
			r.Addresses = append(r.Addresses, drivers.Address{Addr: "/run/<b>|`x`\x1b[31m\n@team.sock", Opened: 1})
		}
	}
	b.add(
		&result.Verdict{
			Assertion: "p50 < 10ms and (\"a|b\" != '`')\n@team", Place: "plans/a|b.yaml:1:2", Scenario: "s0", Phase: "sequential", Target: "hybrid",
			Outcome: result.Failed, Value: "20.1ms", Limit: "10ms", N: 20, Detail: []string{"p50 = 20.1ms", "<img src=x onerror=alert(1)>"},
		},
		&result.Verdict{
			Assertion: "p50 < 100ms", Place: "plans/a|b.yaml:2:2", Scenario: "s1", Phase: "sequential", Target: "hybrid",
			Outcome: result.Passed, Value: "20.1ms", Limit: "100ms", N: 20,
		},
	)
	return b.end(result.End{Outcome: result.Failed, Exit: 1, Notes: []string{"can't write \x1b]0;title\x07 results/a|b.csv"}})
}

// noData has a cell in which everything fails, one that never ran, and one with a step that never ran.
func noData() []result.Frame {
	b := build("nodata", result.Target{Name: "direct"}, result.Target{Name: "hybrid"})
	parallel := func(target string) result.Cell {
		return result.Cell{Scenario: "http", Phase: "parallel", Kind: "parallel", Target: target, Shape: "50 users, 50 iterations"}
	}
	b.closed(parallel("direct"), 50, 1, 50)
	b.closed(parallel("hybrid"), 50, 1, 1000)
	b.fail(1, drivers.Timeout, 0, "no answer within 1s")
	b.cell(result.Cell{Scenario: "http", Phase: "later", Kind: "sequential", Target: "direct", Shape: "10 iterations"})
	b.cell(result.Cell{Scenario: "http", Phase: "later", Kind: "sequential", Target: "hybrid", Shape: "10 iterations"})
	b.closed(result.Cell{
		Scenario: "buy", Phase: "sequential", Kind: "sequential", Target: "hybrid", Shape: "5 iterations",
		Steps: []result.Step{{Name: "login", Driver: "http"}, {Name: "pay", Driver: "http"}},
	}, 1, 5, 20)
	block := b.last()
	for i := range block.Samples {
		block.Samples[i].Failure = drivers.Expectation
	}
	for _, s := range block.Samples {
		s.Step = 0
		block.Samples = append(block.Samples, s)
	}
	b.add(
		&result.Verdict{
			Assertion: "p50 < 2s", Place: "plans/nodata.yaml:9:9", Scenario: "http", Phase: "parallel", Target: "hybrid", Outcome: result.NoData,
			Value: "no data", Limit: "2s", Detail: []string{"p50 < 2s: no data", "  p50 = no data", "hybrid: 50 of 50 failed: timeout"},
		},
		&result.Verdict{
			Assertion: "pay.p50 < 2s", Place: "plans/nodata.yaml:19:9", Scenario: "buy", Phase: "sequential", Step: "pay", Target: "hybrid",
			Outcome: result.NoData, Value: "no data", Limit: "2s",
			Detail: []string{"pay.p50 < 2s: no data", "  pay.p50 = no data", "hybrid.pay: nothing was called"},
		},
		&result.Verdict{
			Assertion: "p50 < 2s", Place: "plans/nodata.yaml:9:9", Scenario: "http", Phase: "parallel", Target: "direct", Outcome: result.Passed,
			Value: "49.6ms", Limit: "2s", N: 50,
		},
	)
	return b.end(result.End{Outcome: result.Failed, Exit: 1})
}

// inconclusive is a run whose generator could not keep up.
func inconclusive() []result.Frame {
	b := build("late", result.Target{Name: "target"})
	b.open(result.Cell{Scenario: "home", Phase: "load", Shape: "0 to 100/s in 2s, hold 3s, 200/s for 2s", Target: "target"}, 4, false)
	block := b.last()
	for i := range block.Samples {
		if s := &block.Samples[i]; i%20 == 3 {
			s.Lag += 30 * ms
			s.Start += 30 * ms
			s.End += 30 * ms
		}
	}
	b.add(
		&result.Verdict{
			Assertion: "p99 < 30ms", Place: "plans/late.yaml:7:9", Scenario: "home", Phase: "load", Target: "target", Outcome: result.Inconclusive,
			Value: "38.3ms", Limit: "30ms", N: 700,
			Detail: []string{"p99 < 30ms: false", "  p99 = 38.3ms", "the generator's own lateness decides it: without it the value is 21.9ms, the limit 30ms"},
		},
		&result.Verdict{Assertion: "ok > 0", Implied: true, Scenario: "home", Phase: "load", Target: "target", Outcome: result.Passed, Value: "700", Limit: "0", N: 700},
	)
	return b.end(result.End{Outcome: result.Inconclusive, Exit: 3})
}

// three has a target that does not run every phase.
func three() []result.Frame {
	b := build("protocols", result.Target{Name: "http1"}, result.Target{Name: "http2"}, result.Target{Name: "grpc_with_a_long_name"})
	for _, phase := range []string{"single", "parallel"} {
		for t, target := range []string{"http1", "http2", "grpc_with_a_long_name"} {
			if phase == "single" && t == 2 {
				continue
			}
			users := map[string]int{"single": 1, "parallel": 20}[phase]
			shape := map[string]string{"single": "", "parallel": "20 users, 100 iterations"}[phase]
			n := map[string]int{"single": 1, "parallel": 5}[phase]
			b.closed(result.Cell{Scenario: "call", ScenarioTitle: "Server to server", Phase: phase, Kind: phase, Target: target, Shape: shape},
				users, n, []float64{1107, 492, 0.4}[t])
		}
	}
	b.fail(30, drivers.Refused, 0, "dial tcp 127.0.0.1:1: connection refused")
	b.add(&result.Verdict{
		Assertion: "error_rate == 0%", Implied: true, Scenario: "call", Phase: "parallel", Target: "grpc_with_a_long_name", Outcome: result.Failed,
		Value: "4%", Limit: "0%", N: 100, Detail: []string{"error_rate == 0%: false", "  error_rate = 4%", "4 of 100 failed: refused"},
	}, &result.Verdict{
		Assertion: "http2.p50 <= 0.4 * http1.p50 and http2.p95 < 1s", Place: "plans/protocols.yaml:14:9", Scenario: "call", Phase: "parallel",
		Outcome: result.Failed, Value: "492ms", Limit: "443ms", N: 100,
		Detail: []string{
			"http2.p50 <= 0.4 * http1.p50 and http2.p95 < 1s: false",
			"  http2.p50 <= 0.4 * http1.p50: false",
			"    http2.p50 = 492ms",
			"    0.4 * http1.p50 = 443ms",
			"      http1.p50 = 1.11s",
			"  http2.p95 < 1s: true",
			"    http2.p95 = 540ms",
		},
	})
	return b.end(result.End{Outcome: result.Failed, Exit: 1})
}

// one is the smallest run there is.
func one() []result.Frame {
	b := build("one", result.Target{Name: "target"})
	b.closed(result.Cell{Scenario: "home", Phase: "single", Kind: "single", Target: "target"}, 1, 1, 13)
	b.add(&result.Verdict{Assertion: "ok > 0", Implied: true, Scenario: "home", Phase: "single", Target: "target", Outcome: result.Passed, Value: "1", Limit: "0", N: 1})
	return b.end(result.End{Outcome: result.Passed})
}

// many has two hundred cells, and more verdicts than anybody reads.
func many() []result.Frame {
	b := build("many", result.Target{Name: "a"}, result.Target{Name: "b"})
	for s := range 20 {
		for p := range 5 {
			for _, target := range []string{"a", "b"} {
				scenario, phase := fmt.Sprintf("scenario_%d", s), fmt.Sprintf("phase_%d", p)
				b.closed(result.Cell{
					Scenario: scenario, ScenarioTitle: fmt.Sprintf("Scenario %d", s), Phase: phase, Kind: "sequential", Target: target, Shape: "3 iterations",
				}, 1, 3, float64(s+p+1))
				b.add(
					&result.Verdict{
						Assertion: "ok > 0", Implied: true, Scenario: scenario, Phase: phase, Target: target, Outcome: result.Passed, Value: "3", Limit: "0", N: 3,
					},
					&result.Verdict{
						Assertion: "p50 < 20ms", Place: "plans/many.yaml:5:9", Scenario: scenario, Phase: phase, Target: target,
						Outcome: map[bool]result.Outcome{true: result.Failed, false: result.Passed}[s == 19 && p > 2], Value: fmt.Sprintf("%dms", s+p+1), Limit: "20ms", N: 3,
						Detail: []string{fmt.Sprintf("p50 = %dms", s+p+1)},
					},
				)
			}
		}
	}
	return b.end(result.End{Outcome: result.Failed, Exit: 1})
}

// interrupted ends in its second cell.
func interrupted() []result.Frame {
	b := build("interrupted", result.Target{Name: "target"})
	b.closed(result.Cell{Scenario: "home", Phase: "first", Kind: "sequential", Target: "target", Shape: "120 iterations"}, 1, 120, 10)
	b.closed(result.Cell{Scenario: "home", Phase: "second", Kind: "sequential", Target: "target", Shape: "for 1m", Rounds: 3}, 1, 30, 10)
	for _, f := range b.frames {
		if r, ok := f.(*result.RoundEnd); ok && r.Cell == 1 {
			r.Interrupted = true
		}
	}
	b.fail(30, drivers.Aborted, 0, "the run was interrupted")
	b.add(&result.Verdict{
		Assertion: "p50 < 1s", Place: "plans/interrupted.yaml:7:9", Scenario: "home", Phase: "first", Target: "target", Outcome: result.Passed,
		Value: "10ms", Limit: "1s", N: 120,
	})
	return b.end(result.End{Outcome: result.Passed, Exit: 130, Interrupted: true, At: 2500 * time.Millisecond})
}

// empty was stopped before its first cell.
func empty() []result.Frame {
	b := build("empty", result.Target{Name: "target"})
	return b.end(result.End{Outcome: result.Inconclusive, Exit: 3, Notes: []string{"can't reach http://127.0.0.1:1: connection refused"}})
}
