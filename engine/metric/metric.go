// Package metric computes the metrics of a cell by name. It is the one place where their formulas are.
package metric

import (
	"strings"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
)

// Metric names one figure of a set of samples.
type Metric struct {
	// Name is one of the names in Value's doc comment.
	Name string
	// Group selects the times that mean, min, max, stddev and percentiles are of: "" for the latency of ok samples, all,
	// failed, service, dns, connect, tls, wait, ttfb, transfer, lag.
	Group string
	// Percentile is in per cent, for Name "p".
	Percentile float64
	// Within is the limit, for Name "within".
	Within time.Duration
	// Status is a number, as "503", or a class, as "5xx", for Name "status".
	Status string
	// Failure is a kind of failure, as "timeout", for Name "failures".
	Failure string
}

// Value returns a metric of s; false is no data, and for a name that there is not. Times are in nanoseconds, shares are
// fractions, sizes are bytes, rates and throughput are per second. With T the length of the stages, or, where a count
// drives the phase, the time from the first start to the last end, summed over rounds:
//
//	count                   ok + failed
//	ok, failed, dropped     numbers of samples
//	due                     count + dropped
//	error_rate              failed / count
//	offered_rps, rps        due / T, ok / T
//	mean, min, max, stddev  of the group's times; stddev is the sample's
//	p                       of the group's times: the value of rank ceil(p/100 n)
//	p50, p75, p90, p95, p99, p999
//	within                  ok samples with a latency of at most the limit / due
//	bytes_in, bytes_out     of ok and failed samples
//	throughput              bytes in of ok samples / time from first start to last end, summed over rounds
//	opened                  samples that opened a connection
//	status, failures        numbers of samples
//
// Where nothing was due, only count, ok and due are known: there is no number of failures among none.
func Value(s *record.Stats, m Metric) (float64, bool) {
	if s == nil {
		return 0, false
	}
	switch m.Name {
	case "count":
		return float64(s.Count()), true
	case "ok":
		return float64(s.OK), true
	case "due":
		return float64(s.Due()), true
	}
	if s.Due() == 0 {
		return 0, false
	}
	switch m.Name {
	case "failed":
		return float64(s.Failed), true
	case "dropped":
		return float64(s.Dropped), true
	case "error_rate":
		return quotient(float64(s.Failed), float64(s.Count()))
	case "offered_rps":
		return quotient(float64(s.Due()), length(s).Seconds())
	case "rps":
		return quotient(float64(s.OK), length(s).Seconds())
	case "within":
		return quotient(float64(s.Latency().CountAtMost(int64(m.Within))), float64(s.Due()))
	case "bytes_in":
		return float64(s.BytesIn), true
	case "bytes_out":
		return float64(s.BytesOut), true
	case "throughput":
		if s.OK == 0 {
			return 0, false
		}
		return quotient(float64(s.BytesInOK), s.Active().Seconds())
	case "opened":
		return float64(s.Opened), true
	case "status":
		return status(s, m.Status)
	case "failures":
		kind, ok := drivers.ParseFailure(m.Failure)
		if !ok {
			return 0, false
		}
		return float64(s.Failures[kind]), true
	}
	return timing(Times(s, m.Group), m)
}

// Times returns the series of a group, in nanoseconds; nil for a group that there is not.
func Times(s *record.Stats, group string) *record.Series {
	switch group {
	case "":
		return s.Latency()
	case "all":
		return s.All()
	case "failed":
		return s.FailedLatency()
	case "service":
		return s.Service()
	case "dns":
		return s.DNS
	case "connect":
		return s.Connect
	case "tls":
		return s.TLS
	case "wait":
		return s.Wait
	case "ttfb":
		return s.TTFB
	case "transfer":
		return s.Transfer
	case "lag":
		return s.Lag
	}
	return nil
}

// percentiles are the metrics that are names of percentiles.
var percentiles = map[string]float64{"p50": 50, "p75": 75, "p90": 90, "p95": 95, "p99": 99, "p999": 99.9}

func timing(times *record.Series, m Metric) (float64, bool) {
	if times == nil {
		return 0, false
	}
	switch m.Name {
	case "mean":
		return times.Mean()
	case "min":
		return whole(times.Min())
	case "max":
		return whole(times.Max())
	case "stddev":
		return times.Stddev()
	case "p":
		return whole(times.Percentile(m.Percentile))
	}
	if p, ok := percentiles[m.Name]; ok {
		return whole(times.Percentile(p))
	}
	return 0, false
}

func whole(v int64, ok bool) (float64, bool) { return float64(v), ok }

// quotient is no data where it would be infinite or not a number.
func quotient(a, b float64) (float64, bool) {
	if b <= 0 {
		return 0, false
	}
	return a / b, true
}

// length is the time that rates are over.
func length(s *record.Stats) time.Duration {
	if s.Length > 0 {
		return s.Length
	}
	return s.Active()
}

// status counts the samples of one status, or of a class such as "5xx".
func status(s *record.Stats, want string) (float64, bool) {
	low, high, ok := statuses(want)
	if !ok {
		return 0, false
	}
	var n int64
	for code, c := range s.Statuses {
		if low <= code && code <= high {
			n += c
		}
	}
	return float64(n), true
}

// statuses parses a status or a class of statuses into its range.
func statuses(want string) (low, high int32, ok bool) {
	if class, isClass := strings.CutSuffix(want, "xx"); isClass {
		if len(class) != 1 || class[0] < '1' || class[0] > '9' {
			return 0, 0, false
		}
		low = int32(class[0]-'0') * 100
		return low, low + 99, true
	}
	if want == "" || len(want) > 9 {
		return 0, 0, false
	}
	for _, c := range []byte(want) {
		if c < '0' || c > '9' {
			return 0, 0, false
		}
		low = low*10 + int32(c-'0')
	}
	return low, low, true
}
