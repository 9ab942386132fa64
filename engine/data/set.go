// Package data reads the rows that iterations use: CSV, JSON and JSON lines. A file is read once, to know where its rows
// begin and that all of them are sound; a large one is not kept in memory, its rows are read where they are when they are
// needed.
package data

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Set is rows with named columns. It is safe for concurrent use.
type Set struct {
	columns []string
	types   []Type // by column
	rows    [][]any

	// Of a file.
	source  io.ReaderAt
	file    *os.File // nil when source is memory
	offsets []int64
	lengths []uint32
	decode  func(record []byte) ([]any, error)
	// complete is set when all rows were seen, so that there are no more columns.
	complete bool
	recent   [256]atomic.Pointer[row] // rows read last, by their number
}

type row struct {
	number int64
	values []any
}

// Type is what the text of a column means.
type Type uint8

const (
	Text   Type = iota // as written
	Int                // a whole number in decimal digits
	Number             // a number in decimal digits
	Bool               // true or false
)

var typeNames = []string{"text", "int", "number", "bool"}

// Types lists the names of types.
func Types() []string { return slices.Clone(typeNames) }

// ParseType is the inverse of Types.
func ParseType(name string) (Type, bool) {
	i := slices.Index(typeNames, name)
	return Type(max(i, 0)), i >= 0
}

// Of gives a text its meaning.
func (t Type) Of(text string) (any, error) {
	switch t {
	case Int:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && !strings.HasPrefix(text, "+") {
			return n, nil
		}
		return nil, fmt.Errorf("%s is not a whole number", quoted(text))
	case Number:
		if digits := strings.TrimPrefix(text, "-"); digits != "" && strings.Trim(digits, "0123456789.") == "" {
			if f, err := strconv.ParseFloat(text, 64); err == nil {
				return f, nil
			}
		}
		return nil, fmt.Errorf("%s is not a number in plain digits", quoted(text))
	case Bool:
		switch text {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("%s is neither true nor false", quoted(text))
	}
	return text, nil
}

func quoted(text string) string {
	if r := []rune(text); len(r) > 40 {
		text = string(r[:37]) + "..."
	}
	return strconv.Quote(text)
}

// Error is a fault of a file.
type Error struct {
	Line    int // 0 if it is about the whole file
	Message string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// Inline makes a set of rows that are at hand, each with a value for every column.
func Inline(columns []string, rows [][]any) *Set {
	return &Set{columns: columns, rows: rows}
}

// Len is the number of rows, at least 1.
func (s *Set) Len() int64 {
	if s.rows != nil {
		return int64(len(s.rows))
	}
	return int64(len(s.offsets))
}

// Columns are the names of the columns.
func (s *Set) Columns() []string { return s.columns }

// IsText tells whether a column holds text in every row.
func (s *Set) IsText(column int) bool {
	return column < len(s.types) && s.types[column] == Text
}

// Value returns a row's value of a column: a string, or what the column's type says; of JSON also nil, a list or a mapping.
func (s *Set) Value(number int64, column int) (any, error) {
	values, err := s.row(number)
	if err != nil || column >= len(values) {
		return nil, err
	}
	return values[column], nil
}

// Row returns a whole row by the names of its columns.
func (s *Set) Row(number int64) (map[string]any, error) {
	values, err := s.row(number)
	if err != nil {
		return nil, err
	}
	m := make(map[string]any, len(values))
	for i, v := range values {
		m[s.columns[i]] = v
	}
	return m, nil
}

func (s *Set) row(number int64) ([]any, error) {
	if s.rows != nil {
		return s.rows[number], nil
	}
	slot := &s.recent[number%int64(len(s.recent))]
	if r := slot.Load(); r != nil && r.number == number {
		return r.values, nil
	}
	record := make([]byte, s.lengths[number])
	if _, err := s.source.ReadAt(record, s.offsets[number]); err != nil {
		return nil, fmt.Errorf("row %d can't be read: the file was changed since it was checked", number+1)
	}
	values, err := s.decode(record)
	if err != nil {
		return nil, fmt.Errorf("row %d: %w", number+1, err)
	}
	slot.Store(&row{number, values})
	return values, nil
}

// Close closes the file.
func (s *Set) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
