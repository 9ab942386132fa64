package clock

import (
	"container/heap"
	"sync"
)

// kicker wakes the process at the moments that its waiters wait for. There is one alarm for all of them, set for the
// earliest; whoever comes or goes sets it anew if that has changed. It needs no goroutine.
//
// The lock is held for the time of one system call at most, and taken twice per wait. Moments are nanoseconds since
// whatever the alarm counts from.
type kicker struct {
	alarm alarm

	mu      sync.Mutex
	waiting queue
	set     int64 // what the alarm is or was set for
	last    int64 // the last moment it went off; a set that was replaced before does not count
}

// spacing is the least time between two alarms. Waking an idle process costs tens of microseconds of a processor, which at
// 20 000 waits a second is most of one; so where waits are closer together than this, one alarm serves those due until
// it goes off.
const spacing = 200_000

// nowhere is the place of a waiter that is not in the queue.
const nowhere = -1

func newKicker(a alarm) *kicker { return &kicker{alarm: a} }

// enter has the process woken at the moment at, or soon after, unless leave comes first.
func (k *kicker) enter(w *Waiter, now, at int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w.at = at
	heap.Push(&k.waiting, w)
	k.adjust(now)
}

// leave undoes enter, before or after the moment. It passes the alarm on to whoever is next.
func (k *kicker) leave(w *Waiter, now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	heap.Remove(&k.waiting, w.place)
	k.adjust(now)
}

// adjust sets the alarm for the earliest waiter.
func (k *kicker) adjust(now int64) {
	if k.set <= now {
		k.last = k.set
	}
	// With nobody left, letting the alarm go off for nothing costs less than a call to unset it. A waiter whose moment
	// has passed runs as soon as the scheduler comes to it, and sets the alarm when it leaves.
	if len(k.waiting) == 0 || k.waiting[0].at <= now {
		return
	}
	at := k.waiting[0].at
	// In a synctest bubble time runs ahead, so that last may lie in the future afterwards.
	if since := at - k.last; since >= 0 && since < spacing {
		at = k.last + spacing
	}
	if at != k.set {
		k.set = at
		k.alarm.setFor(at)
	}
}

// queue is a heap of waiters, the earliest first.
type queue []*Waiter

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at < q[j].at }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *queue) Push(x any) {
	w := x.(*Waiter)
	w.place = len(*q)
	*q = append(*q, w)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	w.place = nowhere
	return w
}
