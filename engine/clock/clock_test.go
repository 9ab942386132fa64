package clock

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clocks are run by every test that both kinds must pass.
var clocks = map[string]func() *Clock{"new": New, "plain": Plain}

func TestUntilIsNeverEarly(t *testing.T) {
	for name, make := range clocks {
		t.Run(name, func(t *testing.T) {
			c := make()
			w := c.NewWaiter()
			for range 200 {
				due := c.Now() + rand.N(2*time.Millisecond)
				if !w.Until(due, nil) {
					t.Fatal("not waited for")
				}
				if now := c.Now(); now < due {
					t.Fatalf("returned at %v, due at %v", now, due)
				}
			}
		})
	}
}

// In a bubble time stands still while anybody runs, so waits end at their moment exactly. The kicks of a clock that has
// any are set for moments of real time there, and must do no harm.
func TestUntilInBubble(t *testing.T) {
	for name, make := range clocks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := make()
				const waiters, each = 50, 20
				var group sync.WaitGroup
				for i := range waiters {
					group.Go(func() {
						w := c.NewWaiter()
						for k := range each {
							due := time.Duration(k*waiters+i+1) * time.Minute
							if !w.Until(due, nil) || c.Now() != due {
								t.Errorf("returned at %v, due at %v", c.Now(), due)
							}
						}
					})
				}
				group.Wait()
			})
		})
	}
}

func TestUntilEndsWithDone(t *testing.T) {
	for name, make := range clocks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := make()
				w := c.NewWaiter()
				done := func(after time.Duration) chan struct{} {
					ch := newDone()
					time.AfterFunc(after, func() { close(ch) })
					return ch
				}
				if w.Until(time.Hour, done(time.Second)) {
					t.Error("waited although done was closed")
				}
				if c.Now() != time.Second {
					t.Errorf("returned after %v, done was closed after 1s", c.Now())
				}
				// What was left of the first wait must not end the next.
				if !w.Until(3*time.Hour, done(4*time.Hour)) || c.Now() != 3*time.Hour {
					t.Errorf("returned after %v, due after 3h", c.Now())
				}
				if !w.Until(time.Hour, nil) {
					t.Error("a moment that has passed was not reached")
				}
				closed := newDone()
				close(closed)
				if w.Until(time.Hour, closed) || w.Until(5*time.Hour, closed) {
					t.Error("done was closed before")
				}
				time.Sleep(2 * time.Hour) // the function that closes the second done is part of the bubble
			})
		})
	}
}

func newDone() chan struct{} { return make(chan struct{}) }

func TestUntilDoesNotAllocate(t *testing.T) {
	for name, make := range clocks {
		t.Run(name, func(t *testing.T) {
			c := make()
			w := c.NewWaiter()
			done := newDone()
			if n := testing.AllocsPerRun(200, func() { w.Until(c.Now()+50*time.Microsecond, done) }); n != 0 {
				t.Errorf("%v allocations per wait", n)
			}
		})
	}
}

func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Plain()
		time.Sleep(time.Minute)
		if got := c.Time(c.Now()); !got.Equal(time.Now()) {
			t.Errorf("now is %v, want %v", got, time.Now())
		}
	})
}

// Many waiters come and go at random, and some give up. Each must be back in its time, and nobody left in the queue.
func TestManyWaiters(t *testing.T) {
	c := New()
	var group sync.WaitGroup
	for range 200 {
		group.Go(func() {
			w := c.NewWaiter()
			for range 50 {
				done := newDone()
				giveUp := rand.IntN(3) == 0
				if giveUp {
					time.AfterFunc(rand.N(time.Millisecond), func() { close(done) })
				}
				due := c.Now() + rand.N(3*time.Millisecond)
				reached := w.Until(due, done)
				switch now := c.Now(); {
				case !reached && !giveUp:
					t.Errorf("gave up for no reason")
				case reached && now < due:
					t.Errorf("returned at %v, due at %v", now, due)
				}
			}
		})
	}
	group.Wait()
	if c.kick == nil {
		t.Skip("no kicks on this system")
	}
	c.kick.mu.Lock()
	defer c.kick.mu.Unlock()
	if n := len(c.kick.waiting); n != 0 {
		t.Errorf("%d waiters left in the queue", n)
	}
}

// The point of the kicks is that an idle process wakes in time. Only the order of the two kinds is asserted: how late each
// is depends on the machine. They take turns until the best of each shows it, so that a busy moment does not decide.
func TestKicksWakeAnIdleProcess(t *testing.T) {
	if process() == nil {
		t.Skip("no kicks on this system")
	}
	best := map[string]time.Duration{"new": time.Hour, "plain": time.Hour}
	for range 40 {
		for name, make := range clocks {
			late := lateness(make(), 20, 500, 100)
			slices.Sort(late)
			best[name] = min(best[name], late[len(late)/2])
		}
		if best["new"] < best["plain"]*3/4 {
			t.Logf("median lateness at 500/s: %v with kicks, %v without", best["new"], best["plain"])
			return
		}
	}
	t.Errorf("median lateness at 500/s: %v with kicks, %v without", best["new"], best["plain"])
}
