package download

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/http/wire"
)

// maxParts is how many parts a download may have.
const maxParts = 64

// checkParts tells what a download in parts can't have.
func (c *call) checkParts(op *drivers.Op) (errs drivers.FieldErrors) {
	switch {
	case c.parts == 1:
		return nil
	case c.parts < 1:
		return append(errs, op.Errorf("parts", "a download has at least one part"))
	case c.parts > maxParts:
		return append(errs, op.Errorf("parts", "a download may have %d parts, not %d", maxParts, c.parts))
	}
	c.Ranged = true
	if c.hash {
		at, hint := "sha256", "leave out parts or sha256"
		if !op.Has(at) {
			at, hint = "parts", "leave out parts, or sha256 in expect"
		}
		errs = append(errs, op.Errorf(at, "the checksum of parts that come at the same time is not computed").WithHint("%s", hint))
	}
	if op.Has("max_bytes") {
		errs = append(errs, op.Errorf("max_bytes", "a download in parts is one of the whole").WithHint("leave out parts or max_bytes"))
	}
	if c.Gzip {
		errs = append(errs, op.Errorf("compression", "the parts of a compressed body can't be unpacked apart").WithHint("leave out parts or compression"))
	}
	for _, e := range op.Entries("headers") {
		if strings.EqualFold(e.Key, "Range") {
			errs = append(errs, op.Errorf("headers", "%s is set by the driver, from parts", e.Key).At(e.Key))
		}
	}
	return errs
}

// extent is a part of the body, from its first byte to its last.
type extent struct{ first, last int64 }

func (e extent) length() int64 { return e.last - e.first + 1 }

// split cuts length bytes into at most n parts that differ by a byte at most.
func split(length int64, n int) []extent {
	parts := int64(n)
	parts = max(1, min(parts, length))
	out := make([]extent, parts)
	for i := range parts {
		out[i] = extent{length/parts*i + min(i, length%parts), length/parts*(i+1) + min(i+1, length%parts) - 1}
	}
	return out
}

// part is one of the requests of a download, on a connection of its own where the protocol does not share them.
type part struct {
	*wire.Session
	meter *meter

	// The call under way.
	call   *call
	extent extent
	// open is not nil while the length of the whole is not known: the first part asks for all, and is cut when its head
	// has come. It gets the length then.
	open  chan<- int64
	whole int64 // its length, if it is known
	in    drivers.Input
	out   drivers.Outcome
	err   error
}

// Begin implements wire.Observer: it compares what the answer holds with what was asked for.
func (p *part) Begin(r *wire.Response) error {
	p.meter.begin()
	switch r.Status {
	case 206:
	case 200:
		return drivers.Fail(drivers.Protocol, errors.New("the server does not serve ranges: it answered 200, not 206"))
	case 416: // it has become shorter
		p.call.length.Store(0)
		fallthrough
	default:
		return nil // a failure, and its body belongs to it
	}
	field := r.Header("Content-Range")
	got, whole, ok := contentRange(field)
	if !ok {
		return drivers.Fail(drivers.Protocol, fmt.Errorf("the answer does not say which bytes of how many it has: its Content-Range is %q", field))
	}
	want := p.extent
	switch {
	case p.open != nil:
		want.last = whole - 1
	case p.whole != whole:
		p.call.length.Store(0)
		return drivers.Fail(drivers.Protocol, fmt.Errorf("the whole has %d bytes, and had %d before", whole, p.whole))
	}
	if got != want {
		return drivers.Fail(drivers.Protocol, fmt.Errorf("the server sends the bytes %d-%d, but %d-%d were asked for", got.first, got.last, want.first, want.last))
	}
	if p.open != nil {
		p.extent = split(whole, p.call.parts)[0]
		r.StopAfter(p.extent.length())
		if p.call.Steady() {
			p.call.length.Store(whole)
		}
		p.open <- whole
		p.open = nil
	}
	return nil
}

// Arrive implements wire.Observer.
func (p *part) Arrive(n int) { p.meter.add(n) }

// Take implements wire.Sink.
func (p *part) Take([]byte) error { return nil }

