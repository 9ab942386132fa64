package verdict

import (
	"maps"
	"slices"
	"time"

	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// notes are what a reader should know of the run and what changed no verdict by itself.
func (b *bench) notes() []string {
	for _, name := range slices.Sorted(maps.Keys(b.fewest)) {
		f := b.fewest[name]
		b.note("too few samples for an upper bound of %s, which is asserted: as few as %d, and it needs %d", name, f.n, f.need)
	}
	for _, c := range b.run.Cells {
		if reason := busy(c); reason != "" {
			b.note("%s", reason)
		}
		b.falling(c)
		for i, r := range c.Rounds {
			if r.End != nil {
				b.roundNotes(c, i, r.End)
			}
		}
	}
	return b.remarks
}

const (
	stepNoted  = 100 * time.Millisecond // of the wall clock
	pauseNoted = time.Millisecond       // of garbage collection
	pauseShare = 0.05                   // of the median latency, below which a pause is not noted
)

func (b *bench) roundNotes(c *result.CellResult, round int, e *result.RoundEnd) {
	if e.ClockStep.Abs() >= stepNoted {
		direction := "forward"
		if e.ClockStep < 0 {
			direction = "back"
		}
		b.note("%s: the wall clock was set %s by %s in round %d; latencies are from a steady clock and do not suffer, times of day may",
			place(c), direction, span(float64(e.ClockStep.Abs())), round+1)
	}
	median, ok := c.Stats(round, result.Every, record.Whole).Latency().Percentile(50)
	if ok && e.GCLongest >= pauseNoted && float64(e.GCLongest) > pauseShare*float64(median) {
		b.note("%s: garbage collection stopped the generator for up to %s at a time in round %d, against a median latency of %s",
			place(c), span(float64(e.GCLongest)), round+1, span(float64(median)))
	}
	// A user has a connection for each step at most. The open model has one more worker, which waits for the next arrival.
	most := int64(e.MaxInFlight+1) * int64(max(1, len(c.Steps)))
	if e.Opened > most {
		b.note("%s: connections were opened again in mid-run, %d in round %d for at most %d iterations at a time", place(c), e.Opened, round+1, e.MaxInFlight)
	}
}

const (
	// A hold of at least settling is still warming up if the median latency of its first quarter is above fallen times that
	// of its last, by more than fallenFloor, with at least settledCount answers in each.
	settling     = 4 * time.Second
	fallen       = 1.25
	fallenFloor  = time.Millisecond
	settledCount = 20
)

// falling notes a hold whose latency was still falling, from the one-second intervals.
func (b *bench) falling(c *result.CellResult) {
	for _, g := range c.Stages {
		if !g.Judged || g.Kind != "hold" || g.Length < settling {
			continue
		}
		first, last := new(record.Histogram), new(record.Histogram)
		for _, v := range c.Intervals {
			if v.Latency == nil {
				continue
			}
			at := time.Duration(v.Second)*time.Second - g.Start
			switch {
			case at >= 0 && at+time.Second <= g.Length/4:
				first.Merge(v.Latency)
			case at >= g.Length-g.Length/4 && at+time.Second <= g.Length:
				last.Merge(v.Latency)
			}
		}
		if first.Count() < settledCount || last.Count() < settledCount {
			continue
		}
		x, _ := first.Quantile(0.5)
		y, _ := last.Quantile(0.5)
		if float64(x) > fallen*float64(y) && x-y > int64(fallenFloor) {
			b.note("%s: latency was still falling during the hold, from a median of %s in its first quarter to %s in its last; a longer warm-up would keep that out",
				place(c), span(float64(x)), span(float64(y)))
		}
	}
}
