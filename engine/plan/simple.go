package plan

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/quantity"
)

// want is how messages name a kind, with its article.
func want(kind drivers.Kind) string {
	switch kind {
	case drivers.Bool:
		return "true or false"
	case drivers.Int, CountKind:
		return "a whole number"
	case drivers.Duration:
		return "a duration"
	case drivers.Size:
		return "a size"
	case RateKind:
		return "a rate"
	case SpeedKind:
		return "a byte rate"
	case ShareKind:
		return "a percentage"
	case SpanKind:
		return "a duration, or two with .. between them"
	case WarmupKind:
		return "a number of iterations, or a duration"
	case drivers.File, drivers.FileList:
		return "the path of a file"
	case NameKind:
		return "a name"
	case ExpressionKind, ExpectsKind, AssertsKind:
		return "an expression"
	case drivers.TextOrBool:
		return "text, or true or false"
	case drivers.Scalar:
		return "a value"
	}
	return "text"
}

// simple decodes a value that is one scalar and known before the load. ok is false for null, for findings, and for kinds
// that are more than that.
func (b *binder) simple(n *node, f *Field, scope *expression.Scope) (v bound, ok bool) {
	switch f.Kind {
	case drivers.Text, drivers.Bool, drivers.Int, drivers.Duration, drivers.Size, drivers.Choice, CountKind, RateKind, SpeedKind, ShareKind, SpanKind, WarmupKind, NameKind:
	default:
		return v, false
	}
	v.node = n
	text, at, ok := b.fixed(n, f.Kind, scope)
	if !ok {
		return v, false
	}
	v.text = text
	var err error
	switch f.Kind {
	case drivers.Bool:
		v.b, err = parseBool(text)
	case drivers.Int:
		v.i, err = quantity.ParseInt(text)
	case CountKind:
		if v.i, err = quantity.ParseInt(text); err == nil && v.i < 1 {
			err = &quantity.Error{Length: len([]rune(text)), Message: "must be at least 1"}
		} else if err == nil && v.i > 1e9 {
			err = &quantity.Error{Length: len([]rune(text)), Message: text + " is too large"}
		}
	case drivers.Duration:
		v.d, err = quantity.ParseDuration(text)
	case drivers.Size:
		v.i, err = quantity.ParseSize(text)
	case SpeedKind:
		v.f, err = quantity.ParseSpeed(text)
	case ShareKind:
		v.f, err = quantity.ParseShare(text)
	case RateKind:
		v.f, v.isNumber, err = parseRate(text, usersToo(*f))
	case SpanKind:
		v.span, err = parseSpan(text)
	case WarmupKind:
		v.warmup, err = parseWarmup(text)
	case drivers.Choice:
		err = parseChoice(text, f.Choices)
	}
	if err != nil {
		b.misread(n, at, err)
		return v, false
	}
	return v, true
}

// rootAlone matches text that was most likely meant as an expression.
var rootAlone = regexp.MustCompile(`^(vars|env|matrix|secret|lab|target|data)\.[A-Za-z_][A-Za-z0-9_.]*$`)

// misread notes why a literal could not be read. written tells that the literal is the node's own text.
func (b *binder) misread(n *node, written bool, err error) {
	var e *quantity.Error
	switch {
	case !errors.As(err, &e):
		b.on(n, "", "%s", err)
	case written && rootAlone.MatchString(n.text):
		b.on(n, `write "${`+n.text+`}"`, "%s is text here", n.text)
	case written && n.text != "":
		b.within(n, e.Offset, e.Length, e.Message, e.Hint)
	default:
		b.on(n, e.Hint, "%s", e.Message)
	}
}

