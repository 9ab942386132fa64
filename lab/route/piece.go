package route

import (
	"sync"
	"time"
)

// piece is bytes under way, or the end of them.
type piece struct {
	bytes []byte
	due   time.Duration
	end   ending
}

type ending uint8

const (
	open   ending = iota
	closed        // no more bytes follow
	broken        // the connection was reset
)

var small, large = sync.Pool{New: newBuffer(smallPiece)}, sync.Pool{New: newBuffer(largePiece)}

func newBuffer(size int) func() any {
	return func() any {
		b := make([]byte, size)
		return &b
	}
}

// buffer returns one of the two sizes. An idle connection waits with a small one, a busy one with a large one.
func buffer(busy bool) []byte {
	pool := &small
	if busy {
		pool = &large
	}
	return *pool.Get().(*[]byte)
}

func release(b []byte) {
	switch b = b[:cap(b)]; len(b) {
	case smallPiece:
		small.Put(&b)
	case largePiece:
		large.Put(&b)
	}
}

// backlog is a queue of pieces that does not give its memory away between bursts, unless they were large.
type backlog struct {
	pieces []piece
	first  int
}

func (b *backlog) len() int { return len(b.pieces) - b.first }

func (b *backlog) push(p piece) {
	if b.first > 0 && len(b.pieces) == cap(b.pieces) {
		n := copy(b.pieces, b.pieces[b.first:])
		clear(b.pieces[n:])
		b.pieces, b.first = b.pieces[:n], 0
	}
	b.pieces = append(b.pieces, p)
}

func (b *backlog) pop() piece {
	p := b.pieces[b.first]
	b.pieces[b.first] = piece{}
	b.first++
	if b.first == len(b.pieces) {
		if cap(b.pieces) > 256 {
			b.pieces = nil
		}
		b.pieces, b.first = b.pieces[:0], 0
	}
	return p
}
