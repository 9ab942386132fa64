package html

import (
	"github.com/planrun/planrun/engine/compare"
	"github.com/planrun/planrun/sinks/digest"
)

// differenceCell is coloured only if an interval is behind it: otherwise it may be noise.
func differenceCell(head string, x digest.Difference) comparisonCell {
	c := comparisonCell{Head: head, Text: x.Text, Class: "difference"}
	if x.Interval {
		switch x.Finding {
		case compare.Improved:
			c.Class += " good"
		case compare.Worsened:
			c.Class += " bad"
		}
	}
	return c
}
