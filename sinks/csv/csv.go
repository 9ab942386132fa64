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
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
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

func cells(w *csv.Writer, run *result.Run) error {
	head := []string{"plan", "scenario", "phase", "stage", "step", "target", "rounds"}
	for _, f := range digest.Figures {
		head = append(head, f.Name)
	}
	if err := w.Write(append(head, "rate_held_rps", "verdict")); err != nil {
		return err
	}
	for r := range digest.Records(run) {
		c := r.Cell
		row := []string{text(run.Plan), text(c.Scenario), text(c.Phase), text(r.Stage), text(r.Step), text(c.Target), strconv.Itoa(len(c.Rounds))}
		for _, f := range digest.Figures {
			field := ""
			if v, ok := metric.Value(r.Stats, f.Metric); ok && f.Time {
				field = milliseconds(v)
			} else if ok {
				field = number(v)
			}
			row = append(row, field)
		}
		held := ""
		if v, ok := c.RateHeld(result.Pooled); ok && r.Stage == "" && r.Step == "" {
			held = number(v)
		}
		if err := w.Write(append(row, held, r.Verdict)); err != nil {
			return err
		}
	}
	return nil
}
