package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// bars are three of them, for the run, the phase and the round, and a line of figures. They fit the terminal's width.
type bars struct {
	out   *os.File
	mpb   *mpb.Progress
	place *console
	lines [3]*mpb.Bar
	shown atomic.Pointer[state]
	fixed int // columns; 0 asks the terminal
}

// label is what stands before a bar, and as wide before the figures.
const label = "phase "

// barTotal is what a bar is at its end.
const barTotal = 1000

// newBars shows a state until draw shows another.
func newBars(out *os.File, first state) *bars {
	b := &bars{out: out}
	b.place = &console{out: out, size: b.size}
	b.shown.Store(&first)
	b.mpb = mpb.New(mpb.WithConsoleWriter(b.place), mpb.WithWidth(b.barWidth()), mpb.WithAutoRefresh())
	texts := [3]struct {
		name string
		of   func(s *state) string
	}{
		{"run", func(s *state) string { return s.head() }},
		{"phase", func(s *state) string { return s.phaseText() }},
		{"round", func(s *state) string { return s.roundText() }},
	}
	for i, t := range texts {
		name := t.name + strings.Repeat(" ", len(label)-len(t.name))
		b.lines[i] = b.mpb.New(barTotal, mpb.BarStyle(), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(name)),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
				return b.fit(t.of(b.shown.Load()), len(label)+b.barWidth()+2)
			})))
	}
	b.mpb.New(0, mpb.NopStyle(), mpb.BarRemoveOnComplete(), mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
		return b.figures(b.shown.Load())
	})))
	return b
}

// Write prints above the bars.
func (b *bars) Write(p []byte) (int, error) { return b.place.Write(p) }

// wipe takes the bars away at once and for good; what is written from now on is for others to show.
func (b *bars) wipe() { b.place.end() }

func (b *bars) columns() int {
	columns, _ := b.size()
	return columns
}

// size is the terminal's, or what is usual where it tells none.
func (b *bars) size() (columns, rows int) {
	columns, rows = 80, 24
	if b.fixed > 0 {
		return b.fixed, rows
	}
	if c, r, err := term.GetSize(int(b.out.Fd())); err == nil && c > 0 && r > 0 {
		columns, rows = c, r
	}
	return columns, rows
}

func (b *bars) barWidth() int { return min(24, max(8, b.columns()/4)) }

// fit shortens a text to what is left of the line.
func (b *bars) fit(text string, taken int) string {
	return runewidth.Truncate(text, max(b.columns()-taken-1, 4), "…")
}

// figures are as many as fit.
func (b *bars) figures(s *state) string {
	text := strings.Repeat(" ", len(label))
	for i, f := range s.figures {
		if i > 0 {
			f = ", " + f
		}
		if runewidth.StringWidth(text+f) >= b.columns() {
			break
		}
		text += f
	}
	return text
}

func (b *bars) draw(s state) {
	b.shown.Store(&s)
	for i, share := range []float64{s.runShare(), s.phaseShare(), s.roundShare()} {
		// A bar at its end would be taken away.
		b.lines[i].SetCurrent(min(int64(share*barTotal), barTotal-1))
	}
}

func (b *bars) close() {
	for _, l := range b.lines {
		l.Abort(true)
	}
	b.mpb.Shutdown()
	b.wipe()
}

func share(done, all float64) float64 {
	if all <= 0 {
		return 0
	}
	return min(done/all, 1)
}

func (s *state) roundShare() float64 {
	if !s.running {
		return 0
	}
	return share(s.elapsed.Seconds(), s.expected.Seconds())
}

func (s *state) phaseShare() float64 {
	return share(float64(s.phaseDone)+s.roundShare(), float64(s.phaseRounds))
}

func (s *state) runShare() float64 {
	return share(float64(s.done)+s.roundShare(), float64(s.rounds))
}

func (s *state) phaseText() string {
	if !s.running {
		return "between rounds"
	}
	return fmt.Sprintf("%d/%d %s", s.phase, s.phases, s.phaseName)
}

func (s *state) roundText() string {
	if !s.running {
		return ""
	}
	text := s.inRound() + ", " + s.target
	if s.of > 1 {
		text = fmt.Sprintf("%d/%d %s", s.round, s.of, text)
	}
	return text
}

var _ io.Writer = (*bars)(nil)
