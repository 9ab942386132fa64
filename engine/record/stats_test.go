package record

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
)

const ms = 1_000_000

// answered is an ok sample without a timing split.
func answered(due, start, end int64) *Sample {
	return &Sample{Due: due, Start: start, End: end, Step: Whole, DNS: -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1, Status: 200}
}

func TestStatsCountEverything(t *testing.T) {
	s := NewStats(nil)
	s.Add(0, answered(0, 0, 10*ms))
	late := answered(10*ms, 14*ms, 30*ms)
	late.Lag, late.BytesIn, late.BytesOut, late.Connect, late.Flags = 3*ms, 100, 10, 2*ms, Opened
	s.Add(0, late)
	failed := answered(20*ms, 20*ms, 1020*ms)
	failed.Status, failed.Failure, failed.BytesIn, failed.Connect = 0, drivers.Timeout, 50, 5*ms
	s.Add(0, failed)
	dropped := answered(30*ms, 1030*ms, 1030*ms)
	dropped.Flags, dropped.Lag = Dropped, 100*ms
	s.Add(0, dropped)
	dropped.Lag = 900 * ms
	s.Add(0, dropped)

	if s.Count() != 3 || s.Due() != 5 || s.OK != 2 || s.Failed != 1 || s.Dropped != 2 || s.DroppedByLag != 1 {
		t.Errorf("count %d, due %d: %+v", s.Count(), s.Due(), s)
	}
	if s.Failures[drivers.Timeout] != 1 || s.Statuses[200] != 2 || len(s.Statuses) != 1 || s.Opened != 1 {
		t.Errorf("failures %v, statuses %v, opened %d", s.Failures, s.Statuses, s.Opened)
	}
	if s.BytesIn != 150 || s.BytesInOK != 100 || s.BytesOut != 10 {
		t.Errorf("bytes %d, %d, %d", s.BytesIn, s.BytesInOK, s.BytesOut)
	}
	check := func(name string, x *Series, want ...int64) {
		t.Helper()
		got := collect(x)
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
			return
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	}
	check("latency", s.Latency(), 10*ms, 20*ms)
	check("service", s.Service(), 10*ms, 16*ms)
	check("failed", s.FailedLatency(), 1000*ms)
	check("all", s.All(), 10*ms, 20*ms, 1000*ms)
	check("lag", s.Lag, 0, 0, 3*ms)
	check("connect", s.Connect, 2*ms)
	check("dns", s.DNS)
	check("latency without lag", s.WithoutLag().Latency(), 10*ms, 17*ms)
	check("all without lag", s.WithoutLag().All(), 10*ms, 17*ms, 1000*ms)
	if w := s.WithoutLag(); w.Due() != 4 || w.Dropped != 1 || w.Count() != 3 {
		t.Errorf("without lag: due %d, dropped %d", w.Due(), w.Dropped)
	}
	if a := s.Active(); a != 1020*time.Millisecond {
		t.Errorf("active %v", a)
	}
	// What was derived follows what is added.
	s.Add(0, answered(0, 0, 5*ms))
	check("all", s.All(), 5*ms, 10*ms, 20*ms, 1000*ms)
	check("latency without lag", s.WithoutLag().Latency(), 5*ms, 10*ms, 17*ms)
}

func TestClosedModelSharesSeries(t *testing.T) {
	s := NewStats(nil)
	for i := range int64(100) {
		s.Add(0, answered(i*ms, i*ms, i*ms+i*i))
	}
	if s.Service() != s.Latency() || s.WithoutLag().Latency() != s.Latency() || s.All() != s.Latency() {
		t.Error("equal series are stored twice")
	}
	o := NewStats(nil)
	o.Merge(s)
	if o.Service() != o.Latency() || o.Latency().Count() != 100 {
		t.Error("merging splits what is equal")
	}
	late := answered(0, 5, 9)
	late.Lag = 2
	s.Add(0, late)
	if s.Service().Count() != 101 || s.Service() == s.Latency() || s.WithoutLag().Latency().Count() != 101 {
		t.Error("a late sample is not told apart")
	}
}

