package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/plan"
)

// preflightTimeout bounds the dialling of one endpoint before the load.
const preflightTimeout = 10 * time.Second

// preflight dials every endpoint in use once, TLS and login included, and sends no request, so that what can't be reached
// is said at once and not by every sample.
func (r *run) preflight(ctx context.Context) error {
	var errs []error
	seen := map[string]bool{}
	for _, s := range flowsOf(r.plan) {
		for _, step := range s.Steps {
			for t, action := range step.Actions {
				ep := action.Call.Endpoint()
				key := action.Driver + "\x00" + ep.Key
				if seen[key] || r.stopped() {
					continue
				}
				seen[key] = true
				if err := r.probe(ctx, action, ep); err != nil {
					what := fmt.Sprintf("scenario %s, target %s: can't reach %s", s.Name, r.plan.Targets[t].Name, ep.Name)
					errs = append(errs, &SetupError{what, err})
				}
			}
		}
	}
	return errors.Join(errs...)
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