// fixed returns the text of a scalar with its ${...} put in. written tells that there were none, so that offsets in the
// text are offsets in the node. ok is false for null and for findings.
func (b *binder) fixed(n *node, kind drivers.Kind, scope *expression.Scope) (text string, written, ok bool) {
	switch n.shape {
	case null, empty:
		return "", false, false
	case mapping, sequence:
		b.wrongShape(n, want(kind))
		return "", false, false
	}
	if (kind == drivers.Text || kind == drivers.URL || kind == drivers.File) && b.cutByComment(n) {
		return "", false, false
	}
	if !strings.Contains(n.text, "$") {
		return n.text, true, true
	}
	var t *expression.Template
	var errs []*expression.Error
	if tainted := b.watch(func() { t, errs = expression.ParseTemplate(n.text, scope) }); tainted {
		return "", false, false
	}
	if len(errs) > 0 {
		b.explain(n, errs)
		return "", false, false
	}
	c, constant := t.Constant()
	if !constant {
		b.on(n, "", "this must be known before the load: it can't depend on the iteration or the user")
		return "", false, false
	}
	if c == nil && kind != drivers.Text {
		b.on(n, "", "expected %s, but the expression has no value", want(kind))
		return "", false, false
	}
	return string(drivers.AppendText(nil, c)), false, true
}

// explain notes the errors of an expression at their own places.
func (b *binder) explain(n *node, errs []*expression.Error) {
	for _, e := range errs {
		b.within(n, e.Offset, e.Length, e.Message, e.Hint)
	}
}

func parseBool(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	hint := "write true or false"
	switch strings.ToLower(text) {
	case "true", "yes", "y", "on":
		hint = "write true"
	case "false", "no", "n", "off":
		hint = "write false"
	}
	return false, &quantity.Error{Length: len([]rune(text)), Message: "expected true or false", Hint: hint}
}

func parseChoice(text string, choices []string) error {
	for _, c := range choices {
		if c == text {
			return nil
		}
	}
	e := &quantity.Error{Length: len([]rune(text)), Message: "expected " + either(choices)}
	if near := diag.Suggest(text, choices); near != "" {
		e.Hint = "did you mean " + near + "?"
	} else if other := otherChoices[text]; slices.Contains(choices, other) {
		e.Hint = "did you mean " + other + "?"
	}
	return e
}

// otherChoices are what other tools call a choice.
var otherChoices = map[string]string{
	"sequential": "in_turn", "in_order": "in_turn", "circular": "in_turn", "round_robin": "in_turn", "queue": "once", "unique": "once",
	"constant": "even", "uniform": "even", "exponential": "poisson", "warning": "warn", "error": "fail",
}

// either lists words as in "a, b or c".
func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// parseRate reads a rate; where it may be a number of users as well, a plain number is one.
func parseRate(text string, users bool) (rate float64, isNumber bool, err error) {
	if users {
		if n, err := quantity.ParseInt(text); err == nil {
			return float64(n), true, nil
		}
	}
	rate, err = quantity.ParseRate(text)
	if err == nil && rate > 1e7 {
		err = &quantity.Error{Length: len([]rune(text)), Message: text + " is too high a rate", Hint: "at most 10000000/s"}
	}
	return rate, false, err
}

func parseSpan(text string) (Span, error) {
	low, high, two := strings.Cut(text, "..")
	from, err := quantity.ParseDuration(low)
	if err != nil || !two {
		var e *quantity.Error
		if low, high, dashed := strings.Cut(text, "-"); dashed && errors.As(err, &e) {
			if _, err := parseSpan(strings.TrimSpace(low) + ".." + strings.TrimSpace(high)); err == nil {
				e.Hint = "write " + strings.TrimSpace(low) + ".." + strings.TrimSpace(high)
			}
		}
		return Span{from, from}, err
	}
	to, err := quantity.ParseDuration(high)
	var e *quantity.Error
	if errors.As(err, &e) {
		e.Offset += len([]rune(low)) + 2
		return Span{}, err
	}
	if to < from {
		return Span{}, &quantity.Error{Length: len([]rune(text)), Message: "the second duration is shorter than the first", Hint: "write " + high + ".." + low}
	}
	return Span{from, to}, nil
}

