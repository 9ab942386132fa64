package record

import (
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"math/bits"
)

const (
	subBits  = 8            // 256 buckets an octave: a bucket's width is at most 1/256 of its lower edge
	subCount = 1 << subBits // buckets of one page
	pages    = 64 - subBits // page 0 holds 0..255 exactly, each further one an octave, up to the greatest int64
	buckets  = pages * subCount
)

// Histogram counts values, nanoseconds as a rule, in log-linear buckets: exact below 512, and above that at most
// 0.4 % wide (1/256). It covers all of int64 from 0 up; smaller values count as 0. Count, Min, Max, Sum and Mean are exact.
//
// The zero value is empty and small: an octave takes 2 kB from the first value in it on. A Histogram is not safe for
// concurrent use, but any number may read it while nobody writes.
type Histogram struct {
	count    int64
	min, max int64
	sum      wide
	octaves  *[pages]*[subCount]uint64
	packed   []byte // the buckets in wire form, of a decoded histogram that nobody has written to yet
}

// bucketOf returns the bucket of v, which is not negative.
//
//	v < 256:  v
//	else:     256 e + floor(v / 2^e), where e is such that the quotient lies in 256..511
func bucketOf(v int64) int {
	u := uint64(v)
	if u < subCount {
		return int(u)
	}
	e := bits.Len64(u) - subBits - 1
	return e<<subBits + int(u>>e)
}

// upperEdge returns the greatest value of a bucket.
func upperEdge(bucket int) int64 {
	if bucket < 2*subCount {
		return int64(bucket)
	}
	e := bucket>>subBits - 1
	return int64(uint64(bucket-e<<subBits+1)<<e - 1)
}

// Record counts v. It allocates only for the first value of an octave.
func (h *Histogram) Record(v int64) {
	if v < 0 {
		v = 0
	}
	if h.count == 0 {
		h.min, h.max = v, v
	} else if v < h.min {
		h.min = v
	} else if v > h.max {
		h.max = v
	}
	h.count++
	h.sum.add(uint64(v))
	*h.at(bucketOf(v))++
}

// RecordN counts v n times. n below 1 counts nothing.
func (h *Histogram) RecordN(v, n int64) {
	if n < 1 {
		return
	}
	v = max(v, 0)
	if h.count == 0 {
		h.min, h.max = v, v
	} else {
		h.min, h.max = min(h.min, v), max(h.max, v)
	}
	h.count += n
	h.sum.addProduct(uint64(v), uint64(n))
	*h.at(bucketOf(v)) += uint64(n)
}

func (h *Histogram) at(bucket int) *uint64 {
	if h.octaves == nil {
		h.unpack()
	}
	p := h.octaves[bucket>>subBits]
	if p == nil {
		p = new([subCount]uint64)
		h.octaves[bucket>>subBits] = p
	}
	return &p[bucket&(subCount-1)]
}

func (h *Histogram) unpack() {
	h.octaves = new([pages]*[subCount]uint64)
	packed := h.packed
	h.packed = nil
	for bucket, n := range unpacked(packed) {
		*h.at(bucket) = n
	}
}

// Merge counts all of o's values. o stays as it is.
func (h *Histogram) Merge(o *Histogram) {
	if o == nil || o.count == 0 {
		return
	}
	if h.count == 0 {
		h.min, h.max = o.min, o.max
	} else {
		h.min, h.max = min(h.min, o.min), max(h.max, o.max)
	}
	h.count += o.count
	h.sum.addWide(o.sum)
	for bucket, n := range o.filled() {
		*h.at(bucket) += n
	}
}

// Reset empties h and keeps its memory for further values.
func (h *Histogram) Reset() {
	o := h.octaves
	*h = Histogram{octaves: o}
	if o != nil {
		for _, p := range o {
			if p != nil {
				*p = [subCount]uint64{}
			}
		}
	}
}

// Count is the number of values; 0 of a nil histogram.
func (h *Histogram) Count() int64 {
	if h == nil {
		return 0
	}
	return h.count
}

// Min is the smallest value; false is no data.
func (h *Histogram) Min() (int64, bool) { return h.min, h.count > 0 }

// Max is the greatest value; false is no data.
func (h *Histogram) Max() (int64, bool) { return h.max, h.count > 0 }

// Sum is the sum of the values; 0 if there are none. It is exact inside and rounded once, when it is returned.
func (h *Histogram) Sum() float64 { return h.sum.float() }

// Mean is the arithmetic mean; false is no data.
func (h *Histogram) Mean() (float64, bool) {
	if h.count == 0 {
		return 0, false
	}
	return h.sum.float() / float64(h.count), true
}

// Quantile returns the value of rank ceil(q n) in ascending order (nearest rank), where q is clamped to 0..1: the upper
// edge of the bucket it is in, but never outside Min and Max. false is no data.
func (h *Histogram) Quantile(q float64) (int64, bool) {
	if h.count == 0 || math.IsNaN(q) {
		return 0, false
	}
	r := uint64(rank(q, h.count))
	var below uint64
	for bucket, n := range h.filled() {
		if below += n; below >= r {
			return min(max(upperEdge(bucket), h.min), h.max), true
		}
	}
	return h.max, true
}

// CountAtMost returns how many values are at most v. Values in the same bucket as v count only if the whole bucket does,
// so the answer may be too small by those within 0.4 % below v, and is never too great.
func (h *Histogram) CountAtMost(v int64) int64 {
	if h.count == 0 || v < h.min {
		return 0
	}
	if v >= h.max {
		return h.count
	}
	var total uint64
	for bucket, n := range h.filled() {
		if upperEdge(bucket) > v {
			break
		}
		total += n
	}
	return int64(total)
}

