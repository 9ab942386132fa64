package expression

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// checkPlaces wants every error to lie within its text, and to speak the language of plans.
func checkPlaces(t *testing.T, src string, errs []*Error) {
	t.Helper()
	n := utf8.RuneCountInString(src)
	for _, e := range errs {
		if e.Offset < 0 || e.Length < 0 || e.Offset+e.Length > n {
			t.Fatalf("%q: %q is placed at %d+%d of %d runes", src, e.Message, e.Offset, e.Length, n)
		}
		if e.Message == "" {
			t.Fatalf("%q: an error without a message", src)
		}
		if !strings.ContainsRune(src, mark) {
			checkWords(t, src, e.Message)
			checkWords(t, src, e.Hint)
		}
	}
}

func checkWords(t *testing.T, src, message string) {
	t.Helper()
	if strings.ContainsRune(message, mark) {
		t.Fatalf("%q: a placeholder in %q", src, message)
	}
	for _, word := range []string{"interface {}", "Identifier(", "Operator(", "Bracket(", "map[string]", "[]string", "float64", "int64"} {
		if strings.Contains(message, word) && !strings.Contains(src, word) {
			t.Fatalf("%q: %q in %q", src, word, message)
		}
	}
}

func FuzzAssertion(f *testing.F) {
	for _, s := range []string{
		"p50 < 30ms", "hybrid.p50 - direct.p50 < 5ms", "not (p(99.9) > vars.limit)", "1ms < p50 < 2ms", "change(p50).low < 5%",
		`status("5xx") == 0 or failures("timeout") / count < 1%`, "p50 < 30 ms", "within(1m30s) > 99.9%", "rps * 10s > 5", "((((p50", "`", "p50 <\n 3ms",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		a, errs := ParseAssertion(src, names{})
		checkPlaces(t, src, errs)
		if (a == nil) != (len(errs) > 0) {
			t.Fatalf("%q: assertion %v, errors %v", src, a, errs)
		}
		if a == nil {
			return
		}
		if len(a.Addresses()) == 0 {
			t.Fatalf("%q reads nothing", src)
		}
		for _, data := range []float64{0, 1, 1e9, -3.5} {
			j := a.Judge(func(int) (float64, bool) { return data, true })
			for _, s := range append(append([]string{j.Value, j.Limit}, j.Values...), j.Why...) {
				if strings.Contains(s, "NaN") && !strings.Contains(src, "NaN") || strings.Contains(s, "Inf") && !strings.Contains(src, "Inf") {
					t.Fatalf("%q: %q", src, s)
				}
			}
		}
		if j := a.Judge(func(int) (float64, bool) { return 0, false }); j.Truth == True && !strings.Contains(src, "vars.strict") {
			t.Fatalf("%q passes without data", src)
		}
	})
}

// Texts that take expr or a careless walk over its tree for ever are refused or read at once. The test has no clock: it
// would not end.
func TestHostileTexts(t *testing.T) {
	var asked []string
	scope := testScope(&asked)
	for _, src := range []string{
		strings.Repeat("(", 100000),
		strings.Repeat("-", 100000) + "1",
		strings.Repeat("(", 500) + "1" + strings.Repeat(")", 500),
		strings.Repeat("not ", 250) + "true",
		strings.Repeat("-", 1000) + "1",
		strings.Repeat("[", 1000),
		strings.Repeat("1<(", 40) + "1<1<1" + strings.Repeat(")<1", 40),
		strings.Repeat("a.", 500) + "b",
		strings.Repeat("f(", 400),
		strings.Repeat("map(1..9999999,", 60),
		strings.Repeat("1+", 500) + "1",
		strings.Repeat(`"`, 999),
		strings.Repeat("5ms ", 250),
		strings.Repeat("true ? 1 : ", 90) + "1",
		strings.Repeat("{a:", 300),
		"\xff\xfe",
	} {
		_, errs := ParseAssertion(src, names{})
		checkPlaces(t, src, errs)
		if len(errs) == 0 {
			t.Errorf("%.40q is an assertion", src)
		}
		_, errs = ParseExpectation(src, answerNames, scope)
		checkPlaces(t, src, errs)
		_, errs = ParseTemplate("${"+src+"}", scope)
		checkPlaces(t, "${"+src+"}", errs)
	}
}
