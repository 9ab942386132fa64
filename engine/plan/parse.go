package plan

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/secret"
)

// Options are what a plan is read with, besides its text.
type Options struct {
	Drivers map[string]drivers.Driver // by the key that a step has for them
	Sinks   []string                  // kinds of reports that exist, such as csv and markdown
	Set     []string                  // KEY=VALUE, as in vars.file_size=1GiB
	// VarFiles are YAML files with values of variables. Set counts more, and of several files the later.
	VarFiles []string
	// Environment is the one of the plan's environments whose values are taken; "" for none.
	Environment string
	// Only has entries NAME[.NAME...], each name that of a scenario, a phase or a target. The names of an entry narrow
	// together, several entries add up.
	Only []string
	Env  func(string) (string, bool) // nil: os.LookupEnv
	// Lab has the addresses of the lab's services by route and service. Without it placeholders stand in for them, and
	// everything else is checked.
	Lab   map[string]map[string]string
	Roots []byte // PEM of the lab's certificate authority
	NoLab bool   // leading to the lab is an error
	// Offline takes placeholders for secrets that can't be read, for plans that are only looked at.
	Offline bool
	// LabOnly accepts a plan without scenarios, for what wants nothing but its lab.
	LabOnly bool
}

// Load reads a plan from a file. The plan is nil if any of the findings is an error.
func Load(file string, opt Options) (*Plan, diag.Findings) {
	text, err := read(file)
	if err != nil {
		return nil, diag.Findings{{Place: diag.Place{File: file}, Message: err.Error()}}
	}
	return Parse(file, text, opt)
}

// read reads a file, up to a little more than a plan may have.
func read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, errors.New("the file does not exist")
		case errors.Is(err, fs.ErrPermission):
			return nil, errors.New("the file may not be read")
		}
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.New("expected a file, but this is a folder")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, errors.New("the file can't be read")
	}
	return text, nil
}

// Parse reads a plan from its text. file is what the plan is called in findings, and where its input files are relative
// to. The plan is nil if any of the findings is an error.
func Parse(file string, text []byte, opt Options) (*Plan, diag.Findings) {
	src, root := readTree(file, text)
	if root == nil {
		return nil, src.sorted()
	}
	if opt.Env == nil {
		opt.Env = os.LookupEnv
	}
	src.folder = folderOf(file)
	src.files = append(src.files, src)
	b := &binder{
		source: src, opt: opt,
		format: newFormat(opt.Drivers, opt.Sinks),
		names:  &names{kinds: map[string]expression.Kind{}, lies: map[[2]string]bool{}, first: map[string]diag.Place{}},
	}
	find(b.format.plan, "scenarios").Required = !opt.LabOnly
	p := b.plan(root, text)
	p.hide(b.hidden)
	found := b.sorted()
	found.Mask(secret.NewMask(b.hidden...).Clean)
	if found.HasErrors() {
		return nil, found
	}
	return p, found
}

// binder makes a Plan of a tree.
type binder struct {
	*source
	opt    Options
	format *format
	names  *names

	vars    map[string]any
	own     map[string]any  // vars as the plan gives them
	unread  map[string]bool // vars that are still to be decoded
	others  []otherSetting
	lab     *labNames
	targets []*target
	scope   *expression.Scope // of what does not depend on a target
	now     *usage            // of the step that is being decoded, nil outside of steps
	values  []string          // what the steps so far capture
	later   map[string]string // what any step of the scenario captures, and where
	secret  map[string]any    // by name: text, or broken
	hidden  []string          // values of secrets
	data    []*dataSet
	read    []*dataSet // of what the current scenario uses
	matrix  map[string]any
	// matrixBroken tells that the scenario's matrix could not be decoded, so that nothing is known of its values.
	matrixBroken bool
	along        []*alongside
	trees        map[string]*node                  // by path: what was read of files
	written      map[*Step]map[string]*writtenStep // by target: what steps were made of
	// settingsMade are values that were changed from outside.
	settingsMade map[string]string
	whiles       []*writtenWhile
}

