package diag

import (
	"cmp"
	"slices"
	"strings"
)

// Severity tells what stops a run from what is only worth knowing.
type Severity uint8

const (
	Error   Severity = iota // nothing is sent
	Warning                 // the run goes on
)

func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Finding is one thing to say about a file.
type Finding struct {
	Place
	// EndColumn is the column behind the last one that is meant, on the same line; 0 means one column.
	EndColumn int
	Severity  Severity
	Message   string   // lower case, no full stop, without the place
	Hint      string   // what to write instead, if sure
	Source    string   // the line of Place, without its line break; "" when there is none to show
	Notes     []string // further lines, such as the corrected text or where else to look
}

// String is the finding on one line, for machines: file:line:column: message: hint.
func (f Finding) String() string {
	var b strings.Builder
	f.writeHead(&b, Style{})
	if f.Hint != "" {
		b.WriteString(": ")
		b.WriteString(oneLine(f.Hint))
	}
	return b.String()
}

// Findings are what was found about one file or several.
type Findings []Finding

// HasErrors tells whether any of them stops a run.
func (fs Findings) HasErrors() bool {
	return slices.ContainsFunc(fs, func(f Finding) bool { return f.Severity == Error })
}

// Sort orders findings by place; those of one place keep the order in which they were found.
func (fs Findings) Sort() {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(a.Place.Compare(b.Place), cmp.Compare(a.Severity, b.Severity))
	})
}

// String is one line for each finding.
func (fs Findings) String() string {
	var b strings.Builder
	for _, f := range fs {
		b.WriteString(f.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// oneLine makes text safe to print within a line: whatever would move the cursor is replaced.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return printable(r)
	}, s)
}

// Mask replaces the texts of all findings by what clean makes of them.
func (f Findings) Mask(clean func(string) string) {
	for i := range f {
		f[i].Message, f[i].Hint, f[i].Source = clean(f[i].Message), clean(f[i].Hint), clean(f[i].Source)
		for j := range f[i].Notes {
			f[i].Notes[j] = clean(f[i].Notes[j])
		}
	}
}
