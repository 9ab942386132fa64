package data

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"unicode/utf8"
)

// Format says how a file of CSV is written.
type Format struct {
	Separator byte // 0: a comma
	Quote     byte // 0: "
	Types     map[string]Type
}

// inMemory is how large a file may be to be kept in memory.
const inMemory = 8 << 20

// maxRecord bounds a record, so that a quote that is never closed is found before the memory is full.
const maxRecord = 16 << 20

// OpenCSV reads a file with a line of column names. Values stay as they are written, but for the quotes around them.
func OpenCSV(path string, format Format) (*Set, error) {
	if format.Separator == 0 {
		format.Separator = ','
	}
	if format.Quote == 0 {
		format.Quote = '"'
	}
	s, size, err := open(path)
	if err != nil {
		return nil, err
	}
	r := &records{in: bufio.NewReaderSize(io.NewSectionReader(s.source, 0, size), 1<<16), quote: format.Quote}
	if err = s.readCSV(r, format); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// open opens a file, and reads it into memory if it is small.
func open(path string) (*Set, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, &Error{Message: "the file can't be read"}
	}
	info, err := f.Stat()
	switch {
	case err != nil || info.IsDir():
		f.Close()
		return nil, 0, &Error{Message: "expected a file, but this is a folder"}
	case info.Size() > inMemory:
		return &Set{source: f, file: f}, info.Size(), nil
	}
	defer f.Close()
	all, err := io.ReadAll(io.LimitReader(f, inMemory))
	if err != nil {
		return nil, 0, &Error{Message: "the file can't be read"}
	}
	return &Set{source: bytes.NewReader(all)}, int64(len(all)), nil
}

func (s *Set) readCSV(r *records, format Format) error {
	header, err := r.next()
	if err == io.EOF {
		return &Error{Message: "the file is empty: its first line names the columns"}
	}
	if err != nil {
		return err
	}
	text := header.text
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return &Error{Message: "the file is UTF-16: save it as UTF-8"}
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	names, err := fields(text, format)
	if err != nil {
		return &Error{header.line, err.Error()}
	}
	seen := map[string]bool{}
	for _, name := range names {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			return &Error{header.line, "a column has no name"}
		case seen[name]:
			return &Error{header.line, fmt.Sprintf("two columns are called %s", name)}
		}
		seen[name] = true
		s.columns = append(s.columns, name)
		s.types = append(s.types, format.Types[name])
	}
	s.decode = func(record []byte) ([]any, error) {
		texts, err := fields(record, format)
		if err != nil {
			return nil, err
		}
		if len(texts) != len(s.columns) {
			return nil, fmt.Errorf("has %d values, and there are %d columns", len(texts), len(s.columns))
		}
		values := make([]any, len(texts))
		for i, text := range texts {
			if values[i], err = s.types[i].Of(text); err != nil {
				return nil, fmt.Errorf("%s: %w", s.columns[i], err)
			}
		}
		return values, nil
	}
	return s.index(r)
}

// index notes where each record is, after having checked it.
func (s *Set) index(r *records) error {
	for {
		rec, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if _, err := s.decode(rec.text); err != nil {
			return &Error{rec.line, err.Error()}
		}
		s.offsets, s.lengths = append(s.offsets, rec.offset), append(s.lengths, uint32(len(rec.text)))
		if len(s.offsets) == math.MaxInt32 {
			return &Error{rec.line, "the file has too many rows"}
		}
	}
	if len(s.offsets) == 0 {
		return &Error{Message: "the file has no rows"}
	}
	return nil
}

// records splits a file into records: lines, but for line breaks within quotes. Blank lines are none.
type records struct {
	in     *bufio.Reader
	quote  byte // 0: none
	offset int64
	line   int // of the next record, less 1
	buffer []byte
}

type record struct {
	text   []byte // without its line break; valid until the next one
	offset int64
	line   int
}

func (r *records) next() (record, error) {
	for {
		rec := record{offset: r.offset, line: r.line + 1}
		r.buffer = r.buffer[:0]
		inside := false
		for {
			part, err := r.in.ReadSlice('\n')
			r.offset += int64(len(part))
			r.buffer = append(r.buffer, part...)
			if len(r.buffer) > maxRecord {
				return rec, &Error{rec.line, fmt.Sprintf("a row is longer than %d MiB; a quote may not be closed", maxRecord>>20)}
			}
			if r.quote != 0 {
				inside = inside != (bytes.Count(part, []byte{r.quote})%2 == 1)
			}
			switch {
			case err == nil:
				r.line++
			case errors.Is(err, bufio.ErrBufferFull):
				continue
			case err == io.EOF && len(r.buffer) == 0:
				return rec, io.EOF
			case err != io.EOF:
				return rec, &Error{rec.line, "the file can't be read any further"}
			}
			if inside && err == nil {
				continue
			}
			if inside {
				return rec, &Error{rec.line, "a quote is not closed"}
			}
			break
		}
		rec.text = bytes.TrimRight(r.buffer, "\r\n")
		if len(bytes.TrimSpace(rec.text)) > 0 {
			return rec, nil
		}
	}
}

// fields splits a record. Quotes are around a whole value or belong to it.
func fields(record []byte, f Format) ([]string, error) {
	var out []string
	for {
		if len(record) > 0 && record[0] == f.Quote {
			var value []byte
			rest := record[1:]
			for {
				i := bytes.IndexByte(rest, f.Quote)
				if i < 0 {
					return nil, errors.New("a quote is not closed")
				}
				value = append(value, rest[:i]...)
				rest = rest[i+1:]
				if len(rest) == 0 || rest[0] != f.Quote {
					break
				}
				value = append(value, f.Quote)
				rest = rest[1:]
			}
			if len(rest) > 0 && rest[0] != f.Separator {
				r, _ := utf8.DecodeRune(rest)
				return nil, fmt.Errorf("%q follows a closing quote; a quote within quotes is written twice", r)
			}
			out = append(out, string(value))
			if len(rest) == 0 {
				return out, nil
			}
			record = rest[1:]
			continue
		}
		i := bytes.IndexByte(record, f.Separator)
		if i < 0 {
			return append(out, string(record)), nil
		}
		out = append(out, string(record[:i]))
		record = record[i+1:]
	}
}
