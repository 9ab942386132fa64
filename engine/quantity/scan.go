package quantity

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Scan reads the literal that s begins with, as expressions hold them, and returns how many bytes of s it has. s begins
// with a digit, or with a dot and a digit. What is not glued to the number does not belong to it: "1 %" is the number 1.
// A slash belongs to the literal when the name of a unit of time follows: in "5/s" and "27MB/s", not in "5/x".
// With an error, n is how much of s the faulty literal has.
func Scan(s string) (v Value, n int, err *Error) { return scan(s, anything) }

func startsNumber(s string) bool {
	return s != "" && (digit(s[0]) || s[0] == '.' && len(s) > 1 && digit(s[1]))
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func scan(s string, want int) (Value, int, *Error) {
	number, n := scanNumber(s)
	spelled := s[:n] == number // in plain digits

	end := n + letters(s[n:])
	word := s[n:end]
	v := Value{}
	switch u, known := units[word]; {
	case word == "" && strings.HasPrefix(s[n:], "%"):
		v, end = Value{shifted(number, units["%"]), Share}, n+1
	case word == "" && strings.HasPrefix(s[n:], "/"):
		seconds, k := scanPer(s[n:])
		if seconds == 0 {
			if err := perHint(s, number, n); err != nil {
				return Value{}, err.Offset + err.Length, err
			}
			v, end = Value{shifted(number, unit{factor: 1}), Number}, n
			break
		}
		v, end = Value{shifted(number, unit{factor: 1}) / seconds, Rate}, n+k
	case word == "":
		v, end = Value{shifted(number, unit{factor: 1}), Number}, n
	case !known:
		rest := s[end:]
		if _, k := scanPer(rest); k > 0 {
			rest = rest[:k]
		} else {
			rest = ""
		}
		return Value{}, end + len(rest), &Error{
			Offset: n, Length: utf8.RuneCountInString(word),
			Message: "unknown unit " + strconv.Quote(shorten(word)) + " after " + shorten(s[:n]),
			Hint:    unitHint(number, word, rest, want, false),
		}
	case u.dim == Size:
		v = Value{shifted(number, u), Size}
		if seconds, k := scanPer(s[end:]); seconds != 0 {
			v, end = Value{v.F / seconds, Speed}, end+k
		}
	default:
		v = Value{shifted(number, u), Time}
		var err *Error
		if v.F, end, err = scanCompound(s, v.F, u, end); err != nil {
			return Value{}, err.Offset + err.Length, err
		}
	}

	if r, _ := utf8.DecodeRuneInString(s[end:]); end < len(s) && (letter(r) || unicode.IsDigit(r)) {
		e := &Error{
			Offset: utf8.RuneCountInString(s[:end]), Length: 1,
			Message: "unexpected " + strconv.Quote(string(r)) + " right after " + shorten(s[:end]),
		}
		if v.Dim == Share {
			e.Hint = "write spaces around % for the remainder of a division"
		}
		return Value{}, end + utf8.RuneLen(r), e
	}
	if !spelled {
		return Value{}, end, &Error{
			Length:  utf8.RuneCountInString(s[:end]),
			Message: shorten(s[:end]) + " is not in plain decimal digits", Hint: "write " + shorten(number+s[n:end]),
		}
	}
	if math.IsInf(v.F, 0) || n > 300 {
		return Value{}, end, &Error{Length: utf8.RuneCountInString(s[:end]), Message: shorten(s[:end]) + " is too large"}
	}
	return v, end, nil
}

// scanCompound goes on with what follows a first duration, as in 1m30s: units from large to small.
func scanCompound(s string, sum float64, last unit, end int) (float64, int, *Error) {
	for startsNumber(s[end:]) {
		number, n := scanNumber(s[end:])
		k := end + n + letters(s[end+n:])
		u, ok := units[s[end+n:k]]
		e := &Error{Offset: utf8.RuneCountInString(s[:end]), Length: utf8.RuneCountInString(s[end:k])}
		switch {
		case s[end:end+n] != number:
			e.Message, e.Hint = shorten(s[end:k])+" is not in plain decimal digits", "write "+shorten(s[:end]+number+s[end+n:k])
			return 0, 0, e
		case !ok || u.dim != Time:
			e.Message = shorten(s[end:k]) + " is not a duration"
			if w := s[end+n : k]; w == "" {
				e.Hint = "write the unit of " + number + ": ns, us, ms, s or m"
			} else {
				e.Hint = unitHint(s[:end]+number, w, "", int(Time), true)
			}
			return 0, 0, e
		case size(u) >= size(last):
			e.Message, e.Hint = "the parts of a duration go from large to small", "write it as in 1h30m or 1m30s"
			return 0, 0, e
		}
		sum, last, end = sum+shifted(number, u), u, k
	}
	return sum, end, nil
}

func size(u unit) float64 { return u.factor * math.Pow10(u.exponent) }

// scanPer reads the slash and the unit of time of a rate. Without one it returns 0 seconds.
func scanPer(s string) (seconds float64, n int) {
	if !strings.HasPrefix(s, "/") {
		return 0, 0
	}
	k := 1 + letters(s[1:])
	if k < len(s) && digit(s[k]) {
		return 0, 0
	}
	if seconds = per[s[1:k]]; seconds == 0 {
		return 0, 0
	}
	return seconds, k
}

// perHint refuses 100/sec and its like, which would be a division by something called sec.
func perHint(s, number string, n int) *Error {
	k := n + 1 + letters(s[n+1:])
	var to string
	switch strings.ToLower(s[n+1 : k]) {
	case "sec", "secs", "second", "seconds":
		to = "/s"
	case "mins", "minute", "minutes":
		to = "/min"
	case "hr", "hour", "hours":
		to = "/h"
	case "ms":
		to = "000/s"
	case "d", "day":
		return &Error{Offset: n, Length: k - n, Message: "a rate is per second, minute or hour"}
	default:
		return nil
	}
	return &Error{Offset: n, Length: k - n, Message: "a rate is per second, minute or hour", Hint: "write " + number + to}
}

// shifted is number x unit, rounded once.
func shifted(number string, u unit) float64 {
	if u.exponent != 0 {
		number += "e" + strconv.Itoa(u.exponent)
	}
	f, _ := strconv.ParseFloat(number, 64) // out of range is infinite, and refused by scan
	return f * u.factor
}

func letter(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

func letters(s string) int {
	for i, r := range s {
		if !letter(r) {
			return i
		}
	}
	return len(s)
}

// scanNumber reads a number in any spelling that YAML or the language of expressions might know, and returns it in plain
// decimal digits together with its length as written.
func scanNumber(s string) (plain string, n int) {
	if len(s) > 2 && s[0] == '0' && strings.IndexByte("xXoObB", s[1]) >= 0 {
		n = 2
		for n < len(s) && (digit(s[n]) || s[n] == '_' || s[1]|0x20 == 'x' && strings.IndexByte("abcdefABCDEF", s[n]) >= 0) {
			n++
		}
		if v, err := strconv.ParseUint(s[:n], 0, 64); err == nil {
			return strconv.FormatUint(v, 10), n
		}
	}
	digits := func(i int) int {
		for i < len(s) && (digit(s[i]) || s[i] == '_' && i+1 < len(s) && digit(s[i+1])) {
			i++
		}
		return i
	}
	n = digits(0)
	if n < len(s) && s[n] == '.' {
		if k := digits(n + 1); k > n+1 && s[n+1] != '_' {
			n = k
		} else if n+1 == len(s) || s[n+1] != '.' && s[n+1] != '_' && letters(s[n+1:]) == 0 {
			n++ // "5.", not the beginning of "5..7"
		}
	}
	exponent := false
	if n < len(s) && s[n]|0x20 == 'e' {
		k := n + 1
		if k < len(s) && (s[k] == '+' || s[k] == '-') {
			k++
		}
		if e := digits(k); e > k {
			n, exponent = e, true
		}
	}
	plain = strings.ReplaceAll(s[:n], "_", "")
	if exponent {
		if f, err := strconv.ParseFloat(plain, 64); err == nil {
			return strconv.FormatFloat(f, 'f', -1, 64), n
		}
	}
	plain = strings.TrimSuffix(plain, ".")
	plain = strings.TrimLeft(plain, "0")
	if plain == "" || plain[0] == '.' || plain[0]|0x20 == 'e' {
		plain = "0" + plain
	}
	return plain, n
}

// unitHint says what was probably meant by an unknown unit. A number inside a compound duration has only units of time.
func unitHint(number, word, rest string, want int, inside bool) string {
	low := strings.ToLower(word)
	if b, ok := strings.CutSuffix(low, "ps"); ok && rest == "" && len(b) <= 2 && strings.HasSuffix(b, "b") { // Mbps
		low, rest = b+"it", "/s"
	}
	if prefix, ok := bits[low]; ok && !inside {
		if f, err := strconv.ParseFloat(number, 64); err == nil {
			return "sizes are in bytes: write " + shift(f/8, 0) + prefix + rest
		}
	}
	if !inside && (low == "d" || low == "day" || low == "days") {
		if f, err := strconv.ParseFloat(number, 64); err == nil {
			return "write " + shift(f*24, 0) + "h"
		}
	}
	var all, fit []string
	for _, u := range aliases[low] {
		dim := Rate
		if unit, ok := units[u]; ok {
			dim = unit.dim
		}
		switch {
		case rest == "":
		case dim == Size:
			dim = Speed
		default:
			continue
		}
		all = append(all, number+u+rest)
		if int(dim) == want {
			fit = append(fit, number+u+rest)
		}
	}
	if len(fit) == 0 && !inside {
		fit = all
	}
	if len(fit) > 0 {
		return "write " + strings.Join(fit, " or ")
	}
	if want != anything {
		return "write " + forms[want]
	}
	return ""
}

var bits = map[string]string{
	"bit": "B", "bits": "B", "kbit": "kB", "kbits": "kB", "mbit": "MB", "mbits": "MB", "gbit": "GB", "gbits": "GB",
}

// aliases are the units of other programs, in lower case.
var aliases = map[string][]string{
	"nsec": {"ns"}, "nanos": {"ns"}, "nanosecond": {"ns"}, "nanoseconds": {"ns"},
	"usec": {"us"}, "micros": {"us"}, "microsecond": {"us"}, "microseconds": {"us"},
	"msec": {"ms"}, "msecs": {"ms"}, "millis": {"ms"}, "millisecond": {"ms"}, "milliseconds": {"ms"},
	"sec": {"s"}, "secs": {"s"}, "second": {"s"}, "seconds": {"s"},
	"min": {"m"}, "mins": {"m"}, "minute": {"m"}, "minutes": {"m"},
	"hr": {"h"}, "hrs": {"h"}, "hour": {"h"}, "hours": {"h"},
	"ns": {"ns"}, "us": {"us"}, "ms": {"ms"}, "s": {"s"}, "h": {"h"},

	"b": {"B"}, "byte": {"B"}, "bytes": {"B"},
	"k": {"kB", "KiB"}, "kb": {"kB", "KiB"}, "kib": {"KiB"}, "ki": {"KiB"},
	"m": {"m", "MB", "MiB"}, "mb": {"MB", "MiB"}, "mib": {"MiB"}, "mi": {"MiB"},
	"g": {"GB", "GiB"}, "gb": {"GB", "GiB"}, "gib": {"GiB"}, "gi": {"GiB"},
	"t": {"TB", "TiB"}, "tb": {"TB", "TiB"}, "tib": {"TiB"}, "ti": {"TiB"},

	"rps": {"/s"}, "qps": {"/s"}, "tps": {"/s"}, "hz": {"/s"}, "rpm": {"/min"},
	"percent": {"%"}, "pct": {"%"},
}
