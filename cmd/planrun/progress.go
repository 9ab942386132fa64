package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/planrun/planrun/engine"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// progress shows on stderr how far a run is: a bar on a terminal, else a line every ten seconds. It reads the same
// frames as every other reader of the stream.
type progress struct {
	out    io.Writer
	bars   *mpb.Progress // nil without a terminal
	bar    *mpb.Bar
	cells  []result.Cell
	rounds int

	mu     sync.Mutex
	done   int // rounds
	at     string
	second string
	said   time.Time
}

// newProgress begins to show the progress of a plan; nil frames nothing when it is not wanted.
func (p *program) newProgress(pl *plan.Plan) *progress {
	if p.quiet {
		return nil
	}
	pr := &progress{out: p.stderr, cells: engine.Cells(pl), said: time.Now()}
	for _, c := range pr.cells {
		pr.rounds += c.Rounds
	}
	f, ok := p.stderr.(*os.File)
	if ok && isTerminal(p.stderr) && os.Getenv("TERM") != "dumb" {
		pr.bars = mpb.New(mpb.WithOutput(f), mpb.WithWidth(20), mpb.WithRefreshRate(200*time.Millisecond))
		pr.bar = pr.bars.New(int64(pr.rounds), mpb.BarStyle(), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.CountersNoUnit("%d/%d rounds")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return pr.state() })))
	}
	return pr
}

// watch takes in a frame of the stream.
func (pr *progress) watch(frame result.Frame) {
	if pr == nil {
		return
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	switch f := frame.(type) {
	case *result.Round:
		c := pr.cells[f.Cell]
		pr.at = strings.Join([]string{c.Scenario, c.Phase, c.Target}, ".")
		if c.Rounds > 1 {
			pr.at += fmt.Sprintf(" round %d/%d", f.Round+1, c.Rounds)
		}
		pr.second = ""
	case *result.Interval:
		pr.second = secondText(f)
	case *result.RoundEnd:
		pr.done++
		if pr.bar != nil {
			pr.bar.Increment()
		}
	}
	if pr.bars == nil && time.Since(pr.said) >= 10*time.Second {
		pr.said = time.Now()
		fmt.Fprintf(pr.out, "planrun: %d/%d rounds, %s %s\n", pr.done, pr.rounds, pr.at, pr.second)
	}
}

// secondText says what happened in one second of a round.
func secondText(v *result.Interval) string {
	s := fmt.Sprintf("%d/s", v.OK+v.Failed)
	if h := v.Latency; h != nil {
		s += ", p50 " + quantile(h, 0.5) + ", p99 " + quantile(h, 0.99)
	}
	if v.Failed > 0 {
		s += fmt.Sprintf(", %d failed", v.Failed)
	}
	if v.Dropped > 0 {
		s += fmt.Sprintf(", %d dropped", v.Dropped)
	}
	if v.OK == 0 && v.BytesIn > 0 {
		s += fmt.Sprintf(", %.1fMB/s", float64(v.BytesIn)/1e6)
	}
	return s + fmt.Sprintf(", %d in flight", v.InFlight)
}

func quantile(h *record.Histogram, q float64) string {
	v, _ := h.Quantile(q)
	return time.Duration(v).Round(10 * time.Microsecond).String()
}

func (pr *progress) state() string {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	return pr.at + " " + pr.second
}

// close takes the bar away.
func (pr *progress) close() {
	if pr == nil || pr.bars == nil {
		return
	}
	pr.bar.Abort(true)
	pr.bars.Wait()
}
