package service

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/planrun/planrun/engine/clock"
)

// visit sends n requests to a station, each after a pause, and returns when they were done, in order.
func visitAll(s *station, n int, pause time.Duration) []time.Duration {
	start := time.Now()
	done := make([]time.Duration, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			s.serve(context.Background(), s.clock.NewWaiter())
			done[i] = time.Since(start)
		})
		time.Sleep(pause)
		synctest.Wait()
	}
	running.Wait()
	slices.Sort(done)
	return done
}

func TestStations(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		slots       int
		least, most time.Duration
		n           int
		pause       time.Duration
		want        func(i int) time.Duration
	}{
		"serial":             {1, 1500 * time.Microsecond, 0, 50, 0, func(i int) time.Duration { return time.Duration(i+1) * 1500 * time.Microsecond }},
		"at the same time":   {0, 100 * ms, 0, 50, 0, func(int) time.Duration { return 100 * ms }},
		"slots":              {10, 100 * ms, 0, 50, 0, func(i int) time.Duration { return time.Duration(i/10+1) * 100 * ms }},
		"below capacity":     {2, 10 * ms, 0, 20, 5 * ms, func(i int) time.Duration { return time.Duration(i)*5*ms + 10*ms }},
		"above capacity":     {1, 10 * ms, 0, 20, 5 * ms, func(i int) time.Duration { return time.Duration(i+1) * 10 * ms }},
		"no work":            {0, 0, 0, 5, ms, func(i int) time.Duration { return time.Duration(i) * ms }},
		"more than they are": {100, 10 * ms, 0, 20, 0, func(int) time.Duration { return 10 * ms }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &station{clock: clock.Plain(), slots: test.slots, least: test.least, most: test.most}
				for i, got := range visitAll(s, test.n, test.pause) {
					if want := test.want(i); got != want {
						t.Fatalf("request %d is done at %v, want %v", i, got, want)
					}
				}
				if s.busy != 0 || len(s.queue) != 0 {
					t.Errorf("%d slots are busy and %d wait after the last", s.busy, len(s.queue))
				}
			})
		})
	}
}

func TestWorkIsUniform(t *testing.T) {
	s := &station{least: 100, most: 120}
	seen := map[time.Duration]int{}
	const draws = 21 * 400
	for range draws {
		seen[s.work()]++
	}
	for d, n := range seen {
		if d < 100 || d > 120 || n < 200 || n > 700 {
			t.Errorf("%d draws of %d are %v", n, draws, d)
		}
	}
	if len(seen) != 21 {
		t.Errorf("%d different draws, want 21", len(seen))
	}
}

// Those who give up while they wait take no slot, and those behind them move up.
func TestGivingUpLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		s := &station{clock: clock.Plain(), slots: 1, least: 100 * ms}
		start := time.Now()
		var running sync.WaitGroup
		enter := func(patience time.Duration, want time.Duration, ok bool) {
			running.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				err := s.serve(ctx, s.clock.NewWaiter())
				if got := time.Since(start); got != want || (err == nil) != ok {
					t.Errorf("served at %v, %v, want %v", got, err, want)
				}
			})
			synctest.Wait()
		}
		enter(time.Hour, 100*ms, true)
		enter(50*ms, 50*ms, false)   // gives up while it waits
		enter(130*ms, 200*ms, false) // gives up at work, which is done all the same
		enter(150*ms, 150*ms, false)
		enter(time.Hour, 300*ms, true)
		running.Wait()
		if s.busy != 0 || len(s.queue) != 0 {
			t.Errorf("%d slots are busy and %d wait after the last", s.busy, len(s.queue))
		}
	})
}

// Whoever gives up in the very moment in which it is called hands its slot on.
func TestGivingUpWhenCalled(t *testing.T) {
	s := &station{clock: clock.New(), slots: 2, least: 50 * time.Microsecond}
	var running sync.WaitGroup
	for range 200 {
		running.Go(func() {
			for i := range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
				s.serve(ctx, s.clock.NewWaiter())
				cancel()
			}
		})
	}
	running.Wait()
	if s.busy != 0 || len(s.queue) != 0 {
		t.Errorf("%d slots are busy and %d wait after the last", s.busy, len(s.queue))
	}
}
