package record

import (
	"sync"
	"testing"
)

func TestNotebookHandsOverEverySampleInOrder(t *testing.T) {
	const total = 100_000
	var book Notebook
	var user sync.WaitGroup
	done := make(chan struct{})
	user.Go(func() {
		defer close(done)
		for i := range int64(total) {
			book.Add(&Sample{Iteration: i, Due: 2 * i})
		}
	})
	var next int64
	check := func(samples []Sample) {
		for _, s := range samples {
			if s.Iteration != next || s.Due != 2*next {
				t.Fatalf("got sample %d due %d, want %d", s.Iteration, s.Due, next)
			}
			next++
		}
	}
	var buffer []Sample
	for finished := false; !finished; {
		select {
		case <-done:
			finished = true
		default:
		}
		buffer = book.Drain(buffer[:0])
		check(buffer)
	}
	user.Wait()
	if next != total {
		t.Fatalf("%d samples arrived, want %d", next, total)
	}
	if rest := book.Drain(nil); len(rest) != 0 {
		t.Fatalf("%d samples were drained twice", len(rest))
	}
}

func TestNotebookDoesNotAllocateOnceWarm(t *testing.T) {
	var book Notebook
	buffer := make([]Sample, 0, 4*chunkSize)
	var s Sample
	round := func() {
		for range 2 * chunkSize {
			book.Add(&s)
		}
		buffer = book.Drain(buffer[:0])
	}
	round()
	// The pool may be emptied by a garbage collection in between, so a rare chunk is allowed.
	if n := testing.AllocsPerRun(200, round) / (2 * chunkSize); n > 0.01 {
		t.Errorf("%v allocations a sample, want none", n)
	}
}
