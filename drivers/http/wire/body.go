package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/valyala/fasthttp"

	"github.com/planrun/planrun/drivers"
)

// framing is how the end of an HTTP/1.1 body is known (RFC 9112, section 6.3).
type framing uint8

const (
	noBody framing = iota
	byLength
	chunked
	untilClose
)

// body reads the body of an HTTP/1.1 answer piece by piece.
type body struct {
	reader *bufio.Reader
	mode   framing
	total  int64 // as promised; -1 if nothing was
	left   int64 // of the body, or of the chunk
	got    int64
	piece  int // of the reader's buffer, handed out last
	inside bool
	done   bool
}

func (b *body) begin(r *bufio.Reader, toHead bool, h *fasthttp.ResponseHeader) {
	*b = body{reader: r, total: -1}
	code, length := h.StatusCode(), int64(h.ContentLength())
	switch {
	case toHead || code < 200 || code == 204 || code == 304:
		b.mode, b.done = noBody, true
	case length == -1:
		b.mode = chunked
	case length >= 0:
		b.mode, b.total, b.left = byLength, length, length
		b.done = length == 0
	default:
		b.mode = untilClose
	}
}

// next returns the next piece of the body, valid until the next call, and io.EOF after the last. A body that ends
// before it should is io.ErrUnexpectedEOF.
func (b *body) next() ([]byte, error) {
	b.reader.Discard(b.piece)
	b.piece = 0
	for {
		limit := int64(math.MaxInt64)
		switch b.mode {
		case noBody:
			return nil, io.EOF
		case byLength:
			if b.left == 0 {
				b.done = true
				return nil, io.EOF
			}
			limit = b.left
		case chunked:
			if b.done {
				return nil, io.EOF
			}
			if b.left == 0 {
				if err := b.chunk(); err != nil {
					return nil, err
				}
				continue
			}
			limit = b.left
		}
		if _, err := b.reader.Peek(1); err != nil {
			if b.mode == untilClose && err == io.EOF {
				b.done = true
				return nil, io.EOF
			}
			return nil, broken(err)
		}
		p, _ := b.reader.Peek(int(min(int64(b.reader.Buffered()), limit)))
		b.piece = len(p)
		b.left -= int64(len(p))
		b.got += int64(len(p))
		return p, nil
	}
}

// chunk reads what comes between two chunks: the end of the last, and the size of the next (RFC 9112, section 7.1).
func (b *body) chunk() error {
	if b.inside {
		line, err := b.line()
		if err != nil {
			return err
		}
		if len(line) > 0 {
			return malformed("a chunk is longer than it says")
		}
	}
	b.inside = true
	line, err := b.line()
	if err != nil {
		return err
	}
	size, _, _ := bytes.Cut(line, []byte(";")) // extensions mean nothing to us
	size = bytes.TrimRight(size, " \t")
	if len(size) == 0 || len(size) > 15 {
		return malformed("a chunk has no proper size")
	}
	var n int64
	for _, c := range size {
		var digit byte
		switch {
		case '0' <= c && c <= '9':
			digit = c - '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			digit = c | 0x20 - 'a' + 10
		default:
			return malformed("a chunk has no proper size")
		}
		n = n<<4 | int64(digit)
	}
	b.left = n
	if n > 0 {
		return nil
	}
	for { // trailers
		line, err := b.line()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			b.done = true
			return nil
		}
	}
}

func (b *body) line() ([]byte, error) {
	line, err := b.reader.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, malformed("the size of a chunk, or a trailer, is too long")
	}
	if err != nil {
		return nil, broken(err)
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

func malformed(what string) error {
	return drivers.Fail(drivers.Protocol, fmt.Errorf("the chunked body is malformed: %s", what))
}

func broken(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
