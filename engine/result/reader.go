package result

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
)

// Reader reads a results stream. It is not safe for concurrent use.
type Reader struct {
	in      *bufio.Reader
	dec     *decoder
	offset  int64 // of the next frame
	payload []byte
	block   Block
	header  *Header // read by NewReader and not yet returned by Next
	ended   bool
	err     error // sticky
}

// NewReader reads up to the header, which the first Next returns. The error says what r is if it is no results stream,
// or is a *NewerError.
func NewReader(r io.Reader) (*Reader, error) {
	rd := &Reader{in: bufio.NewReaderSize(r, 64<<10), dec: newDecoder()}
	head := make([]byte, len(magic))
	n, err := io.ReadFull(rd.in, head)
	switch {
	case err == io.EOF:
		return nil, errors.New("is empty: the run ended before anything was recorded")
	case string(head[:n]) != magic[:n]:
		return nil, errors.New("is not a results file of planrun")
	case err == io.ErrUnexpectedEOF:
		return nil, errors.New("has no results: the run ended before anything was recorded")
	case err != nil:
		return nil, err
	}
	rd.offset = int64(n)
	f, err := rd.next()
	if err != nil {
		var newer *NewerError
		if errors.As(err, &newer) {
			return nil, newer
		}
		return nil, fmt.Errorf("has no header: %w", err)
	}
	h, ok := f.(*Header)
	if !ok {
		return nil, errors.New("has no header: something else comes first")
	}
	rd.header = h
	return rd, nil
}

// Offset is how many bytes were read as complete frames, the magic included.
func (r *Reader) Offset() int64 { return r.offset }

// Next returns the next frame. A *Block and its samples are valid until the following call; other frames are the
// caller's. At the end of a complete stream the error is io.EOF, at that of any other a *Cut; an error of the underlying
// reader is returned as it is. Frames of unknown types are passed over.
func (r *Reader) Next() (Frame, error) {
	if h := r.header; h != nil {
		r.header = nil
		return h, nil
	}
	if r.err != nil {
		return nil, r.err
	}
	f, err := r.next()
	if err != nil {
		r.err = err
		return nil, err
	}
	return f, nil
}

func (r *Reader) next() (Frame, error) {
	for {
		size, err := r.read()
		if err != nil {
			return nil, err
		}
		if r.ended {
			return nil, r.cut("something follows after the end; are these several results in one file?")
		}
		r.dec.reset(r.payload)
		f := r.dec.frame(r)
		if err := r.dec.err; err != nil {
			var newer *NewerError
			if errors.As(err, &newer) {
				return nil, newer
			}
			return nil, r.cut("damaged record: " + err.Error())
		}
		r.offset += size
		if f == nil {
			continue
		}
		_, r.ended = f.(*End)
		return f, nil
	}
}

func (r *Reader) cut(reason string) error { return &Cut{r.offset, reason} }

