// Package engine runs a plan: it walks the cells, drives the phases, and writes what it measures to the results stream.
// Nothing else passes from it to those who read results.
package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/engine/secret"
	"github.com/planrun/planrun/engine/verdict"
)

// Options are what a run needs besides its plan.
type Options struct {
	Drivers map[string]drivers.Driver
	Tool    string // planrun's version, for the record
	// Seed fixes every random choice of the run.
	Seed uint64
	// Stop, once closed, ends the run gently: nothing new is begun, what is in flight runs to its end and counts.
	Stop <-chan struct{}
	// Previous is what previous stands for in assertions; nil if none reads it.
	Previous *result.Run
	// Watch, if not nil, sees every frame of the stream right after it was written. It must not block.
	Watch func(result.Frame)
	// Clock, if not nil, replaces the precise clock.
	Clock *clock.Clock

	// vitals, if not nil, replaces takeVitals, for tests whose time is not the machine's.
	vitals func() vitals
}

// Report is how a run ended.
type Report struct {
	Path string      // of the results file; "" if there is none
	Run  *result.Run // what is in it; nil if it could not be read again
	Exit int
	Err  error // why it could not measure or record; nil if it could
}

// errInterrupted ends a measurement because Options.Stop was closed.
var errInterrupted = errors.New("interrupted")

// SetupError says that the load could not begin. Nothing of the cell it names was measured.
type SetupError struct {
	What string // the endpoint or cell
	Err  error
}

func (e *SetupError) Error() string { return e.What + ": " + e.Err.Error() }
func (e *SetupError) Unwrap() error { return e.Err }

// Run measures every cell of p, in the order scenario, phase, round, target, writes the results stream while it does, and
// judges what the stream says. Once ctx is done, calls in flight are aborted. Whatever happens, all that was measured until
// then is in the results file.
func Run(ctx context.Context, p *plan.Plan, opt Options) Report {
	if opt.vitals == nil {
		opt.vitals = takeVitals
	}
	if opt.Clock == nil {
		opt.Clock = clock.New()
	}
	start := time.Now().Add(-opt.Clock.Now())
	file, path, err := createResults(p, start)
	if err != nil {
		return Report{Exit: verdict.ExitInconclusive, Err: err}
	}
	r := &run{plan: p, Options: opt, clock: opt.Clock, results: result.NewWriter(file), secrets: p.Secrets}
	var release func()
	r.Stop, r.halt, release = stopper(opt.Stop)
	defer release()

	measured := r.record(ctx, start)
	end := r.ending(ctx, measured)
	report := Report{Path: path}
	if !end.Interrupted {
		report.Err = measured
	}
	run, err := result.Open(path)
	if measured == nil && err == nil {
		report.Err = r.judge(run, end)
	}
	report.Err = errors.Join(report.Err, err)
	if report.Err != nil && !end.Interrupted && end.Exit != verdict.ExitUsage {
		end.Exit = verdict.ExitInconclusive
	}
	report.Err = errors.Join(report.Err, r.tidied(end))
	if err := errors.Join(r.emit(end), r.results.Flush(), file.Close()); err != nil {
		report.Err = errors.Join(report.Err, err)
		if end.Exit == verdict.ExitPassed || end.Exit == verdict.ExitFailed {
			end.Exit = verdict.ExitInconclusive
		}
	}
	if err == nil {
		run.End, run.Cut = end, nil
		report.Run = run
	}
	report.Exit, report.Err = end.Exit, clean(report.Err, r.secrets)
	return report
}

// record writes the header and whatever can be measured. An assertion that ended the run early is no error: what was
// measured is judged, and it has failed.
func (r *run) record(ctx context.Context, start time.Time) error {
	err := r.emit(header(r.plan, r.Options, start))
	if err == nil {
		err = r.measure(ctx)
	}
	if errors.Is(err, errAborted) {
		err = nil
	}
	return errors.Join(err, r.results.Flush())
}

