package result

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/planrun/planrun/engine/record"
)

// Writer writes a results stream: Header first, End last, and each Cell before what refers to it. It is buffered: what
// was written before Flush survives a crash of the process. It is safe for concurrent use.
//
// After an error of the underlying writer every method returns that error. A frame that is too large, or impossible,
// is refused without a trace in the stream, which goes on.
type Writer struct {
	mu    sync.Mutex
	out   *bufio.Writer
	enc   *encoder
	cells int
	err   error
}

// NewWriter makes a Writer of a stream that begins at w.
func NewWriter(w io.Writer) *Writer {
	wr := &Writer{out: bufio.NewWriterSize(w, 64<<10), enc: newEncoder()}
	_, wr.err = wr.out.WriteString(magic)
	return wr
}

// frame writes one frame. fields writes those of the payload besides its type.
func (w *Writer) frame(kind string, fields func(*mapping)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.locked(kind, fields)
}

func (w *Writer) locked(kind string, fields func(*mapping)) error {
	if w.err != nil {
		return w.err
	}
	w.enc.buf.Reset()
	m := w.enc.mapping()
	m.key("type")
	w.enc.e.EncodeString(kind)
	fields(&m)
	m.close()
	return w.emit(kind)
}

// emit writes the payload that was encoded.
func (w *Writer) emit(kind string) error {
	p := w.enc.buf.Bytes()
	if len(p) > frameLimit {
		return fmt.Errorf("a record (%s) of %d bytes is too large: %d are the most", kind, len(p), frameLimit)
	}
	head := binary.LittleEndian.AppendUint32(w.out.AvailableBuffer(), uint32(len(p)))
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(p, castagnoli))
	if _, w.err = w.out.Write(head); w.err == nil {
		_, w.err = w.out.Write(p)
	}
	return w.err
}

// Flush passes on everything that was written.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = w.out.Flush()
	}
	return w.err
}

// Frame writes any frame. Of a *Cell, Cell returns the index too.
func (w *Writer) Frame(f Frame) error {
	switch f := f.(type) {
	case *Header:
		return w.Header(f)
	case *Cell:
		_, err := w.Cell(f)
		return err
	case *Round:
		return w.Round(f)
	case *RoundEnd:
		return w.RoundEnd(f)
	case *Trial:
		return w.Trial(f)
	case *TrialEnd:
		return w.TrialEnd(f)
	case *Capacity:
		return w.Capacity(f)
	case *Block:
		return w.Block(f)
	case *Interval:
		return w.Interval(f)
	case *Summary:
		return w.Summary(f)
	case *Example:
		return w.Example(f)
	case *Verdict:
		return w.Verdict(f)
	case *End:
		return w.End(f)
	}
	return fmt.Errorf("a record of no known type (%s)", f.kind())
}

// Header writes the header. Its version is Version, whatever h says.
func (w *Writer) Header(h *Header) error {
	return w.frame(h.kind(), func(m *mapping) {
		m.int("version", Version)
		m.string("tool", h.Tool)
		m.string("plan", h.Plan)
		m.string("description", h.Description)
		m.string("file", h.File)
		m.bytes("text", h.Text)
		m.string("hash", h.Hash)
		m.time("start", h.Start)
		m.uint("seed", h.Seed)
		m.list("targets", len(h.Targets), func(i int) {
			t := m.e.mapping()
			t.string("name", h.Targets[i].Name)
			t.bool("lab", h.Targets[i].Lab)
			t.close()
		})
		m.int("reference", int64(h.Reference))
		m.texts("environment", h.Environment)
		m.texts("settings", h.Settings)
		m.bool("samples", h.Samples)
		m.list("assertions", len(h.Assertions), func(i int) {
			x, a := &h.Assertions[i], m.e.mapping()
			a.string("text", x.Text)
			a.string("place", x.Place)
			a.string("scenario", x.Scenario)
			a.string("phase", x.Phase)
			a.string("severity", x.Severity)
			a.int("window", int64(x.Window))
			a.bool("abort", x.Abort)
			a.int("after", int64(x.After))
			a.close()
		})
		m.texts("vars", h.Vars)
		m.string("against", h.Against)
		m.bool("strict", h.Strict)
	})
}

// Cell writes a cell and returns the index by which later frames refer to it.
func (w *Writer) Cell(c *Cell) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.locked(c.kind(), func(m *mapping) {
		m.string("scenario", c.Scenario)
		m.string("scenario_title", c.ScenarioTitle)
		m.string("phase", c.Phase)
		m.string("phase_title", c.PhaseTitle)
		m.string("kind", c.Kind)
		m.string("target", c.Target)
		m.int("rounds", int64(c.Rounds))
		m.bool("open", c.Open)
		m.string("shape", c.Shape)
		m.int("timeout", int64(c.Timeout))
		m.list("steps", len(c.Steps), func(i int) {
			s := m.e.mapping()
			s.string("name", c.Steps[i].Name)
			s.string("driver", c.Steps[i].Driver)
			s.string("around", c.Steps[i].Around)
			s.close()
		})
		m.list("stages", len(c.Stages), func(i int) {
			x, s := &c.Stages[i], m.e.mapping()
			s.string("name", x.Name)
			s.string("kind", x.Kind)
			s.bool("judged", x.Judged)
			s.int("start", int64(x.Start))
			s.int("length", int64(x.Length))
			s.float("from", x.From)
			s.float("to", x.To)
			s.close()
		})
	})
	if err != nil {
		return 0, err
	}
	w.cells++
	return w.cells - 1, nil
}

