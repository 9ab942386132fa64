package metric

import (
	"math"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
)

const ms = 1_000_000

func sample(due, start, end int64) *record.Sample {
	return &record.Sample{
		Due: due, Start: start, End: end, Step: record.Whole, Status: 200,
		DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1,
	}
}

// cell is 8 ok of 10, 20 ... 80 ms, 100 ms apart, then a status 503, a timeout, and 2 dropped.
func cell() *record.Stats {
	s := record.NewStats(nil)
	for i := range int64(8) {
		x := sample(i*100*ms, i*100*ms+ms, i*100*ms+(i+1)*10*ms)
		x.BytesIn, x.BytesOut, x.TTFB, x.Lag = 1000, 10, (i+1)*5*ms, ms
		if i == 0 {
			x.Connect, x.Flags = 3*ms, record.Opened
		}
		s.Add(0, x)
	}
	x := sample(800*ms, 800*ms, 801*ms)
	x.Failure, x.Status, x.BytesIn = drivers.Status, 503, 500
	s.Add(0, x)
	x = sample(900*ms, 900*ms, 1900*ms)
	x.Failure, x.Status = drivers.Timeout, 0
	s.Add(0, x)
	for range 2 {
		x = sample(950*ms, 1950*ms, 1950*ms)
		x.Flags = record.Dropped
		s.Add(0, x)
	}
	s.Length = time.Second
	return s
}

func TestFormulas(t *testing.T) {
	s := cell()
	tests := []struct {
		metric Metric
		want   float64
	}{
		{Metric{Name: "count"}, 10},
		{Metric{Name: "ok"}, 8},
		{Metric{Name: "failed"}, 2},
		{Metric{Name: "dropped"}, 2},
		{Metric{Name: "due"}, 12},
		{Metric{Name: "error_rate"}, .2},
		{Metric{Name: "offered_rps"}, 12},
		{Metric{Name: "rps"}, 8},
		{Metric{Name: "mean"}, 45 * ms},
		{Metric{Name: "min"}, 10 * ms},
		{Metric{Name: "max"}, 80 * ms},
		{Metric{Name: "stddev"}, math.Sqrt(4200. / 7 * ms * ms)},
		{Metric{Name: "p", Percentile: 50}, 40 * ms},
		{Metric{Name: "p", Percentile: 50.1}, 50 * ms},
		{Metric{Name: "p", Percentile: 99.99}, 80 * ms},
		{Metric{Name: "p999"}, 80 * ms},
		{Metric{Name: "p75"}, 60 * ms},
		{Metric{Name: "p", Group: "all", Percentile: 100}, 1000 * ms},
		{Metric{Name: "min", Group: "all"}, 1 * ms},
		{Metric{Name: "mean", Group: "failed"}, 500.5 * ms},
		{Metric{Name: "min", Group: "service"}, 9 * ms},
		{Metric{Name: "p95", Group: "ttfb"}, 40 * ms},
		{Metric{Name: "max", Group: "connect"}, 3 * ms},
		{Metric{Name: "max", Group: "lag"}, 1 * ms},
		{Metric{Name: "within", Within: 40 * time.Millisecond}, 4. / 12},
		{Metric{Name: "within", Within: 40*time.Millisecond - 1}, 3. / 12},
		{Metric{Name: "within", Within: time.Hour}, 8. / 12},
		{Metric{Name: "bytes_in"}, 8500},
		{Metric{Name: "bytes_out"}, 80},
		{Metric{Name: "throughput"}, 8000 / 1.899},
		{Metric{Name: "opened"}, 1},
		{Metric{Name: "status", Status: "503"}, 1},
		{Metric{Name: "status", Status: "5xx"}, 1},
		{Metric{Name: "status", Status: "2xx"}, 8},
		{Metric{Name: "status", Status: "404"}, 0},
		{Metric{Name: "failures", Failure: "timeout"}, 1},
		{Metric{Name: "failures", Failure: "dns"}, 0},
	}
	for _, test := range tests {
		if got, ok := Value(s, test.metric); !ok || math.Abs(got-test.want) > 1e-9*test.want {
			t.Errorf("%+v = %v, %v; want %v", test.metric, got, ok, test.want)
		}
	}
}

func TestRatesOfCountDrivenPhasesAreOverTheActiveTime(t *testing.T) {
	s := cell()
	s.Length = 0
	if got, _ := Value(s, Metric{Name: "rps"}); math.Abs(got-8/1.899) > 1e-9 {
		t.Errorf("rps %v", got)
	}
	// Another round of the same adds time and samples alike, whenever it began.
	other := record.NewStats(nil)
	for i := range int64(8) {
		other.Add(1, sample(i*100*ms+ms, i*100*ms+ms, 1900*ms))
	}
	s.Merge(other)
	if got, _ := Value(s, Metric{Name: "rps"}); math.Abs(got-16/(2*1.899)) > 1e-9 {
		t.Errorf("rps over two rounds %v", got)
	}
}

