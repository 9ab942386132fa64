package verdict

import (
	"math"

	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/metric"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// z is the 97.5th percentile of the normal distribution: intervals are of 95 %.
const z = 1.959964

// enough is the smallest number of samples of which the greatest lies above the percentile p (in per cent) in 95 of 100
// cases, 1 - (p/100)^n >= 95 %: with fewer there is no upper bound for it (David and Nagaraja, Order Statistics, 3rd ed.,
// section 7.1). It is 59 for p95, 299 for p99 and 2995 for p99.9.
func enough(p float64) int64 {
	return int64(math.Ceil(math.Log(0.05) / math.Log(p/100)))
}

// tooFew notes in a row that there are too few samples for a percentile that it reads. It returns the reason why the
// verdict is not trusted where the plan is strict.
func (b *bench) tooFew(row *result.Verdict, addresses []*expression.Address, bound binding) string {
	for _, a := range addresses {
		if a.Metric.Name != "p" {
			continue
		}
		n, need := samplesBehind(b.stats(a, bound, result.Pooled), a.Metric), enough(a.Metric.Percentile)
		if n == 0 || n >= need {
			continue
		}
		text := "too few samples for " + percentileText(a.Metric) + ": " + plural(int(n), "sample") + ", and an upper bound for it needs " + quantity.Value{F: float64(need)}.String()
		if b.strict {
			return text
		}
		row.Detail = append(row.Detail, text)
		b.few(a.Metric, n, need)
	}
	return ""
}

func percentileText(m expression.Metric) string {
	return expression.Metric{Name: "p", Percentile: m.Percentile, Group: m.Group}.String()
}

// few remarks on the smallest number of samples behind a percentile.
func (b *bench) few(m expression.Metric, n, need int64) {
	name := percentileText(m)
	if f, ok := b.fewest[name]; !ok || n < f.n {
		b.fewest[name] = fewSamples{n, need}
	}
}

type fewSamples struct{ n, need int64 }

// interval is the 95 % interval of a value, formatted; "" where there is none. That of a difference is of paired rounds;
// those of percentiles, shares and means take samples for independent of each other.
func (b *bench) interval(a *expression.Address, bound binding) string {
	if a.Metric.Bound != "" {
		return ""
	}
	var low, high float64
	ok := false
	if a.Metric.Diff != "" {
		c, known := b.change(a, bound, AsMeasured)
		low, high, ok = c.Low, c.High, known && c.Interval
	} else {
		from := b
		if a.Metric.Previous {
			from = b.previous
		}
		if s := from.stats(a, bound, result.Pooled); s != nil {
			low, high, ok = intervalOf(s, a.Metric)
		}
	}
	if !ok {
		return ""
	}
	text := func(v float64) string { return quantity.Value{F: v, Dim: a.Metric.Dim}.String() }
	return text(low) + " to " + text(high)
}

// intervalOf is the interval of a metric of some samples.
func intervalOf(s *record.Stats, m expression.Metric) (low, high float64, ok bool) {
	switch m.Name {
	case "p":
		return percentileInterval(metric.Times(s, m.Group), m.Percentile)
	case "mean":
		times := metric.Times(s, m.Group)
		mean, _ := times.Mean()
		deviation, ok := times.Stddev()
		if !ok || times.Count() < 30 {
			return 0, 0, false // too few for the central limit theorem
		}
		half := z * deviation / math.Sqrt(float64(times.Count()))
		return mean - half, mean + half, true
	case "error_rate":
		return wilson(s.Failed, s.Count())
	case "within":
		return wilson(s.Latency().CountAtMost(int64(m.Within)), s.Due())
	}
	return 0, 0, false
}

// wilson is the score interval of a share of k in n (Wilson, Probable Inference, the Law of Succession, and Statistical
// Inference, 1927).
func wilson(k, n int64) (low, high float64, ok bool) {
	if n == 0 {
		return 0, 0, false
	}
	N, p := float64(n), float64(k)/float64(n)
	centre := (p + z*z/(2*N)) / (1 + z*z/N)
	half := z / (1 + z*z/N) * math.Sqrt(p*(1-p)/N+z*z/(4*N*N))
	low, high = max(0, centre-half), min(1, centre+half)
	// At the ends the bound is the end itself, but for what floating point leaves of the difference.
	if k == 0 {
		low = 0
	}
	if k == n {
		high = 1
	}
	return low, high, true
}

// percentileInterval lies between two order statistics: that of the greatest rank l with P(B < l) <= 2.5 % and that of the
// smallest rank u with P(B >= u) <= 2.5 %, where B counts how many of n samples are below the percentile and is binomial
// (David and Nagaraja, section 7.1). There is none where either rank does not exist.
func percentileInterval(times *record.Series, p float64) (low, high float64, ok bool) {
	n := times.Count()
	if n == 0 {
		return 0, 0, false
	}
	l, u := ranks(n, p/100)
	if l < 1 || u > n {
		return 0, 0, false
	}
	at := func(rank int64) float64 {
		v, _ := times.Percentile((float64(rank) - 0.5) / float64(n) * 100)
		return float64(v)
	}
	return at(l), at(u), true
}

// exactRanks is up to how many samples the binomial distribution is added up; beyond that the normal one is close.
const exactRanks = 2000

func ranks(n int64, q float64) (low, high int64) {
	N := float64(n)
	if n > exactRanks {
		half := z * math.Sqrt(N*q*(1-q))
		return int64(math.Floor(N*q - half)), int64(math.Ceil(N*q+half)) + 1
	}
	low, high = 0, n+1
	all, _ := math.Lgamma(N + 1)
	below := 0.0 // P(B < k)
	for k := range n + 1 {
		if below <= 0.025 {
			low = k
		}
		if 1-below <= 0.025 && high > n {
			high = k
		}
		K := float64(k)
		a, _ := math.Lgamma(K + 1)
		c, _ := math.Lgamma(N - K + 1)
		below += math.Exp(all - a - c + K*math.Log(q) + (N-K)*math.Log1p(-q))
	}
	return low, high
}
