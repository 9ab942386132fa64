package engine

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/record"
)

// user is one virtual user: a worker of the open model, or one of the users of the closed one. It belongs to one
// goroutine, but for its notebook and its counters.
type user struct {
	rd       *round
	id       int
	sessions []drivers.Session
	waiter   *clock.Waiter
	book     record.Notebook

	input     drivers.Input
	inherited []any // what was captured before the load, in the places of input.Values
	outcome   drivers.Outcome

	// Of the iteration under way.
	whole    record.Sample
	sample   record.Sample // the step under way
	at       int64         // the end of what was done so far, since the release
	recorded bool
	begun    bool  // it has made a call
	hidden   []int // indexes of captured values that must not be shown

	// Counters that the collector reads. The padding keeps them off the lines that other users write to.
	_         [64]byte
	received  atomic.Int64
	opened    atomic.Int64
	protocols [4]atomic.Pointer[string] // in the order in which they were met; more of them are not told
	pending   atomic.Int64              // 1 + when what it is about to note down was due, since the release; 0: nothing
	_         [64]byte
}

// newUser opens the sessions of a user.
func (rd *round) newUser(id int) (*user, error) {
	u := &user{rd: rd, id: id, waiter: rd.clock.NewWaiter()}
	u.input.User, u.input.Round = id, rd.seed
	u.input.Values = make([]any, len(rd.scenario.Captures))
	u.inherited = make([]any, len(rd.scenario.Captures))
	for i, name := range rd.scenario.Captures {
		u.inherited[i] = rd.captured[rd.target][name]
	}
	u.input.Received = &u.received
	for _, c := range rd.clients {
		s, err := c.Open(rd.ctx)
		if err != nil {
			return nil, errors.Join(err, u.close())
		}
		u.sessions = append(u.sessions, s)
	}
	rd.users.add(u)
	return u, nil
}

func (u *user) close() error {
	var err error
	for _, s := range u.sessions {
		err = errors.Join(err, s.Close())
	}
	return err
}

// iterate runs one iteration that was due at due, and notes it down if it is recorded. lag is how late the generator
// itself was.
func (u *user) iterate(iteration int64, due, lag time.Duration, recorded bool) {
	rd := u.rd
	rd.enter()
	defer rd.leave()
	u.input.Begin(iteration, mix(rd.seed+uint64(iteration)))
	copy(u.input.Values, u.inherited)

	u.whole = record.Sample{
		Due: int64(due), Lag: int64(lag), Iteration: iteration, User: int32(u.id), Step: record.Whole,
		Stage: int16(rd.stageAt(due)),
		DNS:   -1, Connect: -1, TLS: -1, Wait: -1, TTFB: -1, Transfer: -1,
	}
	whole := &u.whole
	whole.Start = int64(rd.now())
	u.at, u.recorded, u.begun, u.hidden = whole.Start, recorded, false, u.hidden[:0]
	if rd.scenario.Flow == nil {
		s := &u.sample
		*s = *whole
		s.Step = 0
		u.step(0, s)
		u.took(s)
		whole.DNS, whole.Connect, whole.TLS, whole.Wait, whole.TTFB, whole.Transfer = s.DNS, s.Connect, s.TLS, s.Wait, s.TTFB, s.Transfer
	} else {
		u.parts(rd.scenario.Flow, iteration)
	}
	whole.End = u.at
	if recorded {
		u.book.Add(whole)
	}
}

// turn runs one iteration of the closed model, which is due as it begins, and notes it down.
func (u *user) turn(iteration int64) {
	due := u.rd.now()
	u.pending.Store(1 + int64(due))
	u.iterate(iteration, due, 0, true)
	u.pending.Store(0)
}

// took adds a step that was made to its iteration.
func (u *user) took(s *record.Sample) {
	w := &u.whole
	w.BytesIn += s.BytesIn
	w.BytesOut += s.BytesOut
	w.Flags |= s.Flags
	w.Status = s.Status
	u.at = s.End
	if w.Failure == drivers.OK {
		w.Failure = s.Failure
	}
}

