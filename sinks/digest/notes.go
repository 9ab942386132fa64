package digest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/planrun/planrun/engine/compare"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// notes is what a reader should know before drawing conclusions, the weightiest first.
func notes(run *result.Run, d *Digest) []string {
	var list []string
	add := func(format string, args ...any) {
		s := fmt.Sprintf(format, args...)
		if last, _ := utf8.DecodeLastRuneInString(s); unicode.IsLetter(last) || unicode.IsDigit(last) || strings.ContainsRune("%)\"'", last) {
			s += "."
		}
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	if run.Cut != nil {
		add("%s.", sentence(Clean(run.Cut.Error())))
	}
	if run.End != nil && run.End.Interrupted {
		add("The run was interrupted after %s; this is what was measured until then.", round(run.End.At))
	}
	var labs []string
	for _, t := range d.Targets {
		if t.Lab {
			labs = append(labs, t.Name)
		}
	}
	if len(labs) > 0 {
		add("Measured against the lab in the box, not a real system (%s).", strings.Join(labs, ", "))
	}
	fairness(run, add)
	holdUps(run, add)
	for _, c := range run.Cells {
		cellNotes(c, add)
	}
	if run.End != nil {
		for _, n := range run.End.Notes {
			add("%s", sentence(Clean(n)))
		}
	}
	if slices.ContainsFunc(run.Cells, func(c *result.CellResult) bool {
		s := c.Stats(result.Pooled, result.Every, record.Whole)
		return s.OK > 0 && s.Failed+s.Dropped > 0
	}) {
		add("Latencies are of successful iterations; failed and dropped ones are not in them.")
	}
	if n := pairsBehind(d); n > 0 {
		add("Differences with a range are over %d pairs of rounds; the range is their 95%% interval, and where it holds 0 no difference is claimed.", n)
	}
	if slices.ContainsFunc(run.Cells, func(c *result.CellResult) bool {
		return c.Stats(result.Pooled, result.Every, record.Whole).Failed > c.Stats(result.Pooled, result.Judged, record.Whole).Failed && !c.IsCapacity()
	}) {
		add("Failures are of all stages, ramps among them; figures without a stage are of the judged ones.")
	}
	if n, any := fewestPairs(d); any {
		add("Differences without an interval may be noise: an interval needs %d rounds (rounds: %d), and this run has %d.", compare.MinPairs, compare.MinPairs, n)
	}
	if slices.ContainsFunc(run.Cells, func(c *result.CellResult) bool {
		n := c.Stats(result.Pooled, result.Judged, record.Whole).OK
		return n > 1 && n < 100
	}) {
		add("With fewer than 100 samples, p99 is the greatest of them.")
	}
	return list
}

// sentence begins with a capital letter, unless it begins with a name such as scenario.phase.target.
func sentence(s string) string {
	if s == "" {
		return s
	}
	if first, _, _ := strings.Cut(s, " "); strings.ContainsAny(first, ".:") {
		return s
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// pairsBehind is the smallest number of pairs behind a difference that has an interval; 0 if none has.
func pairsBehind(d *Digest) (fewest int) {
	for _, c := range d.Comparisons {
		for _, r := range c.Rows {
			for _, x := range r.Differences {
				if x.Interval && (fewest == 0 || x.Pairs < fewest) {
					fewest = x.Pairs
				}
			}
		}
	}
	return fewest
}

// fewestPairs is the smallest number of pairs behind a difference that has no interval for want of them.
func fewestPairs(d *Digest) (fewest int, any bool) {
	for _, c := range d.Comparisons {
		for _, r := range c.Rows {
			for _, x := range r.Differences {
				if x.Text != "" && !x.Interval && (!any || x.Pairs < fewest) {
					fewest, any = x.Pairs, true
				}
			}
		}
	}
	return fewest, any
}

// lateShare is how great the generator's lateness may be, as a share of the median latency, before it is worth a note;
// below lateFloor it never is. heldShare is for how much of the time it may be held up.
const (
	heldShare = 0.01
	lateShare = 0.05
	lateFloor = time.Millisecond
)

// holdUps notes in which cells the generator was held up, each by itself as long as they are few.
func holdUps(run *result.Run, add func(string, ...any)) {
	type cell struct {
		name    string
		share   float64
		longest time.Duration
	}
	var cells []cell
	for _, c := range run.Cells {
		// Of what is judged where that is enough for a note, so that verdicts say the same share.
		share, longest := c.Stats(result.Pooled, result.Judged, record.Whole).HeldUp()
		if share < heldShare {
			share, longest = c.Stats(result.Pooled, result.Every, record.Whole).HeldUp()
		}
		if share >= heldShare {
			cells = append(cells, cell{Name(c.Scenario, c.Phase, c.Target), share, longest})
		}
	}
	text := func(c cell) string {
		return fmt.Sprintf("%s of the time, by up to %s", quantity.Value{F: math.Round(1000*c.share) / 1000, Dim: quantity.Share}, times(float64(c.longest)))
	}
	if len(cells) > 2 {
		worst := slices.MaxFunc(cells, func(a, b cell) int { return cmp.Compare(a.share, b.share) })
		add("The generator was held up in %d of %d cells, most in %s: for %s; its machine may be too busy.", len(cells), len(run.Cells), worst.name, text(worst))
		return
	}
	for _, c := range cells {
		add("%s: the generator was held up for %s; its machine may be too busy.", c.name, text(c))
	}
}

// waitShare is how much of the latency waiting for others may be before it is worth a note; below waitFloor on average it
// never is.
const (
	waitShare = 0.1
	waitFloor = time.Millisecond
)

// waits says where calls spent their time behind others on this side: at the server's limit of streams, or for one of the
// connections that users share.
func waits(c *result.CellResult, add func(string, ...any)) {
	note := func(step string, s *record.Stats) {
		all := s.Latency()
		if all.Count() == 0 {
			return
		}
		mean := s.Wait.Sum() / float64(all.Count())
		if mean >= float64(waitFloor) && s.Wait.Sum() >= waitShare*all.Sum() {
			add("%s: calls waited %s on average, %s of their latency, for a connection or a stream that others used; connections: in the phase allows more.",
				Name(c.Scenario, c.Phase, step, c.Target), times(mean), quantity.Value{F: s.Wait.Sum() / all.Sum(), Dim: quantity.Share})
		}
	}
	if len(c.Steps) < 2 {
		note("", c.Stats(result.Pooled, result.Judged, record.Whole))
		return
	}
	for i, x := range c.Steps {
		note(x.Name, c.Stats(result.Pooled, result.Judged, i))
	}
}

func cellNotes(c *result.CellResult, add func(string, ...any)) {
	place := Name(c.Scenario, c.Phase, c.Target)
	s := c.Stats(result.Pooled, result.Every, record.Whole)
	var lost, backlogged int64
	interrupted := 0
	for _, r := range c.Rounds {
		if r.End == nil {
			continue
		}
		lost += r.End.Lost
		backlogged += r.End.Backlogged
		if r.End.Interrupted {
			interrupted++
		}
	}
	switch n := c.Cell.Rounds - len(c.Rounds); {
	case len(c.Rounds) == 0:
		add("%s did not run.", place)
	case n > 0:
		add("%s: %d of %d rounds did not run.", place, n, c.Cell.Rounds)
	}
	if interrupted > 0 {
		add("%s: %s cut short.", place, plural(interrupted, "round"))
	}
	if lost > 0 {
		add("%s: %s could not be recorded.", place, plural(int(lost), "sample"))
	}
	if s.Dropped > 0 {
		why := "the target did not keep up"
		switch {
		case s.DroppedByLag == s.Dropped:
			why = "the generator did not keep up"
		case s.DroppedByLag > 0:
			why = fmt.Sprintf("the target did not keep up; %d of them are the generator's fault", s.DroppedByLag)
		}
		add("%s: %d of %d arrivals (%s) were dropped, never sent: %s.", place, s.Dropped, s.Due(), share(s.Dropped, s.Due()), why)
	}
	if backlogged > 0 {
		add("%s: %d of %d arrivals (%s) waited because all that may be in flight were; the wait is in their latency.",
			place, backlogged, s.Due(), share(backlogged, s.Due()))
	}
	median, ok := s.Latency().Percentile(50)
	late, known := s.Lag.Percentile(99)
	// Where the generator was held up, holdUps has said so, and it is late for that.
	if held, _ := s.HeldUp(); ok && known && held < heldShare && late >= int64(lateFloor) && float64(late) > lateShare*float64(median) {
		add("%s: the generator was late, by %s at p99 against a median latency of %s; its machine may be too busy.",
			place, times(float64(late)), times(float64(median)))
	}
	waits(c, add)
	for _, r := range c.Rounds {
		if r.End != nil {
			for _, n := range r.End.Notes {
				add("%s: %s", place, Clean(n))
			}
		}
	}
	if !s.Latency().Exact() {
		add("%s: percentiles are from a histogram and at most 0.4%% too great.", place)
	}
}
