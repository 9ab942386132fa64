package diag

import (
	"strings"
	"unicode/utf8"
)

// Suggest returns the valid name that was most likely meant by name, or "" if none is near. Letter case counts for
// less than a wrong letter, and two swapped letters are one fault. Of equally near names the first is taken.
func Suggest(name string, valid []string) string {
	best, nearest := "", utf8.RuneCountInString(name)/3
	if nearest == 0 && utf8.RuneCountInString(name) > 1 {
		nearest = 1
	}
	low := []rune(strings.ToLower(name))
	if len(low) > 64 { // nobody misspells that; keeps the cost bounded
		return ""
	}
	for _, v := range valid {
		if v == name {
			continue
		}
		d := distance(low, []rune(strings.ToLower(v)))
		if d < nearest || d == nearest && best == "" {
			best, nearest = v, d
		}
	}
	return best
}

// distance is the optimal string alignment distance: insertions, deletions, replacements and swaps of neighbours.
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
