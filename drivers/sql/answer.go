package sql

import (
	"errors"
	"fmt"
	"time"
)

// answer is what an expectation reads of the last call of a session.
type answer struct {
	call     *call
	rows     []any
	kept     int64 // bytes of rows
	affected int64
	bytes    int64
}

// maxKept bounds the values that one answer keeps for an expectation.
const maxKept = 64 << 20

func (a *answer) reset(c *call) {
	a.call, a.kept, a.affected, a.bytes = c, 0, 0, 0
	if a.rows != nil {
		clear(a.rows)
		a.rows = a.rows[:0]
	}
}

// keeping tells whether another row is to be kept.
func (a *answer) keeping() bool { return a.call.keep && a.kept <= maxKept }

func (a *answer) keep(row map[string]any, size int64) {
	a.kept += size
	if a.kept > maxKept {
		a.rows = nil
		return
	}
	a.rows = append(a.rows, row)
}

// Number returns a count or a size.
func (a *answer) Number(name string) (float64, bool) {
	switch name {
	case "affected":
		return float64(a.affected), true
	case "bytes":
		return float64(a.bytes), true
	}
	return 0, false
}

// Value returns what an expectation reads.
func (a *answer) Value(name string) (any, error) {
	switch name {
	case "affected":
		if !a.call.exec {
			return nil, errors.New("affected is known only of exec")
		}
		return a.affected, nil
	case "bytes":
		return a.bytes, nil
	case "rows":
		if a.kept > maxKept {
			return nil, fmt.Errorf("the rows are more than %d MiB, which is too much to look at", maxKept>>20)
		}
		if !a.call.keep {
			return nil, errors.New("the rows were not kept")
		}
		if a.rows == nil {
			a.rows = []any{}
		}
		return a.rows, nil
	}
	return nil, fmt.Errorf("an answer has no %s", name)
}

// size is how many bytes a value has: text as it is, numbers and times as the 8 bytes that hold them.
func size(v any) int64 {
	switch v := v.(type) {
	case nil:
		return 0
	case string:
		return int64(len(v))
	case []byte:
		return int64(len(v))
	case bool:
		return 1
	case float32:
		return 4
	case time.Time:
		return 8
	}
	return 8
}
