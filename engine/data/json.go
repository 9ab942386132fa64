package data

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// OpenJSON reads a file of one list of objects. Their members are the columns; one that a row does not have is nil. Numbers
// that would lose digits stay text.
func OpenJSON(path string, types map[string]Type) (*Set, error) {
	s, size, err := open(path)
	if err != nil {
		return nil, err
	}
	if err := s.readJSON(io.NewSectionReader(s.source, 0, size), types); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// OpenJSONLines reads a file of one object a line.
func OpenJSONLines(path string, types map[string]Type) (*Set, error) {
	s, size, err := open(path)
	if err != nil {
		return nil, err
	}
	s.decodeJSON(types)
	r := &records{in: bufio.NewReaderSize(io.NewSectionReader(s.source, 0, size), 1<<16)}
	if err := s.index(r); err != nil {
		s.Close()
		return nil, err
	}
	s.finish()
	return s, nil
}

// finish fixes the columns once all rows were seen.
func (s *Set) finish() {
	slices.Sort(s.columns)
	s.complete = true
}

// maxColumns bounds the members that the rows of a file have together.
const maxColumns = 1000

// decodeJSON sets the decoder of rows. The columns are those that the rows so far have.
func (s *Set) decodeJSON(types map[string]Type) {
	s.decode = func(record []byte) ([]any, error) {
		d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(record, []byte("\xef\xbb\xbf"))))
		d.UseNumber()
		var m map[string]any
		if err := d.Decode(&m); err != nil || m == nil {
			var kind *json.UnmarshalTypeError
			if errors.As(err, &kind) || err == nil {
				return nil, errors.New("expected an object")
			}
			return nil, errors.New("this is not JSON")
		}
		if _, err := d.Token(); err != io.EOF {
			return nil, errors.New("one object a line is expected, and something follows it")
		}
		for name := range m {
			if !s.complete && !slices.Contains(s.columns, name) {
				if len(s.columns) == maxColumns {
					return nil, fmt.Errorf("the rows have more than %d different members", maxColumns)
				}
				s.columns = append(s.columns, name)
			}
		}
		values := make([]any, len(s.columns))
		for i, name := range s.columns {
			v := plainNumbers(m[name])
			if t := types[name]; t != Text && v != nil {
				var err error
				if v, err = t.Of(fmt.Sprint(m[name])); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
			values[i] = v
		}
		return values, nil
	}
}

func (s *Set) readJSON(in io.Reader, types map[string]Type) error {
	lines := &lineCounter{in: in}
	buffered := bufio.NewReaderSize(lines, 1<<16)
	mark := int64(0)
	if b, _ := buffered.Peek(3); string(b) == "\xef\xbb\xbf" {
		buffered.Discard(3)
		mark = 3
	}
	d := json.NewDecoder(buffered)
	fault := func(err error, what string) error {
		at := d.InputOffset()
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax):
			at, what = syntax.Offset, "this is not JSON"
		case errors.Is(err, io.ErrUnexpectedEOF), err == io.EOF:
			at = lines.offset
		}
		return &Error{lines.at(mark + at), what}
	}
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		if err == io.EOF {
			return &Error{Message: "the file is empty"}
		}
		return fault(err, "expected a list of objects")
	}
	s.decodeJSON(types)
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return fault(err, "this is not JSON")
		}
		end := mark + d.InputOffset()
		if _, err := s.decode(raw); err != nil {
			return &Error{lines.at(end - int64(len(raw))), err.Error()}
		}
		s.offsets = append(s.offsets, end-int64(len(raw)))
		s.lengths = append(s.lengths, uint32(len(raw)))
		lines.forget(end)
	}
	if _, err := d.Token(); err != nil {
		return fault(err, "the list is not closed")
	}
	if len(s.offsets) == 0 {
		return &Error{Message: "the file has no rows"}
	}
	s.finish()
	return nil
}

// lineCounter remembers where the line breaks of what passed through it are.
type lineCounter struct {
	in     io.Reader
	offset int64
	passed int // line breaks that were forgotten
	breaks []int64
}

func (l *lineCounter) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.breaks = append(l.breaks, l.offset+int64(i))
		}
	}
	l.offset += int64(n)
	return n, err
}

// at is the line of an offset.
func (l *lineCounter) at(offset int64) int {
	i, _ := slices.BinarySearch(l.breaks, offset)
	return l.passed + i + 1
}

func (l *lineCounter) forget(offset int64) {
	i, _ := slices.BinarySearch(l.breaks, offset)
	l.passed += i
	l.breaks = append(l.breaks[:0], l.breaks[i:]...)
}

// plainNumbers gives the numbers of a JSON value their types: whole, or with a fraction, or text where neither keeps all
// digits.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			for _, form := range []byte{'f', 'g', 'e'} {
				if strconv.FormatFloat(f, form, -1, 64) == v.String() {
					return f
				}
			}
		}
		return v.String()
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	}
	return v
}
