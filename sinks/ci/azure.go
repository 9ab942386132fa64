package ci

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/markdown"
)

// azure writes logging commands: https://learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands.
type azure struct {
	env func(string) string
	out io.Writer
}

// Escapes of logging commands, as taskcommand.ts of the task library has them.
var (
	azureData     = strings.NewReplacer("%", "%AZP25", "\r", "%0D", "\n", "%0A")
	azureProperty = strings.NewReplacer("%", "%AZP25", "\r", "%0D", "\n", "%0A", "]", "%5D", ";", "%3B")
)

func (z *azure) annotation(a annotation) string {
	kind := "error"
	if a.warning {
		kind = "warning"
	}
	b := "##vso[task.logissue type=" + kind + ";"
	add := func(name, value string) {
		if value != "" {
			b += name + "=" + azureProperty.Replace(value) + ";"
		}
	}
	add("sourcepath", a.file)
	add("linenumber", a.line)
	add("columnnumber", a.column)
	add("code", "planrun")
	return b + "]" + azureData.Replace(a.title+": "+a.text)
}

// summary writes a file that the agent takes when the job ends, and so leaves it.
func (z *azure) summary(run *result.Run, results string) error {
	dir := z.env("AGENT_TEMPDIRECTORY") // "" is that of the system
	f, err := os.CreateTemp(dir, "planrun-*.md")
	if err != nil {
		return err
	}
	err = markdown.New(markdown.Options{Limit: 500_000, Results: results}).Write(f, run)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	path, err := filepath.Abs(f.Name())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(z.out, "##vso[task.uploadsummary]%s\n", azureData.Replace(path))
	return err
}

// finish sets output variables, and marks the step where there were warnings only: its exit code is that of success.
func (z *azure) finish(s *Session, exit int) error {
	for _, x := range []struct{ name, value string }{
		{"planrun.verdict", s.outcome}, {"planrun.failed", fmt.Sprint(s.failed)}, {"planrun.exit", fmt.Sprint(exit)},
		{"planrun.report", strings.Join(s.reports, ";")},
	} {
		if _, err := fmt.Fprintf(z.out, "##vso[task.setvariable variable=%s;isOutput=true;]%s\n", x.name, azureData.Replace(x.value)); err != nil {
			return err
		}
	}
	if exit == 0 && s.warned {
		_, err := io.WriteString(z.out, "##vso[task.complete result=SucceededWithIssues;]passed with warnings\n")
		return err
	}
	return nil
}
