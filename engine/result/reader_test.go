package result

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/planrun/planrun/engine/record"
)

var update = flag.Bool("update", false, "write golden files anew")

// raw frames a payload.
func raw(payload []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
	return append(b, payload...)
}

// payload encodes a map from keys and values in turn.
func payload(t testing.TB, pairs ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	e.UseCompactInts(true)
	if err := e.EncodeMapLen(len(pairs) / 2); err != nil {
		t.Fatal(err)
	}
	for _, x := range pairs {
		if err := e.Encode(x); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// TestReleasedVersionStaysReadable reads a file that version 1 wrote. Its text must never have to change; write it anew
// only as long as version 1 is not released.
func TestReleasedVersionStaysReadable(t *testing.T) {
	path := filepath.Join("testdata", "v1.msgpack")
	want := example(50)
	if *update {
		if err := os.WriteFile(path, stream(t, want...), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(b)
	if err != io.EOF {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, histograms); d != "" {
		t.Error(d)
	}
}

func TestWhatIsNotAResultsFile(t *testing.T) {
	header := payload(t, "type", "header", "version", 1)
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "is empty: the run ended before anything was recorded"},
		{"text", []byte("scenarios:\n  home:\n"), "is not a results file of planrun"},
		{"short text", []byte("abc"), "is not a results file of planrun"},
		{"part of the magic", []byte(magic[:3]), "has no results: the run ended before anything was recorded"},
		{"the magic", []byte(magic), "has no header: the results are cut off at byte 8: the run did not get to its end, or is still going on; what comes before is complete"},
		{"half a header", append([]byte(magic), raw(header)[:12]...), "has no header: the results are cut off at byte 8: the last record is incomplete; what comes before is complete"},
		{"something else first", append([]byte(magic), raw(payload(t, "type", "end"))...), "has no header: something else comes first"},
		{"newer", append([]byte(magic), raw(payload(t, "type", "header", "version", 2, "plan", []any{1}))...), "was written by a newer planrun (format 2, this one reads up to 1)"},
		{"no version", append([]byte(magic), raw(payload(t, "type", "header"))...), "has no header: the results are cut off at byte 8: damaged record: it has no format version; what comes before is complete"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := NewReader(bytes.NewReader(test.file))
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
			path := filepath.Join(t.TempDir(), "x.msgpack")
			os.WriteFile(path, test.file, 0o666)
			if _, err := Open(path); err == nil || err.Error() != path+" "+test.want {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestDamage(t *testing.T) {
	header := append([]byte(magic), raw(payload(t, "type", "header", "version", 1, "samples", true))...)
	cell := raw(payload(t, "type", "cell", "scenario", "s", "phase", "p", "target", "t"))
	round := raw(payload(t, "type", "round"))
	end := raw(payload(t, "type", "end"))
	deep := payload(t, "type", "end", "future", 0)
	deep = append(deep[:len(deep)-1], bytes.Repeat([]byte{0x91}, 1<<20)...)
	join := func(parts ...[]byte) []byte { return bytes.Join(append([][]byte{header}, parts...), nil) }
	block := func(columns ...any) []byte {
		return join(cell, round, raw(payload(t, "type", "block", "samples", 2, "columns", msgpack.RawMessage(payload(t, columns...)))))
	}
	hostile := func(code string) []byte {
		b, err := hex.DecodeString(code)
		if err != nil {
			t.Fatal(err)
		}
		p := payload(t, "type", "cell", "steps", 0)
		return join(raw(append(p[:len(p)-1], b...)))
	}
	tests := []struct {
		name string
		file []byte
		want string // part of the reason
	}{
		{"no end", join(), "the run did not get to its end, or is still going on"},
		{"two in one file", join(end, header), "other results follow after the end"},
		{"more after the end", join(end, []byte("x")), "something follows after the end"},
		{"a frame after the end", join(end, end), "something follows after the end"},
		{"an impossible length", join([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}), "its length is impossible"},
		{"a length that is not there", join([]byte{0, 0, 0xf0, 0, 0, 0, 0, 0, 1}), "the last record is incomplete"},
		{"a second header", join(raw(payload(t, "type", "header", "version", 1))), "a second header"},
		{"no type", join(raw(payload(t, "cell", 1))), "it has no type"},
		{"not a map", join(raw([]byte{0x93, 1, 2, 3})), "a value is not of the kind expected"},
		{"an empty payload", join(raw(nil)), "a value is not of the kind expected"},
		{"an empty map", join(raw([]byte{0x80})), "it has no type"},
		{"text for a number", join(cell, raw(payload(t, "type", "round", "cell", "one"))), "a value is not of the kind expected"},
		{"a negative cell", join(cell, raw(payload(t, "type", "round", "cell", -1))), "-1 is not between"},
		{"no such cell", join(cell, raw(payload(t, "type", "round", "cell", 1))), "cell 1 is not known"},
		{"no such round", join(cell, raw(payload(t, "type", "round_end", "round", 0))), "round 1 of s.p.t is not known"},
		{"rounds out of order", join(cell, raw(payload(t, "type", "round", "round", 1))), "round 2 of s.p.t comes when round 1 is due"},
		{"a list of 4 billion", hostile("ddffffffff"), "a length is greater than what follows"},
		{"a map of 4 billion", hostile("dfffffffff"), "a value is not of the kind expected"},
		{"text of 4 billion", hostile("dbffffffff"), "a value is not of the kind expected"},
		{"nested a million deep", join(raw(deep)), "a length is greater than what follows"},
		{"too many samples", join(cell, round, raw(payload(t, "type", "block", "samples", 1<<30))), "is not between 0 and 8192"},
		{"a column of no coding", block("due", []byte{9, 0, 0}), "damaged column due"},
		{"a column that is too short", block("due", []byte{plain, 0}), "damaged column due"},
		{"a column that is too long", block("due", []byte{plain, 0, 0, 0}), "damaged column due"},
		{"a run that is too long", block("user", []byte{runs, 0, 3}), "damaged column user"},
		{"an endless run", block("user", append([]byte{runs, 0}, binary.AppendUvarint(nil, 1<<63)...)), "damaged column user"},
		{"a run of none", block("user", []byte{runs, 0, 0}), "damaged column user"},
		{"a failure that there is not", block("failure", []byte{runs, 100, 2}), "damaged column failure"},
		{"a time in another age", block("due", append([]byte{runs}, binary.AppendUvarint(binary.AppendVarint(nil, 1<<62), 2)...)), "damaged column"},
		{"a stage that there is not", block("stage", []byte{runs, 2, 2}), "stage 1 of s.p.t is not known"},
		{"a step that there is not", block("step", []byte{runs, 2, 2}), "step 0 of s.p.t is not known"},
		{"negative bytes", block("bytes_in", []byte{runs, 1, 2}), "damaged column bytes_in"},
		{"a damaged histogram", join(cell, round, raw(payload(t, "type", "interval", "latency", []byte{1, 2, 3}))), "damaged histogram"},
		{"a rate that is not a number", join(raw(payload(t, "type", "cell", "stages", []map[string]float64{{"from": nan()}}))), "a value is not of the kind expected"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run, err := Load(bytes.NewReader(test.file))
			if err != nil {
				t.Fatal(err)
			}
			var cut *Cut
			if !errors.As(run.Cut, &cut) || !strings.Contains(cut.Reason, test.want) {
				t.Errorf("got %v\nwant %s", run.Cut, test.want)
			}
			if run.Version != 1 {
				t.Error("what came before is lost")
			}
		})
	}
}

func nan() float64 { z := 0.; return z / z }

// TestLaterWriters reads a stream that has types, fields and columns of a later version.
func TestLaterWriters(t *testing.T) {
	nested := map[string]any{"a": []any{1, "x", nil, true, 1.5, []byte("b"), map[string]any{"c": -70000}}, "d": uint64(1 << 63)}
	long := strings.Repeat("x", 70000)
	file := bytes.Join([][]byte{
		[]byte(magic),
		raw(payload(t, "type", "header", "version", 1, "colour", nested, "long", long, "plan", "p", "bin", []byte(long), "wide", make([]int, 70000), "samples", true)),
		raw(payload(t, "type", "weather", "sun", nested)),
		raw(payload(t, "type", "cell", "x", nested, "steps", []map[string]any{{"name": "a", "y": 1}, {"driver": "http"}})),
		raw(payload(t, "type", "round", "when", 1.5)),
		raw(payload(t, "type", "block", "samples", 2, "columns", msgpack.RawMessage(payload(t, "later", []byte("abc"), "due", []byte{plain, 2, 4}, "number", 7)))),
		raw(payload(t, "type", "end", "outcome", "passed")),
	}, nil)
	frames, err := read(file)
	if err != io.EOF {
		t.Fatal(err)
	}
	if len(frames) != 5 {
		t.Fatalf("%d frames", len(frames))
	}
	if h := frames[0].(*Header); h.Plan != "p" || !h.Samples {
		t.Errorf("header %+v", h)
	}
	if c := frames[1].(*Cell); len(c.Steps) != 2 || c.Steps[0].Name != "a" || c.Steps[1].Driver != "http" {
		t.Errorf("cell %+v", c)
	}
	b := frames[3].(*Block)
	if len(b.Samples) != 2 || b.Samples[1].Due != 2 || b.Samples[0].TTFB != -1 || b.Samples[0].Step != record.Whole {
		t.Errorf("block %+v", b)
	}
}

func TestReadErrorsAreNotCuts(t *testing.T) {
	whole := stream(t, example(10)...)
	broken := errors.New("the disk is gone")
	_, err := Load(io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if run, err := Load(iotest.OneByteReader(bytes.NewReader(whole))); err != nil || run.Cut != nil || run.End == nil {
		t.Errorf("byte by byte: %v, %v", run, err)
	}
}

func TestWriteErrorsStick(t *testing.T) {
	full := errors.New("no space left on device")
	w := NewWriter(writerFunc(func([]byte) (int, error) { return 0, full }))
	w.Header(&Header{})
	if err := w.Flush(); !errors.Is(err, full) {
		t.Errorf("flush: %v", err)
	}
	if _, err := w.Cell(&Cell{}); !errors.Is(err, full) {
		t.Errorf("cell: %v", err)
	}
	if err := w.End(&End{}); !errors.Is(err, full) {
		t.Errorf("end: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestTooLargeIsRefusedAndTheStreamGoesOn(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	write(t, w, &Header{Version: 1}, &Cell{}, &Round{})
	if err := w.Example(&Example{Text: strings.Repeat("x", frameLimit)}); err == nil || !strings.Contains(err.Error(), "a record (example) of") {
		t.Errorf("got %v", err)
	}
	write(t, w, &End{})
	if frames, err := read(b.Bytes()); err != io.EOF || len(frames) != 4 {
		t.Errorf("%d frames, %v", len(frames), err)
	}
}

func TestLargeBlocksAreSplit(t *testing.T) {
	samples := example(10_000)[4].(*Block)
	frames, err := read(stream(t, &Header{Version: 1}, samples, &End{}))
	if err != io.EOF || len(frames) != 5 {
		t.Fatalf("%d frames, %v", len(frames), err)
	}
	var all []record.Sample
	for _, f := range frames[1:4] {
		all = append(all, f.(*Block).Samples...)
	}
	if d := cmp.Diff(samples.Samples, all); d != "" {
		t.Error(d)
	}
}

func FuzzReader(f *testing.F) {
	whole := stream(f, example(5)...)
	f.Add(whole[len(magic):])
	f.Add(stream(f, &Header{Version: 1}, &Cell{}, &Round{}, summary(), &End{})[len(magic):])
	// The fuzzer would never find a checksum, so it writes payloads, and gets them framed.
	f.Fuzz(func(t *testing.T, b []byte) {
		file := []byte(magic)
		for len(b) >= frameHead {
			n := min(int(binary.LittleEndian.Uint32(b)), len(b)-frameHead)
			if n < 0 {
				break
			}
			file = append(file, raw(b[frameHead:frameHead+n])...)
			b = b[frameHead+n:]
		}
		run, err := Load(bytes.NewReader(file))
		if err != nil {
			return
		}
		for _, c := range run.Cells {
			for _, round := range []int{Pooled, 0} {
				for _, stage := range []int{Judged, Ramps, Every, 0, 1} {
					s := c.Stats(round, stage, record.Whole)
					s.All().Percentile(99)
					s.WithoutLag().Active()
				}
			}
		}
	})
}
