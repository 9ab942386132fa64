package result

import (
	"fmt"
	"hash/crc32"

	"github.com/planrun/planrun/engine/record"
)

// A results file is the magic, then frames, each of them
//
//	u32 length | u32 CRC-32C of the payload | payload
//
// in little endian. A payload is a msgpack map whose first key is "type"; the other keys are the fields of that type.
// Readers skip keys and types that they don't know, and fields that are missing have their zero value, so that later
// writers may add both without a new format version.
const (
	magic      = "planrun\n"
	frameHead  = 8
	frameLimit = 16 << 20 // bytes of a payload
	blockLimit = 8192     // samples of a block
	blockSize  = 4096     // samples of a block as it is written
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Frame is one record of the stream: *Header, *Cell, *Round, *RoundEnd, *Trial, *TrialEnd, *Capacity, *Block, *Interval,
// *Summary, *Example, *Verdict or *End.
type Frame interface{ kind() string }

func (*Header) kind() string   { return "header" }
func (*Cell) kind() string     { return "cell" }
func (*Round) kind() string    { return "round" }
func (*RoundEnd) kind() string { return "round_end" }
func (*Trial) kind() string    { return "trial" }
func (*TrialEnd) kind() string { return "trial_end" }
func (*Capacity) kind() string { return "capacity" }
func (*Block) kind() string    { return "block" }
func (*Interval) kind() string { return "interval" }
func (*Summary) kind() string  { return "summary" }
func (*Example) kind() string  { return "example" }
func (*Verdict) kind() string  { return "verdict" }
func (*End) kind() string      { return "end" }

// Summary is what the samples of one stage and step of a round came to. It is written at the end of the round where
// the header says that there are no samples.
type Summary struct {
	Cell, Round int
	Stage, Step int // Step is record.Whole for iterations
	Stats       *record.Stats
}

// Cut says that a stream ends before its end, or is damaged. Everything that was read before is good.
type Cut struct {
	Offset int64  // where the first byte lies that could not be used
	Reason string // what is wrong there
}

func (c *Cut) Error() string {
	return fmt.Sprintf("the results are cut off at byte %d: %s; what comes before is complete", c.Offset, c.Reason)
}

// NewerError says that the stream has a format that this program is too old for.
type NewerError struct{ Format int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("was written by a newer planrun (format %d, this one reads up to %d)", e.Format, Version)
}