// read reads the next frame's payload and returns the frame's size.
func (r *Reader) read() (int64, error) {
	var head [frameHead]byte
	n, err := io.ReadFull(r.in, head[:])
	switch {
	case err == io.EOF && r.ended:
		return 0, io.EOF
	case err == io.EOF:
		return 0, r.cut("the run did not get to its end, or is still going on")
	case r.ended && (err == nil || err == io.ErrUnexpectedEOF):
		if n >= len(magic) && string(head[:len(magic)]) == magic {
			return 0, r.cut("other results follow after the end; they need a file of their own")
		}
		return 0, r.cut("something follows after the end")
	case err == io.ErrUnexpectedEOF:
		return 0, r.cut("the last record is incomplete")
	case err != nil:
		return 0, err
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size > frameLimit {
		return 0, r.cut("damaged record: its length is impossible")
	}
	if err := r.readPayload(int(size)); err == io.ErrUnexpectedEOF {
		return 0, r.cut("the last record is incomplete")
	} else if err != nil {
		return 0, err
	}
	if crc32.Checksum(r.payload, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return 0, r.cut("damaged record: its checksum does not match")
	}
	return int64(frameHead) + int64(size), nil
}

// readPayload grows with what is there, not with what a length promises.
func (r *Reader) readPayload(size int) error {
	const step = 256 << 10
	r.payload = r.payload[:0]
	for len(r.payload) < size {
		at := len(r.payload)
		n := min(size-at, step)
		if cap(r.payload) < at+n {
			grown := make([]byte, at, min(size, max(2*cap(r.payload), at+n)))
			copy(grown, r.payload)
			r.payload = grown
		}
		r.payload = r.payload[:at+n]
		if _, err := io.ReadFull(r.in, r.payload[at:]); err == io.EOF {
			return io.ErrUnexpectedEOF
		} else if err != nil {
			return err
		}
	}
	return nil
}

// frame reads a payload; nil is a type that is not known.
func (d *decoder) frame(r *Reader) Frame {
	kind := ""
	var f Frame
	known := true
	var fields func(key []byte)
	var finish func()
	d.mapping(func(key []byte) {
		if kind == "" {
			if string(key) != "type" {
				d.fail(errors.New("it has no type"))
				return
			}
			if kind = d.string(); kind == "" {
				d.fail(errors.New("it has no type"))
				return
			}
			f, fields, finish = d.fields(kind, r)
			known = f != nil
			return
		}
		if known {
			fields(key)
		} else {
			d.skip()
		}
	})
	if kind == "" {
		d.fail(errors.New("it has no type"))
	}
	if d.err == nil && finish != nil {
		finish()
	}
	return f
}

// fields returns an empty frame of a kind, what reads its fields, and what is to be done after the last one.
func (d *decoder) fields(kind string, r *Reader) (f Frame, field func(key []byte), finish func()) {
	switch kind {
	case "header":
		h := new(Header)
		return h, func(key []byte) { d.headerField(h, key) }, func() {
			if h.Version < 1 {
				d.fail(errors.New("it has no format version"))
			}
			if h.Reference >= max(1, len(h.Targets)) {
				d.fail(errors.New("its reference is not one of its targets"))
			}
		}
	case "cell":
		c := new(Cell)
		return c, func(key []byte) { d.cellField(c, key) }, nil
	case "round":
		x := new(Round)
		return x, func(key []byte) {
			switch string(key) {
			case "cell":
				x.Cell = d.index()
			case "round":
				x.Round = d.index()
			case "release":
				x.Release = d.duration()
			default:
				d.skip()
			}
		}, nil
	case "round_end":
		x := new(RoundEnd)
		return x, func(key []byte) { d.roundEndField(x, key) }, nil
	case "trial":
		t := new(Trial)
		return t, func(key []byte) { d.trialField(t, key) }, nil
	case "trial_end":
		t := new(TrialEnd)
		return t, func(key []byte) { d.trialEndField(t, key) }, nil
	case "capacity":
		c := new(Capacity)
		return c, func(key []byte) { d.capacityField(c, key) }, nil
	case "block":
		return d.block(r)
	case "interval":
		x := new(Interval)
		return x, func(key []byte) { d.intervalField(x, key) }, nil
	case "summary":
		x := &summaryReader{Summary: Summary{Stats: record.NewStats(nil)}}
		return &x.Summary, func(key []byte) { d.summaryField(x, key) }, func() { d.finishSummary(x) }
	case "example":
		x := new(Example)
		return x, func(key []byte) { d.exampleField(x, key) }, nil
	case "verdict":
		v := new(Verdict)
		return v, func(key []byte) { d.verdictField(v, key) }, nil
	case "end":
		e := new(End)
		return e, func(key []byte) {
			switch string(key) {
			case "outcome":
				e.Outcome = Outcome(d.string())
			case "exit":
				e.Exit = d.int(0, 255)
			case "interrupted":
				e.Interrupted = d.bool()
			case "at":
				e.At = d.duration()
			case "notes":
				e.Notes = d.strings()
			default:
				d.skip()
			}
		}, nil
	}
	return nil, nil, nil
}

func (d *decoder) headerField(h *Header, key []byte) {
	switch string(key) {
	case "version":
		if h.Version = d.index(); h.Version > Version {
			d.fail(&NewerError{h.Version})
		}
	case "tool":
		h.Tool = d.string()
	case "plan":
		h.Plan = d.string()
	case "description":
		h.Description = d.string()
	case "file":
		h.File = d.string()
	case "text":
		h.Text = append([]byte(nil), d.bytes()...)
	case "hash":
		h.Hash = d.string()
	case "start":
		h.Start = d.time()
	case "seed":
		h.Seed = d.uint64()
	case "targets":
		d.list(func() {
			var t Target
			d.mapping(func(key []byte) {
				switch string(key) {
				case "name":
					t.Name = d.string()
				case "lab":
					t.Lab = d.bool()
				default:
					d.skip()
				}
			})
			h.Targets = append(h.Targets, t)
		})
	case "reference":
		h.Reference = d.index()
	case "environment":
		h.Environment = d.texts()
	case "settings":
		h.Settings = d.texts()
	case "samples":
		h.Samples = d.bool()
	case "assertions":
		d.list(func() {
			var a Assertion
			d.mapping(func(key []byte) {
				switch string(key) {
				case "text":
					a.Text = d.string()
				case "place":
					a.Place = d.string()
				case "scenario":
					a.Scenario = d.string()
				case "phase":
					a.Phase = d.string()
				case "severity":
					a.Severity = d.string()
				case "window":
					a.Window = d.duration()
				case "abort":
					a.Abort = d.bool()
				case "after":
					a.After = d.duration()
				default:
					d.skip()
				}
			})
			h.Assertions = append(h.Assertions, a)
		})
	case "vars":
		h.Vars = d.texts()
	case "against":
		h.Against = d.string()
	case "strict":
		h.Strict = d.bool()
	default:
		d.skip()
	}
}

func (d *decoder) cellField(c *Cell, key []byte) {
	switch string(key) {
	case "scenario":
		c.Scenario = d.string()
	case "scenario_title":
		c.ScenarioTitle = d.string()
	case "phase":
		c.Phase = d.string()
	case "phase_title":
		c.PhaseTitle = d.string()
	case "kind":
		c.Kind = d.string()
	case "target":
		c.Target = d.string()
	case "rounds":
		c.Rounds = d.index()
	case "open":
		c.Open = d.bool()
	case "shape":
		c.Shape = d.string()
	case "timeout":
		c.Timeout = d.duration()
	case "steps":
		d.list(func() {
			var s Step
			d.mapping(func(key []byte) {
				switch string(key) {
				case "name":
					s.Name = d.string()
				case "driver":
					s.Driver = d.string()
				case "around":
					s.Around = d.string()
				default:
					d.skip()
				}
			})
			c.Steps = append(c.Steps, s)
		})
	case "stages":
		d.list(func() {
			var s Stage
			d.mapping(func(key []byte) {
				switch string(key) {
				case "name":
					s.Name = d.string()
				case "kind":
					s.Kind = d.string()
				case "judged":
					s.Judged = d.bool()
				case "start":
					s.Start = d.duration()
				case "length":
					s.Length = d.duration()
				case "from":
					s.From = d.float()
				case "to":
					s.To = d.float()
				default:
					d.skip()
				}
			})
			c.Stages = append(c.Stages, s)
		})
	default:
		d.skip()
	}
}

func (d *decoder) roundEndField(x *RoundEnd, key []byte) {
	switch string(key) {
	case "cell":
		x.Cell = d.index()
	case "round":
		x.Round = d.index()
	case "length":
		x.Length = d.duration()
	case "opened":
		x.Opened = d.count()
	case "max_in_flight":
		x.MaxInFlight = d.index()
	case "backlogged":
		x.Backlogged = d.count()
	case "interrupted":
		x.Interrupted = d.bool()
	case "protocols":
		x.Protocols = d.strings()
	case "addresses":
		d.list(func() {
			var a drivers.Address
			d.mapping(func(key []byte) {
				switch string(key) {
				case "addr":
					a.Addr = d.string()
				case "opened":
					a.Opened = d.count()
				case "failed":
					a.Failed = d.count()
				default:
					d.skip()
				}
			})
			x.Addresses = append(x.Addresses, a)
		})
	case "more_addresses":
		x.MoreAddresses = d.index()
	case "lost":
		x.Lost = d.count()
	case "stopped":
		x.Stopped = d.duration()
	case "probe":
		x.Probe = d.histogram()
	case "cpu":
		x.CPU = d.duration()
	case "cores":
		x.Cores = d.index()
	case "gc":
		x.GC = d.duration()
	case "gc_longest":
		x.GCLongest = d.duration()
	case "clock_step":
		x.ClockStep = d.duration()
	case "aborted":
		x.Aborted = d.string()
	case "notes":
		x.Notes = d.strings()
	default:
		d.skip()
	}
}

// block reads into the reader's own block.
func (d *decoder) block(r *Reader) (Frame, func(key []byte), func()) {
	b := &r.block
	b.Cell, b.Round, b.Samples = 0, 0, b.Samples[:0]
	n := 0
	var raw [len(columns)][]byte
	field := func(key []byte) {
		switch string(key) {
		case "cell":
			b.Cell = d.index()
		case "round":
			b.Round = d.index()
		case "samples":
			n = d.int(0, blockLimit)
		case "columns":
			d.mapping(func(key []byte) {
				for i := range columns {
					if columns[i].name == string(key) {
						raw[i] = d.bytes()
						return
					}
				}
				d.skip()
			})
		default:
			d.skip()
		}
	}
	return b, field, func() {
		if cap(b.Samples) < n {
			b.Samples = make([]record.Sample, n, max(n, blockSize))
		}
		b.Samples = b.Samples[:n]
		if err := decodeColumns(&raw, b.Samples); err != nil {
			d.fail(err)
		}
	}
}

func (d *decoder) intervalField(x *Interval, key []byte) {
	switch string(key) {
	case "cell":
		x.Cell = d.index()
	case "round":
		x.Round = d.index()
	case "second":
		x.Second = d.index()
	case "ok":
		x.OK = d.count()
	case "failed":
		x.Failed = d.count()
	case "dropped":
		x.Dropped = d.count()
	case "in_flight":
		x.InFlight = d.index()
	case "bytes_in":
		x.BytesIn = d.count()
	case "max_lag":
		x.MaxLag = d.duration()
	case "latency":
		x.Latency = d.histogram()
	case "probe":
		x.Probe = d.histogram()
	default:
		d.skip()
	}
}

func (d *decoder) exampleField(x *Example, key []byte) {
	switch string(key) {
	case "cell":
		x.Cell = d.index()
	case "round":
		x.Round = d.index()
	case "step":
		x.Step = d.int(record.Whole, 1<<15-1)
	case "failure":
		name := d.string()
		kind, ok := drivers.ParseFailure(name)
		if !ok {
			kind = drivers.Protocol
		}
		x.Failure = kind
	case "at":
		x.At = d.duration()
	case "text":
		x.Text = d.string()
	default:
		d.skip()
	}
}

func (d *decoder) verdictField(v *Verdict, key []byte) {
	switch string(key) {
	case "assertion":
		v.Assertion = d.string()
	case "place":
		v.Place = d.string()
	case "implied":
		v.Implied = d.bool()
	case "severity":
		v.Severity = d.string()
	case "scenario":
		v.Scenario = d.string()
	case "phase":
		v.Phase = d.string()
	case "stage":
		v.Stage = d.string()
	case "step":
		v.Step = d.string()
	case "target":
		v.Target = d.string()
	case "outcome":
		v.Outcome = Outcome(d.string())
	case "value":
		v.Value = d.string()
	case "limit":
		v.Limit = d.string()
	case "n":
		v.N = d.count()
	case "interval":
		v.Interval = d.string()
	case "window":
		v.Window = d.string()
	case "detail":
		v.Detail = d.strings()
	default:
		d.skip()
	}
}
