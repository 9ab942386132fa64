package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/result"
)

// between runs the steps before a load, the load, and the steps after it. Those after it are run whatever happened.
func (r *run) between(ctx context.Context, before, after *plan.Scenario, load func() error) (err error) {
	if after != nil {
		defer func() {
			// What is to be tidied up is not left because the run was stopped.
			r.tidying = errors.Join(r.tidying, r.once(context.WithoutCancel(ctx), after))
		}()
	}
	if before != nil {
		if err := r.once(ctx, before); err != nil {
			return err
		}
	}
	return load()
}

// aroundTimeout bounds a step around a load that has no time-out of its own.
const aroundTimeout = 30 * time.Second

// once runs steps for each target, and keeps what they capture. Nothing of it is measured.
func (r *run) once(ctx context.Context, sc *plan.Scenario) error {
	for t, target := range r.plan.Targets {
		c := &cell{index: -1, scenario: sc, target: t, phase: &plan.Phase{Kind: plan.Single, Users: 1, Count: 1, Timeout: aroundTimeout}}
		c.Cell = result.Cell{Scenario: sc.Name, Target: target.Name, Stages: []result.Stage{{Kind: "hold"}}, Steps: stepsOf(sc, t)}
		if err := r.onceFor(ctx, c); err != nil {
			return fmt.Errorf("%s, target %s: %w", sc.Name, target.Name, err)
		}
	}
	return nil
}

func (r *run) onceFor(ctx context.Context, c *cell) (err error) {
	rd := r.newRound(ctx, c, 0)
	defer rd.cancel()
	if err := rd.connect(1); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rd.close()) }()
	rd.release = r.clock.Now()
	u, err := rd.newUser(0)
	if err != nil {
		return err
	}
	u.iterate(0, 0, 0, false)
	if u.whole.Failure != drivers.OK {
		why := u.whole.Failure.String()
		for _, e := range rd.examples.take() {
			why = e.Text
			if e.Step < len(c.scenario.Steps) && c.scenario.Steps[e.Step].Name != "" {
				why = c.scenario.Steps[e.Step].Name + ": " + why
			} else if len(c.scenario.Steps) > 1 {
				why = fmt.Sprintf("step %d: %s", e.Step+1, why)
			}
		}
		return errors.New(why)
	}
	for i, name := range c.scenario.Captures {
		v := u.input.Values[i]
		if v == nil {
			continue
		}
		if r.captured[c.target] == nil {
			r.captured[c.target] = map[string]any{}
		}
		r.captured[c.target][name] = v
	}
	for _, i := range u.hidden {
		if v := u.input.Values[i]; v != nil {
			r.secrets = r.secrets.With(string(drivers.AppendText(nil, v)))
		}
	}
	return nil
}

// company is what runs along with a round. A nil one is nothing.
type company struct {
	rd      *round
	collect *collector
	users   []*user
	begun   bool
	next    atomic.Int64
	stop    chan struct{}
	done    chan struct{}
	err     error
}

// accompany prepares the background of a round; nil if it has none.
func (r *run) accompany(ctx context.Context, main *cell, number int) (*company, error) {
	if main.beside == nil {
		return nil, nil
	}
	rd := r.newRound(ctx, main.beside, number)
	users := main.beside.phase.Users
	if err := rd.connect(users); err != nil {
		return nil, err
	}
	c := &company{rd: rd, collect: newCollector(rd), stop: make(chan struct{}), done: make(chan struct{})}
	var err error
	if c.users, err = rd.openUsers(users); err != nil {
		return nil, errors.Join(err, rd.close())
	}
	return c, nil
}

// begin releases the background.
func (c *company) begin() {
	if c == nil {
		return
	}
	c.begun = true
	rd := c.rd
	rd.release = rd.clock.Now()
	go func() {
		defer close(c.done)
		c.collect.probe = startProbe(rd.clock)
		defer c.collect.probe.stop()
		c.err = rd.emit(&result.Round{Cell: rd.index, Round: rd.number, Release: rd.release})
		if c.err == nil {
			c.err = c.collect.around(c.load)
		}
		if c.err == nil {
			c.err = c.collect.finish()
		}
	}()
}

// load is each user's iterations, one after the other until the phase is over.
func (c *company) load() {
	var group sync.WaitGroup
	for _, u := range c.users {
		group.Go(func() {
			for !c.over() && !c.rd.halted() {
				k := c.next.Add(1) - 1
				if c.rd.beyond(k) {
					return
				}
				u.turn(k)
			}
		})
	}
	group.Wait()
}

func (c *company) over() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// end lets the background finish the iterations that it is at, and closes the record of its round.
func (c *company) end() error {
	if c == nil {
		return nil
	}
	defer c.rd.cancel()
	if !c.begun {
		return c.rd.close()
	}
	close(c.stop)
	<-c.done
	rd, err := c.rd, c.err
	if err == nil {
		for _, e := range rd.examples.take() {
			e.Cell, e.Round = rd.index, rd.number
			err = errors.Join(err, rd.emit(&e))
		}
		addresses, more := rd.addresses()
		err = errors.Join(err, rd.emit(&result.RoundEnd{
			Cell: rd.index, Round: rd.number,
			Length: c.collect.length(), Opened: rd.users.opened(), MaxInFlight: int(rd.most.Load()),
			Interrupted: rd.stopped() || rd.ctx.Err() != nil, Protocols: rd.users.protocols(),
			Addresses: addresses, MoreAddresses: more,
		}), rd.flush())
	}
	return errors.Join(err, rd.close())
}

// beyond tells whether there is no row left for an iteration, and notes it.
func (rd *round) beyond(iteration int64) bool {
	if rd.scenario.MostBy == "" || iteration < rd.scenario.Most {
		return false
	}
	rd.usedUp.Store(true)
	return true
}
