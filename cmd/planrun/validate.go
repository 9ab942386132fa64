package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/verdict"
	"github.com/planrun/planrun/sinks/ci"
)

type validateCommand struct {
	planFlags
	pipelineFlags
	Format string   `default:"text" enum:"text,json,github,azure" help:"How findings are printed: text, json, github or azure."`
	Plans  []string `arg:"" name:"plan" help:"Plan files, folders of them, or patterns such as 'plans/*.yaml'."`
}

func (c *validateCommand) run(p *program) (int, error) {
	if c.Format == "text" {
		defer c.show(p)()
	}
	files, err := planFiles(c.Plans)
	if err != nil {
		return verdict.ExitUsage, err
	}
	opt := c.options()
	opt.Offline = true
	var all diag.Findings
	var sound []string
	for _, file := range files {
		_, findings := plan.Load(file, opt)
		if c.Format == "text" {
			p.missing(file, findings)
			p.findings(findings)
		}
		if !findings.HasErrors() {
			sound = append(sound, file)
		}
		all = append(all, findings...)
	}
	if err := c.print(p, all, sound); err != nil {
		return verdict.ExitInconclusive, err
	}
	if all.HasErrors() {
		return verdict.ExitUsage, nil
	}
	return verdict.ExitPassed, nil
}

// print shows what came out. Findings in text were printed already.
func (c *validateCommand) print(p *program, all diag.Findings, sound []string) error {
	switch c.Format {
	case "json":
		return writeFindings(p, all, sound)
	case "github", "azure":
		name := map[string]string{"github": "GITHUB_ACTIONS", "azure": "TF_BUILD"}[c.Format]
		session := ci.New(func(key string) string {
			if key == name {
				return map[string]string{"github": "true", "azure": "True"}[c.Format]
			}
			return ""
		}, p.stdout)
		return (&pipeline{session: session, stdout: ci.NewGuard(p.stdout)}).findings(all)
	}
	for _, file := range sound {
		fmt.Fprintf(p.stdout, "%s: ok\n", file)
	}
	return nil
}

// jsonFinding is a finding as programs read it. Fields are only ever added.
type jsonFinding struct {
	File      string   `json:"file"`
	Line      int      `json:"line,omitempty"`
	Column    int      `json:"column,omitempty"`
	EndColumn int      `json:"end_column,omitempty"`
	Severity  string   `json:"severity"`
	Message   string   `json:"message"`
	Hint      string   `json:"hint,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

func writeFindings(p *program, all diag.Findings, sound []string) error {
	out := struct {
		Version  int           `json:"version"`
		Valid    []string      `json:"valid"`
		Findings []jsonFinding `json:"findings"`
	}{1, append([]string{}, sound...), []jsonFinding{}}
	for _, f := range all {
		out.Findings = append(out.Findings, jsonFinding{f.File, f.Line, f.Column, f.EndColumn, f.Severity.String(), f.Message, f.Hint, f.Notes})
	}
	e := json.NewEncoder(p.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// hasScenarios matches the text of what is most likely a plan, and not a file that plans include or something else.
var hasScenarios = regexp.MustCompile(`(?m)^scenarios\s*:`)

// planFiles finds the files that are meant by files, folders and patterns. Of a folder or a pattern, files without
// scenarios are no plans.
func planFiles(args []string) ([]string, error) {
	var out []string
	add := func(file string) {
		if !slices.Contains(out, file) {
			out = append(out, file)
		}
	}
	for _, arg := range args {
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			before := len(out)
			err := filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
				name := d.Name()
				switch {
				case err != nil:
					return err
				case strings.HasPrefix(name, ".") && path != arg && d.IsDir():
					return fs.SkipDir
				case d.IsDir() || filepath.Ext(name) != ".yaml" && filepath.Ext(name) != ".yml":
					return nil
				}
				text, err := os.ReadFile(path)
				if err == nil && hasScenarios.Match(text) {
					add(path)
				}
				return err
			})
			if err != nil {
				return nil, err
			}
			if len(out) == before {
				return nil, fmt.Errorf("%s: the folder has no plans: no file ending in .yaml has scenarios", arg)
			}
			continue
		} else if err != nil && strings.ContainsAny(arg, "*?[") {
			found, err := filepath.Glob(arg)
			if err != nil || len(found) == 0 {
				return nil, fmt.Errorf("%s: no file is called like this", arg)
			}
			before := len(out)
			for _, f := range found {
				if text, err := os.ReadFile(f); err != nil || hasScenarios.Match(text) {
					add(f)
				}
			}
			if len(out) == before {
				return nil, fmt.Errorf("%s: none of the files is a plan: they have no scenarios", arg)
			}
			continue
		}
		add(arg)
	}
	return out, nil
}