// TestMergedStats splits samples over rounds and stages and merges what they come to.
func TestMergedStats(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 9))
	all := NewStats(nil)
	merged := NewStats(nil)
	for round := range 3 {
		for stage := range int16(2) {
			part := NewStats(nil)
			for range 200 {
				due := random.Int64N(1e9)
				x := answered(due, due, due+random.Int64N(1e8))
				x.Stage = stage
				switch random.IntN(6) {
				case 0:
					x.Failure, x.Status = drivers.Failures[random.IntN(len(drivers.Failures))], 500
				case 1:
					x.Flags = Dropped
				case 2:
					x.TTFB, x.Transfer = 5, 6
				case 3:
					if round == 2 {
						x.Lag = 100
						x.Start += 1000
						x.End += 1000
					}
				}
				x.BytesIn, x.BytesOut = 3, 4
				part.Add(round, x)
				all.Add(round, x)
			}
			part.Length = time.Second
			merged.Merge(part)
		}
	}
	if merged.Length != 6*time.Second {
		t.Errorf("length %v", merged.Length)
	}
	if all.OK != merged.OK || all.Failed != merged.Failed || all.Dropped != merged.Dropped || all.Failures != merged.Failures ||
		all.BytesIn != merged.BytesIn || all.BytesInOK != merged.BytesInOK || all.BytesOut != merged.BytesOut ||
		all.Statuses[500] != merged.Statuses[500] || all.Active() != merged.Active() {
		t.Errorf("got %+v\nwant %+v", merged, all)
	}
	for name, pair := range map[string][2]*Series{
		"latency": {all.Latency(), merged.Latency()}, "service": {all.Service(), merged.Service()},
		"failed": {all.FailedLatency(), merged.FailedLatency()}, "all": {all.All(), merged.All()},
		"lag": {all.Lag, merged.Lag}, "ttfb": {all.TTFB, merged.TTFB}, "transfer": {all.Transfer, merged.Transfer},
		"without lag":        {all.WithoutLag().Latency(), merged.WithoutLag().Latency()},
		"failed without lag": {all.WithoutLag().FailedLatency(), merged.WithoutLag().FailedLatency()},
	} {
		a, b := collect(pair[0]), collect(pair[1])
		if len(a) != len(b) {
			t.Errorf("%s: %d and %d values", name, len(a), len(b))
			continue
		}
		for i := range a {
			if a[i] != b[i] {
				t.Errorf("%s: value %d is %d and %d", name, i, a[i], b[i])
				break
			}
		}
	}
}

func TestActiveTime(t *testing.T) {
	tests := []struct {
		name  string
		spans []Span
		want  int64
	}{
		{"nothing", nil, 0},
		{"one", []Span{{0, 0, 10, 30}}, 20},
		{"rounds add up", []Span{{0, 0, 10, 30}, {1, 0, 10, 30}}, 40},
		{"stages that overlap count once", []Span{{0, 2, 25, 40}, {0, 0, 10, 30}}, 30},
		{"a pause between stages does not count", []Span{{0, 0, 10, 30}, {0, 2, 100, 110}}, 30},
		{"one within another", []Span{{0, 0, 10, 100}, {0, 1, 20, 30}, {0, 2, 90, 120}}, 110},
	}
	for _, test := range tests {
		s := NewStats(nil)
		for _, x := range test.spans {
			s.Extend(x)
		}
		if got := s.Active(); int64(got) != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestSeriesByName(t *testing.T) {
	s := NewStats(nil)
	for i := range int64(50) {
		x := answered(i, i+2, i+10+i*i)
		x.Lag, x.TTFB = 1, 3+i
		if i%5 == 0 {
			x.Failure = drivers.Reset
		}
		s.Add(0, x)
	}
	o := NewStats(nil)
	for name, x := range s.Each() {
		if !o.Put(name, x) {
			t.Errorf("there is no %s", name)
		}
	}
	for name, x := range o.Each() {
		found := false
		for n, y := range s.Each() {
			found = found || n == name && x == y
		}
		if !found {
			t.Errorf("%s is not what it was", name)
		}
	}
	if o.WithoutLag().Latency().Count() != 40 || o.Service().Count() != 40 {
		t.Error("series got lost")
	}
	if o.Put("colour", NewSeries(nil)) {
		t.Error("any name will do")
	}
}

func TestReleaseGivesAllBack(t *testing.T) {
	b := NewBudget(100_000)
	s := NewStats(b)
	for i := range int64(1000) {
		x := answered(i, i+i%3, i+10+i*i)
		x.Lag, x.TTFB, x.Wait = i%3, i, i*2
		if i%10 == 0 {
			x.Failure = drivers.Reset
		}
		s.Add(0, x)
	}
	s.All()
	s.WithoutLag().All()
	if b.left.Load() >= 100_000 {
		t.Error("nothing was taken")
	}
	s.Release()
	if left := b.left.Load(); left != 100_000 {
		t.Errorf("%d are left of 100000", left)
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	s := NewStats(NewBudget(0))
	x := answered(0, 1, 1000)
	x.Lag, x.TTFB = 1, 500
	s.Add(0, x)
	x.End, x.TTFB, x.Lag, x.Start = 1010, 510, 2, 3
	s.Add(0, x)
	if n := testing.AllocsPerRun(1000, func() { s.Add(0, x) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkStatsAdd(b *testing.B) {
	s := NewStats(NewBudget(0))
	x := answered(0, 1, 1000)
	x.TTFB, x.Transfer, x.Wait, x.Lag = 500, 400, 3, 1
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		x.End = 1000 + i&0xfffff
		s.Add(0, x)
	}
}
