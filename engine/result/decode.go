package result

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/planrun/planrun/engine/record"
)

// decoder reads payloads. It believes no length: whatever a payload says, decoding takes memory in proportion to its
// size at most. The first fault sticks in err, and everything after it reads as zero.
type decoder struct {
	payload []byte
	r       bytes.Reader
	d       *msgpack.Decoder
	err     error
}

func newDecoder() *decoder {
	d := new(decoder)
	d.d = msgpack.NewDecoder(&d.r)
	return d
}

func (d *decoder) reset(payload []byte) {
	d.payload, d.err = payload, nil
	d.r.Reset(payload)
	d.d.Reset(&d.r)
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *decoder) failf(format string, args ...any) { d.fail(fmt.Errorf(format, args...)) }

// mapping reads a map. field is called with each key, and reads its value or else calls skip.
func (d *decoder) mapping(field func(key []byte)) {
	if d.err != nil {
		return
	}
	n, err := d.d.DecodeMapLen()
	if err != nil {
		d.fail(errKind)
		return
	}
	if n > d.r.Len()/2 {
		d.fail(errLength)
		return
	}
	for range n {
		key := d.bytes()
		if d.err != nil {
			return
		}
		if field(key); d.err != nil {
			return
		}
	}
}

// list reads an array. item reads one element, of which each takes a byte at least.
func (d *decoder) list(item func()) {
	if d.err != nil {
		return
	}
	n, err := d.d.DecodeArrayLen()
	if err != nil {
		d.fail(errKind)
		return
	}
	if n > d.r.Len() {
		d.fail(errLength)
		return
	}
	for range n {
		if item(); d.err != nil {
			return
		}
	}
}

var (
	errLength = errors.New("a length is greater than what follows")
	errKind   = errors.New("a value is not of the kind expected")
)

// bytes reads a string or byte string. It is part of the payload and valid until the next reset.
func (d *decoder) bytes() []byte {
	if d.err != nil {
		return nil
	}
	n, err := d.d.DecodeBytesLen()
	if err != nil {
		d.fail(errKind)
		return nil
	}
	if n > d.r.Len() {
		d.fail(errLength)
		return nil
	}
	if n <= 0 {
		return nil
	}
	at := len(d.payload) - d.r.Len()
	d.advance(n)
	return d.payload[at : at+n]
}

func (d *decoder) advance(n int) {
	at := len(d.payload) - d.r.Len()
	// Within the payload, so Seek can't fail.
	d.r.Seek(int64(at+n), 0)
}

func (d *decoder) string() string { return string(d.bytes()) }

func (d *decoder) int64() int64 {
	if d.err != nil {
		return 0
	}
	v, err := d.d.DecodeInt64()
	if err != nil {
		d.fail(errKind)
	}
	return v
}

func (d *decoder) uint64() uint64 {
	if d.err != nil {
		return 0
	}
	v, err := d.d.DecodeUint64()
	if err != nil {
		d.fail(errKind)
	}
	return v
}

// int reads a number that must lie between low and high.
func (d *decoder) int(low, high int) int {
	v := d.int64()
	if d.err == nil && (v < int64(low) || v > int64(high)) {
		d.failf("%d is not between %d and %d", v, low, high)
		return low
	}
	return int(v)
}

// index reads a number that counts something from 0.
func (d *decoder) index() int { return d.int(0, math.MaxInt32) }

// count reads a number of things.
func (d *decoder) count() int64 {
	v := d.int64()
	if v < 0 {
		d.failf("%d is not a number of things", v)
		return 0
	}
	return v
}

func (d *decoder) duration() time.Duration { return time.Duration(d.int64()) }

func (d *decoder) time() time.Time { return time.Unix(0, d.int64()).UTC() }

func (d *decoder) bool() bool {
	if d.err != nil {
		return false
	}
	v, err := d.d.DecodeBool()
	if err != nil {
		d.fail(errKind)
	}
	return v
}

// float reads a number that is finite.
func (d *decoder) float() float64 {
	if d.err != nil {
		return 0
	}
	v, err := d.d.DecodeFloat64()
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		d.fail(errKind)
		return 0
	}
	return v
}

func (d *decoder) strings() []string {
	var s []string
	d.list(func() { s = append(s, d.string()) })
	return s
}

func (d *decoder) texts() map[string]string {
	m := map[string]string{}
	d.mapping(func(key []byte) { m[string(key)] = d.string() })
	return m
}

func (d *decoder) histogram() *record.Histogram {
	b := d.bytes()
	if d.err != nil {
		return nil
	}
	h, err := record.DecodeHistogram(b)
	if err != nil {
		d.fail(err)
		return nil
	}
	return h
}

// skip passes over one value of any kind, without recursion: values nested a million deep cost no stack.
func (d *decoder) skip() {
	for left := 1; left > 0 && d.err == nil; left-- {
		code, err := d.r.ReadByte()
		if err != nil {
			d.fail(errLength)
			return
		}
		size := func(width int) int {
			n := 0
			for range width {
				b, err := d.r.ReadByte()
				if err != nil {
					d.fail(errLength)
				}
				n = n<<8 | int(b)
			}
			return n
		}
		bytes, values := 0, 0
		switch {
		case msgpcode.IsFixedNum(code), code == msgpcode.Nil, code == msgpcode.True, code == msgpcode.False:
		case msgpcode.IsFixedString(code):
			bytes = int(code & msgpcode.FixedStrMask)
		case msgpcode.IsFixedArray(code):
			values = int(code & msgpcode.FixedArrayMask)
		case msgpcode.IsFixedMap(code):
			values = 2 * int(code&msgpcode.FixedMapMask)
		default:
			switch code {
			case msgpcode.Uint8, msgpcode.Int8:
				bytes = 1
			case msgpcode.Uint16, msgpcode.Int16:
				bytes = 2
			case msgpcode.Uint32, msgpcode.Int32, msgpcode.Float:
				bytes = 4
			case msgpcode.Uint64, msgpcode.Int64, msgpcode.Double:
				bytes = 8
			case msgpcode.Str8, msgpcode.Bin8:
				bytes = size(1)
			case msgpcode.Str16, msgpcode.Bin16:
				bytes = size(2)
			case msgpcode.Str32, msgpcode.Bin32:
				bytes = size(4)
			case msgpcode.Array16:
				values = size(2)
			case msgpcode.Array32:
				values = size(4)
			case msgpcode.Map16:
				values = 2 * size(2)
			case msgpcode.Map32:
				values = 2 * size(4)
			case msgpcode.FixExt1, msgpcode.FixExt2, msgpcode.FixExt4, msgpcode.FixExt8, msgpcode.FixExt16:
				bytes = 1 + 1<<(code-msgpcode.FixExt1)
			case msgpcode.Ext8:
				bytes = size(1) + 1
			case msgpcode.Ext16:
				bytes = size(2) + 1
			case msgpcode.Ext32:
				bytes = size(4) + 1
			default:
				d.fail(errKind)
			}
		}
		if bytes+values > d.r.Len() {
			d.fail(errLength)
			return
		}
		d.advance(bytes)
		// Every pending value takes a byte at least, so left stays below the payload's length or reading fails.
		left += values
	}
}
