package result

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
)

// Samples go into a block column by column, because neighbours in a column are alike. A column is a byte that names its
// coding, then zigzag varints:
//
//	plain  each value
//	runs   value, how often; value, how often; ...
//	steps  the change of the change from one value to the next, both 0 before the first
//
// A column whose values are all 0 is left out. What a column holds is chosen so that usual values are small or equal:
// the start counts from due, lag is told by what of that it does not explain, parts of the timing split are one greater
// so that no data is 0, and the end is told by what the parts leave unexplained.
const (
	plain = iota
	runs
	steps
)

// column converts between a sample and its value in one column. Columns are filled in order, so that set may use the
// columns before.
type column struct {
	name   string
	coding byte // steps, or plain for the shorter one of plain and runs
	get    func(*record.Sample) int64
	set    func(*record.Sample, int64) bool // false: the value is out of range
}

var columns = [...]column{
	{"due", steps,
		func(s *record.Sample) int64 { return s.Due },
		func(s *record.Sample, v int64) bool { s.Due = v; return true }},
	{"start", plain,
		func(s *record.Sample) int64 { return s.Start - s.Due },
		func(s *record.Sample, v int64) bool { s.Start = s.Due + v; return true }},
	{"backlog", plain,
		func(s *record.Sample) int64 { return s.Start - s.Due - s.Lag },
		func(s *record.Sample, v int64) bool { s.Lag = s.Start - s.Due - v; return true }},
	split("dns", func(s *record.Sample) *int64 { return &s.DNS }),
	split("connect", func(s *record.Sample) *int64 { return &s.Connect }),
	split("tls", func(s *record.Sample) *int64 { return &s.TLS }),
	split("wait", func(s *record.Sample) *int64 { return &s.Wait }),
	split("ttfb", func(s *record.Sample) *int64 { return &s.TTFB }),
	split("transfer", func(s *record.Sample) *int64 { return &s.Transfer }),
	{"end", plain,
		func(s *record.Sample) int64 { return s.End - s.Start - parts(s) },
		func(s *record.Sample, v int64) bool { s.End = s.Start + parts(s) + v; return true }},
	{"bytes_in", plain,
		func(s *record.Sample) int64 { return s.BytesIn },
		func(s *record.Sample, v int64) bool { s.BytesIn = v; return v >= 0 }},
	{"bytes_out", plain,
		func(s *record.Sample) int64 { return s.BytesOut },
		func(s *record.Sample, v int64) bool { s.BytesOut = v; return v >= 0 }},
	{"iteration", steps,
		func(s *record.Sample) int64 { return s.Iteration },
		func(s *record.Sample, v int64) bool { s.Iteration = v; return true }},
	{"user", plain,
		func(s *record.Sample) int64 { return int64(s.User) },
		func(s *record.Sample, v int64) bool { s.User = int32(v); return v == int64(s.User) }},
	{"status", plain,
		func(s *record.Sample) int64 { return int64(s.Status) },
		func(s *record.Sample, v int64) bool { s.Status = int32(v); return v == int64(s.Status) }},
	{"step", plain,
		func(s *record.Sample) int64 { return int64(s.Step) - record.Whole },
		func(s *record.Sample, v int64) bool {
			s.Step = int16(v + record.Whole)
			return v >= 0 && v <= math.MaxInt16
		}},
	{"stage", plain,
		func(s *record.Sample) int64 { return int64(s.Stage) },
		func(s *record.Sample, v int64) bool { s.Stage = int16(v); return v >= 0 && v <= math.MaxInt16 }},
	{"failure", plain,
		func(s *record.Sample) int64 { return int64(s.Failure) },
		func(s *record.Sample, v int64) bool {
			s.Failure = drivers.Failure(v)
			return v >= 0 && v <= int64(drivers.Aborted)
		}},
	{"flags", plain,
		func(s *record.Sample) int64 { return int64(s.Flags) },
		func(s *record.Sample, v int64) bool { s.Flags = record.Flags(v); return v >= 0 && v <= math.MaxUint8 }},
	{"paused", plain,
		func(s *record.Sample) int64 { return s.Paused },
		func(s *record.Sample, v int64) bool { s.Paused = v; return v >= 0 && v <= s.End-s.Start }},
}

