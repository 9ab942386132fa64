package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// collector gathers what the users of a round noted down and writes it to the stream: blocks of samples, or summaries of
// them, and one interval a second. It is the only one to write while a round runs.
type collector struct {
	rd        *round
	probe     *probe                     // runs while anything is collected
	moments   []moment                   // of the probe, as it was last asked
	samples   []record.Sample            // drained and not written yet
	intervals []*result.Interval         // of seconds that are not over, or just were
	written   int                        // intervals
	received  int64                      // body bytes, as of the last interval
	stats     map[statsKey]*record.Stats // when raw samples are not written
	end       int64                      // of the last sample
	stopped   time.Duration              // when the round was cut short, to the poll; 0 if it was not
	flushed   time.Duration
	trial     *trial // what is tried right now, in a capacity search
}

type statsKey struct{ stage, step int }

const (
	pollInterval  = 100 * time.Millisecond
	blockSize     = 4096
	flushInterval = time.Second // no more than this is lost in a crash
)

func newCollector(rd *round) *collector {
	c := &collector{rd: rd}
	if !rd.plan.Results.Samples {
		c.stats = map[statsKey]*record.Stats{}
	}
	return c
}

// around collects while drive brings the load.
func (c *collector) around(drive func()) error {
	var load sync.WaitGroup
	done := make(chan struct{})
	load.Go(func() {
		defer close(done)
		drive()
	})
	err := c.run(done)
	load.Wait()
	return err
}

// run collects until the load is done, and then once more.
func (c *collector) run(done <-chan struct{}) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if c.stopped == 0 && c.rd.halted() {
				c.stopped = c.rd.now()
			}
			settled := c.rd.settled() // before what has ended until now is taken in
			if err := c.collect(c.rd.now(), false); err != nil {
				c.rd.broken.Store(true)
				<-done
				return err
			}
			c.rd.watched(settled)
		case <-done:
			return c.collect(c.rd.now(), true)
		}
	}
}

// length is from the release to the end of the last sample.
func (c *collector) length() time.Duration { return time.Duration(c.end) }

// collect drains all notebooks at the time now since the release.
func (c *collector) collect(now time.Duration, last bool) error {
	users := c.rd.users.snapshot()
	from := len(c.samples)
	for _, u := range users {
		c.samples = u.book.Drain(c.samples)
	}
	for i := range c.samples[from:] {
		c.count(&c.samples[from+i])
	}
	c.countMoments(last)
	flush := last || now-c.flushed >= flushInterval
	if err := c.writeBlocks(flush); err != nil {
		return err
	}
	if err := c.writeIntervals(now, users, last); err != nil {
		return err
	}
	if flush {
		c.flushed = now
		if err := c.rd.flush(); err != nil {
			return err
		}
	}
	return nil
}

// count enters a sample into the interval in which it ended.
func (c *collector) count(s *record.Sample) {
	c.end = max(c.end, s.End)
	if c.rd.watch != nil {
		c.rd.watch.add(c.rd.number, s)
	}
	if c.trial != nil {
		c.trial.add(c.rd.number, s)
	}
	if c.stats != nil {
		key := statsKey{int(s.Stage), int(s.Step)}
		st := c.stats[key]
		if st == nil {
			st = record.NewStats(nil)
			c.stats[key] = st
		}
		st.Add(c.rd.number, s)
	}
	if s.Step != record.Whole {
		return
	}
	// A sample that arrives after its interval was written counts in the next one.
	v := c.interval(max(c.written, int(s.End/int64(time.Second))))
	v.MaxLag = max(v.MaxLag, time.Duration(s.Lag))
	switch {
	case s.Flags&record.Dropped != 0:
		v.Dropped++
	case s.Failure != 0:
		v.Failed++
	default:
		v.OK++
		if v.Latency == nil {
			v.Latency = new(record.Histogram)
		}
		v.Latency.Record(s.Latency())
	}
}

// countMoments enters how late the probe was into the seconds in which it should have been on time. What came after the last
// sample is nobody's.
func (c *collector) countMoments(last bool) {
	c.moments = c.probe.take(c.moments[:0])
	for _, m := range c.moments {
		at := m.at - c.rd.release
		if last && at > c.length() {
			break
		}
		v := c.interval(max(c.written, int(at/time.Second)))
		if v.Probe == nil {
			v.Probe = new(record.Histogram)
		}
		v.Probe.Record(int64(m.late))
		if c.rd.watch != nil {
			c.rd.watch.probed(at, m.late, c.rd.stageAt(at))
		}
		if c.trial != nil {
			c.trial.probed(at, m.late)
		}
	}
}

// interval returns the interval of a second that has not been written yet.
func (c *collector) interval(second int) *result.Interval {
	for c.written+len(c.intervals) <= second {
		c.intervals = append(c.intervals, &result.Interval{Cell: c.rd.index, Round: c.rd.number, Second: c.written + len(c.intervals)})
	}
	return c.intervals[second-c.written]
}

// writeIntervals writes the seconds that are over; at the end of the round also the one that is not.
func (c *collector) writeIntervals(now time.Duration, users []*user, last bool) error {
	over := int(now / time.Second)
	if last {
		over = int((c.end + int64(time.Second) - 1) / int64(time.Second))
	}
	for c.written < over {
		v := c.interval(c.written)
		if v.Second == over-1 {
			v.InFlight = int(c.rd.inFlight.Load())
			var received int64
			for _, u := range users {
				received += u.received.Load()
			}
			v.BytesIn, c.received = received-c.received, received
		}
		if err := c.rd.emit(v); err != nil {
			return err
		}
		c.intervals = c.intervals[1:]
		c.written++
	}
	return nil
}

// writeBlocks writes full blocks, and with flush also the rest. Samples are sorted by due within a block: the users'
// notebooks come one after the other, and near times pack better.
func (c *collector) writeBlocks(flush bool) error {
	rest := c.samples
	for len(rest) >= blockSize || flush && len(rest) > 0 {
		n := min(blockSize, len(rest))
		if c.stats == nil {
			block := rest[:n]
			slices.SortFunc(block, func(a, b record.Sample) int { return int(a.Due - b.Due) })
			if err := c.rd.emit(&result.Block{Cell: c.rd.index, Round: c.rd.number, Samples: block}); err != nil {
				return err
			}
		}
		rest = rest[n:]
	}
	c.samples = c.samples[:copy(c.samples, rest)]
	return nil
}

// finish writes what the samples of the round come to, when they are not written themselves.
func (c *collector) finish() error {
	for stage := range c.rd.Stages {
		for step := record.Whole; step < len(c.rd.Steps); step++ {
			st := c.stats[statsKey{stage, step}]
			if st == nil {
				continue
			}
			if err := c.rd.emit(&result.Summary{Cell: c.rd.index, Round: c.rd.number, Stage: stage, Step: step, Stats: st}); err != nil {
				return err
			}
		}
	}
	return nil
}
