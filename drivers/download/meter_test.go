package download

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// A transfer of pieces of 1000 bytes, each after a pause.
func TestMeter(t *testing.T) {
	repeat := func(n int, d time.Duration) []time.Duration {
		out := make([]time.Duration, n)
		for i := range out {
			out[i] = d
		}
		return out
	}
	for _, c := range []struct {
		name   string
		pauses []time.Duration
		stalls int64
		steady float64 // 0: unknown
	}{
		{"nothing", nil, 0, 0},
		{"one piece", repeat(1, time.Second/2), 0, 0},
		{"even", repeat(100, 10*time.Millisecond), 0, 100_000},
		{"very many", repeat(100_000, 100*time.Microsecond), 0, 10_000_000},
		{"slow start", append(repeat(9, 100*time.Millisecond), repeat(9100, time.Millisecond)...), 0, 1_000_000},
		{"short", append(repeat(1, 10*time.Millisecond), repeat(90, time.Millisecond)...), 0, 1_000_000},
		{"stalls", []time.Duration{999 * time.Millisecond, time.Second, time.Minute, 1}, 2, 3000. / (61 + 1e-9)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var m meter
				for range 2 {
					m.reset()
					m.begin()
					for _, p := range c.pauses {
						time.Sleep(p)
						m.add(1000)
					}
					if m.stalls != c.stalls {
						t.Errorf("%d stalls, want %d", m.stalls, c.stalls)
					}
					got, ok := m.steady()
					if ok != (c.steady > 0) || math.Abs(got-c.steady) > c.steady/100 {
						t.Errorf("steady is %v, %v, want %v", got, ok, c.steady)
					}
				}
				time.Sleep(time.Second)
				if n := m.broken(); n != c.stalls+1 {
					t.Errorf("%d stalls when nothing came at the end, want %d", n, c.stalls+1)
				}
			})
		})
	}
}

// Stalls are in the answer, and in the text of a failure.
func TestStallsAreTold(t *testing.T) {
	addr, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "2")
		w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		time.Sleep(1100 * time.Millisecond)
		if r.FormValue("stop") != "" {
			panic(http.ErrAbortHandler)
		}
		w.Write([]byte("x"))
	})
	for _, version := range []string{"1.1", "2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := get(t, drivertest.Fields{"url": "http://" + addr, "version": version}, time.Minute)
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if n, ok := r.Answer.Number("stalls"); n < 1 || !ok {
				t.Errorf("stalls is %v, %v", n, ok)
			}
			if v, err := r.Answer.Value("steady"); err != nil || v.(int64) > 10 {
				t.Errorf("steady is %v, %v", v, err)
			}
			r = get(t, drivertest.Fields{"url": "http://" + addr + "/?stop=1", "version": version}, time.Minute)
			if drivers.KindOf(r.Err) != drivers.Reset || !strings.Contains(r.Err.Error(), "(the transfer stalled once)") {
				t.Errorf("got %v", r.Err)
			}
		})
	}
}
