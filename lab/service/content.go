package service

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
)

// contentLength is a power of two, so that an offset wraps with a mask.
const contentLength = 1 << 20

// content is what all answers are cut from: random printable characters, made once, so that sending them costs no more
// than copying them.
type content []byte

const printable = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"

func newContent() content {
	c := make(content, contentLength)
	for i := 0; i < len(c); i += 8 {
		r := rand.Uint64()
		for j := range 8 {
			c[i+j] = printable[r&63]
			r >>= 6
		}
	}
	return c
}

// randomOffset is a place in the content.
func randomOffset() int64 { return rand.Int64N(contentLength) }

// write writes n bytes of content, repeated without end, from an offset on.
func (c content) write(w io.Writer, offset, n int64) error {
	for n > 0 {
		from := offset & (contentLength - 1)
		part := c[from:min(contentLength, from+n, from+256<<10)]
		if _, err := w.Write(part); err != nil {
			return err
		}
		offset += int64(len(part))
		n -= int64(len(part))
	}
	return nil
}

// text is n bytes of content from a random place.
func (c content) text(n int64) string {
	if n <= contentLength {
		from := rand.Int64N(contentLength - n + 1)
		return string(c[from : from+n])
	}
	var b strings.Builder
	b.Grow(int(n))
	c.write(&b, randomOffset(), n)
	return b.String()
}

// file is size bytes of content, to be read from any place.
type file struct {
	content content
	size    int64
	offset  int64
}

func (f *file) Read(p []byte) (int, error) {
	if f.offset >= f.size {
		return 0, io.EOF
	}
	from := f.offset & (contentLength - 1)
	n := copy(p[:min(int64(len(p)), f.size-f.offset)], f.content[from:])
	f.offset += int64(n)
	return n, nil
}

func (f *file) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.offset
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning")
	}
	f.offset = offset
	return offset, nil
}
