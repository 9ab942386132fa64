package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/plan"
)

// preflightTimeout bounds the dialling of one endpoint before the load.
const preflightTimeout = 10 * time.Second

// PlanError says that a plan is wrong in a way that only the server it calls could tell. Nothing was measured.
type PlanError struct {
	Place diag.Place // of the step
	Err   error
}

func (e *PlanError) Error() string { return e.Place.String() + ": " + e.Err.Error() }
func (e *PlanError) Unwrap() error { return e.Err }

// preflight dials every endpoint in use once, TLS and login included, and sends no request, so that what can't be reached
// is said at once and not by every sample.
func (r *run) preflight(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-r.Stop:
			cancel()
		case <-done:
		}
	}()
	var errs []error
	seen := map[string]bool{}
	for _, s := range flowsOf(r.plan) {
		for _, step := range s.Steps {
			for t, action := range step.Actions {
				ep := action.Call.Endpoint()
				key := action.Driver + "\x00" + ep.Key
				if seen[key] {
					continue
				}
				seen[key] = true
				err := r.probe(ctx, action, ep)
				if r.stopped() {
					return errInterrupted
				}
				where := fmt.Sprintf("scenario %s, target %s: ", s.Name, r.plan.Targets[t].Name)
				if wrong, ok := errors.AsType[drivers.FieldErrors](err); ok {
					errs = append(errs, &PlanError{step.Place, &SetupError{where + ep.Name, wrong}})
				} else if err != nil {
					errs = append(errs, &SetupError{where + unreachable(err) + ep.Name, err})
				}
			}
		}
	}
	return errors.Join(errs...)
}

// unreachable is how a failed probe is introduced: whoever answers, if only to refuse, was reached.
func unreachable(err error) string {
	switch drivers.KindOf(err) {
	case drivers.Refused, drivers.Timeout, drivers.DNS, drivers.Reset, drivers.Local:
		return "can't reach "
	}
	return "can't use "
}

// flowsOf lists everything of a plan that makes calls.
func flowsOf(p *plan.Plan) (all []*plan.Scenario) {
	add := func(s *plan.Scenario) {
		if s != nil {
			all = append(all, s)
		}
	}
	add(p.Before)
	for _, s := range p.Scenarios {
		if len(s.Phases) > 0 || s.IsBackground {
			add(s.Before)
			add(s)
			add(s.After)
		}
	}
	add(p.After)
	return all
}

func (r *run) probe(ctx context.Context, action plan.Action, ep drivers.Endpoint) error {
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	client, err := r.Drivers[action.Driver].Connect(ctx, ep, drivers.Pool{Users: 1})
	if err != nil {
		return err
	}
	return errors.Join(client.Probe(ctx), client.Close())
}
