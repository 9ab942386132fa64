package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/planrun/planrun/engine"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// progress shows on stderr how far a run is: bars on a terminal, else a line every ten seconds. It reads the same frames
// as every other reader of the stream.
type progress struct {
	out   io.Writer
	bars  *bars // nil without a terminal
	tick  *time.Ticker
	stop  chan struct{}
	ended chan struct{}
	off   func()
	told  bool // a line has been written

	mu    sync.Mutex
	now   func() time.Time
	cells []pacer

	current  int // cell of the round that runs; -1 between rounds
	round    int
	began    time.Time // of the round
	last     time.Time // when a round ended
	gaps     time.Duration
	gapCount int
	second   *result.Interval // the last one of the round; nil before it
	count    int64            // iterations of the round that ended
}

// pacer is what is known of how long the rounds of a cell take.
type pacer struct {
	result.Cell
	phase   int           // its number, from 1
	planned time.Duration // of a round; 0 where a count or a search drives it
	done    int           // rounds
	took    time.Duration // all of them
}

// silence is how often a line comes without a terminal.
const silence = 10 * time.Second

// newProgress begins to show the progress of a plan; nil when it is not wanted.
func (p *program) newProgress(pl *plan.Plan) *progress {
	if p.quiet {
		return nil
	}
	pr := trackProgress(engine.Cells(pl), time.Now)
	pr.out = p.stderr
	pr.stop, pr.ended = make(chan struct{}), make(chan struct{})
	every := silence
	if f, ok := p.stderr.(*os.File); ok && isTerminal(p.stderr) && os.Getenv("TERM") != "dumb" {
		pr.bars = newBars(f, pr.state())
		p.above.Store(pr.bars)
		pr.off = func() { p.above.Store(nil) }
		every = 250 * time.Millisecond
	}
	pr.tick = time.NewTicker(every)
	go pr.show()
	return pr
}

// trackProgress keeps count of some cells.
func trackProgress(cells []result.Cell, now func() time.Time) *progress {
	pr := &progress{now: now, current: -1}
	phase := 0
	for i, c := range cells {
		if i == 0 || c.Scenario != cells[i-1].Scenario || c.Phase != cells[i-1].Phase {
			phase++
		}
		x := pacer{Cell: c, phase: phase}
		for _, g := range c.Stages {
			if g.Length <= 0 {
				x.planned = 0
				break
			}
			x.planned += g.Length
		}
		pr.cells = append(pr.cells, x)
	}
	return pr
}

func (pr *progress) show() {
	defer close(pr.ended)
	for {
		select {
		case <-pr.stop:
			return
		case <-pr.tick.C:
			if pr.bars != nil {
				pr.bars.draw(pr.state())
				continue
			}
			fmt.Fprintln(pr.out, "planrun: "+pr.state().line())
			pr.told = true
		}
	}
}

// close takes the bars away, and ends the lines with what they came to.
func (pr *progress) close() {
	if pr == nil {
		return
	}
	pr.tick.Stop()
	close(pr.stop)
	<-pr.ended
	if pr.bars != nil {
		pr.off()
		pr.bars.close()
		return
	}
	if s := pr.state(); pr.told && s.done == s.rounds {
		fmt.Fprintln(pr.out, "planrun: "+s.line())
	}
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
		pr.current, pr.round, pr.began = f.Cell, f.Round, pr.now()
		pr.second, pr.count = nil, 0
		if !pr.last.IsZero() {
			pr.gaps += pr.began.Sub(pr.last)
			pr.gapCount++
		}
	case *result.Interval:
		v := *f
		pr.second = &v
		pr.count += f.OK + f.Failed
	case *result.RoundEnd:
		pr.last = pr.now()
		c := &pr.cells[f.Cell]
		c.done++
		c.took += pr.last.Sub(pr.began)
		pr.current = -1
	}
}

// state is a progress at one moment.
type state struct {
	done, rounds  int
	left          string // "about 3m10s left"; "" if nothing is known
	phase, phases int
	phaseName     string // scenario.phase
	phaseDone     int    // rounds of it, over all targets
	phaseRounds   int
	target        string
	round, of     int // of the cell, from 1
	elapsed       time.Duration
	expected      time.Duration // of the round; 0 is unknown
	count         int64
	figures       []string // of the last second, the weightiest first
	running       bool
}

