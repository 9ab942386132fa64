// Package digest makes of a run what its readers want to see: how targets compare, the figures of each cell, what failed
// and why, what to know about the measurement, and the verdict. Sinks for people render it; none of them decides what to
// show, or how exactly, on its own.
//
// All text of a digest is fit for one line: control characters are shown, not sent.
package digest

import (
	"fmt"
	"strings"
	"time"

	"github.com/planrun/planrun/engine/result"
)

// Digest is one run.
type Digest struct {
	Title       string // the plan's name
	Description string
	About       string // when, with what: "30 Nov 2026 15:04:05 UTC, planrun 1.2.3, seed 42"
	Targets     []Target
	Comparisons []Comparison
	Details     []Detail
	Failures    []Failure
	Connected   []Connected
	Notes       []string
	Verdicts    []Verdict // failing ones first
	Outcome     Outcome
}

// Target is a column.
type Target struct {
	Name      string
	Reference bool // there are others, which are compared with this one
	Lab       bool
}

// Label is the target's name and what is to be known of it.
func (t Target) Label() string {
	switch {
	case t.Reference && t.Lab:
		return t.Name + " (lab, reference)"
	case t.Reference:
		return t.Name + " (reference)"
	case t.Lab:
		return t.Name + " (lab)"
	}
	return t.Name
}

// Of makes the digest of a run.
func Of(run *result.Run) *Digest {
	d := &Digest{Title: Clean(run.Plan), Description: Clean(run.Description), About: about(run)}
	if d.Title == "" {
		d.Title = "plan"
	}
	// The reference comes first, whatever the plan's order.
	if run.Reference < len(run.Targets) {
		t := run.Targets[run.Reference]
		d.Targets = append(d.Targets, Target{Clean(t.Name), len(run.Targets) > 1, t.Lab})
	}
	for i, t := range run.Targets {
		if i != run.Reference {
			d.Targets = append(d.Targets, Target{Name: Clean(t.Name), Lab: t.Lab})
		}
	}
	d.Comparisons = comparisons(run, d.Targets)
	d.Details = details(run)
	d.Failures = failures(run)
	d.Connected = connected(run)
	d.Verdicts = verdicts(run)
	d.Outcome = outcome(run, d.Verdicts)
	d.Notes = notes(run, d)
	return d
}

func about(run *result.Run) string {
	var parts []string
	if !run.Start.IsZero() {
		parts = append(parts, run.Start.UTC().Format("2 Jan 2006 15:04:05 MST"))
	}
	if run.Tool != "" {
		parts = append(parts, "planrun "+Clean(run.Tool))
	}
	if run.Seed != 0 {
		parts = append(parts, fmt.Sprintf("seed %d", run.Seed))
	}
	return strings.Join(parts, ", ")
}

// Name joins the parts of an address that are there.
func Name(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(Clean(p))
	}
	return b.String()
}

// round prints a duration for a sentence.
func round(d time.Duration) string { return times(float64(d)).String() }
