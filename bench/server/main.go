// Command server is what the measurements in this folder are made against: an HTTP/1.1 server that does as little as it
// can, counts what it was asked, and remembers when. The clients are judged by what it saw, not by what they say.
//
//	server [-listen 127.0.0.1:0] [-bytes 8192] [-delay 100ms..120ms]
//
// It prints the address it listens on as its first line, and runs until its standard input ends. Every path answers with
// that many bytes, but these:
//
//	/control/reset     forgets what it has seen
//	/control/count     answers how many requests there were
//	/control/arrivals  answers when each arrived, in nanoseconds since the reset: little-endian int64, in no strict order
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	size := flag.Int("bytes", 8192, "bytes to answer with")
	delay := flag.String("delay", "0s", "time to wait before answering, or two with .. between them to draw from")
	flag.Parse()
	if err := serve(*listen, *size, *delay); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func serve(listen string, size int, delay string) error {
	low, high, err := parseDelay(delay)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	h := newHandler(size, low, high)
	s := &fasthttp.Server{Handler: h.handle, NoDefaultDate: true, NoDefaultServerHeader: true}
	go func() {
		// Whoever started this process holds the other end: it ends with them, whatever happens to them.
		_, _ = io.Copy(io.Discard, os.Stdin)
		l.Close()
	}()
	if err := s.Serve(l); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// parseDelay reads 100ms, or 100ms..120ms.
func parseDelay(text string) (low, high time.Duration, err error) {
	from, to, two := strings.Cut(text, "..")
	if low, err = time.ParseDuration(from); err != nil {
		return 0, 0, err
	}
	high = low
	if two {
		if high, err = time.ParseDuration(to); err != nil {
			return 0, 0, err
		}
	}
	if low < 0 || high < low {
		return 0, 0, fmt.Errorf("delay %s: expected two times, the shorter one first", text)
	}
	return low, high, nil
}

// mostArrivals is how many are remembered; all are counted.
const mostArrivals = 1 << 22

type handler struct {
	body      []byte
	low, high time.Duration
	log       atomic.Pointer[log]
}

// log is what was seen since a reset.
type log struct {
	zero     time.Time
	count    atomic.Int64
	arrivals []atomic.Int64
}

func newHandler(size int, low, high time.Duration) *handler {
	h := &handler{body: bytes.Repeat([]byte("x"), size), low: low, high: high}
	h.reset()
	return h
}

func (h *handler) reset() {
	h.log.Store(&log{zero: time.Now(), arrivals: make([]atomic.Int64, mostArrivals)})
}

func (h *handler) handle(ctx *fasthttp.RequestCtx) {
	if path := ctx.Path(); bytes.HasPrefix(path, []byte("/control/")) {
		h.control(ctx, string(path))
		return
	}
	l := h.log.Load()
	at := time.Since(l.zero)
	if i := l.count.Add(1) - 1; i < mostArrivals {
		l.arrivals[i].Store(int64(at))
	}
	if h.high > 0 {
		time.Sleep(h.low + time.Duration(rand.Int64N(int64(h.high-h.low)+1)))
	}
	ctx.Response.SetBodyRaw(h.body)
}

func (h *handler) control(ctx *fasthttp.RequestCtx, path string) {
	l := h.log.Load()
	switch path {
	case "/control/reset":
		h.reset()
	case "/control/count":
		fmt.Fprint(ctx, l.count.Load())
	case "/control/arrivals":
		var out []byte
		for i := range min(l.count.Load(), mostArrivals) {
			out = binary.LittleEndian.AppendUint64(out, uint64(l.arrivals[i].Load()))
		}
		ctx.Response.SetBodyRaw(out)
	default:
		ctx.Error("no such path", fasthttp.StatusNotFound)
	}
}