func (pr *progress) state() state {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	var s state
	for _, c := range pr.cells {
		s.done += c.done
		s.rounds += c.Rounds
		s.phases = c.phase
	}
	s.left = pr.left()
	if pr.current < 0 || pr.current >= len(pr.cells) {
		return s
	}
	s.running = true
	c := &pr.cells[pr.current]
	s.phase, s.phaseName, s.target = c.phase, c.Scenario+"."+c.Phase, c.Target
	s.round, s.of = pr.round+1, c.Rounds
	for _, x := range pr.cells {
		if x.phase == c.phase {
			s.phaseDone += x.done
			s.phaseRounds += x.Rounds
		}
	}
	s.elapsed = pr.now().Sub(pr.began)
	s.expected, _ = pr.expected(pr.current)
	s.count = pr.count
	if pr.second != nil {
		s.figures = figuresOf(pr.second)
	}
	return s
}

// expected is how long a round of a cell takes: by plan, or as those before it did, or as those of the other targets.
func (pr *progress) expected(cell int) (time.Duration, bool) {
	c := &pr.cells[cell]
	if c.planned > 0 {
		return c.planned, true
	}
	if c.done > 0 {
		return c.took / time.Duration(c.done), true
	}
	for _, x := range pr.cells {
		if x.phase == c.phase && x.done > 0 {
			return x.took / time.Duration(x.done), true
		}
	}
	return 0, false
}

// left says how long the rest takes, as far as that is known.
func (pr *progress) left() string {
	var sum time.Duration
	rounds, all, any := 0, true, false
	for i := range pr.cells {
		n := pr.cells[i].Rounds - pr.cells[i].done
		if n <= 0 {
			continue
		}
		rounds += n
		e, ok := pr.expected(i)
		if !ok {
			all = false
			continue
		}
		any = true
		sum += time.Duration(n) * e
		if i == pr.current {
			sum -= min(pr.now().Sub(pr.began), e)
		}
	}
	if !any {
		return ""
	}
	if pr.gapCount > 0 {
		// What lies between rounds: connections, warm-up.
		sum += time.Duration(rounds) * pr.gaps / time.Duration(pr.gapCount)
	}
	word := "about "
	if !all {
		word = "at least "
	}
	return word + seconds(sum) + " left"
}

// seconds prints a duration without what changes faster than anybody reads.
func seconds(d time.Duration) string {
	if d >= time.Hour {
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.Round(time.Second).String()
}

// head is how far the run is.
func (s state) head() string {
	text := fmt.Sprintf("%d/%d rounds", s.done, s.rounds)
	if s.left != "" {
		text += ", " + s.left
	}
	return text
}

// inRound is how far the round is.
func (s state) inRound() string {
	switch {
	case s.expected > 0 && s.elapsed <= s.expected:
		return fmt.Sprintf("%s of %s", seconds(s.elapsed), seconds(s.expected))
	case s.count > 0:
		return fmt.Sprintf("%s, %d iterations", seconds(s.elapsed), s.count)
	}
	return seconds(s.elapsed)
}

// line is all of it in one line.
func (s state) line() string {
	text := s.head()
	switch {
	case s.rounds > 0 && s.done == s.rounds:
		return text + "; done"
	case !s.running:
		return text + "; between rounds"
	}
	text += "; " + s.phaseName + "." + s.target
	if s.of > 1 {
		text += fmt.Sprintf(" round %d/%d", s.round, s.of)
	}
	text += ", " + s.inRound()
	if len(s.figures) > 0 {
		text += "; " + strings.Join(s.figures, ", ")
	}
	return text
}

// figuresOf says what happened in one second of a round, what matters most first.
func figuresOf(v *result.Interval) []string {
	list := []string{fmt.Sprintf("%d/s", v.OK+v.Failed)}
	if v.OK+v.Failed == 0 && v.BytesIn > 0 {
		list = []string{fmt.Sprintf("%.1f MB/s", float64(v.BytesIn)/1e6)}
	}
	if h := v.Latency; h != nil && h.Count() > 0 {
		list = append(list, "p50 "+quantile(h, 0.5), "p99 "+quantile(h, 0.99))
	}
	if v.Failed > 0 {
		list = append(list, fmt.Sprintf("%d failed", v.Failed))
	}
	if v.Dropped > 0 {
		list = append(list, fmt.Sprintf("%d dropped", v.Dropped))
	}
	list = append(list, fmt.Sprintf("%d in flight", v.InFlight))
	if v.MaxLag >= time.Millisecond {
		list = append(list, "generator "+v.MaxLag.Round(time.Millisecond).String()+" late")
	}
	return list
}

// quantile prints a latency with three digits at the most.
func quantile(h *record.Histogram, q float64) string {
	v, _ := h.Quantile(q)
	d := time.Duration(v)
	for unit := time.Nanosecond; ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
}