// run makes the part's request.
func (p *part) run(ctx context.Context) {
	last := p.extent.last
	if p.open != nil {
		last = -1
	}
	p.Range(p.extent.first, last)
	p.out.Reset()
	p.err = p.Exchange(ctx, p.call.Request, &p.in, &p.out, p)
	if got := p.Response().Bytes; p.err == nil && p.out.Status == 206 && got != p.extent.length() {
		p.err = drivers.Fail(drivers.Protocol, fmt.Errorf("%d bytes came, but the answer promised %d", got, p.extent.length()))
	}
}

// parallel makes the requests of all parts. While the length of the whole is not known, the first one asks for all of it
// and hangs up at the end of its part; the others follow as soon as its head has come. From then on the length is known:
// all start at once, and keep their connections.
//
// The timing of the sample is that of the first part up to its first byte; the transfer ends with the last byte of all.
// Where a part fails, it is that part's timing.
func (s *session) parallel(ctx context.Context, c *call, in *drivers.Input, out *drivers.Outcome) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now()
	var wg sync.WaitGroup
	failures := make(chan int, c.parts) // the parts that failed, in the order of time
	begin := *in
	launch := func(i int, e extent, whole int64, open chan<- int64) {
		p := s.parts[i]
		p.call, p.extent, p.whole, p.open, p.in = c, e, whole, open, begin
		wg.Go(func() {
			p.run(ctx)
			if p.err != nil || p.out.Status != 206 {
				failures <- i
				cancel() // the others can't make it whole any more
			}
		})
	}

	n := 1
	whole := c.length.Load()
	if whole == 0 {
		known := make(chan int64, 1)
		launch(0, extent{}, 0, known)
		select {
		case whole = <-known:
		case <-ctx.Done():
		}
		if whole > 0 {
			extents := split(whole, c.parts)
			n = len(extents)
			for i, e := range extents[1:] {
				launch(i+1, e, whole, nil)
			}
		}
	} else {
		extents := split(whole, c.parts)
		n = len(extents)
		for i, e := range extents {
			launch(i, e, whole, nil)
		}
	}
	wg.Wait()
	failed := -1
	select {
	case failed = <-failures:
	default:
	}
	return s.gather(in, out, n, failed, start)
}

// gather makes one sample of the first n parts. failed is the one that failed first, and says what became of the call;
// -1 if none did.
func (s *session) gather(in *drivers.Input, out *drivers.Outcome, n, failed int, start time.Time) error {
	lead := s.parts[max(failed, 0)]
	*in = lead.in // with the random numbers that were drawn
	out.Timing, out.Status, out.Protocol = lead.out.Timing, lead.out.Status, lead.out.Protocol
	s.answer.response = lead.Response()
	for _, p := range s.parts[:n] {
		out.Opened = out.Opened || p.out.Opened
		out.BytesIn += p.out.BytesIn
		out.BytesOut += p.out.BytesOut
		s.answer.bytes += p.Response().Bytes
	}
	if out.Transfer != drivers.None {
		before := time.Duration(0)
		for _, d := range []time.Duration{out.DNS, out.Connect, out.TLS, out.Wait, out.TTFB} {
			before += max(d, 0)
		}
		out.Transfer = max(time.Since(start)-before, 0)
	}
	if lead.err != nil {
		return drivers.Fail(drivers.KindOf(lead.err), fmt.Errorf("part %d of %d: %w", max(failed, 0)+1, n, lead.err))
	}
	return nil
}

// contentRange parses the header of a part: "bytes 0-99/1000" (RFC 9110, section 14.4).
func contentRange(s string) (got extent, length int64, ok bool) {
	s, ok = strings.CutPrefix(s, "bytes ")
	if !ok {
		return got, 0, false
	}
	span, whole, ok := strings.Cut(s, "/")
	if !ok {
		return got, 0, false
	}
	first, last, ok := strings.Cut(span, "-")
	if !ok {
		return got, 0, false
	}
	for _, n := range []struct {
		text string
		to   *int64
	}{{first, &got.first}, {last, &got.last}, {whole, &length}} {
		v, err := strconv.ParseUint(n.text, 10, 63)
		if err != nil {
			return got, 0, false
		}
		*n.to = int64(v)
	}
	return got, length, got.first <= got.last && got.last < length
}
