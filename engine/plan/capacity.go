package plan

import (
	"time"

	"github.com/planrun/planrun/engine/expression"
)

// CapacitySearch is the kind of a phase that looks for the highest rate at which a condition holds.
const CapacitySearch Kind = "capacity"

// Capacity is what a capacity phase looks for, on each target by itself.
type Capacity struct {
	From, To  float64 // the lowest and the highest rate that is tried, in iterations a second
	Hold      time.Duration
	While     *expression.Assertion // of one hold; its addresses name a step at most
	Precision float64               // the answer is the highest rate but for this share of it
}