// plan decodes the root.
func (b *binder) plan(root *node, text []byte) *Plan {
	if root.shape != mapping {
		b.on(root, "write scenarios: and a name", "a plan is a mapping, not %s", root.describe())
		return nil
	}
	root = b.withoutExtras(b.included(b.asMeant(root, b.format.plan)))
	b.lab = b.labNames(b.asMeant(root.value("lab"), b.format.lab))
	b.scope = &expression.Scope{Roots: map[string]expression.Root{"env": b.env}}
	b.secrets(root.value("secrets"), root.keyOf("secrets"))
	b.variables(root.value("vars"), root.value("environments"))
	b.scope = b.outerScope()
	b.sets(root.value("data"), root.keyOf("data"))
	b.names.vars = b.varsRoot
	s := b.section(root, nil, b.format.plan, b.scope)
	p := &Plan{
		File: b.source.file, Text: text,
		Name: s.text("plan"), Description: s.text("description"),
		Preflight: s.boolean("preflight", true),
		Settings:  map[string]string{},
	}
	if p.Name == "" {
		base := filepath.Base(b.source.file)
		p.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	b.set(p)

	spec := b.labSpec(s.node("lab"), s.n.keyOf("lab"))
	p.Described = spec
	b.decodeTargets(s.node("targets"), s.n.keyOf("targets"))
	for _, t := range b.targets {
		p.Targets = append(p.Targets, Target{Name: t.name})
	}
	b.reference(s, p)

	defaults := b.defaults(s.node("defaults"), s.n.keyOf("defaults"))
	around := &scenarioUse{node: s.n.keyOf("before"), lab: map[string][]*node{}}
	p.Before = b.around(s, "before", defaults, around)
	p.After = b.around(s, "after", defaults, around)
	written := b.asserts(s.node("assert"), "", "")
	var uses []*scenarioUse
	if n := s.node("scenarios"); n != nil {
		if n.shape != mapping || len(n.pairs) == 0 {
			b.on(s.n.keyOf("scenarios"), "write a name, and below it a step and phases", "expected scenarios by name, not %s", n.describeList())
			n = &node{}
		}
		for _, pr := range n.pairs {
			if b.strayKey(n, pr) {
				continue
			}
			b.expanded(pr.key, pr.value, defaults, func(sc *Scenario, use *scenarioUse, more []*writtenAssertion) {
				if sc != nil {
					p.Scenarios = append(p.Scenarios, sc)
					uses = append(uses, use)
				}
				written = append(written, more...)
			})
		}
	}
	b.backgrounds(p)
	slices.SortStableFunc(written, func(a, b *writtenAssertion) int {
		return a.place.Compare(b.place)
	})
	p.Sinks = b.sinks(s.node("sinks"))
	p.Results = b.results(s.node("results"), s.n.keyOf("results"))

	p.StrictSamples = s.boolean("strict_samples", false)
	p.Against = b.against(s.n.value("against"), s.n.keyOf("against"))

	b.conditions()
	if b.findings.HasErrors() || root.value("scenarios") == nil {
		// Addresses of what could not be decoded would only be found to lead nowhere.
		b.assertions(p, written, false)
		return p
	}
	b.assertions(p, written, true)
	if len(p.Assertions) == 0 && !b.findings.HasErrors() {
		b.add(diag.Finding{
			Place: b.place(root.keyOf("scenarios")), EndColumn: root.keyOf("scenarios").col + len("scenarios"), Severity: diag.Warning,
			Message: "the plan asserts nothing: it passes when calls succeed, however slow they are",
			Hint:    "write assert: and what has to hold, such as p95 < 500ms",
		})
	}
	p.Placeholders = b.lab.placeholders
	b.only(p, &uses)
	if len(around.lab) > 0 {
		uses = append(uses, around)
	}
	b.leadToLab(p, uses, spec)
	return p
}

// withoutExtras leaves out the keys that begin with x-, which are free for anchors.
func (b *binder) withoutExtras(root *node) *node {
	c := *root
	c.pairs = nil
	for _, p := range root.pairs {
		if !strings.HasPrefix(p.key.text, "x-") {
			c.pairs = append(c.pairs, p)
		}
	}
	return &c
}

// reference decodes which target others are compared with.
func (b *binder) reference(s *section, p *Plan) {
	v, ok := s.values["reference"]
	if !ok {
		return
	}
	var all []string
	for i, t := range p.Targets {
		if t.Name == v.text {
			p.Reference = i
			return
		}
		all = append(all, t.Name)
	}
	hint := nearest(v.text, "", all, "targets are "+strings.Join(all, ", "))
	b.on(v.node, hint, "there is no target %q", v.text)
}
