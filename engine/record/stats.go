package record

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/planrun/planrun/drivers"
)

// Stats is what a set of samples comes to: those of one cell, stage and step, say, or those of several rounds pooled.
//
// Make it with NewStats. It is not safe for concurrent use, but any number may read it while nobody writes.
type Stats struct {
	OK, Failed int64 // samples that were sent
	Dropped    int64 // arrivals that were not
	// DroppedByLag is how many of Dropped were late for more than half of the time although a user was free: the
	// generator's fault, not the target's.
	DroppedByLag int64

	Failures [drivers.Aborted + 1]int64 // failed samples by kind
	Statuses map[int32]int64            // ok and failed samples by the protocol's number; those without one are not in it

	BytesIn, BytesOut int64 // of ok and failed samples
	BytesInOK         int64 // of ok samples
	Opened            int64 // samples that opened a connection

	// Length is how long the stages of the samples last by plan, summed over rounds. Whoever makes the Stats sets it; 0 is
	// a phase driven by a count.
	Length time.Duration
	// Probe is how late the generator's own probe was while the samples were taken, in nanoseconds; nil is not known. Whoever
	// makes the Stats sets it.
	Probe *Histogram

	// Of ok samples that had the part.
	DNS, Connect, TLS, Wait, TTFB, Transfer *Series
	// Lag is how late the generator was with ok and failed samples.
	Lag *Series

	latency, failed *Series // end - due, of ok and of failed samples
	service         *Series // end - start of ok samples; the same as latency while each of them is
	// As latency and failed, but with lag subtracted; the same series while there was no lag.
	latencyNoLag, failedNoLag *Series

	spans  []Span
	budget *Budget

	// Made when first asked for, by readers.
	derive     sync.Mutex
	all        *Series // latency and failed together
	withoutLag *Stats
	coarse     map[*Series]*Histogram // for WithoutHoldUps
}

// Span is from the first start to the last end of one stage of one round, in nanoseconds since its release.
type Span struct {
	Round       int
	Stage       int16
	First, Last int64
}

// NewStats makes an empty Stats whose series draw on a budget; nil is none.
func NewStats(b *Budget) *Stats {
	s := &Stats{budget: b, Statuses: map[int32]int64{}}
	for _, p := range s.series() {
		*p = NewSeries(b)
	}
	s.latency, s.failed = NewSeries(b), NewSeries(b)
	s.service, s.latencyNoLag, s.failedNoLag = s.latency, s.latency, s.failed
	return s
}

// series lists the series that are never shared.
func (s *Stats) series() []**Series {
	return []**Series{&s.DNS, &s.Connect, &s.TLS, &s.Wait, &s.TTFB, &s.Transfer, &s.Lag}
}

// seriesNames are the names of series, in its order.
var seriesNames = []string{"dns", "connect", "tls", "wait", "ttfb", "transfer", "lag"}

// Each yields the series of which s is made, by name: those that have data and are not shared with one yielded before.
// A Stats whose Put took them all has the same series.
func (s *Stats) Each() iter.Seq2[string, *Series] {
	return func(yield func(string, *Series) bool) {
		all := s.series()
		for i, name := range seriesNames {
			if x := *all[i]; x.Count() > 0 && !yield(name, x) {
				return
			}
		}
		if s.latency.Count() > 0 && !yield("latency", s.latency) ||
			s.failed.Count() > 0 && !yield("failed", s.failed) ||
			s.service != s.latency && !yield("service", s.service) ||
			s.latencyNoLag != s.latency && !yield("latency_without_lag", s.latencyNoLag) ||
			s.failedNoLag != s.failed && !yield("failed_without_lag", s.failedNoLag) {
			return
		}
	}
}

// Put replaces a series by the name under which Each yields it; false is an unknown name. The order does not matter.
func (s *Stats) Put(name string, x *Series) bool {
	s.changed()
	if i := slices.Index(seriesNames, name); i >= 0 {
		*s.series()[i] = x
		return true
	}
	switch name {
	case "latency":
		if s.service == s.latency {
			s.service = x
		}
		if s.latencyNoLag == s.latency {
			s.latencyNoLag = x
		}
		s.latency = x
	case "failed":
		if s.failedNoLag == s.failed {
			s.failedNoLag = x
		}
		s.failed = x
	case "service":
		s.service = x
	case "latency_without_lag":
		s.latencyNoLag = x
	case "failed_without_lag":
		s.failedNoLag = x
	default:
		return false
	}
	return true
}