func TestCleanRunsHaveWholeShares(t *testing.T) {
	for _, n := range []int{1, 3, 7, 10, 49} {
		s := record.NewStats(nil)
		for range n {
			s.Add(0, sample(0, 0, ms))
		}
		if rate, ok := Value(s, Metric{Name: "error_rate"}); rate != 0 || !ok {
			t.Errorf("%d of %d: error rate %v, %v", n, n, rate, ok)
		}
		if share, ok := Value(s, Metric{Name: "within", Within: time.Second}); share != 1 || !ok {
			t.Errorf("%d of %d: within %v, %v", n, n, share, ok)
		}
	}
}

func TestTimeoutsOnlyLeaveNoLatency(t *testing.T) {
	s := record.NewStats(nil)
	for range 20 {
		x := sample(0, 0, 1000*ms)
		x.Failure, x.Status = drivers.Timeout, 0
		s.Add(0, x)
	}
	for _, name := range []string{"mean", "min", "max", "p50", "p99", "stddev", "throughput"} {
		if v, ok := Value(s, Metric{Name: name}); ok || v != 0 {
			t.Errorf("%s = %v", name, v)
		}
	}
	for _, name := range []string{"mean", "min", "max", "p50", "p99"} {
		if v, ok := Value(s, Metric{Name: name, Group: "all"}); !ok || v != 1000*ms {
			t.Errorf("all.%s = %v, %v", name, v, ok)
		}
	}
	if v, ok := Value(s, Metric{Name: "error_rate"}); v != 1 || !ok {
		t.Errorf("error_rate = %v, %v", v, ok)
	}
}

func TestFastErrorsDoNotFlatter(t *testing.T) {
	s := record.NewStats(nil)
	for i := range 100 {
		x := sample(0, 0, ms)
		if i < 80 {
			x.Failure, x.Status = drivers.Status, 500
		} else {
			x.End = 500 * ms
		}
		s.Add(0, x)
	}
	if v, _ := Value(s, Metric{Name: "p50"}); v != 500*ms {
		t.Errorf("p50 = %v", v)
	}
	if v, _ := Value(s, Metric{Name: "p50", Group: "all"}); v != ms {
		t.Errorf("all.p50 = %v", v)
	}
}

// TestNeverNaN asks every metric of samples that have none of what it needs.
func TestNeverNaN(t *testing.T) {
	dropped := record.NewStats(nil)
	x := sample(0, 5, 5)
	x.Flags = record.Dropped
	dropped.Add(0, x)
	instant := record.NewStats(nil)
	instant.Add(0, sample(0, 0, 0))
	names := []string{
		"count", "ok", "failed", "dropped", "due", "error_rate", "offered_rps", "rps", "mean", "min", "max", "stddev", "p", "p50",
		"within", "bytes_in", "bytes_out", "throughput", "opened", "status", "failures", "colour", "",
	}
	groups := []string{"", "all", "failed", "service", "dns", "connect", "tls", "wait", "ttfb", "transfer", "lag", "colour"}
	for what, s := range map[string]*record.Stats{"nil": nil, "empty": record.NewStats(nil), "dropped": dropped, "instant": instant} {
		for _, name := range names {
			for _, group := range groups {
				v, ok := Value(s, Metric{Name: name, Group: group, Percentile: 50, Status: "200", Failure: "timeout"})
				if math.IsNaN(v) || math.IsInf(v, 0) || !ok && v != 0 {
					t.Errorf("%s: %s.%s = %v, %v", what, group, name, v, ok)
				}
				known := name == "count" || name == "ok" || name == "due"
				if what == "empty" && ok != known || what == "nil" && ok {
					t.Errorf("%s: %s.%s = %v, %v", what, group, name, v, ok)
				}
			}
		}
	}
	if v, ok := Value(dropped, Metric{Name: "within", Within: time.Second}); v != 0 || !ok {
		t.Errorf("all dropped: within = %v, %v", v, ok)
	}
	if _, ok := Value(dropped, Metric{Name: "error_rate"}); ok {
		t.Error("nothing was answered, and yet there is an error rate")
	}
}

func TestStatuses(t *testing.T) {
	for want, ok := range map[string]bool{
		"503": true, "5xx": true, "14": true, "0xx": false, "xx": false, "55xx": false, "": false, "-1": false, "5x": false, "99999999999": false,
	} {
		if _, _, got := statuses(want); got != ok {
			t.Errorf("%q: %v", want, got)
		}
	}
}
