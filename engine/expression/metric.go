package expression

import (
	"time"

	"github.com/planrun/planrun/engine/quantity"
)

// Metric is one measured figure of a cell, as an address names it.
type Metric struct {
	Name       string // as in Metrics; "p" for every percentile
	Group      string // as in Groups; "" is the latency of ok samples
	Percentile float64
	Within     time.Duration // of within(1s)
	Status     string        // of status(503): "503" or "5xx"
	Failure    string        // of failures("timeout")
	Diff       string        // "", "delta" or "change": against the reference target
	Previous   bool          // against the results of an earlier run
	Bound      string        // of a Diff: "", "low" or "high", of its 95 % interval
	Dim        quantity.Dim  // of the value, Diff considered
}

// Better says which way a metric improves.
type Better uint8

const (
	Neither Better = iota
	Less
	More
)

// MetricInfo documents a metric. Metrics with Grouped may stand behind a group, as in ttfb.p95.
type MetricInfo struct {
	Name    string
	Form    string // how it is written where that is not the name alone
	Dim     quantity.Dim
	Better  Better
	Grouped bool
	Doc     string // one sentence in Markdown
}

// Metrics is the catalogue, in the order in which it is documented.
var Metrics = []MetricInfo{
	{"count", "", quantity.Number, Neither, false, "Answered iterations, ok and failed."},
	{"ok", "", quantity.Number, More, false, "Iterations that succeeded."},
	{"failed", "", quantity.Number, Less, false, "Iterations that failed."},
	{"dropped", "", quantity.Number, Less, false, "Arrivals that were never sent, because they would have been later than `patience`."},
	{"error_rate", "", quantity.Share, Less, false, "failed / count."},
	{"offered_rps", "", quantity.Rate, Neither, false, "Iterations that were due, per second of the judged stages."},
	{"rps", "", quantity.Rate, More, false, "Iterations that succeeded, per second of the judged stages."},
	{"rate_held", "", quantity.Rate, More, false, "Of a capacity phase: the highest rate at which its `while` held."},
	{"mean", "", quantity.Time, Less, true, "Arithmetic mean."},
	{"min", "", quantity.Time, Less, true, "Smallest value."},
	{"max", "", quantity.Time, Less, true, "Greatest value."},
	{"stddev", "", quantity.Time, Less, true, "Standard deviation."},
	{"p", "p50, p95, p999, p(99.99)", quantity.Time, Less, true, "Percentile by nearest rank, above 0 and below 100; the ends are `min` and `max`. `p999` is the 99.9th."},
	{"within", "within(1s)", quantity.Share, More, false, "Iterations that succeeded within that time of being due / all that were due."},
	{"bytes_in", "", quantity.Size, Neither, false, "Body bytes received."},
	{"bytes_out", "", quantity.Size, Neither, false, "Body bytes sent."},
	{"opened", "", quantity.Number, Less, false, "Iterations that opened a connection."},
	{"throughput", "", quantity.Speed, More, false, "`bytes_in` of successful iterations per second, from the first start to the last end."},
	{"status", `status(503), status("5xx")`, quantity.Number, Less, false, "Answers with that status."},
	{"failures", `failures("timeout")`, quantity.Number, Less, false, "Failures of that kind."},
}

// GroupInfo documents a group: what the statistics behind it are taken of.
type GroupInfo struct {
	Name string
	Doc  string // one sentence in Markdown
}

// Groups is the catalogue of groups, in the order in which it is documented.
var Groups = []GroupInfo{
	{"all", "Latency of all answered iterations, ok and failed."},
	{"failed", "Latency of failed iterations."},
	{"service", "From the actual start instead of from when the iteration was due."},
	{"dns", "Name resolution."},
	{"connect", "Opening the connection; for SQL login included."},
	{"tls", "TLS handshake."},
	{"wait", "Waiting for a free connection or stream on the client's side."},
	{"ttfb", "From having the connection to the first byte, row or message."},
	{"transfer", "From there to the last byte, row or message."},
	{"lag", "How late the generator itself was."},
}
