package http

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// Whatever happens to connections, streams, deadlines and contexts at the same time: every call ends in time, says
// why, reaches the server at most once, and when the storm is over calls work again.
func TestStorm(t *testing.T) {
	for version, p := range both {
		for _, connections := range []int{0, 2} {
			s := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
				switch n := rand.IntN(100); {
				case n < 3:
					w.Header().Set("Connection", "close")
				case n < 6:
					panic(http.ErrAbortHandler)
				case n < 9:
					<-r.Context().Done()
				}
				w.Write(make([]byte, rand.IntN(20_000)))
			}, limitStreams(5))
			relay := drivertest.NewRelay(t, s.addr())
			b := drivertest.NewBench(t, New(), drivertest.Fields{"get": "http://" + relay.Addr(), "version": version}, drivers.Pool{Users: 20, Connections: connections})

			const users, calls = 20, 15
			var answered atomic.Int64
			var wg sync.WaitGroup
			for range users {
				session := b.Open()
				wg.Go(func() {
					for range calls {
						ctx, cancel := t.Context(), func() {}
						if rand.IntN(10) == 0 {
							ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(30))*time.Millisecond)
						}
						timeout := time.Duration(1+rand.IntN(200)) * time.Millisecond
						r := b.Do(ctx, session, timeout)
						cancel()
						if r.Err == nil {
							answered.Add(1)
						}
						if r.Service > timeout+10*time.Second {
							t.Errorf("a call took %v, its deadline was %v", r.Service, timeout)
						}
					}
				})
			}
			storm := make(chan struct{})
			go func() {
				defer close(storm)
				for range 10 {
					time.Sleep(20 * time.Millisecond)
					relay.Sever()
				}
			}()
			wg.Wait()
			<-storm
			if n := s.requests.Load(); n > users*calls || n < answered.Load() {
				t.Errorf("HTTP/%s: the server counted %d of at most %d, %d were answered", version, n, users*calls, answered.Load())
			}
			if answered.Load() == 0 {
				t.Errorf("HTTP/%s: nothing was answered", version)
			}
			// Afterwards: the server's tantrums aside, every user gets through again.
			for range 5 {
				session := b.Open()
				ok := false
				for range 20 {
					if r := b.Do(t.Context(), session, 5*time.Second); r.Err == nil {
						ok = true
						break
					}
				}
				if !ok {
					t.Errorf("HTTP/%s: nothing gets through after the storm", version)
				}
			}
		}
	}
}

// A thousand calls at the same time to one host are a thousand connections: no limit of a library fails them here.
func TestManyInFlight(t *testing.T) {
	const users = 1000
	var arrived atomic.Int64
	all := make(chan struct{})
	s := serve(t, plain1, func(w http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) == users {
			close(all)
		}
		<-all
	})
	b := drivertest.NewBench(t, New(), drivertest.Fields{"get": "http://" + s.addr(), "version": "1.1"}, drivers.Pool{Users: users})
	var wg sync.WaitGroup
	for range users {
		session := b.Open()
		wg.Go(func() {
			if r := b.Do(t.Context(), session, time.Minute); r.Err != nil || !r.Success || !r.Opened {
				t.Errorf("success %v, opened %v: %v", r.Success, r.Opened, r.Err)
			}
		})
	}
	wg.Wait()
	if n := s.requests.Load(); n != users {
		t.Errorf("the server counted %d requests, want %d", n, users)
	}
}
