package expression

import "slices"

// Kind is what a name of an address stands for.
type Kind uint8

const (
	Scenario Kind = iota
	Phase
	Stage
	Target
	Step
)

var kindNames = [...]string{"scenario", "phase", "stage", "target", "step"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Names are the names that assertions of a plan may use.
type Names interface {
	// Kind tells what a name of the plan stands for.
	Kind(name string) (Kind, bool)
	// Within tells whether a step, group or branch lies within another group or branch, in any scenario.
	Within(inner, outer string) bool
	// All lists the names that Kind knows, for suggestions.
	All() []string
	// Root returns the resolver of a root of constants, such as vars; nil if name is none. Text such as "30ms" is read
	// as a quantity.
	Root(name string) Root
}

// Address is one metric of one cell, or of each cell that fits: what is empty was left out and means "each".
type Address struct {
	Scenario, Phase, Stage, Step, Target string
	Around                               []string // groups and branches in which Step lies, as far as they were named
	Ramp                                 bool     // the ramps of the phase instead of its judged stages
	Metric                               Metric
	Offset, Length                       int    // in runes, within the assertion
	Text                                 string // as written
}

// Assertion is a condition on cells.
type Assertion struct {
	source    *source
	root      *term
	addresses []*Address
}

// ParseAssertion reads an assertion and checks its names and dimensions.
func ParseAssertion(src string, names Names) (*Assertion, []*Error) {
	s, tree := parse(src)
	if tree == nil {
		return nil, s.errs
	}
	c := &checker{source: s, names: names}
	root := c.build(tree)
	switch {
	case root == nil:
	case !root.truth:
		c.notTruth(root)
	case root.constant:
		c.fail(root.at, c.textOf(root.at)+" reads no metric", "")
	}
	if len(s.errs) > 0 {
		return nil, s.errs
	}
	return &Assertion{source: s, root: root, addresses: c.addresses}, nil
}

// String is the assertion as written, on one line.
func (a *Assertion) String() string { return a.source.textOf(span{0, len(a.source.runes)}) }

// Addresses are the metrics that the assertion reads, in order of appearance. Their indexes are those of Judge.
func (a *Assertion) Addresses() []*Address { return a.addresses }

// Compared groups the addresses by the comparison that reads them: those of `a.p95 < 2 * b.p95` are one group, and those of
// `a.p95 < 1s and b.p95 < 2s` two.
func (a *Assertion) Compared() [][]*Address {
	var groups [][]*Address
	var visit func(t *term, group *[]*Address)
	visit = func(t *term, group *[]*Address) {
		switch {
		case t == nil:
			return
		case t.op == opAddress:
			if group != nil {
				*group = append(*group, a.addresses[t.index])
			}
			return
		case t.op >= opLess && t.op <= opUnequal:
			var own []*Address
			visit(t.left, &own)
			visit(t.right, &own)
			groups = append(groups, own)
			return
		}
		visit(t.left, group)
		visit(t.right, group)
	}
	visit(a.root, nil)
	return groups
}

// ReadsPrevious tells whether the assertion reads the results of an earlier run.
func (a *Assertion) ReadsPrevious() bool {
	return slices.ContainsFunc(a.addresses, func(x *Address) bool { return x.Metric.Previous })
}

// Reads tells whether the assertion reads one of the metrics, of whatever group and cell.
func (a *Assertion) Reads(metrics ...string) bool {
	for _, address := range a.addresses {
		if slices.Contains(metrics, address.Metric.Name) {
			return true
		}
	}
	return false
}
