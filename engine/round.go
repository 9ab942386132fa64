package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/plan"
	"github.com/planrun/planrun/engine/result"
)

// round is one repetition of a cell. Its own connections are opened for it and closed with it.
type round struct {
	*run
	*cell
	number  int
	ctx     context.Context
	cancel  context.CancelFunc // of ctx
	release time.Duration      // on the run's clock
	seed    uint64             // of the round, the same for every target

	actions []plan.Action
	sampled bool             // steps have samples of their own
	clients []drivers.Client // one for each distinct endpoint
	slots   []int            // by step: index of its client, and of its session in user.sessions

	users    userList
	inFlight atomic.Int64
	most     atomic.Int64
	examples exampleBook
	backlog  atomic.Int64
	usedUp   atomic.Bool // the rows of data that are used once
	broken   atomic.Bool // what is measured can't be written any more
	aborted  abort
	trial    int // stage of the trial under way; -1 where there are none
}

// runRound runs one round of a cell and writes it down.
func (r *run) runRound(ctx context.Context, c *cell, number int) (err error) {
	rd := r.newRound(ctx, c, number)
	users := c.phase.Users
	if c.Open {
		users = maxInFlight(c.phase)
	} else if c.phase.Kind == plan.RampAndHold {
		users = usersOf(c.phase).Max()
	}
	defer rd.cancel()
	if err := rd.connect(users); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rd.close()) }()
	company, err := r.accompany(ctx, c, number)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, company.end()) }()

	drive, err := rd.prepare(users)
	if err != nil {
		return err
	}
	if r.stopped() {
		return errInterrupted
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	rd.release = r.clock.Now()
	if err := r.emit(&result.Round{Cell: c.index, Round: number, Release: rd.release}); err != nil {
		return err
	}

	company.begin()
	vitals := r.vitals()
	collect := newCollector(rd)
	collect.probe = startProbe(r.clock)
	err = drive(collect)
	collect.probe.stop()
	if err == nil {
		err = collect.finish()
	}
	if err != nil {
		return err
	}

	end := rd.end(collect, vitals)
	end.Interrupted = r.stopped() || ctx.Err() != nil
	for _, e := range rd.examples.take() {
		e.Cell, e.Round = c.index, number
		if err := r.emit(&e); err != nil {
			return err
		}
	}
	if err := r.emit(end); err != nil {
		return err
	}
	if err := r.flush(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case end.Aborted != "":
		return errAborted
	case end.Interrupted:
		return errInterrupted
	}
	return nil
}

// end sums a round up. begun are the vitals as they were at the release.
func (rd *round) end(collect *collector, begun vitals) *result.RoundEnd {
	end := &result.RoundEnd{
		Cell: rd.index, Round: rd.number,
		Length:      collect.length(),
		Stopped:     collect.stopped,
		Opened:      rd.users.opened(),
		MaxInFlight: int(rd.most.Load()),
		Backlogged:  rd.backlog.Load(),
		Protocols:   rd.users.protocols(),
	}
	end.Addresses, end.MoreAddresses = rd.addresses()
	begun.until(rd.vitals(), end)
	if rd.usedUp.Load() {
		end.Notes = append(end.Notes, fmt.Sprintf("the phase ended early: the %d rows of %s, which are used once, were used up", rd.scenario.Most, rd.scenario.MostBy))
	}
	if a := rd.aborted.assertion; a != nil {
		end.Aborted, end.Notes = a.Place.String(), append(end.Notes, rd.aborted.reason)
	}
	return end
}

func (r *run) newRound(ctx context.Context, c *cell, number int) *round {
	ctx, cancel := context.WithCancel(ctx)
	rd := &round{cancel: cancel, run: r, cell: c, number: number, ctx: ctx, trial: -1, seed: seedOf(r.Seed, c.Scenario, c.Phase, number)}
	if c.watch == nil {
		c.watch = newWatch(r.plan, &c.Cell)
	} else {
		c.watch.begin()
	}
	rd.examples.limit = examplesKept
	rd.sampled = len(c.Steps) > 1 || len(c.Steps) == 1 && c.Steps[0].Name != ""
	return rd
}

// examplesKept is how many failures of each kind are kept in their own words, a round.
const examplesKept = 3

// connect makes the clients of the round, one for each distinct endpoint.
func (rd *round) connect(users int) error {
	pool := drivers.Pool{Users: users, Connections: rd.phase.Connections}
	var keys []string
	for _, step := range slices.Concat(rd.scenario.Steps, rd.scenario.Unseen) {
		action := step.Actions[rd.target]
		rd.actions = append(rd.actions, action)
		ep := action.Call.Endpoint()
		key := action.Driver + "\x00" + ep.Key
		slot := slices.Index(keys, key)
		if slot < 0 {
			client, err := rd.Drivers[action.Driver].Connect(rd.ctx, ep, pool)
			if err != nil {
				return errors.Join(&SetupError{ep.Name, err}, rd.close())
			}
			slot = len(keys)
			keys = append(keys, key)
			rd.clients = append(rd.clients, client)
		}
		rd.slots = append(rd.slots, slot)
	}
	return nil
}

func (rd *round) close() error {
	err := rd.users.close()
	for _, c := range rd.clients {
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		return &SetupError{"closing the connections of " + rd.label(), err}
	}
	return nil
}

// addressesKept is how many addresses of a round are written down.
const addressesKept = 16

// addresses lists where connections went so far, the most used addresses first, and says how many are left out.
func (rd *round) addresses() (list []drivers.Address, more int) {
	var all [][]drivers.Address
	for _, c := range rd.clients {
		if told, ok := c.(drivers.Addressed); ok {
			all = append(all, told.Addresses())
		}
	}
	list = drivers.MergeAddresses(all...)
	kept := min(len(list), addressesKept)
	for i := range list[:kept] {
		list[i].Addr = rd.secrets.Clean(list[i].Addr) // the path of a socket may hold one
	}
	return list[:kept], len(list) - kept
}

// label names the cell as assertions do.
func (rd *round) label() string { return rd.Scenario + "." + rd.Phase + "." + rd.Target }

// enter and leave count the iterations that are under way.
func (rd *round) enter() {
	n := rd.inFlight.Add(1)
	for {
		most := rd.most.Load()
		if n <= most || rd.most.CompareAndSwap(most, n) {
			return
		}
	}
}

func (rd *round) leave() { rd.inFlight.Add(-1) }

// now is the time since the release.
func (rd *round) now() time.Duration { return rd.clock.Now() - rd.release }

// settled is up to when all that was due has ended and been noted down, since the release.
func (rd *round) settled() time.Duration {
	// An interval back, what a user has begun and not said yet is out of the question.
	return rd.users.pending(rd.now() - pollInterval)
}

// stageAt is the stage of what is due at a time.
func (rd *round) stageAt(due time.Duration) int {
	if rd.trial >= 0 {
		return rd.trial
	}
	return stageAt(rd.Stages, due)
}

// prepare opens the users that begin with the release and warms them up. What it returns runs the load to its end while
// the collector takes in what is measured.
func (rd *round) prepare(users int) (drive func(*collector) error, err error) {
	var load func()
	switch {
	case rd.phase.Capacity != nil:
		p, err := rd.newPool(users)
		return func(c *collector) error { return rd.search(p, c) }, err
	case rd.Open:
		load, err = rd.prepareOpen(users)
	case rd.phase.Kind == plan.RampAndHold:
		load, err = rd.prepareSpans(users)
	default:
		load, err = rd.prepareClosed(users)
	}
	return func(c *collector) error { return c.around(load) }, err
}
