package csv

import (
	"bytes"
	"encoding/csv"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks"
	"github.com/planrun/planrun/sinks/sinktest"
)

var _ sinks.Sink = (*Sink)(nil)

// wellFormed checks that every row has the columns of the first, and that no field is a formula or not a number.
func wellFormed(t *testing.T, out []byte) {
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for n, row := range rows {
		for i, field := range row {
			if _, err := strconv.ParseFloat(field, 64); err == nil && !strings.ContainsAny(field, "nN") {
				continue
			}
			if field != "" && strings.ContainsRune("=+-@\t\r\n", rune(field[0])) {
				t.Errorf("row %d: %s is a formula: %q", n+1, rows[0][i], field)
			}
			for _, none := range []string{"NaN", "Inf", "+Inf", "-Inf", "no data"} {
				if field == none && rows[0][i] != "verdict" {
					t.Errorf("row %d: %s is %q", n+1, rows[0][i], field)
				}
			}
		}
	}
	if bytes.Count(out, []byte("\r\n")) < len(rows) {
		t.Error("lines do not end in CR LF")
	}
}

func TestCells(t *testing.T) {
	sinktest.Render(t, New(Options{}), ".csv", wellFormed)
}

func TestSamples(t *testing.T) {
	for _, c := range sinktest.Cases() {
		if c.Name != "one" && c.Name != "steps" && c.Name != "stages" && c.Name != "cut" {
			continue
		}
		run := c.Open(t)
		var b bytes.Buffer
		if err := New(Options{Rows: Samples}).Write(&b, run); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, b.Bytes())
		rows, _ := csv.NewReader(&b).ReadAll()
		var due int64
		for _, x := range run.Cells {
			due += x.Stats(result.Pooled, result.Every, record.Whole).Due()
			if len(x.Steps) > 1 {
				for i := range x.Steps {
					due += x.Stats(result.Pooled, result.Every, i).Due()
				}
			}
		}
		if int64(len(rows)-1) != due {
			t.Errorf("%s: %d rows for %d samples", c.Name, len(rows)-1, due)
		}
		// A golden file of the head is enough: rows are all of one kind.
		var head bytes.Buffer
		w := csv.NewWriter(&head)
		w.WriteAll(rows[:min(len(rows), 12)])
		if len(rows) > 40 {
			w.WriteAll(rows[len(rows)-4:])
		}
		sinktest.Golden(t, "testdata/"+c.Name+".samples.csv", head.Bytes())
	}
}

// TestSamplesAddUp computes the mean that the row of a cell has from the rows of its samples.
func TestSamplesAddUp(t *testing.T) {
	run := sinktest.Cases()[0].Open(t)
	table := func(rows Rows) []map[string]string {
		var b bytes.Buffer
		if err := New(Options{Rows: rows}).Write(&b, run); err != nil {
			t.Fatal(err)
		}
		all, _ := csv.NewReader(&b).ReadAll()
		var list []map[string]string
		for _, row := range all[1:] {
			m := map[string]string{}
			for i, field := range row {
				m[all[0][i]] = field
			}
			list = append(list, m)
		}
		return list
	}
	sum, n := map[string]float64{}, map[string]float64{}
	for _, s := range table(Samples) {
		key := s["scenario"] + s["phase"] + s["target"]
		v, err := strconv.ParseFloat(s["latency_ms"], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum[key] += v
		n[key]++
	}
	for _, c := range table(Cells) {
		key := c["scenario"] + c["phase"] + c["target"]
		mean, _ := strconv.ParseFloat(c["mean_ms"], 64)
		if math.Abs(mean-sum[key]/n[key]) > 2e-6 {
			t.Errorf("%s: mean %v, of the samples %v", key, mean, sum[key]/n[key])
		}
	}
}

func TestWithoutSamples(t *testing.T) {
	frames := sinktest.Cases()[0].Frames
	frames[0].(*result.Header).Samples = false
	run := sinktest.Case{Name: "none", Frames: frames}.Open(t)
	var b bytes.Buffer
	if err := New(Options{Rows: Samples}).Write(&b, run); err != nil || strings.Count(b.String(), "\n") != 1 {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestExact(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0", 1: "0.000001", 1e6: "1", 1_500_000: "1.5", 13_000_001: "13.000001", -2_500_000: "-2.5", 90e9: "90000", 100: "0.0001",
	} {
		if got := exact(ns); got != want {
			t.Errorf("%d: %s, want %s", ns, got, want)
		}
		if got := milliseconds(float64(ns)); got != want {
			t.Errorf("%d: %s, want %s", ns, got, want)
		}
	}
}

func TestFormulas(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1", "a=1": "a=1", " =1": " =1",
	} {
		if got := text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
