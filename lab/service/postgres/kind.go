package postgres

import (
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// oid is a type of PostgreSQL. 0 is unknown.
type oid uint32

// The types that values of SQLite are shown as.
const (
	unknown     oid = 0
	boolean     oid = pgtype.BoolOID
	bytea       oid = pgtype.ByteaOID
	int8        oid = pgtype.Int8OID
	text        oid = pgtype.TextOID
	float8      oid = pgtype.Float8OID
	numeric     oid = pgtype.NumericOID
	timestamptz oid = pgtype.TimestamptzOID
)

// typeByName is the type that a column declared as name is shown as, by the rules of SQLite's affinities
// (https://www.sqlite.org/datatype3.html, section 3.1) and PostgreSQL's names. Integers are all of 64 bits.
func typeByName(name string) oid {
	n := strings.ToUpper(name)
	has := func(part string) bool { return strings.Contains(n, part) }
	switch {
	case n == "":
		return unknown
	case has("BOOL"):
		return boolean
	case has("INTERVAL"):
		return text
	case has("INT") || has("SERIAL"):
		return int8
	case has("CHAR") || has("CLOB") || has("TEXT") || has("JSON") || has("UUID"):
		return text
	case has("BLOB") || has("BYTEA"):
		return bytea
	case has("REAL") || has("FLOA") || has("DOUB"):
		return float8
	case has("NUM") || has("DEC"):
		return numeric
	case has("TIMESTAMP") || has("DATETIME"):
		return timestamptz
	}
	return text
}

// affinity is the type of SQLite for a cast.
func (o oid) affinity() string {
	switch o {
	case boolean, int8:
		return "INTEGER"
	case bytea:
		return "BLOB"
	case float8:
		return "REAL"
	case numeric:
		return "NUMERIC"
	}
	return "TEXT"
}

// typeOf is the type of a value that came out of an expression.
func typeOf(v any) oid {
	switch v.(type) {
	case int64:
		return int8
	case float64:
		return float8
	case string:
		return text
	case []byte:
		return bytea
	case bool:
		return boolean
	case time.Time:
		return timestamptz
	}
	return unknown
}

// size is what a RowDescription says of a type's width: -1 if it varies.
func (o oid) size() int16 {
	switch o {
	case boolean:
		return 1
	case int8, float8, timestamptz:
		return 8
	}
	return -1
}

// The formats of values on the wire.
const (
	asText   int16 = 0
	asBinary int16 = 1
)

// encode appends a value of SQLite, other than nil, as one of a type.
// See https://www.postgresql.org/docs/current/protocol-overview.html#PROTOCOL-FORMAT-CODES.
func encode(dst []byte, types *pgtype.Map, as oid, format int16, v any) ([]byte, error) {
	if format == asText {
		return encodeText(dst, types, as, v)
	}
	switch as {
	case text:
		// A value of another type than its column, which SQLite allows.
		return encodeText(dst, types, as, v)
	case int8:
		switch v := v.(type) {
		case int64:
			return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
		case float64:
			if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
				return binary.BigEndian.AppendUint64(dst, uint64(int64(v))), nil
			}
		}
	case float8:
		switch v := v.(type) {
		case float64:
			return binary.BigEndian.AppendUint64(dst, math.Float64bits(v)), nil
		case int64:
			return binary.BigEndian.AppendUint64(dst, math.Float64bits(float64(v))), nil
		}
	case bytea:
		switch v := v.(type) {
		case []byte:
			return append(dst, v...), nil
		case string:
			return append(dst, v...), nil
		}
	case boolean:
		switch v := v.(type) {
		case bool:
			return append(dst, map[bool]byte{true: 1}[v]), nil
		case int64:
			return append(dst, map[bool]byte{true: 1}[v != 0]), nil
		}
	}
	out, err := types.Encode(uint32(as), format, v, dst)
	if err != nil {
		return nil, fail(datatypeMismatch, "a value is no %s", typeName(types, as))
	}
	return out, nil
}

func encodeText(dst []byte, types *pgtype.Map, as oid, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return append(dst, v...), nil
	case []byte:
		if as == text {
			return append(dst, v...), nil
		}
		return hex.AppendEncode(append(dst, `\x`...), v), nil
	case int64:
		if as == boolean {
			return append(dst, truth[v != 0]), nil
		}
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		return strconv.AppendFloat(dst, v, 'g', -1, 64), nil
	case bool:
		return append(dst, truth[v]), nil
	case time.Time:
		return v.AppendFormat(dst, "2006-01-02 15:04:05.999999-07"), nil
	}
	return nil, fail(datatypeMismatch, "a value is no %s", typeName(types, as))
}

// truth values as text.
var truth = map[bool]byte{true: 't', false: 'f'}

// decode reads a parameter, for SQLite to bind. b is nil for NULL.
func decode(types *pgtype.Map, as oid, format int16, b []byte) (driver.Value, error) {
	if b == nil {
		return nil, nil
	}
	if format == asBinary {
		return decodeBinary(types, as, b)
	}
	s := string(b)
	switch as {
	case unknown:
		// Numbers are bound as numbers, so that they compare as such with expressions, which have no affinity.
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(n, 10) == s {
			return n, nil
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && strconv.FormatFloat(f, 'f', -1, 64) == s {
			return f, nil
		}
		return s, nil
	case pgtype.Int2OID, pgtype.Int4OID, int8:
		n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		if err != nil {
			return nil, fail(invalidText, "invalid input syntax for type bigint: %q", s)
		}
		return n, nil
	case pgtype.Float4OID, float8, numeric:
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return nil, fail(invalidText, "invalid input syntax for type %s: %q", typeName(types, as), s)
		}
		return f, nil
	case boolean:
		switch strings.ToLower(strings.TrimSpace(s)) {
		case "t", "true", "y", "yes", "on", "1":
			return true, nil
		case "f", "false", "n", "no", "off", "0":
			return false, nil
		}
		return nil, fail(invalidText, "invalid input syntax for type boolean: %q", s)
	case bytea:
		if digits, ok := strings.CutPrefix(s, `\x`); ok {
			b, err := hex.DecodeString(digits)
			if err != nil {
				return nil, fail(invalidText, "invalid hexadecimal data")
			}
			return b, nil
		}
		return b, nil
	}
	return s, nil
}

func decodeBinary(types *pgtype.Map, as oid, b []byte) (driver.Value, error) {
	switch as {
	case unknown, text, pgtype.VarcharOID, pgtype.BPCharOID, pgtype.UnknownOID, pgtype.JSONOID:
		return string(b), nil
	case bytea:
		return b, nil
	}
	kind, ok := types.TypeForOID(uint32(as))
	if !ok {
		return nil, fail(featureNotSupported, "parameters of type %d are not supported", as)
	}
	v, err := kind.Codec.DecodeDatabaseSQLValue(types, uint32(as), asBinary, b)
	if err != nil {
		return nil, fail(invalidBinary, "incorrect binary data for type %s", kind.Name)
	}
	switch v := v.(type) {
	case string:
		if as == numeric {
			if f, err := strconv.ParseFloat(v, 64); err == nil {
				return f, nil
			}
		}
		return v, nil
	case time.Time:
		return v.Format("2006-01-02 15:04:05.999999Z07:00"), nil
	}
	return v, nil
}

func typeName(types *pgtype.Map, o oid) string {
	if kind, ok := types.TypeForOID(uint32(o)); ok {
		return kind.Name
	}
	return fmt.Sprintf("type %d", o)
}
