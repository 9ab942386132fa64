package result

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/planrun/planrun/engine/record"
)

// encoder makes payloads. It keeps its memory from one to the next.
type encoder struct {
	buf     bytes.Buffer // writing to it can't fail, and so neither can encoding
	e       *msgpack.Encoder
	scratch []byte
}

func newEncoder() *encoder {
	e := new(encoder)
	e.e = msgpack.NewEncoder(&e.buf)
	return e
}

// mapping is a msgpack map under construction: fields that have their zero value are left out, and the number of the
// others is filled in by close.
type mapping struct {
	e      *encoder
	at     int // of the map's head in the buffer
	fields int
}

func (e *encoder) mapping() mapping {
	m := mapping{e: e, at: e.buf.Len()}
	e.buf.Write([]byte{msgpcode.Map16, 0, 0})
	return m
}

func (m *mapping) close() {
	binary.BigEndian.PutUint16(m.e.buf.Bytes()[m.at+1:], uint16(m.fields))
}

// key begins a field; its value must follow.
func (m *mapping) key(name string) {
	m.fields++
	m.e.e.EncodeString(name)
}

func (m *mapping) string(name, v string) {
	if v != "" {
		m.key(name)
		m.e.e.EncodeString(v)
	}
}

func (m *mapping) bytes(name string, v []byte) {
	if len(v) > 0 {
		m.key(name)
		m.e.e.EncodeBytes(v)
	}
}

func (m *mapping) int(name string, v int64) {
	if v != 0 {
		m.key(name)
		m.e.e.EncodeInt(v)
	}
}

func (m *mapping) uint(name string, v uint64) {
	if v != 0 {
		m.key(name)
		m.e.e.EncodeUint(v)
	}
}

func (m *mapping) bool(name string, v bool) {
	if v {
		m.key(name)
		m.e.e.EncodeBool(true)
	}
}

func (m *mapping) float(name string, v float64) {
	if v != 0 {
		m.key(name)
		m.e.e.EncodeFloat64(v)
	}
}

// time is in nanoseconds since 1970, UTC.
func (m *mapping) time(name string, v time.Time) {
	if !v.IsZero() {
		m.int(name, v.UnixNano())
	}
}

func (m *mapping) list(name string, n int, item func(i int)) {
	if n == 0 {
		return
	}
	m.key(name)
	m.e.e.EncodeArrayLen(n)
	for i := range n {
		item(i)
	}
}

func (m *mapping) strings(name string, v []string) {
	m.list(name, len(v), func(i int) { m.e.e.EncodeString(v[i]) })
}

// texts writes a map in the order of its keys.
func (m *mapping) texts(name string, v map[string]string) {
	if len(v) == 0 {
		return
	}
	m.key(name)
	m.e.e.EncodeMapLen(len(v))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		m.e.e.EncodeString(k)
		m.e.e.EncodeString(v[k])
	}
}

func (m *mapping) histogram(name string, h *record.Histogram) {
	if h != nil && h.Count() > 0 {
		m.e.scratch = h.Append(m.e.scratch[:0])
		m.bytes(name, m.e.scratch)
	}
}
