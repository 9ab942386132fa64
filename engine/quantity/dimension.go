// Package quantity is numbers with units, as plans write them: 30ms, 1m30s, 600/s, 8KiB, 27MB/s, 1%. It reads them,
// prints them for people, and says what is wrong with those that nobody could read with certainty.
//
// A unit is always written, glued to its number, with its letter case as given here. Only zero needs none. A number is
// plain decimal digits: what YAML or a programming language would take for octal, hexadecimal or a power of ten is
// refused with the plain spelling.
package quantity

// Dim is what a Value measures.
type Dim uint8

const (
	Number Dim = iota
	Time       // nanoseconds
	Share      // a fraction: 5% is 0.05
	Size       // bytes
	Speed      // bytes per second
	Rate       // per second
)

var dimNames = [...]string{"a plain number", "a duration", "a share", "a size", "a byte rate", "a rate"}

// String names the dimension for people, with its article.
func (d Dim) String() string {
	if int(d) < len(dimNames) {
		return dimNames[d]
	}
	return "unknown"
}

// Value is a number of base units: nanoseconds, a fraction, bytes, bytes per second, per second.
type Value struct {
	F   float64
	Dim Dim
}

// units are the suffixes of one dimension, glued to a number.
type unit struct {
	dim Dim
	// A unit is factor x 10^exponent base units. Powers of ten are kept apart because a decimal fraction is shifted by
	// them without rounding: 99.9% has to be the same number as 999.0/1000.
	factor   float64
	exponent int
}

var units = map[string]unit{
	"ns": {Time, 1, 0},
	"us": {Time, 1, 3},
	"µs": {Time, 1, 3}, // micro sign
	"μs": {Time, 1, 3}, // Greek mu
	"ms": {Time, 1, 6},
	"s":  {Time, 1, 9},
	"m":  {Time, 60, 9},
	"h":  {Time, 3600, 9},

	"B":   {Size, 1, 0},
	"kB":  {Size, 1, 3},
	"KB":  {Size, 1, 3}, // as most people write it
	"MB":  {Size, 1, 6},
	"GB":  {Size, 1, 9},
	"TB":  {Size, 1, 12},
	"KiB": {Size, 1 << 10, 0},
	"MiB": {Size, 1 << 20, 0},
	"GiB": {Size, 1 << 30, 0},
	"TiB": {Size, 1 << 40, 0},

	"%": {Share, 1, -2},
}

// per has the seconds of what may follow the slash of a rate.
var per = map[string]float64{"s": 1, "min": 60, "m": 60, "h": 3600}

// forms says how each dimension is written, for hints.
var forms = [...]string{
	Number: "a number, such as 15",
	Time:   "a number with ns, us, ms, s, m or h, such as 30ms or 1m30s",
	Share:  "a number with %, such as 5%",
	Size:   "a number with B, kB, MB, GB, KiB, MiB or GiB, such as 8KiB",
	Speed:  "a size with /s, such as 27MB/s",
	Rate:   "a number with /s, /min or /h, such as 600/s",
}
