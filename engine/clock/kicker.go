package clock

import (
	"container/heap"
	"math"
	"sync"
)

// kicker wakes the process at the moments that its waiters wait for. There is one alarm for all of them, set for the
// earliest; whoever comes or goes sets it anew if that has changed. It needs no goroutine.
//
// The lock is held for the time of one system call at most, and taken twice per wait.
type kicker struct {
	alarm alarm

	mu      sync.Mutex
	waiting queue
	set     int64 // what alarm is set for; never if it is not
}

// never is a moment that does not come.
const never = math.MaxInt64

// nowhere is the place of a waiter that is not in the queue.
const nowhere = -1

func newKicker(a alarm) *kicker { return &kicker{alarm: a, set: never} }

// now is the moment, in nanoseconds since whatever the alarm counts from.
func (k *kicker) now() int64 { return k.alarm.now() }

// enter has the process woken at the moment at, unless leave comes first.
func (k *kicker) enter(w *Waiter, at int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w.at = at
	heap.Push(&k.waiting, w)
	k.adjust()
}

// leave undoes enter, before or after the moment. It passes the alarm on to whoever is next.
func (k *kicker) leave(w *Waiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	heap.Remove(&k.waiting, w.place)
	k.adjust()
}

// adjust sets the alarm for the earliest waiter. With nobody left it lets the alarm go off for nothing once, which costs
// less than a call to unset it.
func (k *kicker) adjust() {
	if len(k.waiting) == 0 {
		return
	}
	if first := k.waiting[0].at; first != k.set {
		k.set = first
		k.alarm.setFor(first)
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
