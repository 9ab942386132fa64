package quantity

import (
	"math"
	"strconv"
	"strings"
)

// String prints the value for people: a unit that suits it, and three significant digits, or four where the whole part
// has as many. Whole numbers are printed in full. What is not finite prints as "no data".
func (v Value) String() string { return v.Text(3) }

// Text prints the value with at least the given number of significant digits, trailing zeros left out.
func (v Value) Text(digits int) string {
	if math.IsNaN(v.F) || math.IsInf(v.F, 0) {
		return "no data"
	}
	if v.F < 0 {
		return "-" + Value{-v.F, v.Dim}.Text(digits)
	}
	f := v.F
	switch v.Dim {
	case Time:
		return duration(f, digits)
	case Share:
		s := significant(f*100, max(digits, 4))
		// A share that is not quite all, or not quite nothing, must not look like it.
		for n := 5; s == "100" && f < 1 && n < 16; n++ {
			s = significant(f*100, n)
		}
		return s + "%"
	case Size:
		return bytes(f, digits)
	case Speed:
		return decimal(f, digits) + "/s"
	case Rate:
		switch {
		case f == 0 || f >= 0.1:
			return significant(f, max(digits, 4)) + "/s"
		case f*60 >= 0.1:
			return significant(f*60, max(digits, 4)) + "/min"
		}
		return significant(f*3600, max(digits, 4)) + "/h"
	}
	if f == math.Trunc(f) && f < 1e15 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return significant(f, max(digits, 4))
}

// significant rounds to n significant digits, but never away digits of the whole part.
func significant(f float64, n int) string {
	if f >= 1 {
		n = max(n, int(math.Log10(f))+1)
	}
	r, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', min(n, 17), 64), 64)
	if err != nil {
		r = f
	}
	return strconv.FormatFloat(r, 'f', -1, 64)
}

// step is a unit for printing: everything below the next one's.
type step struct {
	size float64
	name string
}

var durations = []step{{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}}
var decimals = []step{{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}}
var binaries = []step{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}}

// scaled prints f in the greatest unit of which there is at least one after rounding.
func scaled(f float64, digits int, steps []step) string {
	for i, u := range steps {
		s := significant(f/u.size, digits)
		if i+1 == len(steps) {
			return s + u.name
		}
		if r, _ := strconv.ParseFloat(s, 64); r < steps[i+1].size/u.size {
			return s + u.name
		}
	}
	return ""
}

func decimal(f float64, digits int) string { return scaled(f, digits, decimals) }

// bytes prints what is whole in a binary unit that way, as somebody will have written it, and else in decimal ones.
func bytes(f float64, digits int) string {
	for _, u := range binaries {
		if n := f / u.size; n >= 1 && n < 1024 && n == math.Trunc(n) {
			return strconv.FormatFloat(n, 'f', 0, 64) + u.name
		}
	}
	return decimal(f, digits)
}

// duration prints times of a minute and more as 1m30s.
func duration(f float64, digits int) string {
	if f == 0 {
		return "0s"
	}
	const minute, hour = 60e9, 3600e9
	if f < minute {
		if s := scaled(f, digits, durations); s != "60s" {
			return s
		}
		f = minute
	}
	// Tenths of a second, whole ones from an hour up, or as finely as more digits ask for.
	round := 1e8 / math.Pow10(max(0, digits-3))
	if f >= hour && digits <= 3 {
		round = 1e9
	}
	if f >= 1<<53 { // a hundred days: nanoseconds are no whole numbers any more
		return significant(f/hour, digits) + "h"
	}
	f = math.Round(f/round) * round
	var b strings.Builder
	if h := math.Floor(f / hour); h > 0 {
		b.WriteString(strconv.FormatFloat(h, 'f', 0, 64) + "h")
		f = math.Mod(f, hour)
	}
	if m := math.Floor(f / minute); m > 0 {
		b.WriteString(strconv.FormatFloat(m, 'f', 0, 64) + "m")
		f = math.Mod(f, minute)
	}
	if s := significant(f/1e9, max(digits, 12)); s != "0" {
		b.WriteString(s + "s")
	}
	return b.String()
}
