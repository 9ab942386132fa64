package route

import (
	"context"
	"errors"
	"io"
	"sync"
)

// Join carries bytes between two streams, in both directions and without delay, until both directions have ended, one was
// broken, or ctx is done. An end arrives as an end, a reset as a reset. Both streams are closed when it returns.
func Join(ctx context.Context, a, b Stream) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer a.Close()
	defer b.Close()
	defer context.AfterFunc(ctx, func() { a.Close(); b.Close() })()
	both(ctx, cancel, a, b, func() ending { return pass(a, b) }, func() ending { return pass(b, a) })
}

// both runs the two directions of a connection until both have ended, or one was broken.
func both(ctx context.Context, cancel func(), a, b Stream, forth, back func() ending) {
	var running sync.WaitGroup
	run := func(flow func() ending, from, to Stream) {
		running.Go(func() {
			if flow() == closed {
				to.CloseWrite()
				return
			}
			if ctx.Err() == nil {
				// Whichever of the two is left learns of it. The one that broke the connection off does not mind.
				to.Reset()
				from.Reset()
			}
			cancel()
		})
	}
	run(forth, a, b)
	run(back, b, a)
	running.Wait()
}

// pass moves bytes at once.
func pass(from, to Stream) ending {
	busy := false
	for {
		b := buffer(busy)
		n, err := from.Read(b)
		busy = n == len(b) || busy && n > smallPiece
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				release(b)
				return broken
			}
		}
		release(b)
		if errors.Is(err, io.EOF) {
			return closed
		}
		if err != nil {
			return broken
		}
	}
}