// step makes the one attempt of a step and judges its answer.
func (u *user) step(i int, s *record.Sample) {
	rd := u.rd
	action := &rd.actions[i]
	timeout := rd.scenario.Steps[i].Timeout
	if timeout == 0 {
		timeout = rd.phase.Timeout
	}
	u.input.Deadline = rd.clock.Time(rd.release + time.Duration(s.Start) + timeout)
	u.outcome.Reset()
	out := &u.outcome
	err := u.sessions[rd.slots[i]].Do(rd.ctx, action.Call, &u.input, out)
	s.End = int64(rd.now())

	s.DNS, s.Connect, s.TLS = int64(out.DNS), int64(out.Connect), int64(out.TLS)
	s.Wait, s.TTFB, s.Transfer = int64(out.Wait), int64(out.TTFB), int64(out.Transfer)
	s.BytesIn, s.BytesOut, s.Status = out.BytesIn, out.BytesOut, int32(out.Status)
	if out.Opened {
		s.Flags |= record.Opened
		u.opened.Add(1)
	}
	if out.Protocol != "" {
		u.speaks(out.Protocol)
	}
	u.judge(i, s, err)
	if s.Failure == drivers.OK {
		u.capture(i, s)
	}
}

// speaks notes a protocol. One that is known costs nothing.
func (u *user) speaks(protocol string) {
	for i := range u.protocols {
		switch p := u.protocols[i].Load(); {
		case p == nil:
			negotiated := protocol
			u.protocols[i].Store(&negotiated)
			return
		case *p == protocol:
			return
		}
	}
}

// judge decides whether a step succeeded: by its expectations, or where it has none by the protocol's own rule.
func (u *user) judge(i int, s *record.Sample, err error) {
	action := &u.rd.actions[i]
	if err != nil {
		s.Failure = drivers.KindOf(err)
		if u.rd.examples.wants(s.Failure) {
			u.note(s, i, err.Error())
		}
		return
	}
	if len(action.Expect) == 0 {
		if !u.outcome.Success {
			s.Failure = drivers.Status
			if u.rd.examples.wants(s.Failure) {
				u.note(s, i, answerText(&u.outcome))
			}
		}
		return
	}
	for _, e := range action.Expect {
		ok, err := e.Check(u.outcome.Answer, &u.input)
		if ok && err == nil {
			continue
		}
		s.Failure = drivers.Expectation
		if u.rd.examples.wants(s.Failure) {
			u.note(s, i, u.explain(e, err))
		}
		return
	}
}

func (u *user) explain(e *expression.Expectation, err error) string {
	if err != nil {
		return e.String() + ": " + err.Error()
	}
	return e.Explain(u.outcome.Answer, &u.input)
}

// answerText describes an answer that its protocol counts as a failure: in the driver's words if it has any.
func answerText(out *drivers.Outcome) string {
	if d, ok := out.Answer.(fmt.Stringer); ok {
		return d.String()
	}
	return fmt.Sprintf("status was %d", out.Status)
}

// seedOf derives the seed of a round from what both targets have in common.
func seedOf(seed uint64, scenario, phase string, round int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(scenario + "\x00" + phase))
	return mix(seed ^ h.Sum64() ^ mix(uint64(round)+1))
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014): near seeds give unrelated sequences.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// userList is every user of a round. Users are added by their own goroutines and read by the collector.
type userList struct {
	mu  sync.Mutex
	all []*user
}

func (l *userList) add(u *user) {
	l.mu.Lock()
	l.all = append(l.all, u)
	l.mu.Unlock()
}

// snapshot returns the users there are so far. The list only grows.
func (l *userList) snapshot() []*user {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// pending is when the earliest of what is under way was due, since the release, and no later than now.
func (l *userList) pending(now time.Duration) time.Duration {
	for _, u := range l.snapshot() {
		if at := u.pending.Load(); at > 0 {
			now = min(now, time.Duration(at-1))
		}
	}
	return now
}

func (l *userList) opened() (n int64) {
	for _, u := range l.snapshot() {
		n += u.opened.Load()
	}
	return n
}

func (l *userList) protocols() (names []string) {
	for _, u := range l.snapshot() {
		for i := range u.protocols {
			if p := u.protocols[i].Load(); p != nil && !slices.Contains(names, *p) {
				names = append(names, *p)
			}
		}
	}
	slices.Sort(names)
	return names
}

func (l *userList) close() error {
	var err error
	for _, u := range l.snapshot() {
		err = errors.Join(err, u.close())
	}
	return err
}
