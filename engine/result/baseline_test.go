package result

import (
	"bytes"
	"testing"

	"github.com/planrun/planrun/engine/record"
)

func TestSavedRunHasTheSameFigures(t *testing.T) {
	whole := stream(t, example(20_000)...)
	run, err := Load(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Save(&b, run); err != nil {
		t.Fatal(err)
	}
	if b.Len() > len(whole)/5 {
		t.Errorf("%d bytes of %d were saved; samples should be left out", b.Len(), len(whole))
	}
	saved, err := Load(bytes.NewReader(b.Bytes()))
	if err != nil || saved.Cut != nil {
		t.Fatal(err, saved.Cut)
	}
	if saved.Hash != run.Hash || saved.Environment["cpus"] != "2" || saved.End == nil {
		t.Error("the header or the end is not as it was")
	}
	for i, c := range run.Cells {
		for round := Pooled; round < len(c.Rounds); round++ {
			for _, stage := range []int{Judged, Ramps, Every} {
				a, b := c.Stats(round, stage, record.Whole), saved.Cells[i].Stats(round, stage, record.Whole)
				if a.OK != b.OK || a.Failed != b.Failed || a.Dropped != b.Dropped || a.BytesIn != b.BytesIn || a.Length != b.Length || a.Active() != b.Active() {
					t.Errorf("%s round %d: %d, %d, %d became %d, %d, %d", c.name(), round, a.OK, a.Failed, a.Dropped, b.OK, b.Failed, b.Dropped)
				}
				if (a.Probe == nil) != (b.Probe == nil) {
					t.Errorf("%s round %d: what the probe found is lost", c.name(), round)
				}
				x, _ := a.Latency().Percentile(95)
				y, _ := b.Latency().Percentile(95)
				if y < x || float64(y) > 1.005*float64(x) {
					t.Errorf("%s round %d: p95 of %d became %d", c.name(), round, x, y)
				}
			}
		}
		before, _ := c.RateHeld(1)
		if after, _ := saved.Cells[i].RateHeld(1); after != before {
			t.Errorf("rate held was %v and became %v", before, after)
		}
	}
	var again bytes.Buffer
	if err := Save(&again, saved); err != nil || !bytes.Equal(again.Bytes(), b.Bytes()) {
		t.Error("what was saved is not saved as it is")
	}
}

func TestVersusPutsTwoRunsSideBySide(t *testing.T) {
	a, err := Load(bytes.NewReader(stream(t, example(50)...)))
	if err != nil {
		t.Fatal(err)
	}
	both := Versus(a, a, [2]string{"old", "new"})
	c := both.Find("http.hybrid", "load", "new")
	if c == nil || both.Find("http.hybrid", "load", "old") == nil {
		t.Fatal("a cell is missing")
	}
	if n := c.Stats(Pooled, Every, record.Whole).Count(); n == 0 || n != a.Find("http", "load", "hybrid").Stats(Pooled, Every, record.Whole).Count() {
		t.Errorf("%d samples", n)
	}
}
