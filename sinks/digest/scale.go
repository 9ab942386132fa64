package digest

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/planrun/planrun/engine/quantity"
)

// Scale is the unit in which the values of one row are shown, so that they can be compared at a glance.
type Scale struct {
	Unit   string // "ms"; "/s" and its like stand without a space
	factor float64
}

// ScaleOf is the unit in which the greatest of some values lies between 1 and 1000, or the nearest there is; a smaller
// one if the smallest would begin with zeros only.
func ScaleOf(dim quantity.Dim, values ...float64) Scale {
	greatest, smallest := 0.0, math.Inf(1)
	for _, v := range values {
		if v = math.Abs(v); v > 0 {
			greatest, smallest = max(greatest, v), min(smallest, v)
		}
	}
	units := unitsOf(dim)
	i := 0
	// 999.6 would be printed as 1000.
	for i < len(units)-1 && greatest >= 999.5*units[i].factor {
		i++
	}
	for i > 0 && smallest < 0.01*units[i].factor && greatest < 1e6*units[i-1].factor {
		i--
	}
	return units[i]
}

// tableScale is the unit for a whole table, in which the median of its values reads best: a few that are far greater or
// smaller than the others have more digits instead, five before the point at the most.
func tableScale(dim quantity.Dim, values []float64) Scale {
	sorted := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return v <= 0 })
	if len(sorted) == 0 {
		return ScaleOf(dim, values...)
	}
	slices.Sort(sorted)
	scale := ScaleOf(dim, sorted[len(sorted)/2])
	for _, u := range unitsOf(dim) {
		if u.factor > scale.factor && sorted[len(sorted)-1] >= 99_999.5*scale.factor {
			scale = u
		}
	}
	return scale
}

// unitsOf are the units of a dimension, the smallest first.
func unitsOf(dim quantity.Dim) []Scale {
	switch dim {
	case quantity.Speed:
		return []Scale{{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}}
	case quantity.Rate:
		return []Scale{{"/s", 1}}
	}
	return []Scale{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}
}

// Text prints a value in the unit, without it, with three significant digits, or all of the whole part if that has more.
func (s Scale) Text(v float64) string {
	x := v / s.factor
	return strconv.FormatFloat(x, 'f', decimals(x), 64)
}

// With prints a value and the unit.
func (s Scale) With(v float64) string { return s.unit(s.Text(v)) }

func (s Scale) unit(number string) string {
	if s.Unit == "/s" {
		return number + s.Unit
	}
	return number + " " + s.Unit
}

// change prints a difference of values, with its sign, and at most one decimal more than the values have.
func (s Scale) change(v float64, values ...float64) string { return s.unit(s.signed(v, values...)) }

func (s Scale) signed(v float64, values ...float64) string {
	x := v / s.factor
	most := 0
	for _, of := range values {
		most = max(most, decimals(of/s.factor)+1)
	}
	text := strconv.FormatFloat(math.Abs(x), 'f', min(decimals(x), most), 64)
	switch {
	case isZero(text):
		return text
	case x < 0:
		return "-" + text
	}
	return "+" + text
}

func isZero(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	return err == nil && f == 0
}

// decimals is how many of them make three significant digits.
func decimals(x float64) int {
	x = math.Abs(x)
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	n := 2 - int(math.Floor(math.Log10(x)))
	// 9.996 is 10.0, not 10.00.
	if r := math.Pow10(max(n, 0)); n > 0 && math.Round(x*r)/r >= math.Pow10(3-n) {
		n--
	}
	return min(max(n, 0), 12)
}

// percent prints a fraction as a change: +86%, -4.2%.
func percent(fraction float64) string {
	p := fraction * 100
	n := 0
	if math.Abs(p) < 9.95 {
		n = 1
	}
	text := strconv.FormatFloat(math.Abs(p), 'f', n, 64)
	// What is not quite all must not look like it.
	for text == "100" && p > -100 && p < 0 && n < 9 {
		n++
		if finer := strconv.FormatFloat(-p, 'f', n, 64); !strings.HasPrefix(finer, "100") {
			text = finer
		}
	}
	switch {
	case isZero(text):
		return "0%"
	case p < 0:
		return "-" + text + "%"
	}
	return "+" + text + "%"
}

func times(ns float64) quantity.Value { return quantity.Value{F: ns, Dim: quantity.Time} }

func share(part, whole int64) string {
	return quantity.Value{F: float64(part) / float64(max(whole, 1)), Dim: quantity.Share}.String()
}
