package sql

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

const oidBytea = pgtype.ByteaOID

// value is what an expectation sees of a value: whole numbers and truth values as such, other numbers as float64 if
// they have a fraction, times in RFC 3339, and everything else as the server's text.
func (c postgresColumn) value(v []byte) any {
	if v == nil {
		return nil
	}
	if c.binary {
		return string(v)
	}
	s := string(v)
	switch c.oid {
	case pgtype.BoolOID:
		return s == "t"
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID, pgtype.NumericOID:
		return number(s)
	case pgtype.Float4OID, pgtype.Float8OID:
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		return rfc3339(s)
	case pgtype.ByteaOID:
		if b, err := hex.DecodeString(strings.TrimPrefix(s, `\x`)); err == nil && strings.HasPrefix(s, `\x`) {
			return string(b)
		}
	}
	return s
}

// number reads a decimal number: an int64 if it is whole and fits, else a float64, which holds 15 digits.
func number(s string) any {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f
	}
	return s
}

// rfc3339 brings a database's date and time, such as "2026-01-02 03:04:05.6+00", into the form of RFC 3339. One
// without a zone stays without. Other forms, such as "infinity", are left alone.
func rfc3339(s string) string {
	if len(s) < 19 || s[4] != '-' || s[10] != ' ' || s[13] != ':' {
		return s
	}
	s = s[:10] + "T" + s[11:]
	i := strings.LastIndexAny(s, "+-")
	if i < 19 {
		return s
	}
	zone := s[i:]
	switch {
	case zone == "+00" || zone == "+00:00":
		return s[:i] + "Z"
	case len(zone) == 3:
		return s + ":00"
	}
	return s
}