// ending is the end of a run that is not judged: it was interrupted, or could not be measured.
func (r *run) ending(ctx context.Context, err error) *result.End {
	end := &result.End{Outcome: result.Inconclusive, Exit: verdict.ExitInconclusive, At: r.clock.Now()}
	switch {
	case errors.Is(err, errInterrupted), ctx.Err() != nil:
		end.Interrupted, end.Exit = true, verdict.ExitInterrupted
	case err != nil:
		end.Notes = strings.Split(r.secrets.Clean(err.Error()), "\n")
		if _, wrong := errors.AsType[*PlanError](err); wrong {
			end.Exit = verdict.ExitUsage
		}
	}
	return end
}

// judge judges what the stream says, writes the verdicts, and draws the end from them.
func (r *run) judge(run *result.Run, end *result.End) error {
	by := verdict.CaseOf(run)
	by.Previous = r.Previous
	j, err := verdict.Judge(run, by)
	if err != nil {
		return err
	}
	for i := range j.Rows {
		err = errors.Join(err, r.emit(&j.Rows[i]))
	}
	run.Verdicts = j.Rows
	end.Outcome, end.Exit, end.Notes = j.Outcome, j.Exit, j.Notes
	return err
}

// tidied says why the steps after the load failed, and lets no run pass whose did.
func (r *run) tidied(end *result.End) error {
	if r.tidying == nil {
		return nil
	}
	end.Notes = append(end.Notes, strings.Split(r.secrets.Clean(r.tidying.Error()), "\n")...)
	if end.Exit == verdict.ExitPassed {
		end.Exit = verdict.ExitInconclusive
	}
	return r.tidying
}

// createResults makes the file that the stream goes to. It never overwrites one.
func createResults(p *plan.Plan, start time.Time) (*os.File, string, error) {
	if p.Results.Path == "" {
		return result.Create("results", p.Name, start)
	}
	if err := os.MkdirAll(filepath.Dir(p.Results.Path), 0o755); err != nil {
		return nil, "", err
	}
	f, err := os.OpenFile(p.Results.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%s exists already; name another results file, or leave the name to planrun", p.Results.Path)
	}
	return f, p.Results.Path, err
}

// header is the first frame of the stream.
func header(p *plan.Plan, opt Options, start time.Time) *result.Header {
	h := &result.Header{
		Version: result.Version, Tool: opt.Tool,
		Plan: p.Name, Description: p.Secrets.Clean(p.Description), File: p.File, Text: []byte(p.Secrets.Clean(string(p.Text))), Hash: fmt.Sprintf("%x", sha256.Sum256(p.Text)),
		Start: start.UTC(), Seed: opt.Seed, Reference: p.Reference,
		Environment: Environment(), Settings: cleanAll(p.Settings, p.Secrets), Samples: p.Results.Samples, Vars: cleanAll(p.Vars, p.Secrets),
	}
	for _, t := range p.Targets {
		h.Targets = append(h.Targets, result.Target{Name: t.Name, Lab: t.Lab})
	}
	h.Assertions, h.Strict, h.Against = assertions(p), p.StrictSamples, p.Against.Path
	return h
}

// Case is what a plan judges a run by, but for the earlier run.
func Case(p *plan.Plan) verdict.Case {
	return verdict.Case{Assertions: assertions(p), Vars: p.Vars, Strict: p.StrictSamples}
}

// assertions are those that a plan writes, as the stream keeps them.
func assertions(p *plan.Plan) []result.Assertion {
	var list []result.Assertion
	for _, a := range p.Assertions {
		severity := ""
		if a.Warn {
			severity = "warn"
		}
		list = append(list, result.Assertion{
			Text: a.Text, Place: a.Place.String(), Scenario: a.Scenario, Phase: a.Phase, Severity: severity,
			Window: a.Window, Abort: a.Abort, After: a.After,
		})
	}
	return list
}

