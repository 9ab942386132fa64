package csv

import (
	"encoding/csv"
	"strconv"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
)

var sampleColumns = []string{
	"scenario", "phase", "stage", "step", "target", "round", "iteration", "user",
	"due_ms", "start_ms", "end_ms", "latency_ms", "service_ms", "lag_ms",
	"dns_ms", "connect_ms", "tls_ms", "wait_ms", "ttfb_ms", "transfer_ms",
	"status", "outcome", "bytes_in", "bytes_out",
}

// samples writes a row for each sample, in the order of the stream. Rounds, iterations and users count from 0; times are
// since the release of the round.
func samples(w *csv.Writer, run *result.Run) error {
	if err := w.Write(sampleColumns); err != nil {
		return err
	}
	if !run.Samples {
		return nil
	}
	row := make([]string, 0, len(sampleColumns))
	return run.Each(func(b *result.Block) error {
		c := run.Cells[b.Cell]
		names := digest.StageNames(c)
		for i := range b.Samples {
			s := &b.Samples[i]
			row = append(row[:0], text(c.Scenario), text(c.Phase), stage(c, names, s), step(c, s), text(c.Target),
				strconv.Itoa(b.Round), strconv.FormatInt(s.Iteration, 10), strconv.Itoa(int(s.User)))
			if s.Flags&record.Dropped != 0 {
				// It was never sent, so it has neither start nor end.
				row = append(row, exact(s.Due), "", "", "", "", exact(s.Lag), "", "", "", "", "", "", "", "dropped", "", "")
			} else {
				row = append(row, exact(s.Due), exact(s.Start), exact(s.End), exact(s.Latency()), exact(s.Service()), exact(s.Lag),
					part(s.DNS), part(s.Connect), part(s.TLS), part(s.Wait), part(s.TTFB), part(s.Transfer),
					status(s), s.Failure.String(), strconv.FormatInt(s.BytesIn, 10), strconv.FormatInt(s.BytesOut, 10))
			}
			if err := w.Write(row); err != nil {
				return err
			}
		}
		return nil
	})
}

func stage(c *result.CellResult, names []string, s *record.Sample) string {
	if len(c.Stages) < 2 || int(s.Stage) >= len(c.Stages) {
		return ""
	}
	return text(names[s.Stage])
}

func step(c *result.CellResult, s *record.Sample) string {
	if s.Step == record.Whole || int(s.Step) >= len(c.Steps) {
		return ""
	}
	return text(c.Steps[s.Step].Name)
}

// exact prints nanoseconds as milliseconds without rounding.
func exact(ns int64) string {
	var b []byte
	if ns < 0 {
		b = append(b, '-')
		ns = -ns
	}
	b = strconv.AppendInt(b, ns/1e6, 10)
	if ns %= 1e6; ns > 0 {
		b = append(b, '.')
		digits := strconv.AppendInt(nil, 1e6+ns, 10)[1:]
		for digits[len(digits)-1] == '0' {
			digits = digits[:len(digits)-1]
		}
		b = append(b, digits...)
	}
	return string(b)
}

// part is a part of the timing split.
func part(ns int64) string {
	if ns == int64(drivers.None) {
		return ""
	}
	return exact(ns)
}

func status(s *record.Sample) string {
	if s.Status == 0 {
		return ""
	}
	return strconv.Itoa(int(s.Status))
}