// Values yields the buckets that hold anything in ascending order: the bucket's upper edge, clamped to Min and Max, and
// the number of values in it.
func (h *Histogram) Values() iter.Seq2[int64, int64] {
	return func(yield func(int64, int64) bool) {
		for bucket, n := range h.filled() {
			if !yield(min(max(upperEdge(bucket), h.min), h.max), int64(n)) {
				return
			}
		}
	}
}

func (h *Histogram) filled() iter.Seq2[int, uint64] {
	if h.octaves == nil {
		return unpacked(h.packed)
	}
	return func(yield func(int, uint64) bool) {
		for i, p := range h.octaves {
			if p == nil {
				continue
			}
			for j, n := range p {
				if n > 0 && !yield(i<<subBits+j, n) {
					return
				}
			}
		}
	}
}

// rank is the nearest rank of quantile q of n values: ceil(q n), from 1 to n. A product that misses a whole number only
// by the rounding of q, as 0.999 * 1000 might, is that number.
func rank(q float64, n int64) int64 {
	x := q * float64(n)
	r := math.Round(x)
	if math.Abs(x-r) > 1e-14*x {
		r = math.Ceil(x)
	}
	if !(r >= 1) {
		return 1
	}
	if r >= float64(n) {
		return n
	}
	return int64(r)
}

// The wire form, all of it unsigned varints:
//
//	count, and if that is not 0: min, max - min, high and low half of the sum,
//	then for each filled bucket in ascending order: its distance from the one before, its count.

// Append appends h in a sparse form that DecodeHistogram reads: two to four bytes for each filled bucket.
func (h *Histogram) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(h.count))
	if h.count == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(h.min))
	dst = binary.AppendUvarint(dst, uint64(h.max-h.min))
	dst = binary.AppendUvarint(dst, h.sum.high)
	dst = binary.AppendUvarint(dst, h.sum.low)
	if h.octaves == nil {
		return append(dst, h.packed...)
	}
	last := 0
	for i, p := range h.octaves {
		if p == nil {
			continue
		}
		for j, n := range p {
			if n > 0 {
				bucket := i<<subBits + j
				dst = binary.AppendUvarint(dst, uint64(bucket-last))
				dst = binary.AppendUvarint(dst, n)
				last = bucket
			}
		}
	}
	return dst
}

var errHistogram = errors.New("damaged histogram")

// DecodeHistogram reads what Append wrote, all of b. It takes no more memory than b has, whatever b says, and returns an
// error for anything that Append can't have written. The histogram keeps a copy of b's buckets, not b.
func DecodeHistogram(b []byte) (*Histogram, error) {
	h := new(Histogram)
	var head [5]uint64
	for i := range head {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errHistogram
		}
		head[i], b = v, b[n:]
		if i == 0 && v == 0 {
			if len(b) > 0 {
				return nil, errHistogram
			}
			return h, nil
		}
	}
	if head[0] > math.MaxInt64 || head[1] > math.MaxInt64 || head[2] > math.MaxInt64-head[1] {
		return nil, errHistogram
	}
	h.count, h.min, h.max = int64(head[0]), int64(head[1]), int64(head[1]+head[2])
	h.sum = wide{head[3], head[4]}
	var least, most wide
	least.addProduct(head[1], head[0])
	most.addProduct(head[1]+head[2], head[0])
	if h.sum.less(least) || most.less(h.sum) {
		return nil, errHistogram
	}

	h.packed = b
	first, last := -1, 0
	var total uint64
	for len(b) > 0 {
		step, n := binary.Uvarint(b)
		if n <= 0 || step >= buckets || first >= 0 && step == 0 {
			return nil, errHistogram
		}
		b = b[n:]
		c, n := binary.Uvarint(b)
		if n <= 0 || c == 0 || c > head[0]-total {
			return nil, errHistogram
		}
		b = b[n:]
		total += c
		last += int(step)
		if last >= buckets {
			return nil, errHistogram
		}
		if first < 0 {
			first = last
		}
	}
	if total != head[0] || first != bucketOf(h.min) || last != bucketOf(h.max) {
		return nil, errHistogram
	}
	h.packed = append([]byte(nil), h.packed...)
	return h, nil
}

// unpacked yields the buckets of a wire form that was checked.
func unpacked(b []byte) iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		bucket := 0
		for len(b) > 0 {
			step, n := binary.Uvarint(b)
			b = b[n:]
			c, n := binary.Uvarint(b)
			b = b[n:]
			bucket += int(step)
			if !yield(bucket, c) {
				return
			}
		}
	}
}

// wide is an unsigned number of 128 bits: a sum of nanoseconds that does not run over.
type wide struct{ high, low uint64 }

func (w *wide) add(v uint64) {
	var carry uint64
	w.low, carry = bits.Add64(w.low, v, 0)
	w.high += carry
}

func (w *wide) addProduct(a, b uint64) {
	high, low := bits.Mul64(a, b)
	w.addWide(wide{high, low})
}

func (w *wide) addWide(o wide) {
	var carry uint64
	w.low, carry = bits.Add64(w.low, o.low, 0)
	w.high += o.high + carry
}

func (w wide) less(o wide) bool { return w.high < o.high || w.high == o.high && w.low < o.low }

func (w wide) float() float64 { return float64(w.high)*(1<<64) + float64(w.low) }
