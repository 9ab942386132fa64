package main

import (
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/planrun/planrun/engine/result"
)

// What the plan asks for arrives at a real server: as many as the schedule has, spread as it says, and never in a burst.
func TestArrivalsAtARealServer(t *testing.T) {
	for name, test := range map[string]struct {
		load  string
		want  int
		most  float64 // arrivals in any second by plan
		burst int     // arrivals within 10 ms that would be one
	}{
		"ramp and hold":   {"{rate: 100/s, ramp: 4s, hold: 4s}", 200 + 400, 100, 40},
		"fractional rate": {"{rate: 1.5/s, hold: 6s}", 9, 2, 3},
		"down to nothing": {"{stages: [{rate: 50/s, hold: 2s}, {rate: 0/s, ramp: 4s}]}", 100 + 100, 50, 25},
		"per minute":      {"{rate: 60/min, hold: 3s}", 3, 1, 2},
		"poisson":         {"{rate: 100/s, hold: 4s, arrivals: poisson}", 0, 140, 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, held := arrivals(t, test.load)
			if test.want > 0 && len(at) != test.want {
				t.Errorf("%d requests arrived, want %d", len(at), test.want)
			}
			if test.want == 0 && (len(at) < 300 || len(at) > 500) {
				t.Errorf("%d requests arrived, want about 400", len(at))
			}
			// Where this machine held up the program or the server, what was due meanwhile arrives at once.
			late := test.most * held.Seconds()
			for i := range at {
				if n := within(at[i:], time.Second); float64(n) > 1.5*test.most+2+late {
					t.Errorf("%d requests within a second, the plan has %v, and the longest hold-up was %v", n, test.most, held)
					break
				}
				if n := within(at[i:], 10*time.Millisecond); float64(n) >= float64(test.burst)+late {
					t.Errorf("%d requests within 10ms, and the longest hold-up was %v", n, held)
					break
				}
			}
		})
	}
}

// arrivals runs a load against a server and lists when each request arrived, in order. held is for how long the program and the
// server were held up together at most.
func arrivals(t *testing.T, load string) (at []time.Time, held time.Duration) {
	t.Helper()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Now())
	}))
	defer server.Close()
	done := make(chan struct{})
	var probe sync.WaitGroup
	probe.Go(func() {
		for due := time.Now(); ; due = time.Now() {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
				held = max(held, time.Since(due)-10*time.Millisecond)
			}
		}
	})
	p := newPlanrun(t, "--quiet", "plan.yaml")
	p.write(t, "plan.yaml", strings.NewReplacer("URL", server.URL, "LOAD", load).Replace(`
scenarios:
  s:
    http: GET URL/
    phases:
      - ramp-and-hold: LOAD
`))
	code := p.run(t)
	close(done)
	probe.Wait()
	if code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, p.stdout.String(), p.stderr.String())
	}
	run, err := result.Open(p.results())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(at, time.Time.Compare)
	if h := run.Cells[0].Probe(0, 0, math.MaxInt64); h != nil {
		late, _ := h.Max()
		held += time.Duration(late)
	}
	return at, held
}

// within counts the moments no later than d after the first.
func within(at []time.Time, d time.Duration) int {
	n := 0
	for _, x := range at {
		if x.Sub(at[0]) > d {
			break
		}
		n++
	}
	return n
}