// parseWarmup reads a number of iterations or a duration.
func parseWarmup(text string) (Warmup, error) {
	v, err := quantity.Parse(text)
	if err != nil {
		return Warmup{}, err
	}
	if v.Dim == quantity.Number {
		n, err := quantity.ParseInt(text)
		if err == nil && n > 1e6 {
			err = &quantity.Error{Length: len(text), Message: text + " is too large"}
		}
		return Warmup{Count: int(n)}, err
	}
	if v.Dim != quantity.Time {
		return Warmup{}, &quantity.Error{
			Length:  len([]rune(text)),
			Message: fmt.Sprintf("expected a number of iterations, or a duration, but %s is %s", text, v.Dim), Hint: "write 1 or 10s",
		}
	}
	d, err := quantity.ParseDuration(text)
	return Warmup{Duration: d}, err
}

// typed gives a scalar its type: in quotes it is text, and otherwise what it is written as.
func (b *binder) typed(n *node) (v any, ok bool) {
	if n.style != plain {
		return n.text, true
	}
	v, message, hint := plainValue(n.text)
	if message != "" {
		b.on(n, hint, "%s", message)
		return nil, false
	}
	return v, true
}

// plainValue types text without quotes: a decimal number, true or false; everything else is text. What YAML would read
// differently from a person is refused, with both spellings in the hint.
func plainValue(text string) (v any, message, hint string) {
	switch text {
	case "true":
		return true, "", ""
	case "false":
		return false, "", ""
	case "True", "TRUE", "False", "FALSE":
		return nil, text + " may be a truth value or text", fmt.Sprintf("write %s, or %s if text is meant", strings.ToLower(text), quote(text))
	}
	switch meant, doubtful := number(text); {
	case doubtful && meant != "":
		return nil, text + " may be a number or text", fmt.Sprintf("write %s, or %s if text is meant", meant, quote(text))
	case doubtful:
		return nil, "the number " + text + " has more digits than are kept exactly", "quote it: " + quote(text)
	case meant != "":
		if i, err := strconv.ParseInt(meant, 10, 64); err == nil {
			return i, "", ""
		}
		if x, err := strconv.ParseFloat(meant, 64); err == nil {
			return x, "", ""
		}
	}
	return text, "", ""
}

// number tells whether text is a number in plain decimal digits, and returns it then. For what some reader of YAML takes
// for a number, but not in plain digits, doubtful is true and the plain spelling is returned, if there is one.
func number(text string) (meant string, doubtful bool) {
	sign, digits := "", text
	if strings.HasPrefix(digits, "-") || strings.HasPrefix(digits, "+") {
		sign, digits = digits[:1], digits[1:]
	}
	if digits == "" || !strings.ContainsAny(digits[:1], "0123456789.") {
		return "", false
	}
	if sign == "+" {
		sign, doubtful = "", true
	}
	whole, fraction, point := strings.Cut(digits, ".")
	switch {
	case allDigits(whole) && whole != "" && (!point || allDigits(fraction) && fraction != ""):
		if len(whole) > 1 && whole[0] == '0' {
			whole = strings.TrimLeft(whole, "0")
			if whole == "" {
				whole = "0"
			}
			doubtful = true
		}
		meant = sign + whole
		if point {
			meant += "." + fraction
		} else if _, err := strconv.ParseInt(meant, 10, 64); err != nil {
			return "", true
		}
		if point && len(whole)+len(fraction) > 17 {
			return "", true
		}
		return meant, doubtful
	case point && whole == "" && allDigits(fraction) && fraction != "":
		return sign + "0." + fraction, true
	case point && fraction == "" && allDigits(whole):
		return sign + whole, true
	}
	// Hexadecimal, octal, binary, grouped digits and exponents, as the YAML versions have them.
	if i, err := strconv.ParseInt(strings.ToLower(sign+digits), 0, 64); err == nil {
		return strconv.FormatInt(i, 10), true
	}
	if strings.ContainsAny(digits, "eE") && !strings.HasPrefix(strings.ToLower(digits), "0x") {
		if x, err := strconv.ParseFloat(sign+digits, 64); err == nil {
			return strconv.FormatFloat(x, 'f', -1, 64), true
		}
	}
	return "", false
}

func allDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

// longest is more than any duration of a plan needs; it keeps sums of durations from overflowing.
const longest = 10 * 365 * 24 * time.Hour