// Count is ok + failed.
func (s *Stats) Count() int64 { return s.OK + s.Failed }

// Due is how many arrivals there were: count + dropped.
func (s *Stats) Due() int64 { return s.OK + s.Failed + s.Dropped }

// Latency is end - due of the ok samples, in nanoseconds.
func (s *Stats) Latency() *Series { return s.latency }

// FailedLatency is end - due of the failed samples, in nanoseconds.
func (s *Stats) FailedLatency() *Series { return s.failed }

// Service is end - start of the ok samples, in nanoseconds.
func (s *Stats) Service() *Series { return s.service }

// All is end - due of ok and failed samples, in nanoseconds.
func (s *Stats) All() *Series {
	if s.failed.Count() == 0 {
		return s.latency
	}
	s.derive.Lock()
	defer s.derive.Unlock()
	if s.all == nil {
		s.all = s.latency.Clone()
		s.all.Merge(s.failed)
	}
	return s.all
}

// changed forgets what was derived from the samples so far.
func (s *Stats) changed() {
	if s.all != nil {
		s.all.Release()
		s.all = nil
	}
	if s.withoutLag != nil {
		s.withoutLag.changed()
		s.withoutLag = nil
	}
	s.coarse = nil
}

// WithoutLag returns the same samples as if the generator had been on time: lag is taken from every latency, and arrivals
// that were dropped through lag were never due. The result shares memory with s and must only be read.
func (s *Stats) WithoutLag() *Stats {
	s.derive.Lock()
	defer s.derive.Unlock()
	if s.withoutLag == nil {
		x := s.view()
		x.Dropped, x.DroppedByLag = s.Dropped-s.DroppedByLag, 0
		x.latency, x.failed = s.latencyNoLag, s.failedNoLag
		s.withoutLag = x
	}
	return s.withoutLag
}

// view is a copy that shares everything with s.
func (s *Stats) view() *Stats {
	return &Stats{
		OK: s.OK, Failed: s.Failed, Dropped: s.Dropped, DroppedByLag: s.DroppedByLag,
		Failures: s.Failures, Statuses: s.Statuses,
		BytesIn: s.BytesIn, BytesOut: s.BytesOut, BytesInOK: s.BytesInOK, Opened: s.Opened,
		Length: s.Length, Probe: s.Probe,
		DNS: s.DNS, Connect: s.Connect, TLS: s.TLS, Wait: s.Wait, TTFB: s.TTFB, Transfer: s.Transfer,
		Lag:     s.Lag,
		latency: s.latency, failed: s.failed, service: s.service,
		latencyNoLag: s.latencyNoLag, failedNoLag: s.failedNoLag,
		spans: s.spans, budget: s.budget,
	}
}

// WithoutFailures returns the same samples but for those that failed in one way. Their times stay in FailedLatency and
// All, which don't know the kinds. The result shares memory with s and must only be read.
func (s *Stats) WithoutFailures(kind drivers.Failure) *Stats {
	n := s.Failures[kind]
	if n == 0 {
		return s
	}
	x := s.view()
	x.Failed -= n
	x.Failures[kind] = 0
	return x
}

