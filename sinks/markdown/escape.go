package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// apart is put after characters that would make a reference of what follows (ZERO WIDTH SPACE): escaping them does not
// help, as references are looked for in the text that is left when Markdown is done.
const apart = "\u200b"

// escape makes text show as it is, wherever in a line or a table it stands.
func escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		next, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
		word := unicode.IsLetter(next) || unicode.IsDigit(next)
		switch r {
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		case '\\', '`', '*', '_', '[', ']', '|', '~', '$':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '@', '#', '!':
			b.WriteRune(r)
			if word {
				b.WriteString(apart)
			}
		case '-':
			b.WriteRune(r)
			// GH-12 is a reference to an issue.
			if unicode.IsDigit(next) && i >= 2 && strings.EqualFold(s[i-2:i], "gh") {
				b.WriteString(apart)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// paragraph escapes text that stands at the beginning of a line, where some characters begin a list, a heading or a quote.
func paragraph(s string) string {
	e := escape(s)
	if e == "" {
		return e
	}
	if strings.ContainsRune("-+=#:", rune(e[0])) {
		return `\` + e
	}
	digits := 0
	for digits < len(e) && e[digits] >= '0' && e[digits] <= '9' {
		digits++
	}
	if digits > 0 && digits < len(e) && (e[digits] == '.' || e[digits] == ')') {
		return e[:digits] + `\` + e[digits:]
	}
	return e
}

// code makes a code span, in which nothing means anything but its end, and in a table a pipe.
func code(s string, table bool) string {
	if s == "" {
		return ""
	}
	if table {
		s = strings.ReplaceAll(s, "|", `\|`)
	}
	// The fence is longer than any row of backticks inside.
	longest, n := 0, 0
	for _, r := range s {
		if n++; r != '`' {
			n = 0
		}
		longest = max(longest, n)
	}
	fence := strings.Repeat("`", longest+1)
	if s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ' && s[len(s)-1] == ' ' {
		s = " " + s + " "
	}
	return fence + s + fence
}
