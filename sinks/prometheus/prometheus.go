// Package prometheus gives a run to Prometheus, in its text format: Sink writes what the run came to, for node_exporter's
// textfile collector or a push gateway, and Live is asked while it runs.
//
// Names begin with planrun_, and those of a run that is under way with planrun_live_. Times are in seconds and shares are
// ratios, as is custom there. No data is no sample.
package prometheus

import (
	"io"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
)

// Sink writes a run. It is safe for concurrent use.
type Sink struct{}

// New makes a Sink.
func New() *Sink { return &Sink{} }

// Write writes a run.
func (s *Sink) Write(w io.Writer, run *result.Run) error {
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(&final{run}); err != nil {
		return err
	}
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return nil
}

// place are the labels of a row. Empty ones are the whole.
var place = []string{"plan", "scenario", "phase", "stage", "step", "target"}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("planrun_"+name, help, labels, nil)
}

func with(labels ...string) []string { return append(append([]string{}, place...), labels...) }

var (
	passedDesc     = describe("passed", "1 if the run passed, else 0.", "plan", "outcome")
	infoDesc       = describe("info", "What was run, by which planrun.", "plan", "version", "sha256")
	startDesc      = describe("start_time_seconds", "When the run began, in seconds since 1970.", "plan")
	durationDesc   = describe("duration_seconds", "From the beginning to the end of the run.", "plan")
	assertionsDesc = describe("assertions", "Assertions by outcome.", "plan", "outcome")
	assertionDesc  = describe("assertion_passed", "1 if the assertion held, else 0. Of severity warn it lets the run pass.", with("assertion", "severity", "outcome")...)
	iterationsDesc = describe("iterations", "Iterations by outcome.", with("outcome")...)
	failuresDesc   = describe("failures", "Failed iterations by kind.", with("kind")...)
	latencyDesc    = describe("latency_seconds", "Latency of successful iterations, from when they were due.", place...)
)

// figureDescs are the figures that are one number for a row.
var figureDescs = []struct {
	desc   *prometheus.Desc
	metric metric.Metric
	factor float64
}{
	{describe("error_ratio", "Failed iterations as a share of those sent.", place...), metric.Metric{Name: "error_rate"}, 1},
	{describe("offered_rate_per_second", "Iterations that were due in a second.", place...), metric.Metric{Name: "offered_rps"}, 1},
	{describe("rate_per_second", "Successful iterations in a second.", place...), metric.Metric{Name: "rps"}, 1},
	{describe("throughput_bytes_per_second", "Bytes received by successful iterations in a second.", place...), metric.Metric{Name: "throughput"}, 1},
	{describe("received_bytes", "Bytes received.", place...), metric.Metric{Name: "bytes_in"}, 1},
	{describe("sent_bytes", "Bytes sent.", place...), metric.Metric{Name: "bytes_out"}, 1},
	{describe("generator_lag_p99_seconds", "How late the generator itself was, at p99.", place...), metric.Metric{Name: "p", Percentile: 99, Group: "lag"}, 1e-9},
}

var rateHeldDesc = describe("rate_held_per_second", "The highest rate at which the criterion of a capacity phase holds.", place...)

// quantiles of the latency, in per cent.
var quantiles = []float64{50, 75, 90, 95, 99, 99.9}

// final is a run that is over.
type final struct{ run *result.Run }

// Describe lists what Collect may send.
func (f *final) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		passedDesc, infoDesc, startDesc, durationDesc, assertionsDesc, assertionDesc, iterationsDesc, failuresDesc, latencyDesc, rateHeldDesc,
	} {
		ch <- d
	}
	for _, x := range figureDescs {
		ch <- x.desc
	}
}

