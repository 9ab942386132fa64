// Package sinks says what a sink is: it renders a results stream. A sink knows nothing of drivers or the engine.
package sinks

import (
	"io"

	"github.com/planrun/planrun/engine/result"
)

// Sink renders one run. It may read the stream's samples again, but keeps no more of them in memory than a block.
type Sink interface {
	Write(w io.Writer, run *result.Run) error
}
