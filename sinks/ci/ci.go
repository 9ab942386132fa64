// Package ci shows runs where people look in a pipeline: GitHub Actions and Azure Pipelines, by the commands that their
// logs take. The environment says which of them it is. GitLab needs none of this, as it reads JUnit.
package ci

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
)

// mostAnnotations is how many assertions are shown at their line, over all plans of a command: GitHub shows ten of a kind
// for a step, and more of them help nobody.
const mostAnnotations = 10

// Session is one command in a pipeline. A nil Session does nothing. It is not safe for concurrent use.
type Session struct {
	system  system
	env     func(string) string
	out     io.Writer
	left    int // annotations
	outcome string
	failed  int
	warned  bool
	reports []string
}

// system is what the two have in common.
type system interface {
	annotation(a annotation) string
	summary(run *result.Run, results string) error
	finish(s *Session, exit int) error
}

// annotation is an assertion that did not pass, at its line.
type annotation struct {
	warning            bool
	file, line, column string
	endColumn          string // "" if it is not known
	title, text        string
}

// New makes the session of the system that env tells of, nil if there is none. Commands are written to out, which nothing
// else may write to in the middle of a line.
func New(env func(string) string, out io.Writer) *Session {
	s := &Session{env: env, out: out, left: mostAnnotations}
	switch {
	case env("GITHUB_ACTIONS") == "true":
		s.system = &github{env}
	case strings.EqualFold(env("TF_BUILD"), "true"):
		s.system = &azure{env, out}
	default:
		return nil
	}
	return s
}

// Plan shows one run: its assertions at their lines, and a summary. results is where its results file is, and reports are
// the files that were written. The error says what could not be shown; the rest was.
func (s *Session) Plan(run *result.Run, results string, reports []string) error {
	if s == nil {
		return nil
	}
	d := digest.Of(run)
	if s.outcome == "" || weight(d.Outcome.Word) > weight(s.outcome) {
		s.outcome = d.Outcome.Word
	}
	if results != "" {
		s.reports = append(s.reports, results)
	}
	s.reports = append(s.reports, reports...)
	for _, v := range d.Verdicts {
		s.warned = s.warned || v.Warning
		if v.Outcome != result.Passed && !v.Warning {
			s.failed++
		}
	}
	var errs []error
	list := d.Verdicts
	if !d.Outcome.Good() && !slices.ContainsFunc(list, func(v digest.Verdict) bool { return v.Outcome != result.Passed && !v.Warning }) {
		// No assertion tells why the run did not pass.
		list = append([]digest.Verdict{{Outcome: result.Inconclusive, Assertion: d.Title, Value: d.Outcome.Line}}, list...)
	}
	for _, v := range list {
		if v.Outcome == result.Passed {
			continue
		}
		if s.left == 0 {
			continue
		}
		s.left--
		// Digests have the worst first.
		if _, err := io.WriteString(s.out, s.system.annotation(s.annotate(run, v))+"\n"); err != nil {
			errs = append(errs, err)
		}
	}
	if err := s.system.summary(run, results); err != nil {
		errs = append(errs, fmt.Errorf("can't write the summary: %w", err))
	}
	return errors.Join(errs...)
}

// Finding is a fault of a plan, or something worth knowing about it.
type Finding struct {
	Warning         bool
	File            string
	Line, Column    int // from 1; 0 is unknown
	EndColumn       int // behind the last one that is meant; 0 is unknown
	Message, Detail string
}

// Finding shows one at its line. It counts among the annotations.
func (s *Session) Finding(f Finding) error {
	if s == nil || s.left == 0 {
		return nil
	}
	s.left--
	number := func(n int) string {
		if n <= 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	a := annotation{
		warning: f.Warning, file: s.file(digest.Clean(f.File)), line: number(f.Line), column: number(f.Column), endColumn: number(f.EndColumn),
		title: "plan", text: digest.Clean(f.Message),
	}
	if f.Detail != "" {
		a.text += "\n" + digest.Clean(f.Detail)
	}
	_, err := io.WriteString(s.out, s.system.annotation(a)+"\n")
	return err
}

// Close tells the pipeline what it came to over all plans.
func (s *Session) Close(exit int) error {
	if s == nil {
		return nil
	}
	if s.outcome == "" {
		s.outcome = "not run"
	}
	return s.system.finish(s, exit)
}

// weight orders outcomes by how bad they are.
func weight(word string) int {
	return slices.Index([]string{"passed", "inconclusive", "failed", "incomplete", "interrupted"}, word)
}

func (s *Session) annotate(run *result.Run, v digest.Verdict) annotation {
	a := annotation{warning: v.Warning, title: v.Assertion, text: v.Mark()}
	place := v.Source
	if place == "" {
		// An implied assertion is written nowhere; the plan's first line is where somebody would write one.
		place = digest.Clean(run.File) + ":1:1"
	}
	parts := strings.Split(place, ":")
	if n := len(parts); n >= 3 {
		a.file, a.line, a.column = s.file(strings.Join(parts[:n-2], ":")), parts[n-2], parts[n-1]
		if column, err := strconv.Atoi(a.column); err == nil && v.Source != "" {
			a.endColumn = strconv.Itoa(column + len([]rune(v.Assertion)))
		}
	}
	if f := v.Figures(); f != "" {
		a.text += ": " + f
	}
	if v.Place != "" {
		a.text += "\n" + v.Place
	}
	for _, x := range v.Detail {
		a.text += "\n" + x
	}
	return a
}

// file is a path as the pipeline knows it: from the root of the checkout, with slashes.
func (s *Session) file(path string) string {
	root := cmp.Or(s.env("GITHUB_WORKSPACE"), s.env("BUILD_SOURCESDIRECTORY"))
	if root == "" {
		return filepath.ToSlash(path)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	rel, err := filepath.Rel(root, full)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}
