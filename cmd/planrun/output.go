package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/planrun/planrun/sinks/digest"
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
		if path == "-" {
			return nil, fmt.Errorf("-o %s: expected a file, such as %s=report; stdout has the result", text, kind)
		}
		list = append(list, output{kind, path})
	}
	return list, checkOutputs(list)
}

// checkOutputs tells of reports that could not be written, or that would be written over each other, before anything is
// measured for them. It leaves nothing behind.
func checkOutputs(list []output) error {
	seen := map[string]bool{}
	for _, o := range list {
		same := absolute(o.path)
		if seen[same] {
			return fmt.Errorf("two reports are written to %s; each needs a file of its own", o.path)
		}
		seen[same] = true
		if err := writable(o.path); err != nil {
			return fmt.Errorf("the %s report can't be written to %s: %w", o.kind, o.path, err)
		}
	}
	return nil
}

// checkResults tells of a results file that could not be made, before anything is measured for it. An empty path leaves the
// name to planrun.
func checkResults(path string) error {
	if path == "" {
		path = filepath.Join("results", "*.msgpack")
	} else if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists already; name another results file, or leave the name to planrun", path)
	}
	if err := writable(path); err != nil {
		return fmt.Errorf("the results can't be written to %s: %w", path, err)
	}
	return nil
}

// absolute is a path by which files can be told from each other.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return filepath.Clean(path)
}

// writable tries whether a file could be written whose folder need not be there yet.
func writable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() || strings.HasSuffix(path, string(filepath.Separator)) {
		return errors.New("it is a folder; a report is a file")
	}
	folder := filepath.Dir(path)
	for {
		info, err := os.Stat(folder)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s is a file, not a folder", folder)
		}
		if err == nil {
			break
		}
		above := filepath.Dir(folder)
		if above == folder {
			return plainly(err)
		}
		folder = above
	}
	f, err := os.CreateTemp(folder, ".planrun-*")
	if err != nil {
		return fmt.Errorf("no file can be made in %s: %w", folder, plainly(err))
	}
	f.Close()
	return plainly(os.Remove(f.Name()))
}

// plainly is the reason of an error of the file system, without the call that failed and without names of files that only
// this program knows.
func plainly(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
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

// reports writes every report and shows the run on stdout. A report that can't be written is said below the result, and
// the others still are.
func (p *program) reports(run *result.Run, path string, outputs []output) int {
	exit := verdict.ExitPassed
	var written []terminal.File
	var paths, missing []string
	if path != "" {
		written = append(written, terminal.File{What: "results", Path: path})
	}
	for _, o := range outputs {
		if err := writeReport(o.path, func(w io.Writer) error { return newSink(o.kind, cmp.Or(path, run.Path)).Write(w, run) }); err != nil {
			missing = append(missing, fmt.Sprintf("can't write the %s report to %s: %s", o.kind, o.path, err))
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
	for _, m := range missing {
		p.message("%s", m)
	}
	if len(missing) > 0 {
		fmt.Fprintf(p.stdout, "%s, but not every report was written\n", digest.Of(run).Outcome.Word)
	}
	if err := p.pipeline.plan(run, path, paths); err != nil {
		p.message("can't show everything in the pipeline: %s", err)
	}
	return exit
}

// writeReport replaces a report's file whole, or leaves it as it was.
func writeReport(path string, write func(io.Writer) error) error {
	return plainly(replaceFile(path, write))
}

func replaceFile(path string, write func(io.Writer) error) (err error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("it is a folder; a report is a file")
	}
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