// Add adds one sample of a round.
func (s *Stats) Add(round int, x *Sample) {
	s.changed()
	if x.Flags&Dropped != 0 {
		s.Dropped++
		if late := x.Start - x.Due; x.Lag > 0 && x.Lag >= late-x.Lag {
			s.DroppedByLag++
		}
		return
	}
	s.Extend(Span{round, x.Stage, x.Start, x.End})
	s.BytesIn += x.BytesIn
	s.BytesOut += x.BytesOut
	if x.Flags&Opened != 0 {
		s.Opened++
	}
	if x.Status != 0 {
		s.Statuses[x.Status]++
	}
	s.Lag.Add(x.Lag)
	latency := x.Latency()
	if x.Failure != drivers.OK {
		s.Failed++
		if int(x.Failure) < len(s.Failures) {
			s.Failures[x.Failure]++
		}
		if x.Lag > 0 && s.failedNoLag == s.failed {
			s.failedNoLag = s.failed.Clone()
		}
		s.failed.Add(latency)
		if s.failedNoLag != s.failed {
			s.failedNoLag.Add(latency - x.Lag)
		}
		return
	}
	s.OK++
	s.BytesInOK += x.BytesIn
	if x.Start != x.Due && s.service == s.latency {
		s.service = s.latency.Clone()
	}
	if x.Lag > 0 && s.latencyNoLag == s.latency {
		s.latencyNoLag = s.latency.Clone()
	}
	s.latency.Add(latency)
	if s.service != s.latency {
		s.service.Add(x.Service())
	}
	if s.latencyNoLag != s.latency {
		s.latencyNoLag.Add(latency - x.Lag)
	}
	for _, part := range [...]struct {
		to *Series
		v  int64
	}{{s.DNS, x.DNS}, {s.Connect, x.Connect}, {s.TLS, x.TLS}, {s.Wait, x.Wait}, {s.TTFB, x.TTFB}, {s.Transfer, x.Transfer}} {
		if part.v >= 0 {
			part.to.Add(part.v)
		}
	}
}

// Spans lists when each stage of each round was active.
func (s *Stats) Spans() []Span { return s.spans }

// Extend makes the span of x's stage and round reach over x.
func (s *Stats) Extend(x Span) {
	for i := len(s.spans) - 1; i >= 0; i-- {
		if p := &s.spans[i]; p.Round == x.Round && p.Stage == x.Stage {
			p.First, p.Last = min(p.First, x.First), max(p.Last, x.Last)
			return
		}
	}
	s.spans = append(s.spans, x)
}

// Release returns to the budget what the series hold. s must not be used any more.
func (s *Stats) Release() {
	s.changed()
	for _, x := range s.series() {
		(*x).Release()
	}
	for _, x := range []*Series{s.latency, s.failed, s.service, s.latencyNoLag, s.failedNoLag} {
		x.Release()
	}
}

// Merge adds all samples and the length of o, which stays as it is.
func (s *Stats) Merge(o *Stats) {
	s.changed()
	s.OK += o.OK
	s.Failed += o.Failed
	s.Dropped += o.Dropped
	s.DroppedByLag += o.DroppedByLag
	for i, n := range o.Failures {
		s.Failures[i] += n
	}
	for k, n := range o.Statuses {
		s.Statuses[k] += n
	}
	s.BytesIn += o.BytesIn
	s.BytesOut += o.BytesOut
	s.BytesInOK += o.BytesInOK
	s.Opened += o.Opened
	s.Length += o.Length
	for _, x := range o.spans {
		s.Extend(x)
	}

	// A shared series stays shared as long as it is shared on both sides.
	if s.service == s.latency && o.service != o.latency {
		s.service = s.latency.Clone()
	}
	if s.latencyNoLag == s.latency && o.latencyNoLag != o.latency {
		s.latencyNoLag = s.latency.Clone()
	}
	if s.failedNoLag == s.failed && o.failedNoLag != o.failed {
		s.failedNoLag = s.failed.Clone()
	}
	if s.service != s.latency {
		s.service.Merge(o.service)
	}
	if s.latencyNoLag != s.latency {
		s.latencyNoLag.Merge(o.latencyNoLag)
	}
	if s.failedNoLag != s.failed {
		s.failedNoLag.Merge(o.failedNoLag)
	}
	s.latency.Merge(o.latency)
	s.failed.Merge(o.failed)
	to := s.series()
	for i, from := range o.series() {
		(*to[i]).Merge(*from)
	}
}

// Active is how long anything was under way, from first start to last end of each stage, summed over rounds. Time that
// two stages of a round share counts once.
func (s *Stats) Active() time.Duration {
	spans := slices.Clone(s.spans)
	slices.SortFunc(spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.First, b.First))
	})
	var total, until int64
	round := -1
	for _, x := range spans {
		if x.Round != round {
			round, until = x.Round, x.First
		}
		total += max(0, x.Last-max(x.First, until))
		until = max(until, x.Last)
	}
	return time.Duration(total)
}
