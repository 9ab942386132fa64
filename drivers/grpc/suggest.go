package grpc

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxListed is how many names a hint lists when none of them is close.
const maxListed = 6

// oneOf is the hint for a name that is none of names: the closest one, else all of them if they are few.
func oneOf(name string, names []string) string {
	if best := closest(name, names); best != "" {
		return "did you mean " + best + "?"
	}
	if len(names) == 0 || len(names) > maxListed {
		return ""
	}
	if len(names) == 1 {
		return "there is " + names[0]
	}
	return "there are " + strings.Join(names, ", ")
}

// closest returns the name that differs least from name, by at most a third of its letters or two, and by one if it has
// no more than three; "" if there is none.
func closest(name string, names []string) string {
	most := 1
	if len(name) > 3 {
		most = max(len(name)/3, 2)
	}
	best, least := "", most+1
	for _, n := range names {
		d := levenshtein.ComputeDistance(fold(name), fold(n))
		if d < least {
			best, least = n, d
		}
	}
	return best
}

// fold makes spellings alike that differ in case and underscores only.
func fold(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "") }
