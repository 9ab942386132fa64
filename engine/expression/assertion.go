package expression

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
	// All lists the names that Kind knows, for suggestions.
	All() []string
	// Root returns the resolver of a root of constants, such as vars; nil if name is none. Text such as "30ms" is read
	// as a quantity.
	Root(name string) Root
}

// Address is one metric of one cell, or of each cell that fits: what is empty was left out and means "each".
type Address struct {
	Scenario, Phase, Stage, Step, Target string
	Ramp                                 bool // the ramps of the phase instead of its judged stages
	Metric                               Metric
	Offset, Length                       int    // in runes, within the assertion
	Text                                 string // as written
}

// Truth is the outcome of an assertion.
type Truth uint8

const (
	False Truth = iota
	True
	Unknown // not decided by the data there is
)

var truthNames = [...]string{"false", "true", "unknown"}

func (t Truth) String() string { return truthNames[min(int(t), len(truthNames)-1)] }

// Judgement is how an assertion came out.
type Judgement struct {
	Truth Truth
	// Value and Limit are the two sides of the comparison that decided, or of the first one; the measured side is Value.
	Value, Limit string
	// Missing are the indexes of addresses that were read and have no data.
	Missing []int
	// Values has every address that was read, as in "direct.p50 = 13.1ms".
	Values []string
	// Why has the comparisons that made the assertion not true, with their values.
	Why []string
}
