package digest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/compare"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/sinktest"
)

func TestScale(t *testing.T) {
	tests := []struct {
		dim    quantity.Dim
		values []float64
		want   []string
	}{
		{quantity.Time, []float64{13e6, 24.14e6}, []string{"13.0 ms", "24.1 ms"}},
		{quantity.Time, []float64{289e6, 1.107e9}, []string{"0.289 s", "1.11 s"}},
		{quantity.Time, []float64{999.6e6}, []string{"1.00 s"}},
		{quantity.Time, []float64{9.996e6}, []string{"10.0 ms"}},
		{quantity.Time, []float64{405e3, 1.106e9}, []string{"0.405 ms", "1106 ms"}},
		{quantity.Time, []float64{0, 5e6}, []string{"0 ms", "5.00 ms"}},
		{quantity.Time, []float64{0}, []string{"0 ns"}},
		{quantity.Time, nil, nil},
		{quantity.Time, []float64{3600e9 * 5}, []string{"18000 s"}},
		{quantity.Speed, []float64{27e6, 20.04e6}, []string{"27.0 MB/s", "20.0 MB/s"}},
		{quantity.Rate, []float64{75.83}, []string{"75.8/s"}},
	}
	for _, test := range tests {
		s := ScaleOf(test.dim, test.values...)
		for i, v := range test.values {
			if got := s.With(v); got != test.want[i] {
				t.Errorf("%v of %v: %s, want %s", v, test.values, got, test.want[i])
			}
		}
	}
}

func TestTableScale(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   string
	}{
		{[]float64{288e3, 367e3, 1.2e6}, "us"},
		{[]float64{0, 121e6, 121e6, 560e6, 1e9}, "ms"},
		{[]float64{288e3, 367e3, 400e3, 700e6}, "ms"},
		{[]float64{200e3, 41e9, 58e9}, "s"},
		{[]float64{1e6, 2e6, 3e6, 200e9}, "s"},
		{[]float64{0}, "ns"},
	} {
		if got := tableScale(quantity.Time, test.values).Unit; got != test.want {
			t.Errorf("%v are shown in %s, want %s", test.values, got, test.want)
		}
	}
}

// TestOneUnit has each scenario's figures in one unit.
func TestOneUnit(t *testing.T) {
	for _, c := range sinktest.Cases() {
		units := map[string]string{}
		for _, d := range Of(c.Open(t)).Details {
			if u, seen := units[d.Scenario]; seen && u != d.Unit {
				t.Errorf("%s: %s is in %s and in %s", c.Name, d.Scenario, u, d.Unit)
			}
			units[d.Scenario] = d.Unit
		}
	}
}

// TestFailuresNameTheirStep has failures of several steps at the step they happened in.
func TestFailuresNameTheirStep(t *testing.T) {
	for _, c := range sinktest.Cases() {
		if c.Name != "steps" {
			continue
		}
		list := Of(c.Open(t)).Failures
		want := Failure{
			Place: "buy.parallel.login.target", Kind: "status", Count: 10, Of: 200, Statuses: "401: 10",
			Example: `401 Unauthorized: {"error":"unknown user"}`,
		}
		if len(list) != 1 || list[0] != want {
			t.Errorf("%+v, want %+v", list, want)
		}
		return
	}
	t.Fatal("there is no run of several steps")
}

