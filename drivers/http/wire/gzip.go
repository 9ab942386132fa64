package wire

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/planrun/planrun/drivers"
)

// unpacker unpacks gzip bodies; its memory is kept from call to call.
type unpacker struct {
	reader *gzip.Reader
	buf    []byte
}

// drain unpacks the body that arrives and hands it to sink.
func (u *unpacker) drain(from *incoming, sink Sink) error {
	if u.reader == nil {
		u.reader, u.buf = new(gzip.Reader), make([]byte, 32<<10)
	}
	err := u.reader.Reset(from)
	if err == io.EOF && from.err == io.EOF && from.resp.Bytes == 0 {
		return nil // an empty body is an empty answer, whatever its encoding
	}
	for err == nil {
		var n int
		n, err = u.reader.Read(u.buf)
		if n > 0 {
			if serr := from.resp.hand(u.buf[:n], sink); serr != nil {
				return serr
			}
		}
	}
	switch {
	case from.err != nil && from.err != io.EOF:
		return from.err // the body itself did not come to its end
	case err == io.EOF, from.resp.Limited:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("it ends too early")
	}
	return drivers.Fail(drivers.Protocol, fmt.Errorf("the body can't be unpacked: %w", err))
}
