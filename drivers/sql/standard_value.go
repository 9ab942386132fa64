package sql

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// value is what an expectation sees of a value that a library for database/sql has decoded. kind is the column's type
// as the library calls it.
func value(v driver.Value, kind string) any {
	switch v := v.(type) {
	case []byte:
		switch {
		case v == nil:
			return nil
		case kind == "UNIQUEIDENTIFIER" && len(v) == 16:
			// The first three groups are little-endian (MS-DTYP 2.3.4.2).
			return fmt.Sprintf("%02X%02X%02X%02X-%02X%02X-%02X%02X-%X-%X", v[3], v[2], v[1], v[0], v[5], v[4], v[7], v[6], v[8:10], v[10:16])
		}
		return text(string(v), kind)
	case string:
		return text(v, kind)
	case time.Time:
		switch kind {
		case "DATE":
			return v.Format(time.DateOnly)
		case "TIME":
			return v.Format("15:04:05.999999999")
		case "DATETIME", "DATETIME2", "SMALLDATETIME":
			return v.Format("2006-01-02T15:04:05.999999999") // these have no zone
		}
		return v.Format(time.RFC3339Nano)
	case float32:
		return float64(v)
	case int, int8, int16, int32, uint8, uint16, uint32:
		return number(fmt.Sprint(v))
	case uint64:
		return number(fmt.Sprint(v))
	case nil, int64, float64, bool:
		return v
	}
	return fmt.Sprint(v)
}

// text is a value that came as text.
func text(s, kind string) any {
	switch kind {
	case "DECIMAL", "NUMERIC", "MONEY", "SMALLMONEY",
		"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR", "FLOAT", "DOUBLE",
		"UNSIGNED TINYINT", "UNSIGNED SMALLINT", "UNSIGNED MEDIUMINT", "UNSIGNED INT", "UNSIGNED BIGINT":
		return number(s)
	case "DATETIME", "TIMESTAMP":
		return rfc3339(s)
	}
	return s
}
