package digest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text from anywhere fit for one line of a report: line breaks and tabs become spaces, other control
// characters, marks that turn the direction of writing, and bytes that are no UTF-8 become U+FFFD.
func Clean(s string) string {
	clean := true
	for i := 0; i < len(s) && clean; i++ {
		clean = s[i] >= ' ' && s[i] < 0x7f
	}
	if clean {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ReplaceAll(s, "\r\n", "\n") {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			b.WriteByte(' ')
		case r == utf8.RuneError, unicode.IsControl(r), turns(r), r&0xfffe == 0xfffe:
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}

// turns says that a character changes the direction of writing (UAX #9, section 2), and so could make a line read as
// what it is not.
func turns(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f' || r == '\u061c'
}

// Shorten cuts text to n characters, the last of which then says so.
func Shorten(s string, n int) string {
	i := 0
	for at := range s {
		if i++; i > n {
			r := []rune(s[:at])
			return string(r[:n-1]) + "…"
		}
	}
	return s
}

// Lines makes text of several lines fit for a report: each is Clean but for the blanks before it, and tabs stay.
func Lines(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, " \t\r")
		inner := strings.TrimLeft(line, " \t")
		parts := strings.Split(inner, "\t")
		for k := range parts {
			blanks := len(parts[k]) - len(strings.TrimLeft(parts[k], " "))
			parts[k] = parts[k][:blanks] + Clean(parts[k])
		}
		lines[i] = line[:len(line)-len(inner)] + strings.Join(parts, "\t")
	}
	return strings.Join(lines, "\n")
}