// Round opens a round. The rounds of a cell are opened in order, from 0.
func (w *Writer) Round(r *Round) error {
	return w.frame(r.kind(), func(m *mapping) {
		m.int("cell", int64(r.Cell))
		m.int("round", int64(r.Round))
		m.int("release", int64(r.Release))
	})
}

// RoundEnd closes a round.
func (w *Writer) RoundEnd(r *RoundEnd) error {
	return w.frame(r.kind(), func(m *mapping) {
		m.int("cell", int64(r.Cell))
		m.int("round", int64(r.Round))
		m.int("length", int64(r.Length))
		m.int("opened", r.Opened)
		m.int("max_in_flight", int64(r.MaxInFlight))
		m.int("backlogged", r.Backlogged)
		m.bool("interrupted", r.Interrupted)
		m.strings("protocols", r.Protocols)
		m.list("addresses", len(r.Addresses), func(i int) {
			x, a := &r.Addresses[i], m.e.mapping()
			a.string("addr", x.Addr)
			a.int("opened", x.Opened)
			a.int("failed", x.Failed)
			a.close()
		})
		m.int("more_addresses", int64(r.MoreAddresses))
		m.int("lost", r.Lost)
		m.int("stopped", int64(r.Stopped))
		m.histogram("probe", r.Probe)
		m.int("cpu", int64(r.CPU))
		m.int("cores", int64(r.Cores))
		m.int("gc", int64(r.GC))
		m.int("gc_longest", int64(r.GCLongest))
		m.int("clock_step", int64(r.ClockStep))
		m.string("aborted", r.Aborted)
		m.strings("notes", r.Notes)
	})
}

// Block writes samples, in frames of 4096 at most. Once warm it does not allocate.
func (w *Writer) Block(b *Block) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := b.Samples; len(rest) > 0; {
		n := min(len(rest), blockSize)
		if err := w.block(b.Cell, b.Round, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (w *Writer) block(cell, round int, samples []record.Sample) error {
	if w.err != nil {
		return w.err
	}
	w.enc.buf.Reset()
	m := w.enc.mapping()
	m.key("type")
	w.enc.e.EncodeString("block")
	m.int("cell", int64(cell))
	m.int("round", int64(round))
	m.int("samples", int64(len(samples)))
	m.key("columns")
	c := w.enc.mapping()
	for i := range columns {
		w.enc.scratch = appendColumn(w.enc.scratch[:0], &columns[i], samples)
		c.bytes(columns[i].name, w.enc.scratch)
	}
	c.close()
	m.close()
	return w.emit("block")
}

// Interval writes an interval.
func (w *Writer) Interval(x *Interval) error {
	return w.frame(x.kind(), func(m *mapping) {
		m.int("cell", int64(x.Cell))
		m.int("round", int64(x.Round))
		m.int("second", int64(x.Second))
		m.int("ok", x.OK)
		m.int("failed", x.Failed)
		m.int("dropped", x.Dropped)
		m.int("in_flight", int64(x.InFlight))
		m.int("bytes_in", x.BytesIn)
		m.int("max_lag", int64(x.MaxLag))
		m.histogram("latency", x.Latency)
		m.histogram("probe", x.Probe)
	})
}

// Summary writes a summary.
func (w *Writer) Summary(x *Summary) error {
	return w.frame(x.kind(), func(m *mapping) {
		m.int("cell", int64(x.Cell))
		m.int("round", int64(x.Round))
		m.int("stage", int64(x.Stage))
		m.int("step", int64(x.Step))
		writeStats(m, x.Stats)
	})
}

// Example writes an example.
func (w *Writer) Example(x *Example) error {
	return w.frame(x.kind(), func(m *mapping) {
		m.int("cell", int64(x.Cell))
		m.int("round", int64(x.Round))
		m.int("step", int64(x.Step))
		m.string("failure", x.Failure.String())
		m.int("at", int64(x.At))
		m.string("text", x.Text)
	})
}

// Verdict writes a verdict.
func (w *Writer) Verdict(v *Verdict) error {
	return w.frame(v.kind(), func(m *mapping) {
		m.string("assertion", v.Assertion)
		m.string("place", v.Place)
		m.bool("implied", v.Implied)
		m.string("severity", v.Severity)
		m.string("scenario", v.Scenario)
		m.string("phase", v.Phase)
		m.string("stage", v.Stage)
		m.string("step", v.Step)
		m.string("target", v.Target)
		m.string("outcome", string(v.Outcome))
		m.string("value", v.Value)
		m.string("limit", v.Limit)
		m.int("n", v.N)
		m.string("interval", v.Interval)
		m.string("window", v.Window)
		m.strings("detail", v.Detail)
	})
}

// End writes the end, and flushes.
func (w *Writer) End(e *End) error {
	err := w.frame(e.kind(), func(m *mapping) {
		m.string("outcome", string(e.Outcome))
		m.int("exit", int64(e.Exit))
		m.bool("interrupted", e.Interrupted)
		m.int("at", int64(e.At))
		m.strings("notes", e.Notes)
	})
	if err != nil {
		return err
	}
	return w.Flush()
}
