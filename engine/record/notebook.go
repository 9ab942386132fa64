package record

import (
	"sync"
	"sync/atomic"
)

// chunkSize balances the memory of many idle users against the cost of changing chunks: 64 samples are 9 KiB.
const chunkSize = 64

// Notebook carries the samples of one user to the one collector, without locks and, once warm, without allocation:
// a list of chunks, to whose end the user writes and from whose beginning the collector reads. The zero Notebook is
// ready. Add may be called from one goroutine and Drain from one other, at the same time.
type Notebook struct {
	write *chunk // the user's
	read  *chunk // the collector's
	from  int    // samples of read that have been drained
	first atomic.Pointer[chunk]
}

type chunk struct {
	written atomic.Int32 // samples[:written] are complete
	next    atomic.Pointer[chunk]
	samples [chunkSize]Sample
}

var chunks = sync.Pool{New: func() any { return new(chunk) }}

// Add notes a sample down.
func (n *Notebook) Add(s *Sample) {
	c := n.write
	if c == nil {
		c = chunks.Get().(*chunk)
		n.write = c
		n.first.Store(c)
	}
	i := c.written.Load()
	if i == chunkSize {
		fresh := chunks.Get().(*chunk)
		c.next.Store(fresh)
		n.write, c, i = fresh, fresh, 0
	}
	c.samples[i] = *s
	c.written.Store(i + 1)
}

// Drain appends to dst every sample that was added and not drained before, in the order of Add.
func (n *Notebook) Drain(dst []Sample) []Sample {
	if n.read == nil {
		if n.read = n.first.Load(); n.read == nil {
			return dst
		}
	}
	for {
		c := n.read
		written := int(c.written.Load())
		dst = append(dst, c.samples[n.from:written]...)
		n.from = written
		if written < chunkSize {
			return dst
		}
		next := c.next.Load()
		if next == nil {
			return dst
		}
		// The user has gone on to next and never looks back, so c is free.
		n.read, n.from = next, 0
		c.written.Store(0)
		c.next.Store(nil)
		chunks.Put(c)
	}
}