// Environment is what the figures of a run depend on besides the systems it measured.
func Environment() map[string]string {
	env := map[string]string{
		"os": runtime.GOOS, "arch": runtime.GOARCH, "go": runtime.Version(), "cpus": strconv.Itoa(runtime.GOMAXPROCS(0)),
	}
	if host, err := os.Hostname(); err == nil {
		env["host"] = host
	}
	return env
}

// measure runs all cells. It returns with the first error after which it could not go on.
func (r *run) measure(ctx context.Context) error {
	r.captured = make([]map[string]any, len(r.plan.Targets))
	for _, c := range cellsOf(r.plan) {
		if err := r.emit(&c.Cell); err != nil {
			return err
		}
		if c.along == nil {
			r.cells = append(r.cells, c)
		}
	}
	if r.plan.Preflight {
		if err := r.preflight(ctx); err != nil {
			return err
		}
	}
	return r.between(ctx, r.plan.Before, r.plan.After, func() error {
		for cells := r.cells; len(cells) > 0; {
			n := 1
			for n < len(cells) && cells[n].scenario == cells[0].scenario {
				n++
			}
			if err := r.runScenario(ctx, cells[:n]); err != nil {
				return err
			}
			cells = cells[n:]
		}
		return nil
	})
}

// runScenario runs the phases of one scenario.
func (r *run) runScenario(ctx context.Context, cells []*cell) error {
	sc := cells[0].scenario
	return r.between(ctx, sc.Before, sc.After, func() error {
		for len(cells) > 0 {
			// The targets of one phase lie next to each other.
			n := len(r.plan.Targets)
			if err := r.runPhase(ctx, cells[:n]); err != nil {
				return err
			}
			cells = cells[n:]
		}
		return nil
	})
}

type run struct {
	Options
	plan    *plan.Plan
	clock   *clock.Clock
	results *result.Writer
	cells   []*cell
	halt    func() // closes Stop

	// secrets are kept out of everything that is written.
	secrets *secret.Mask
	// captured has what steps before the load captured: a mapping by name for each target.
	captured []map[string]any

	tidying  error      // why steps after the load failed
	emitting sync.Mutex // a phase and what runs along with it write to the same stream
}

// runPhase runs the rounds of one phase, targets alternating: forward in even rounds, backward in odd ones, so that
// whatever drifts meanwhile falls on all alike.
func (r *run) runPhase(ctx context.Context, cells []*cell) error {
	for n := range cells[0].Rounds {
		for i := range cells {
			c := cells[i]
			if n%2 == 1 {
				c = cells[len(cells)-1-i]
			}
			if r.stopped() {
				return errInterrupted
			}
			if err := r.runRound(ctx, c, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) stopped() bool {
	select {
	case <-r.Stop:
		return true
	default:
		return false
	}
}

// emit writes a frame to the stream and shows it to whoever watches.
func (r *run) emit(frame result.Frame) error {
	r.emitting.Lock()
	defer r.emitting.Unlock()
	if err := r.results.Frame(frame); err != nil {
		return fmt.Errorf("can't write the results: %w", err)
	}
	if r.Watch != nil {
		r.Watch(frame)
	}
	return nil
}

// flush hands what was written to the file.
func (r *run) flush() error {
	r.emitting.Lock()
	defer r.emitting.Unlock()
	if err := r.results.Flush(); err != nil {
		return fmt.Errorf("can't write the results: %w", err)
	}
	return nil
}

// cleaned is an error whose text was freed of secrets.
type cleaned struct {
	error
	text string
}

func (c *cleaned) Error() string { return c.text }
func (c *cleaned) Unwrap() error { return c.error }

func clean(err error, m *secret.Mask) error {
	if err == nil {
		return nil
	}
	return &cleaned{err, m.Clean(err.Error())}
}

func cleanAll(texts map[string]string, m *secret.Mask) map[string]string {
	out := make(map[string]string, len(texts))
	for k, v := range texts {
		out[k] = m.Clean(v)
	}
	return out
}
