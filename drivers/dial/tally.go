package dial

import (
	"context"
	"sync"

	"github.com/planrun/planrun/drivers"
)

// Tally counts connections by the address that they went to. Dialers may share one. The zero Tally is ready, and safe for
// concurrent use; it keeps every address it is told of, which are no more than names have.
type Tally struct {
	mu   sync.Mutex
	each map[string]*drivers.Address
}

// Addresses lists what was dialled so far, in any order.
func (t *Tally) Addresses() []drivers.Address {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]drivers.Address, 0, len(t.each))
	for _, a := range t.each {
		list = append(list, *a)
	}
	return list
}

// note counts an attempt that ended with err. What ended it on this side says nothing of the address.
func (t *Tally) note(ctx context.Context, addr string, err error) {
	if t == nil || err != nil && (ctx.Err() == context.Canceled || Classify(err) == drivers.Local) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.each[addr]
	if a == nil {
		if t.each == nil {
			t.each = map[string]*drivers.Address{}
		}
		a = &drivers.Address{Addr: addr}
		t.each[addr] = a
	}
	if err == nil {
		a.Opened++
	} else {
		a.Failed++
	}
}
