package main

import (
	"fmt"
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
			var clumps string
			for range 3 {
				at := arrivals(t, test.load)
				if test.want > 0 && len(at) != test.want {
					t.Fatalf("%d requests arrived, want %d", len(at), test.want)
				}
				if test.want == 0 && (len(at) < 300 || len(at) > 500) {
					t.Fatalf("%d requests arrived, want about 400", len(at))
				}
				if clumps = clumpsIn(at, test.most, test.burst); clumps == "" {
					return
				}
				// A busy machine may hold up the program or the server for a while, and then there is a clump. A program that
				// sends in bursts does so every time.
			}
			t.Error(clumps)
		})
	}
}

// arrivals runs a load against a server and lists when each request arrived, in order.
func arrivals(t *testing.T, load string) []time.Time {
	t.Helper()
	var mu sync.Mutex
	var at []time.Time
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Now())
	}))
	defer server.Close()
	p := newPlanrun(t, "--quiet", "plan.yaml")
	p.write(t, "plan.yaml", strings.NewReplacer("URL", server.URL, "LOAD", load).Replace(`
scenarios:
  s:
    http: GET URL/
    phases:
      - ramp-and-hold: LOAD
`))
	if code := p.run(t); code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, p.stdout.String(), p.stderr.String())
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}

// clumpsIn tells of arrivals that are nearer to each other than a schedule has them, "" if there are none: more in a second than
// half as many again as the most by plan, or so many within 10 ms that they are a burst.
func clumpsIn(at []time.Time, most float64, burst int) string {
	for i := range at {
		if n := within(at[i:], time.Second); float64(n) > 1.5*most+2 {
			return fmt.Sprintf("%d requests within a second, the plan has %v", n, most)
		}
		if n := within(at[i:], 10*time.Millisecond); n >= burst {
			return fmt.Sprintf("%d requests within 10ms", n)
		}
	}
	return ""
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