func TestChanges(t *testing.T) {
	ms := ScaleOf(quantity.Time, 13e6)
	for v, want := range map[float64]string{
		11.2e6: "+11.2 ms", -11.2e6: "-11.2 ms", 0: "0 ms", 0.5412e6: "+0.54 ms", 40: "0.00 ms", -40: "0.00 ms", 1234e6: "+1234 ms",
	} {
		if got := ms.change(v, 13e6, 24.2e6); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{
		.86: "+86%", -.2593: "-26%", .042: "+4.2%", 0: "0%", -.0001: "0%", .0995: "+10%", 20: "+2000%", -.9996: "-99.96%", -1: "-100%", 1: "+100%",
	} {
		if got := percent(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a\nb\r\nc\td": "a b c d", "\x1b[31m": "\ufffd[31m", "\x00\xff": "\ufffd\ufffd", "a\u202eb": "a\ufffdb", "\ufffe": "\ufffd",
		"数据 👩‍👩‍👧": "数据 👩‍👩‍👧", " a\n": "a", "\u0085": "\ufffd", "": "",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := Shorten("数据库查询", 3); got != "数据…" {
		t.Errorf("got %q", got)
	}
	if got := Shorten("数据库", 3); got != "数据库" {
		t.Errorf("got %q", got)
	}
}

func of(t *testing.T, name string) *Digest {
	t.Helper()
	for _, c := range sinktest.Cases() {
		if c.Name == name {
			return Of(c.Open(t))
		}
	}
	t.Fatalf("there is no case %s", name)
	return nil
}

func TestReferenceComesFirst(t *testing.T) {
	d := of(t, "rounds")
	if d.Targets[0] != (Target{Name: "new", Reference: true}) || d.Targets[1] != (Target{Name: "old"}) {
		t.Errorf("targets %+v", d.Targets)
	}
	changed, same := d.Comparisons[0].Rows[0], d.Comparisons[0].Rows[1]
	if x := changed.Differences[1]; x.Finding != compare.Worsened || !x.Interval || x.Pairs != 8 || !strings.HasPrefix(x.Text, "+") {
		t.Errorf("changed: %+v", x)
	}
	if x := same.Differences[1]; x.Finding != compare.Same || !strings.HasPrefix(x.Text, "no difference larger than 0.") {
		t.Errorf("same: %+v", x)
	}
	if changed.Differences[0].Text != "" {
		t.Errorf("the reference differs from itself: %+v", changed.Differences[0])
	}
}

func TestLessThroughputIsSlower(t *testing.T) {
	d := of(t, "study")
	row := d.Comparisons[2].Rows[0]
	if x := row.Differences[1]; x.Finding != compare.Worsened || x.Text != "-7.63 MB/s (-29%), one call only" {
		t.Errorf("got %+v", x)
	}
	// A target in which all failed is neither faster nor slower.
	none := of(t, "nodata").Comparisons[0].Rows[0]
	if none.Differences[1].Text != "" || none.Cells[1].Text != "all failed (50 of 50: timeout)" || none.Cells[1].Known {
		t.Errorf("got %+v, %+v", none.Cells[1], none.Differences[1])
	}
}

func TestLabIsNamedEverywhere(t *testing.T) {
	d := of(t, "study")
	for _, x := range d.Targets {
		if !strings.Contains(x.Label(), "lab") {
			t.Errorf("target %s", x.Label())
		}
	}
	if !strings.Contains(strings.Join(d.Notes, "\n"), "lab in the box, not a real system (direct, hybrid)") {
		t.Errorf("notes %q", d.Notes)
	}
}

func TestOutcomes(t *testing.T) {
	passed := result.Verdict{Outcome: result.Passed}
	failed := result.Verdict{Outcome: result.Failed}
	noData := result.Verdict{Outcome: result.NoData}
	unsure := result.Verdict{Outcome: result.Inconclusive}
	warned := result.Verdict{Outcome: result.Failed, Severity: "warn"}
	tests := []struct {
		end  *result.End
		list []result.Verdict
		want string
	}{
		{&result.End{Outcome: result.Passed}, []result.Verdict{passed, passed}, "passed: 2 assertions held"},
		{&result.End{Outcome: result.Passed}, []result.Verdict{passed, warned}, "passed: 1 assertion held, 1 warning"},
		{&result.End{Outcome: result.Failed}, []result.Verdict{passed, failed, noData}, "failed: 2 of 3 assertions, 1 of them for want of data"},
		{&result.End{Outcome: result.Failed}, []result.Verdict{noData}, "failed: 1 of 1 assertion, for want of data"},
		{&result.End{Outcome: result.Inconclusive}, []result.Verdict{passed, unsure}, "inconclusive: 1 of 2 assertions can't be trusted"},
		{&result.End{Outcome: result.Inconclusive}, nil, "inconclusive: nothing was judged"},
		{&result.End{Outcome: result.Inconclusive, Notes: []string{"the lab did not start"}}, nil, "inconclusive: the lab did not start"},
		{&result.End{Interrupted: true}, []result.Verdict{passed}, "interrupted: so far 1 assertion held"},
		{&result.End{Interrupted: true}, []result.Verdict{failed}, "interrupted, and failed so far: 1 of 1 assertion"},
		{&result.End{Interrupted: true}, nil, "interrupted: nothing was judged"},
		{nil, []result.Verdict{passed}, "incomplete: the run did not get to its end"},
	}
	for _, test := range tests {
		run := result.NewRun()
		run.End, run.Verdicts = test.end, test.list
		if got := Of(run).Outcome; got.Line != test.want || !strings.HasPrefix(got.Line, got.Word) {
			t.Errorf("got %+v, want %s", got, test.want)
		}
	}
}

func TestTrend(t *testing.T) {
	trend := &Trend{}
	for _, run := range sinktest.Trend(t) {
		trend.Add(run)
	}
	var starts []string
	for _, r := range trend.Runs {
		starts = append(starts, r.Label)
	}
	if got := strings.Join(starts, ", "); got != "2026-11-20 03:00, 2026-11-23 03:00, 2026-11-26 03:00, 2026-11-29 03:00" {
		t.Errorf("the runs are %s", got)
	}
	for _, x := range trend.Tables {
		if len(x.Loads) != 4 || len(x.Columns) == 0 {
			t.Fatalf("%s has %d loads and %d columns", x.Title, len(x.Loads), len(x.Columns))
		}
		for _, c := range x.Columns {
			if len(c.Cells) != 4 {
				t.Fatalf("%s of %s has %d values for 4 runs", c.Label(), x.Title, len(c.Cells))
			}
			for i, v := range c.Cells {
				if ran := x.Phase == "sequential" || i >= 2; v.Known != ran {
					t.Errorf("%s of %s, run %d: %+v", c.Label(), x.Title, i, v)
				}
			}
		}
	}
	// The slow run is the third, and the last change is from it.
	c := trend.Tables[0].Columns[0]
	if !(c.Cells[2].Value > 1.2*c.Cells[1].Value) || !strings.HasPrefix(c.Change(), "-3") {
		t.Errorf("%s: %v, %s", c.Label(), c.Cells, c.Change())
	}
	notes := strings.Join(trend.Notes(), "\n")
	for _, want := range []string{"the load is not the same", "lab in the box", "failed: 1 of 1 assertion"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
}

// A target is not called better for the few calls of it that succeeded.
func TestNobodyIsFasterByItsSuccessesAlone(t *testing.T) {
	run := result.NewRun()
	add := func(f result.Frame) {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	add(&result.Header{Version: 1, Samples: true, Targets: []result.Target{{Name: "direct"}, {Name: "relay"}, {Name: "hasty"}}})
	cell := result.Cell{Scenario: "s", Phase: "p", Kind: "sequential", Rounds: 1, Stages: []result.Stage{{Kind: "hold", Judged: true}}}
	for i, name := range []string{"direct", "relay", "hasty"} {
		c := cell
		c.Target = name
		add(&c)
		add(&result.Round{Cell: i})
		block := &result.Block{Cell: i}
		for k := range int64(100) {
			s := record.Sample{Due: k * 1e9, Start: k * 1e9, End: k*1e9 + 10e6, Step: record.Whole, DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1}
			switch {
			case name == "relay" && k > 0: // the others are answered with 504 after the patience of the relay
				s.Failure, s.Status = drivers.Status, 504
			case name == "relay":
				s.End = s.Start + 2e6
			case name == "hasty":
				s.End = s.Start + 5e6
			}
			block.Samples = append(block.Samples, s)
		}
		add(block)
	}
	row := Of(run).Comparisons[0].Rows[0]
	if x := row.Differences[1]; x.Finding != compare.Unknown || strings.Contains(x.Text, "faster") || !strings.Contains(x.Text, "of its successes alone: 99 of 100 failed") {
		t.Errorf("got %+v", x)
	}
	if x := row.Differences[2]; x.Finding != compare.Improved || !strings.Contains(x.Text, "faster in this run") {
		t.Errorf("got %+v", x)
	}
}

// TestComparedIsNotFailed has two runs that nobody judged.
func TestComparedIsNotFailed(t *testing.T) {
	run := sinktest.Cases()[0].Open(t)
	run.Verdicts, run.End = nil, &result.End{}
	if o := Of(run).Outcome; o.Word != Compared || !o.Good() {
		t.Errorf("%+v", o)
	}
	// An assertion that failed is not forgiven for want of an outcome.
	run.Verdicts = []result.Verdict{{Assertion: "p50 < 1s", Outcome: result.Failed}}
	if o := Of(run).Outcome; o.Good() {
		t.Errorf("%+v", o)
	}
}

func TestHoldUpsAreNoted(t *testing.T) {
	for _, test := range []struct {
		moments []int64 // of 1000, by target
		want    string
	}{
		{[]int64{0}, ""},
		{[]int64{1}, ""},
		{[]int64{12, 0}, "s.p.a: the generator was held up for 1.2% of the time, by up to 40ms; its machine may be too busy."},
		{[]int64{12, 30}, "s.p.b: the generator was held up for 3% of the time, by up to 40ms; its machine may be too busy."},
		{[]int64{12, 30, 0, 20}, "The generator was held up in 3 of 4 cells, most in s.p.b: for 3% of the time, by up to 40ms; its machine may be too busy."},
	} {
		run := result.NewRun()
		add := func(f result.Frame) {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		add(&result.Header{Version: 1})
		for i, n := range test.moments {
			h := new(record.Histogram)
			h.RecordN(0, 1000-n)
			h.RecordN(40e6, n)
			add(&result.Cell{Scenario: "s", Phase: "p", Target: string(rune('a' + i)), Kind: "sequential", Rounds: 1})
			add(&result.Round{Cell: i})
			add(&result.Interval{Cell: i, Probe: h})
			add(&result.RoundEnd{Cell: i})
		}
		if notes := strings.Join(Of(run).Notes, "\n"); strings.Contains(notes, "held up") != (test.want != "") || !strings.Contains(notes, test.want) {
			t.Errorf("held up for %d of 1000 moments: %q", test.moments, notes)
		}
	}
}

// A note and a verdict say the same share of a cell, whose ramp is not judged.
func TestHoldUpsAreOfWhatIsJudged(t *testing.T) {
	run := result.NewRun()
	frames := []result.Frame{
		&result.Header{Version: 1},
		&result.Cell{Scenario: "s", Phase: "p", Target: "a", Kind: "ramp-and-hold", Rounds: 1, Stages: []result.Stage{
			{Kind: "ramp", Length: time.Second},
			{Kind: "hold", Start: time.Second, Length: time.Second, Judged: true},
		}},
		&result.Round{},
	}
	for second, n := range []int64{0, 40} {
		h := new(record.Histogram)
		h.RecordN(0, 1000-n)
		h.RecordN(40e6, n)
		frames = append(frames, &result.Interval{Second: second, Probe: h})
	}
	for _, f := range append(frames, &result.RoundEnd{}) {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	if notes := strings.Join(Of(run).Notes, "\n"); !strings.Contains(notes, "held up for 4% of the time") {
		t.Errorf("%q", notes)
	}
}

// TestReasons leaves out what the row of a verdict says already, and no more.
func TestReasons(t *testing.T) {
	for _, test := range []struct {
		assertion, value string
		detail, want     []string
	}{
		{"p50 < 1s", "2s", []string{"p50 < 1s: false", "  p50 = 2s"}, nil},
		{"p50 < 1s", "2s", []string{"p50 < 1s: false", "  p50 = 2s", "judged by 2 windows of 1s"}, []string{"judged by 2 windows of 1s"}},
		{"ok > 0", "0", []string{"ok > 0: false", "  ok = 0", "20 of 20 failed: status", "  \x1b[31mred"}, []string{"20 of 20 failed: status", "  \ufffd[31mred"}},
		{"p50 < vars.most", "2s", []string{"p50 < vars.most: false", "  p50 = 2s", "  vars.most = 1s"}, []string{"p50 = 2s", "vars.most = 1s"}},
		{"a.p50 - b.p50 < 1s", "2s", []string{"a.p50 - b.p50 < 1s: false", "  a.p50 - b.p50 = 2s", "    a.p50 = 3s", "    b.p50 = 1s"},
			[]string{"a.p50 - b.p50 = 2s", "  a.p50 = 3s", "  b.p50 = 1s"}},
		{"not (p50 > 1h)", "no data", []string{"not (p50 > 1h): no data", "  p50 > 1h: no data", "    p50 = no data"}, []string{"p50 > 1h: no data", "  p50 = no data"}},
		{"p50 < 1s", "", []string{"no cell of this run has all the names in it"}, []string{"no cell of this run has all the names in it"}},
		{"p50 < 1s", "", nil, nil},
	} {
		if got := Reasons(result.Verdict{Assertion: test.assertion, Value: test.value, Detail: test.detail}); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.assertion, got, test.want)
		}
	}
}

// TestStagesHaveNames has two ramps and two trials at one rate told apart.
func TestStagesHaveNames(t *testing.T) {
	c := &result.CellResult{Cell: result.Cell{Stages: []result.Stage{{Kind: "ramp"}, {Name: "peak", Kind: "hold"}, {Kind: "ramp"}, {Name: "110/s", Kind: "trial"}, {Name: "110/s", Kind: "trial"}}}}
	if got, want := StageNames(c), []string{"ramp", "peak", "ramp 2", "110/s", "110/s 2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, x := range sinktest.Cases() {
		type key struct{ scenario, phase, stage, step, target string }
		seen := map[key]bool{}
		for r := range Records(x.Open(t)) {
			k := key{r.Cell.Scenario, r.Cell.Phase, r.Stage, r.Step, r.Cell.Target}
			if seen[k] {
				t.Errorf("%s: there are two rows of %+v", x.Name, k)
			}
			seen[k] = true
		}
	}
}

// Time spent behind others on this side is told where it matters, of the step that it belongs to.
func TestWaitingIsTold(t *testing.T) {
	wait := func(ms int64, steps ...string) []string {
		run := result.NewRun()
		add := func(f result.Frame) {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		add(&result.Header{Version: 1, Samples: true, Targets: []result.Target{{Name: "linux"}}})
		cell := result.Cell{Scenario: "s", Phase: "p", Target: "linux", Kind: "parallel", Rounds: 1, Stages: []result.Stage{{Kind: "hold", Judged: true}}}
		for _, name := range steps {
			cell.Steps = append(cell.Steps, result.Step{Name: name, Driver: "http"})
		}
		add(&cell)
		add(&result.Round{})
		block := &result.Block{}
		for k := range int64(100) {
			s := record.Sample{Due: k * 1e9, Start: k * 1e9, End: k*1e9 + 60e6, Step: record.Whole, DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1}
			if len(steps) < 2 {
				s.Wait = ms * 1e6
			}
			block.Samples = append(block.Samples, s)
			for i := range steps {
				s.Step, s.Wait = int16(i), int64(i)*ms*1e6
				block.Samples = append(block.Samples, s)
			}
		}
		add(block)
		var told []string
		for _, n := range Of(run).Notes {
			if strings.Contains(n, "waited") {
				told = append(told, n)
			}
		}
		return told
	}
	const rest = ": calls waited 40ms on average, 66.67% of their latency, for a connection or a stream that others used; connections: in the phase allows more."
	for _, test := range []struct {
		ms    int64
		steps []string
		want  string
	}{
		{40, nil, "s.p.linux" + rest},
		{4, nil, ""},
		{0, nil, ""},
		{40, []string{"one", "two"}, "s.p.two.linux" + rest},
	} {
		if got := strings.Join(wait(test.ms, test.steps...), "|"); got != test.want {
			t.Errorf("%d ms: %s, want %s", test.ms, got, test.want)
		}
	}
}

func TestFailuresOfRampsAreNoted(t *testing.T) {
	for stage, want := range []bool{true, false} {
		run := result.NewRun()
		for _, f := range []result.Frame{
			&result.Header{Version: 1, Samples: true, Targets: []result.Target{{Name: "a"}}},
			&result.Cell{Scenario: "s", Phase: "p", Target: "a", Kind: "ramp-and-hold", Rounds: 1, Stages: []result.Stage{
				{Kind: "ramp", Length: time.Second}, {Kind: "hold", Judged: true, Start: time.Second, Length: time.Second},
			}},
			&result.Round{},
			&result.Block{Samples: []record.Sample{{
				End: 10e6, Stage: int16(stage), Step: record.Whole, Failure: drivers.Status, DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1,
			}}},
			&result.RoundEnd{},
		} {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		if noted := strings.Contains(strings.Join(Of(run).Notes, "\n"), "Failures are of all stages"); noted != want {
			t.Errorf("a failure in stage %d: noted %v", stage, noted)
		}
	}
}

// A difference without an interval is nobody's merit where the generator was held up.
func TestNobodyIsFasterForAHeldUpGenerator(t *testing.T) {
	for _, test := range []struct {
		moments int64 // of 1000, in the second target's round
		finding compare.Finding
		says    string
	}{
		{50, compare.Worsened, ", slower in this run"},
		{200, compare.Unknown, ", while the generator was held up"},
	} {
		run := result.NewRun()
		add := func(f result.Frame) {
			if err := run.Add(f); err != nil {
				t.Fatal(err)
			}
		}
		add(&result.Header{Version: 1, Samples: true, Targets: []result.Target{{Name: "a"}, {Name: "b"}}})
		for i, name := range []string{"a", "b"} {
			add(&result.Cell{Scenario: "s", Phase: "p", Target: name, Kind: "sequential", Rounds: 1, Stages: []result.Stage{{Kind: "hold", Judged: true}}})
			add(&result.Round{Cell: i})
			block := &result.Block{Cell: i}
			for k := range int64(100) {
				block.Samples = append(block.Samples, record.Sample{
					Due: k * 1e9, Start: k * 1e9, End: k*1e9 + 10e6*int64(i+1), Step: record.Whole, DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1,
				})
			}
			add(block)
			h := new(record.Histogram)
			h.RecordN(0, 1000-test.moments*int64(i))
			h.RecordN(40e6, test.moments*int64(i))
			add(&result.Interval{Cell: i, Probe: h})
			add(&result.RoundEnd{Cell: i})
		}
		if x := Of(run).Comparisons[0].Rows[0].Differences[1]; x.Finding != test.finding || !strings.HasSuffix(x.Text, test.says) {
			t.Errorf("held up for %d of 1000 moments: %+v", test.moments, x)
		}
	}
}
