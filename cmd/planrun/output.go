package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/engine/verdict"
	"github.com/planrun/planrun/sinks"
	"github.com/planrun/planrun/sinks/csv"
	"github.com/planrun/planrun/sinks/html"
	"github.com/planrun/planrun/sinks/json"
	"github.com/planrun/planrun/sinks/junit"
	"github.com/planrun/planrun/sinks/markdown"
	"github.com/planrun/planrun/sinks/prometheus"
	"github.com/planrun/planrun/sinks/terminal"
)

// output is a report to be written.
type output struct{ kind, path string }

// sinkKinds are the keys of `sinks:` in a plan.
func sinkKinds() []string {
	return []string{"csv", "html", "json", "junit", "markdown", "prometheus", "xunit"}
}

// outputKinds are the kinds of -o.
var outputKinds = []string{"csv", "html", "json", "junit", "markdown", "prometheus", "samples", "text", "xunit"}

// newSink makes the sink of a kind; results is where the results file is.
func newSink(kind, results string) sinks.Sink {
	switch kind {
	case "html":
		return html.New(html.Options{Results: results})
	case "json":
		return json.New()
	case "junit":
		return junit.New(junit.Options{})
	case "xunit":
		return junit.New(junit.Options{Strict: true})
	case "prometheus":
		return prometheus.New()
	case "csv":
		return csv.New(csv.Options{Rows: csv.Cells})
	case "samples":
		return csv.New(csv.Options{Rows: csv.Samples})
	case "markdown":
		return markdown.New(markdown.Options{Results: results})
	case "text":
		return terminal.New(terminal.Options{})
	}
	return nil
}

// parseOutputs reads the values of -o.
func parseOutputs(texts []string) ([]output, error) {
	var list []output
	for _, text := range texts {
		kind, path, ok := strings.Cut(text, "=")
		if !ok || path == "" {
			return nil, fmt.Errorf("-o %s: expected KIND=PATH, such as markdown=report.md", text)
		}
		if !slices.Contains(outputKinds, kind) {
			return nil, fmt.Errorf("-o %s: unknown kind %q; expected one of %s", text, kind, strings.Join(outputKinds, ", "))
		}
		list = append(list, output{kind, path})
	}
	return list, nil
}

// planOutputs are the reports that a plan asks for.
func planOutputs(list []plan.Sink) []output {
	var outputs []output
	for _, s := range list {
		kind := s.Kind
		if kind == "csv" && s.Rows == "samples" {
			kind = "samples"
		}
		outputs = append(outputs, output{kind, s.Path})
	}
	return outputs
}

// reports writes every report and shows the run on stdout. A report that can't be written is said, and the others still are.
func (p *program) reports(run *result.Run, path string, outputs []output) int {
	exit := verdict.ExitPassed
	var written []terminal.File
	var paths []string
	if path != "" {
		written = append(written, terminal.File{What: "results", Path: path})
	}
	for _, o := range outputs {
		if err := writeReport(o.path, func(w io.Writer) error { return newSink(o.kind, cmp.Or(path, run.Path)).Write(w, run) }); err != nil {
			p.message("can't write the %s report: %s", o.kind, err)
			exit = verdict.ExitInconclusive
			continue
		}
		written = append(written, terminal.File{What: o.kind, Path: o.path})
		paths = append(paths, o.path)
	}
	screen := terminal.New(terminal.Options{Width: width(p.stdout), Color: colours(p.stdout), Files: written})
	if err := screen.Write(p.stdout, run); err != nil {
		p.message("can't write the result: %s", err)
		exit = verdict.ExitInconclusive
	}
	if err := p.pipeline.plan(run, path, paths); err != nil {
		p.message("can't show everything in the pipeline: %s", err)
	}
	return exit
}

// writeReport replaces a report's file whole, or leaves it as it was.
func writeReport(path string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// colours tells whether a stream is a terminal that shows them. NO_COLOR set to anything turns them off (no-color.org).
func colours(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// width is how many columns a stream shows; 0, which leaves it to the sink, for a file or a pipe.
func width(w io.Writer) int {
	if f, ok := w.(*os.File); ok && isTerminal(w) {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}
