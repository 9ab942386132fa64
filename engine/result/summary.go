package result

import (
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
)

// writeStats writes the fields of a summary that are the Stats'.
func writeStats(m *mapping, s *record.Stats) {
	m.int("ok", s.OK)
	m.int("failed", s.Failed)
	m.int("dropped", s.Dropped)
	m.int("dropped_by_lag", s.DroppedByLag)
	m.int("bytes_in", s.BytesIn)
	m.int("bytes_out", s.BytesOut)
	m.int("bytes_in_ok", s.BytesInOK)
	m.int("opened", s.Opened)
	// Numbers by name or status are arrays of pairs.
	var kinds []drivers.Failure
	for _, k := range drivers.Failures {
		if s.Failures[k] > 0 {
			kinds = append(kinds, k)
		}
	}
	m.list("failures", len(kinds), func(i int) {
		m.e.e.EncodeArrayLen(2)
		m.e.e.EncodeString(kinds[i].String())
		m.e.e.EncodeInt(s.Failures[kinds[i]])
	})
	codes := slices.Sorted(maps.Keys(s.Statuses))
	m.list("statuses", len(codes), func(i int) {
		m.e.e.EncodeArrayLen(2)
		m.e.e.EncodeInt(int64(codes[i]))
		m.e.e.EncodeInt(s.Statuses[codes[i]])
	})
	if spans := s.Spans(); len(spans) > 0 {
		m.int("first", spans[0].First)
		m.int("last", spans[0].Last)
		m.bool("active", true)
	}
	m.key("series")
	series := m.e.mapping()
	for name, x := range s.Each() {
		series.key(name)
		one := m.e.mapping()
		one.float("squares", x.Squares())
		one.histogram("histogram", x.Histogram())
		one.close()
	}
	series.close()
}

// summaryReader gathers a summary as its fields come.
type summaryReader struct {
	Summary
	span   record.Span
	active bool
}

func (d *decoder) summaryField(x *summaryReader, key []byte) {
	s := x.Stats
	switch string(key) {
	case "cell":
		x.Cell = d.index()
	case "round":
		x.Round = d.index()
	case "stage":
		x.Stage = d.index()
	case "step":
		x.Step = d.int(record.Whole, 1<<15-1)
	case "ok":
		s.OK = d.count()
	case "failed":
		s.Failed = d.count()
	case "dropped":
		s.Dropped = d.count()
	case "dropped_by_lag":
		s.DroppedByLag = d.count()
	case "bytes_in":
		s.BytesIn = d.count()
	case "bytes_out":
		s.BytesOut = d.count()
	case "bytes_in_ok":
		s.BytesInOK = d.count()
	case "opened":
		s.Opened = d.count()
	case "failures":
		d.list(func() {
			name, n := "", int64(0)
			d.pair(func() { name = d.string() }, func() { n = d.count() })
			// A kind that a later program knows is among the failed ones all the same.
			if kind, ok := drivers.ParseFailure(name); ok {
				s.Failures[kind] = n
			}
		})
	case "statuses":
		d.list(func() {
			code, n := 0, int64(0)
			d.pair(func() { code = d.int(-1<<31, 1<<31-1) }, func() { n = d.count() })
			s.Statuses[int32(code)] = n
		})
	case "first":
		x.span.First = d.int64()
	case "last":
		x.span.Last = d.int64()
	case "active":
		x.active = d.bool()
	case "series":
		d.mapping(func(key []byte) {
			name := string(key)
			var h *record.Histogram
			squares := 0.0
			d.mapping(func(key []byte) {
				switch string(key) {
				case "squares":
					squares = d.float()
				case "histogram":
					h = d.histogram()
				default:
					d.skip()
				}
			})
			// A series of a later program is left out.
			s.Put(name, record.SeriesOf(h, squares))
		})
	default:
		d.skip()
	}
}

func (d *decoder) finishSummary(x *summaryReader) {
	if !x.active {
		return
	}
	if !plausible(x.span.First) || !plausible(x.span.Last) || x.Stage > math.MaxInt16 {
		d.fail(errors.New("its times are impossible"))
		return
	}
	x.span.Round, x.span.Stage = x.Round, int16(x.Stage)
	x.Stats.Extend(x.span)
}

// pair reads an array of two.
func (d *decoder) pair(first, second func()) {
	i := 0
	d.list(func() {
		switch i {
		case 0:
			first()
		case 1:
			second()
		default:
			d.skip()
		}
		i++
	})
}
