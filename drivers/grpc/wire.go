package grpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// wire is a connection that is being handed to the gRPC library, and looks at what the server sends on it. The library
// keeps to itself what a measurement needs: how many streams the server allows, why it ends a connection, and what
// spoke when it was not HTTP/2. Only the heads of frames are read, and the bodies of SETTINGS, RST_STREAM and GOAWAY
// (RFC 9113, section 4.1, 6.4, 6.5 and 6.8).
type wire struct {
	net.Conn
	// changed is called, if not nil, when the number of streams changes or the wire is gone. It must not block.
	changed func()

	// Of the goroutine that reads.
	head    [frameHead]byte
	headLen int
	skip    int    // bytes of a body still to come
	keep    []byte // the body, if it is looked at
	kind    http2.FrameType
	flags   http2.Flags
	frames  int

	drain   sync.Once
	drained chan struct{} // closed when reading has failed
	begun   chan struct{} // closed when the server's first SETTINGS has been read
	gone    chan struct{} // closed when no new call may begin
	streams atomic.Uint32 // the server's limit of streams at a time
	resets  atomic.Uint64 // RST_STREAM frames so far
	ended   atomic.Bool   // gone is closed

	mu     sync.Mutex
	goaway string // what the server's GOAWAY says
	failed error  // the first error of reading or writing
	alien  []byte // how the server's bytes begin, if they are not HTTP/2
}

const (
	frameHead = 9
	// maxKept is how much of a body is looked at: settings, or the text of a GOAWAY.
	maxKept = 1 << 10
	// drainTime is how long a failed write waits for what the server said last.
	drainTime = 200 * time.Millisecond
	// maxFirst is the greatest body of a first frame: the limit that holds before a client allows more.
	maxFirst = 1 << 14
)

func newWire(conn net.Conn) *wire {
	w := &wire{Conn: conn, begun: make(chan struct{}), gone: make(chan struct{}), drained: make(chan struct{})}
	w.streams.Store(math.MaxUint32)
	return w
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.watch(p[:n])
	}
	if err != nil {
		if w.frames == 0 && w.headLen > 0 {
			w.notHTTP2(nil)
		}
		w.fail(err)
		w.drain.Do(func() { close(w.drained) })
	}
	return n, err
}

func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if err != nil {
		// What the server said last, such as a TLS alert, tells more than that it is gone. The reader is about to get it.
		select {
		case <-w.drained:
		case <-time.After(drainTime):
		}
		w.fail(err)
	}
	return n, err
}

func (w *wire) Close() error {
	w.fail(net.ErrClosed)
	return w.Conn.Close()
}

// fail ends the wire for new calls and keeps the first error.
func (w *wire) fail(err error) {
	w.mu.Lock()
	if w.failed == nil {
		w.failed = err
	}
	w.mu.Unlock()
	w.end()
}

// end ends the wire for new calls; those under way may go on.
func (w *wire) end() {
	if !w.ended.Swap(true) {
		close(w.gone)
		if w.changed != nil {
			w.changed()
		}
	}
}

// watch follows the frames through p.
func (w *wire) watch(p []byte) {
	for len(p) > 0 {
		if w.skip > 0 {
			n := min(w.skip, len(p))
			if w.keep != nil && len(w.keep) < maxKept {
				w.keep = append(w.keep, p[:min(n, maxKept-len(w.keep))]...)
			}
			w.skip -= n
			p = p[n:]
			if w.skip == 0 {
				w.frame()
			}
			continue
		}
		n := copy(w.head[w.headLen:], p)
		w.headLen += n
		rest := p[n:]
		if w.headLen < frameHead {
			return
		}
		w.headLen = 0
		length := int(w.head[0])<<16 | int(w.head[1])<<8 | int(w.head[2])
		w.kind, w.flags = http2.FrameType(w.head[3]), http2.Flags(w.head[4])
		if w.frames == 0 && (w.kind != http2.FrameSettings || w.flags != 0 || length > maxFirst || length%6 != 0) {
			w.headLen = frameHead
			w.notHTTP2(rest)
			return
		}
		w.frames++
		w.skip, w.keep, p = length, nil, rest
		switch w.kind {
		case http2.FrameSettings, http2.FrameGoAway:
			w.keep = []byte{}
		case http2.FrameRSTStream:
			w.resets.Add(1)
		}
		if length == 0 {
			w.frame()
		}
	}
}

