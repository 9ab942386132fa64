package ci

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/markdown"
)

// github writes workflow commands: https://docs.github.com/actions/reference/workflow-commands-for-github-actions.
type github struct{ env func(string) string }

// Escapes of workflow commands, as the toolkit's command.ts has them.
var (
	githubData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func (g *github) annotation(a annotation) string {
	kind := "error"
	if a.warning {
		kind = "warning"
	}
	var properties []string
	add := func(name, value string) {
		if value != "" {
			properties = append(properties, name+"="+githubProperty.Replace(value))
		}
	}
	add("file", a.file)
	add("line", a.line)
	add("col", a.column)
	add("endColumn", a.endColumn)
	add("title", a.title)
	return "::" + kind + " " + strings.Join(properties, ",") + "::" + githubData.Replace(a.text)
}

// githubSummary is how much a step's summary may have in all. GitHub takes 1024 KiB, and of more than that nothing.
const githubSummary = 1000 << 10

// leastSummary is how little room still makes a summary.
const leastSummary = 4 << 10

func (g *github) summary(run *result.Run, results string) error {
	path := g.env("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	room := githubSummary
	if info, err := os.Stat(path); err == nil {
		room -= int(min(info.Size(), githubSummary))
	}
	if room < leastSummary {
		return errors.New("there is no room left in it")
	}
	return appendTo(path, func(w io.Writer) error {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		return markdown.New(markdown.Options{Limit: room - 1, Results: results}).Write(w, run)
	})
}

// finish sets the step's outputs: verdict, failed, exit, and report, a path a line.
func (g *github) finish(s *Session, exit int) error {
	path := g.env("GITHUB_OUTPUT")
	if path == "" {
		return nil
	}
	err := appendTo(path, func(w io.Writer) error {
		for _, x := range []struct{ name, value string }{
			{"verdict", s.outcome}, {"failed", fmt.Sprint(s.failed)}, {"exit", fmt.Sprint(exit)}, {"report", strings.Join(s.reports, "\n")},
		} {
			// A delimiter that nobody can guess, so that no value ends itself and begins another.
			end := "planrun_" + rand.Text()
			if _, err := fmt.Fprintf(w, "%s<<%s\n%s\n%s\n", x.name, end, x.value, end); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("can't set the outputs: %w", err)
	}
	return nil
}

func appendTo(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
