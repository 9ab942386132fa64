package service

import (
	"context"

	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/lab"
)

// work is what a service does for a request: its serial work first, then that which is done at the same time as others'.
// It is safe for concurrent use.
type work struct {
	clock    *clock.Clock
	serial   *station // nil without any
	parallel *station // nil without any
}

func newWork(c *clock.Clock, spec lab.Service) work {
	w := work{clock: c}
	if spec.Serial > 0 {
		w.serial = &station{clock: c, slots: 1, least: spec.Serial}
	}
	if spec.Delay > 0 || spec.DelayMax > 0 {
		w.parallel = &station{clock: c, slots: spec.Slots, least: spec.Delay, most: spec.DelayMax}
	}
	return w
}

// do returns when the work for one request is done, or the request was given up.
func (w *work) do(ctx context.Context) error {
	if w.serial == nil && w.parallel == nil {
		return nil
	}
	waiter := w.clock.NewWaiter()
	if w.serial != nil {
		if err := w.serial.serve(ctx, waiter); err != nil {
			return err
		}
	}
	if w.parallel != nil {
		return w.parallel.serve(ctx, waiter)
	}
	return nil
}