// notHTTP2 notes how the server's bytes begin: with what is in head, and rest. There are no frames to follow then.
func (w *wire) notHTTP2(rest []byte) {
	w.mu.Lock()
	w.alien = append(append([]byte(nil), w.head[:w.headLen]...), rest[:min(len(rest), 64)]...)
	w.mu.Unlock()
	w.frames, w.skip, w.keep = 1, math.MaxInt, nil
	w.end()
}

// frame looks at a frame whose body has been read.
func (w *wire) frame() {
	switch w.kind {
	case http2.FrameSettings:
		for b := w.keep; len(b) >= 6; b = b[6:] {
			if http2.SettingID(binary.BigEndian.Uint16(b)) == http2.SettingMaxConcurrentStreams {
				w.streams.Store(binary.BigEndian.Uint32(b[2:]))
				if w.changed != nil {
					w.changed()
				}
			}
		}
		if w.frames == 1 {
			close(w.begun)
		}
	case http2.FrameGoAway:
		if len(w.keep) < 8 {
			break
		}
		text := "GOAWAY " + http2.ErrCode(binary.BigEndian.Uint32(w.keep[4:])).String()
		if debug := w.keep[8:]; len(debug) > 0 {
			text += fmt.Sprintf(" %q", debug)
		}
		w.mu.Lock()
		if w.goaway == "" || len(w.keep) > 8 {
			w.goaway = text
		}
		w.mu.Unlock()
		w.end()
	}
	w.keep = nil
}

// tooManyPings is what servers say in a GOAWAY to clients that ping too often (gRFC A8).
const tooManyPings = "too_many_pings"

// loss says why the connection ended before an answer was complete. doing is what was going on.
func (w *wire) loss(doing string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.goaway != "" {
		hint := ""
		if bytes.Contains([]byte(w.goaway), []byte(tooManyPings)) {
			hint = "; ping less often: set keepalive to a longer time, or remove it"
		}
		return drivers.Fail(drivers.Reset, fmt.Errorf("%s: the server ended the connection: %s%s", doing, w.goaway, hint))
	}
	if w.failed == nil || errors.Is(w.failed, io.EOF) || errors.Is(w.failed, net.ErrClosed) {
		return drivers.Fail(drivers.Reset, fmt.Errorf("%s: the server closed the connection", doing))
	}
	kind := dial.Classify(w.failed)
	if kind == drivers.Timeout || kind == drivers.Aborted {
		kind = drivers.Reset // the library's own deadlines when it closes
	}
	return drivers.Fail(kind, fmt.Errorf("%s: %w", doing, w.failed))
}

// beginning says why HTTP/2 did not begin, or did not last. secure tells whether there is TLS.
func (w *wire) beginning(secure bool) error {
	const doing = "starting HTTP/2"
	select {
	case <-w.begun: // it did, and ended at once
		return w.loss(doing)
	default:
	}
	w.mu.Lock()
	alien, failed := w.alien, w.failed
	w.mu.Unlock()
	switch {
	case alien == nil && !secure && (failed == nil || dial.Classify(failed) == drivers.Reset):
		return drivers.Fail(drivers.Reset, errors.New(doing+": the server closed the connection at once; if it expects TLS, write plaintext: false"))
	case alien == nil:
		return w.loss(doing)
	case len(alien) >= 3 && alien[0] >= 20 && alien[0] <= 23 && alien[1] == 3: // the head of a TLS record
		return drivers.Fail(drivers.Protocol, errors.New(doing+": the server expects TLS; write plaintext: false"))
	case bytes.HasPrefix(alien, []byte("HTTP/")):
		line, _, _ := bytes.Cut(alien, []byte("\r\n"))
		return drivers.Fail(drivers.Protocol, fmt.Errorf("%s: the server answered %q: gRPC needs HTTP/2", doing, abbreviate(string(line))))
	}
	return drivers.Fail(drivers.Protocol, fmt.Errorf("%s: the server does not speak HTTP/2: its answer begins with %q", doing, abbreviate(string(alien))))
}
