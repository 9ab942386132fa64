package quantity

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Error is what is wrong with a literal. Message reads after the name of the key it stands behind; Hint says what to
// write instead and is empty where that is not certain.
type Error struct {
	Offset, Length int // in runes, within the text that was parsed
	Message, Hint  string
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

// Parse reads a whole literal of any dimension. A number without a unit is a Number. Errors are *Error.
func Parse(s string) (Value, error) {
	v, err := parse(s, anything, true)
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

// ParseAs reads a whole literal of one dimension. Zero needs no unit. Errors are *Error.
func ParseAs(s string, dim Dim) (Value, error) {
	v, err := parse(s, int(dim), true)
	if err != nil {
		return Value{}, err
	}
	if v.Dim == dim {
		return v, nil
	}
	if v.Dim == Number && v.F == 0 {
		return Value{0, dim}, nil
	}
	e := &Error{Length: len([]rune(s)), Message: "expected " + dim.String()}
	if v.Dim == Number {
		e.Hint = "write " + WithUnit(s, dim)
	} else {
		e.Message += ", but " + s + " is " + v.Dim.String()
		e.Hint = "write " + forms[dim]
	}
	return Value{}, e
}

// WithUnit shows how a bare number would be written as a quantity: the likely spellings of 15 as a Time are "15s or
// 15ms".
func WithUnit(number string, dim Dim) string {
	switch dim {
	case Time:
		return number + "s or " + number + "ms"
	case Share:
		if f, err := strconv.ParseFloat(number, 64); err == nil && f > 0 && f < 1 {
			return shift(f, 2) + "%"
		} else if err == nil && f == 1 {
			return "1% or 100%"
		}
		return number + "%"
	case Size:
		if f, err := strconv.ParseFloat(number, 64); err == nil && f >= 1024 && math.Mod(f, 1024) == 0 {
			return number + "B or " + Value{f, Size}.String()
		}
		return number + "B or " + number + "KiB"
	case Speed:
		return number + "B/s or " + number + "MB/s"
	case Rate:
		return number + "/s or " + number + "/min"
	}
	return number
}

// shift prints f x 10^n in plain digits, rounded to what a person would have written.
func shift(f float64, n int) string {
	f *= math.Pow10(n)
	if r, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 12, 64), 64); err == nil {
		f = r
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// ParseDuration reads a Time of at most 292 years.
func ParseDuration(s string) (time.Duration, error) {
	v, err := ParseAs(s, Time)
	if err != nil {
		return 0, err
	}
	ns := math.Round(v.F)
	if ns >= math.MaxInt64 {
		return 0, &Error{Length: len([]rune(s)), Message: s + " is too long a duration"}
	}
	if ns == 0 && v.F > 0 {
		return 0, &Error{Length: len([]rune(s)), Message: s + " is less than a nanosecond"}
	}
	return time.Duration(ns), nil
}

// ParseRate reads a Rate, per second.
func ParseRate(s string) (float64, error) {
	v, err := ParseAs(s, Rate)
	return v.F, err
}

// ParseShare reads a Share as a fraction. It may be greater than 1.
func ParseShare(s string) (float64, error) {
	v, err := ParseAs(s, Share)
	return v.F, err
}

// ParseSpeed reads a Speed, in bytes per second.
func ParseSpeed(s string) (float64, error) {
	v, err := ParseAs(s, Speed)
	return v.F, err
}

// ParseSize reads a Size. It has to be whole bytes.
func ParseSize(s string) (int64, error) {
	v, err := ParseAs(s, Size)
	if err != nil {
		return 0, err
	}
	return whole(s, v.F, "bytes")
}

// ParseInt reads a whole number without a unit.
func ParseInt(s string) (int64, error) {
	v, err := ParseAs(s, Number)
	if err != nil {
		return 0, err
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	return whole(s, v.F, "a number")
}

// ParseNumber reads a number without a unit.
func ParseNumber(s string) (float64, error) {
	v, err := ParseAs(s, Number)
	return v.F, err
}

func whole(s string, f float64, what string) (int64, error) {
	switch {
	case f != math.Trunc(f):
		if what == "a number" {
			return 0, &Error{Length: len([]rune(s)), Message: "expected a whole number"}
		}
		return 0, &Error{Length: len([]rune(s)), Message: s + " is not a whole number of " + what}
	case f >= math.MaxInt64:
		return 0, &Error{Length: len([]rune(s)), Message: s + " is too large"}
	}
	return int64(f), nil
}

// anything is the wanted dimension where there is none.
const anything = -1

// parse reads a whole literal. With guess it tries what might have been meant, which it does not do of a guess: the cost
// of a hint is bounded.
func parse(s string, want int, guess bool) (Value, *Error) {
	length := len([]rune(s))
	fail := func(message, hint string) (Value, *Error) {
		if want != anything {
			message = "expected " + Dim(want).String() + ": " + message
		}
		return Value{}, &Error{Length: length, Message: message, Hint: hint}
	}
	// readable is the hint to write t, if t can be read as what is wanted.
	readable := func(t, why string) (string, bool) {
		if !guess {
			return "", false
		}
		if v, err := parse(t, want, false); err == nil && (want == anything || v.Dim == Dim(want)) {
			return "write " + t + why, true
		}
		return "", false
	}

	switch {
	case s == "":
		if want == anything {
			return Value{}, &Error{Message: "expected a number"}
		}
		return Value{}, &Error{Message: "expected " + Dim(want).String(), Hint: "write " + forms[want]}
	case s[0] == '-':
		return fail(shorten(s)+" is negative", "")
	case s[0] == '+':
		hint, _ := readable(s[1:], "")
		return fail(shorten(s)+" has a sign", hint)
	}
	if !startsNumber(s) {
		if t := strings.TrimSpace(s); t != s {
			if hint, ok := readable(t, " without a space"); ok {
				return fail("unexpected space", hint)
			}
		}
		hint := ""
		if want != anything {
			hint = "write " + forms[want]
		}
		return fail(strconv.Quote(shorten(s))+" is not a number", hint)
	}

	v, n, err := scan(s, want)
	if err != nil {
		return Value{}, err
	}
	rest := s[n:]
	if rest == "" {
		return v, nil
	}
	unexpected := &Error{
		Offset: len([]rune(s[:n])), Length: len([]rune(rest)),
		Message: "unexpected " + strconv.Quote(shorten(rest)) + " after " + shorten(s[:n]),
	}
	if !guess {
		return Value{}, unexpected
	}
	if compact := strings.Join(strings.Fields(s), ""); compact != s {
		if hint, ok := readable(compact, " without a space"); ok {
			return fail("unexpected space in "+shorten(s), hint)
		}
		if _, err := parse(compact, want, false); err != nil && err.Hint != "" {
			return Value{}, &Error{Length: length, Message: err.Message, Hint: err.Hint}
		}
	}
	if rest[0] == ',' {
		if hint, ok := readable(s[:n]+"."+rest[1:], ""); ok {
			return fail("unexpected comma in "+shorten(s), hint)
		}
	}
	if rest[0] == '/' && v.Dim == Number { // 100/10s
		if d, err := parse(rest[1:], int(Time), false); err == nil && d.Dim == Time && d.F > 0 {
			return fail("a rate is per second, minute or hour", "write "+shift(v.F/d.F, 9)+"/s")
		}
	}
	return Value{}, unexpected
}

// shorten keeps messages readable when somebody's whole file ends up as a value.
func shorten(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:37]) + "..."
	}
	return s
}