// split is the column of a part of the timing split.
func split(name string, of func(*record.Sample) *int64) column {
	return column{name, plain,
		func(s *record.Sample) int64 { return *of(s) + 1 },
		func(s *record.Sample, v int64) bool { *of(s) = v - 1; return v >= 0 }}
}

// parts is the sum of the timing split.
func parts(s *record.Sample) (sum int64) {
	for _, v := range [...]int64{s.DNS, s.Connect, s.TLS, s.Wait, s.TTFB, s.Transfer} {
		if v > 0 {
			sum += v
		}
	}
	return sum
}

// appendColumn encodes a column; nothing if it may be left out.
func appendColumn(dst []byte, c *column, samples []record.Sample) []byte {
	if len(samples) == 0 {
		return dst
	}
	if c.coding == steps {
		return appendSteps(dst, c, samples)
	}
	first := c.get(&samples[0])
	changes, last := 0, first
	for i := range samples {
		if v := c.get(&samples[i]); v != last {
			changes++
			last = v
		}
	}
	if changes == 0 && first == 0 {
		return dst
	}
	if 2*(changes+1) > len(samples) {
		dst = append(dst, plain)
		for i := range samples {
			dst = binary.AppendVarint(dst, c.get(&samples[i]))
		}
		return dst
	}
	dst = append(dst, runs)
	n := uint64(0)
	last = first
	for i := range samples {
		v := c.get(&samples[i])
		if v != last {
			dst = binary.AppendVarint(dst, last)
			dst = binary.AppendUvarint(dst, n)
			last, n = v, 0
		}
		n++
	}
	dst = binary.AppendVarint(dst, last)
	return binary.AppendUvarint(dst, n)
}

func appendSteps(dst []byte, c *column, samples []record.Sample) []byte {
	at, zero := len(dst), true
	dst = append(dst, steps)
	var last, change int64
	for i := range samples {
		v := c.get(&samples[i])
		d := v - last
		dst = binary.AppendVarint(dst, d-change)
		zero = zero && v == 0
		last, change = v, d
	}
	if zero {
		return dst[:at]
	}
	return dst
}

var errColumn = errors.New("damaged column")

// decodeColumn fills a column of all samples.
func decodeColumn(b []byte, c *column, samples []record.Sample) error {
	if len(b) == 0 {
		return errColumn
	}
	coding := b[0]
	b = b[1:]
	var last, change int64
	for i := 0; i < len(samples); {
		v, n := binary.Varint(b)
		if n <= 0 {
			return errColumn
		}
		b = b[n:]
		many := uint64(1)
		switch coding {
		case plain:
		case runs:
			if many, n = binary.Uvarint(b); n <= 0 || many == 0 || many > uint64(len(samples)-i) {
				return errColumn
			}
			b = b[n:]
		case steps:
			change += v
			last += change
			v = last
		default:
			return errColumn
		}
		for range many {
			if !c.set(&samples[i], v) {
				return errColumn
			}
			i++
		}
	}
	if len(b) > 0 {
		return errColumn
	}
	return nil
}

// decodeColumns fills samples from the columns of a block, nil where it has none.
func decodeColumns(raw *[len(columns)][]byte, samples []record.Sample) error {
	for k := range columns {
		c := &columns[k]
		if raw[k] == nil {
			for i := range samples {
				c.set(&samples[i], 0)
			}
		} else if err := decodeColumn(raw[k], c, samples); err != nil {
			return fmt.Errorf("%w %s", err, c.name)
		}
	}
	for i := range samples {
		// So that differences of times don't run over.
		if s := &samples[i]; !plausible(s.Due) || !plausible(s.Start) || !plausible(s.End) || !plausible(s.Lag) || !plausible(s.Paused) {
			return errColumn
		}
	}
	return nil
}

func plausible(t int64) bool { return -1<<61 < t && t < 1<<61 }
