package drivers

import (
	"fmt"
	"strconv"
)

// Constant is a Template without ${...}.
func Constant(v any) Template { return constant{v} }

type constant struct{ value any }

func (c constant) Constant() (any, bool)    { return c.value, true }
func (c constant) Eval(*Input) (any, error) { return c.value, nil }
func (c constant) AppendText(dst []byte, _ *Input) ([]byte, error) {
	return AppendText(dst, c.value), nil
}

// AppendText appends a value of a Template as text: numbers in decimal digits, truth values as true and false, nil as
// nothing.
func AppendText(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return dst
	case string:
		return append(dst, v...)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case float64:
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	case bool:
		return strconv.AppendBool(dst, v)
	}
	return fmt.Append(dst, v)
}
