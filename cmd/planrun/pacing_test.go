package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
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
			var mu sync.Mutex
			var at []time.Time
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				at = append(at, time.Now())
			}))
			defer server.Close()
			p := newPlanrun(t, "--quiet", "plan.yaml")
			p.write(t, "plan.yaml", strings.NewReplacer("URL", server.URL, "LOAD", test.load).Replace(`
scenarios:
  s:
    http: GET URL/
    phases:
      - ramp-and-hold: LOAD
`))
			if code := p.run(t); code != 0 {
				t.Fatalf("exit %d\n%s\n%s", code, p.stdout.String(), p.stderr.String())
			}
			if test.want > 0 && len(at) != test.want {
				t.Errorf("%d requests arrived, want %d", len(at), test.want)
			}
			if test.want == 0 && (len(at) < 300 || len(at) > 500) {
				t.Errorf("%d requests arrived, want about 400", len(at))
			}
			slices.SortFunc(at, time.Time.Compare)
			for i := range at {
				second := within(at[i:], time.Second)
				// A busy machine may hold the program back for a moment; a second's worth of bursts it can't explain.
				if float64(second) > 1.5*test.most+2 {
					t.Errorf("%d requests within a second, the plan has %v", second, test.most)
					break
				}
				if n := within(at[i:], 10*time.Millisecond); n >= test.burst {
					t.Errorf("%d requests within 10ms", n)
					break
				}
			}
		})
	}
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
