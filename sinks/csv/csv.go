// Package csv writes a run as comma-separated values (RFC 4180): a row for each cell, stage and step, or for each
// sample. The first line names the columns. No data is an empty field. Times are in milliseconds, shares are fractions,
// and figures have all the digits they were measured with.
package csv

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// Rows is what a row is.
type Rows string

const (
	Cells   Rows = "cells"
	Samples Rows = "samples"
)

// Options of a Sink.
type Options struct {
	Rows Rows // "" is Cells
}

// Sink writes a run. It is safe for concurrent use.
type Sink struct{ options Options }

// New makes a Sink.
func New(o Options) *Sink { return &Sink{o} }

// Write writes a run. With Samples it reads them again from the run's file, a block at a time.
func (s *Sink) Write(w io.Writer, run *result.Run) error {
	c := csv.NewWriter(w)
	c.UseCRLF = true
	var err error
	if s.options.Rows == Samples {
		err = samples(c, run)
	} else {
		err = cells(c, run)
	}
	if err != nil {
		return err
	}
	c.Flush()
	return c.Error()
}

// text is a field that came from outside. One that a spreadsheet would take for a formula gets an apostrophe before it
// (OWASP, "CSV Injection").
func text(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}

// milliseconds prints nanoseconds as such, to the nanosecond.
func milliseconds(ns float64) string {
	s := strconv.FormatFloat(ns/1e6, 'f', 6, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// figure is a column that is a metric.
type figure struct {
	name   string
	metric metric.Metric
	print  func(float64) string
}

var figures = []figure{
	{"count", metric.Metric{Name: "count"}, number},
	{"ok", metric.Metric{Name: "ok"}, number},
	{"failed", metric.Metric{Name: "failed"}, number},
	{"dropped", metric.Metric{Name: "dropped"}, number},
	{"error_rate", metric.Metric{Name: "error_rate"}, number},
	{"offered_rps", metric.Metric{Name: "offered_rps"}, number},
	{"rps", metric.Metric{Name: "rps"}, number},
	{"mean_ms", metric.Metric{Name: "mean"}, milliseconds},
	{"min_ms", metric.Metric{Name: "min"}, milliseconds},
	{"max_ms", metric.Metric{Name: "max"}, milliseconds},
	{"stddev_ms", metric.Metric{Name: "stddev"}, milliseconds},
	{"p50_ms", metric.Metric{Name: "p", Percentile: 50}, milliseconds},
	{"p75_ms", metric.Metric{Name: "p", Percentile: 75}, milliseconds},
	{"p90_ms", metric.Metric{Name: "p", Percentile: 90}, milliseconds},
	{"p95_ms", metric.Metric{Name: "p", Percentile: 95}, milliseconds},
	{"p99_ms", metric.Metric{Name: "p", Percentile: 99}, milliseconds},
	{"p999_ms", metric.Metric{Name: "p", Percentile: 99.9}, milliseconds},
	{"ttfb_p50_ms", metric.Metric{Name: "p", Percentile: 50, Group: "ttfb"}, milliseconds},
	{"connect_p50_ms", metric.Metric{Name: "p", Percentile: 50, Group: "connect"}, milliseconds},
	{"lag_p99_ms", metric.Metric{Name: "p", Percentile: 99, Group: "lag"}, milliseconds},
	{"bytes_in", metric.Metric{Name: "bytes_in"}, number},
	{"bytes_out", metric.Metric{Name: "bytes_out"}, number},
	{"throughput_Bps", metric.Metric{Name: "throughput"}, number},
}

func cells(w *csv.Writer, run *result.Run) error {
	head := []string{"plan", "scenario", "phase", "stage", "step", "target", "rounds"}
	for _, f := range figures {
		head = append(head, f.name)
	}
	if err := w.Write(append(head, "verdict")); err != nil {
		return err
	}
	for _, c := range run.Cells {
		write := func(stage, step string, s *record.Stats) error {
			row := []string{text(run.Plan), text(c.Scenario), text(c.Phase), text(stage), text(step), text(c.Target), strconv.Itoa(len(c.Rounds))}
			for _, f := range figures {
				field := ""
				if v, ok := metric.Value(s, f.metric); ok {
					field = f.print(v)
				}
				row = append(row, field)
			}
			return w.Write(append(row, verdict(run, c, stage, step)))
		}
		if err := write("", "", c.Stats(result.Pooled, result.Judged, record.Whole)); err != nil {
			return err
		}
		if len(c.Stages) > 1 {
			for i, g := range c.Stages {
				if err := write(stageName(g), "", c.Stats(result.Pooled, i, record.Whole)); err != nil {
					return err
				}
			}
		}
		if len(c.Steps) > 1 {
			for i, x := range c.Steps {
				if err := write("", x.Name, c.Stats(result.Pooled, result.Judged, i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func stageName(g result.Stage) string {
	if g.Name == "" {
		return g.Kind
	}
	return g.Name
}

// verdict is the gravest outcome among the assertions on a row: those bound to a stage or step on its own row, and all
// of them on the row of the cell. An assertion that is bound to no one phase is on no row; "" is none.
func verdict(run *result.Run, c *result.CellResult, stage, step string) string {
	gravest, weight := "", -1
	for _, v := range run.Verdicts {
		whole := stage == "" && step == ""
		if v.Scenario != c.Scenario || v.Phase != c.Phase || v.Target != "" && v.Target != c.Target ||
			!whole && (v.Stage != stage || v.Step != step) {
			continue
		}
		word, w := string(v.Outcome), 4
		switch {
		case v.Outcome == result.Passed:
			w = 0
		case v.Severity == "warn":
			word, w = "warning", 1
		case v.Outcome == result.Inconclusive:
			w = 2
		case v.Outcome == result.NoData:
			w = 3
		}
		if w > weight {
			gravest, weight = word, w
		}
	}
	return gravest
}
