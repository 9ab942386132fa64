// Package secret keeps secrets out of what is printed and written: reports, examples of failures, messages, and the plan's
// own text in the results.
package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Shown is what stands in the place of a secret.
const Shown = "***"

// Mask knows the secrets of a run. A nil Mask knows none. It is safe for concurrent use once all are added.
type Mask struct {
	forms    []string // longest first
	replacer *strings.Replacer
}

// NewMask makes a mask of values. Empty ones are left out.
func NewMask(values ...string) *Mask {
	m := &Mask{}
	for _, v := range values {
		m.forms = append(m.forms, forms(v)...)
	}
	// A secret may be part of another one, and what is left of the longer one would still say something.
	slices.SortStableFunc(m.forms, func(a, b string) int { return len(b) - len(a) })
	m.forms = slices.Compact(m.forms)
	m.replacer = replacer(m.forms)
	return m
}

func replacer(forms []string) *strings.Replacer {
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f, Shown)
	}
	return strings.NewReplacer(pairs...)
}

// Clean returns text without the secrets, in any of the forms in which they are usually sent, and without passwords in
// URLs and connection strings.
func (m *Mask) Clean(text string) string {
	if m != nil && m.replacer != nil {
		text = m.replacer.Replace(text)
	}
	return Passwords(text)
}

// With returns a mask that knows further values.
func (m *Mask) With(values ...string) *Mask {
	n := NewMask(values...)
	if m != nil {
		n.forms = append(n.forms, m.forms...)
		slices.SortStableFunc(n.forms, func(a, b string) int { return len(b) - len(a) })
		n.replacer = replacer(n.forms)
	}
	return n
}

// Without is Clean for one more secret, which the mask does not keep.
func (m *Mask) Without(value, text string) string {
	if value == "" {
		return text
	}
	f := forms(value)
	slices.SortStableFunc(f, func(a, b string) int { return len(b) - len(a) })
	return replacer(f).Replace(text)
}

// forms are the ways in which a value is usually written: itself, escaped for a URL, for JSON and for people, in base64
// and in hexadecimal digits.
func forms(v string) []string {
	if v == "" {
		return nil
	}
	out := []string{v}
	add := func(s string) {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	add(url.QueryEscape(v))
	add(url.PathEscape(v))
	add(url.UserPassword("", v).String()[1:])
	add(strings.ToLower(url.QueryEscape(v)))
	if b, err := json.Marshal(v); err == nil {
		add(string(b[1 : len(b)-1]))
	}
	q := strconv.Quote(v)
	add(q[1 : len(q)-1])
	add(strings.ReplaceAll(v, "'", "''"))
	add(hex.EncodeToString([]byte(v)))
	// In base64 a value looks different by where it begins in a group of three bytes, as behind a user name. The digits at
	// both ends that depend on its neighbours are left out, unless the value stands alone.
	add(base64.StdEncoding.EncodeToString([]byte(v)))
	add(base64.RawStdEncoding.EncodeToString([]byte(v)))
	add(base64.URLEncoding.EncodeToString([]byte(v)))
	add(base64.RawURLEncoding.EncodeToString([]byte(v)))
	for shift := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			s := enc.EncodeToString([]byte(strings.Repeat("\x00", shift) + v))
			from := (8*shift + 5) / 6
			to := 8 * (shift + len(v)) / 6
			if to-from >= 6 { // shorter ones are found in any text
				add(s[from:to])
			}
		}
	}
	return out
}

var passwords = []*regexp.Regexp{
	regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@?#"'<>]*:)([^\s/@"'<>]+)(@)`),
	regexp.MustCompile(`(?i)(\b(?:password|passwd|pwd)\s*=\s*)('[^']*'|"[^"]*"|\{[^}]*\}|[^\s;&"'$]+)()`),
	// As the driver for MySQL has it: user:password@tcp(host:port)/database.
	regexp.MustCompile(`(\b[A-Za-z0-9_.-]+:)([^\s@"'/]+)(@(?:tcp|unix)\()`),
}

// Passwords returns text without the passwords of URLs and connection strings. One that the plan takes from elsewhere,
// as in ${secret.PG}, stays as it is written.
func Passwords(text string) string {
	for _, p := range passwords {
		text = p.ReplaceAllStringFunc(text, func(s string) string {
			m := p.FindStringSubmatch(s)
			if strings.HasPrefix(m[2], "${") || m[2] == Shown {
				return s
			}
			return m[1] + Shown + m[3]
		})
	}
	return text
}
