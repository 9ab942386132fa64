package digest

import (
	"fmt"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/result"
)

// Connected is where the connections of a cell went, over all its rounds.
type Connected struct {
	Place     string            // scenario.phase.target
	Protocols string            // what was spoken: "HTTP/1.1 and HTTP/2"; "" if nobody answered
	Addresses []drivers.Address // the most used first
	More      int               // how many others a round had at most
}

// Several tells whether there was more than one address to connect to.
func (c Connected) Several() bool { return len(c.Addresses)+c.More > 1 }

// Left says what is not among the addresses; "" if they are all there.
func (c Connected) Left() string {
	if c.More == 0 {
		return ""
	}
	return fmt.Sprintf("and %d more", c.More)
}

// Addresses lists where the connections of a cell went, over all its rounds, and how many others a round had at most. They
// are as they were recorded, not Clean.
func Addresses(c *result.CellResult) (list []drivers.Address, more int) {
	var all [][]drivers.Address
	for _, r := range c.Rounds {
		if r.End != nil {
			all = append(all, r.End.Addresses)
			more = max(more, r.End.MoreAddresses)
		}
	}
	return drivers.MergeAddresses(all...), more
}

func connected(run *result.Run) []Connected {
	var cells []Connected
	for _, c := range run.Cells {
		list, more := Addresses(c)
		if len(list) == 0 {
			continue
		}
		for i := range list {
			list[i].Addr = Shorten(Clean(list[i].Addr), 200)
		}
		cells = append(cells, Connected{Name(c.Scenario, c.Phase, c.Target), strings.Join(Protocols(c), " and "), list, more})
	}
	return cells
}
