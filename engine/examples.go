package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
)

// exampleBook keeps the first few failures of each kind of a round in their own words. It never grows with the number of
// failures or with what they say.
type exampleBook struct {
	limit int32
	seen  [drivers.Aborted + 1]atomic.Int32
	mu    sync.Mutex
	kept  []result.Example
}

// exampleLength is how much is kept of what a failure says, in bytes.
const exampleLength = 500

// wants tells whether another example of a kind is kept, so that its text need not be made otherwise.
func (b *exampleBook) wants(kind drivers.Failure) bool { return b.seen[kind].Load() < b.limit }

func (b *exampleBook) note(s *record.Sample, step int, text string) {
	if b.seen[s.Failure].Add(1) > b.limit {
		return
	}
	if len(text) > exampleLength {
		text = text[:exampleLength] + "..."
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, result.Example{Step: step, Failure: s.Failure, At: time.Duration(s.End), Text: text})
}

func (b *exampleBook) take() []result.Example {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept
}
