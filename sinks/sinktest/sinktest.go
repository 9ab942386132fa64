// Package sinktest has runs on which sinks are tried: the study that planrun is modelled on, and whatever is hard to
// render. A sink's test renders each of them and compares with a golden file, which somebody has looked at.
package sinktest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks"
)

var update = flag.Bool("update", false, "write golden files anew")

// Case is one run.
type Case struct {
	Name   string
	Frames []result.Frame
	Cut    int // bytes that are missing at the end
}

// Open writes the case to a file and reads it, as a sink gets it.
func (c Case) Open(t testing.TB) *result.Run {
	t.Helper()
	b := Write(t, c.Frames)
	path := filepath.Join(t.TempDir(), c.Name+".msgpack")
	if err := os.WriteFile(path, b[:len(b)-c.Cut], 0o666); err != nil {
		t.Fatal(err)
	}
	run, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Cut == 0 && run.Cut != nil {
		t.Fatal(run.Cut)
	}
	return run
}

// Write returns the stream of some frames.
func Write(t testing.TB, frames []result.Frame) []byte {
	t.Helper()
	var b bytes.Buffer
	w := result.NewWriter(&b)
	for _, f := range frames {
		if err := w.Frame(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Render renders every case with a sink and compares with testdata/<case><suffix>. check, if not nil, looks at each
// output besides.
func Render(t *testing.T, sink sinks.Sink, suffix string, check func(t *testing.T, out []byte)) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			run := c.Open(t)
			var b bytes.Buffer
			if err := sink.Write(&b, run); err != nil {
				t.Fatal(err)
			}
			if check != nil {
				check(t, b.Bytes())
			}
			Golden(t, filepath.Join("testdata", c.Name+suffix), b.Bytes())
			// A sink changes nothing: rendering again gives the same.
			var again bytes.Buffer
			if err := sink.Write(&again, run); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
				t.Errorf("the second time it differs (%v)", err)
			}
		})
	}
}

// Golden compares with a file, or writes it anew with -update.
func Golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}