// Collect sends every figure.
func (f *final) Collect(ch chan<- prometheus.Metric) {
	run := f.run
	plan := digest.Clean(run.Plan)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	d := digest.Of(run)
	gauge(passedDesc, boolean(d.Outcome.Word == string(result.Passed)), plan, d.Outcome.Word)
	gauge(infoDesc, 1, plan, digest.Clean(run.Tool), digest.Clean(run.Hash))
	if !run.Start.IsZero() {
		gauge(startDesc, float64(run.Start.UnixMilli())/1e3, plan)
	}
	if run.End != nil {
		gauge(durationDesc, run.End.At.Seconds(), plan)
	}
	f.assertions(plan, gauge)
	seen := map[string]bool{}
	for r := range digest.Records(run) {
		c := r.Cell
		if c.IsCapacity() && r.Stage != "" {
			continue // trials of one rate have one name
		}
		labels := []string{plan, digest.Clean(c.Scenario), digest.Clean(c.Phase), digest.Clean(r.Stage), digest.Clean(r.Step), digest.Clean(c.Target)}
		// Names that differ only in what can't be shown would be one series twice, which fails the whole report.
		key := strings.Join(labels, "\x00")
		if seen[key] {
			continue
		}
		seen[key] = true
		row(ch, gauge, r.Stats, labels)
		if r.Stage == "" && r.Step == "" {
			if v, ok := c.RateHeld(result.Pooled); ok {
				gauge(rateHeldDesc, v, labels...)
			}
		}
	}
}

// row sends the figures of one row.
func row(ch chan<- prometheus.Metric, gauge func(*prometheus.Desc, float64, ...string), s *record.Stats, labels []string) {
	and := func(last string) []string { return append(append([]string{}, labels...), last) }
	gauge(iterationsDesc, float64(s.OK), and("ok")...)
	gauge(iterationsDesc, float64(s.Failed), and("failed")...)
	gauge(iterationsDesc, float64(s.Dropped), and("dropped")...)
	for _, k := range drivers.Failures {
		if n := s.Failures[k]; n > 0 {
			gauge(failuresDesc, float64(n), and(k.String())...)
		}
	}
	for _, x := range figureDescs {
		if v, ok := metric.Value(s, x.metric); ok {
			gauge(x.desc, v*x.factor, labels...)
		}
	}
	l := s.Latency()
	if l.Count() == 0 {
		return
	}
	at := map[float64]float64{}
	for _, q := range quantiles {
		v, _ := l.Percentile(q)
		at[q/100] = float64(v) / 1e9
	}
	ch <- prometheus.MustNewConstSummary(latencyDesc, uint64(l.Count()), l.Sum()/1e9, at, labels...)
}

// assertions sends how many came to what, and each by itself; one that is written twice is sent once, as the graver.
func (f *final) assertions(plan string, gauge func(*prometheus.Desc, float64, ...string)) {
	count := map[string]float64{}
	for _, o := range []result.Outcome{result.Passed, result.Failed, result.NoData, result.Inconclusive} {
		count[string(o)] = 0
	}
	seen := map[string]bool{}
	type one struct {
		labels []string
		passed bool
	}
	var list []one
	for _, want := range []bool{false, true} {
		for _, v := range f.run.Verdicts {
			if (v.Outcome == result.Passed) != want {
				continue
			}
			count[digest.Clean(string(v.Outcome))]++
			labels := []string{plan}
			for _, s := range []string{v.Scenario, v.Phase, v.Stage, v.Step, v.Target, v.Assertion, v.Severity} {
				labels = append(labels, digest.Clean(s))
			}
			key := strings.Join(labels, "\x00")
			if !seen[key] {
				seen[key] = true
				list = append(list, one{append(labels, digest.Clean(string(v.Outcome))), want})
			}
		}
	}
	for outcome, n := range count {
		gauge(assertionsDesc, n, plan, outcome)
	}
	for _, x := range list {
		gauge(assertionDesc, boolean(x.passed), x.labels...)
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// index is a number of a round or such as a label.
func index(n int) string { return strconv.Itoa(n) }
