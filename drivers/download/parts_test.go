package download

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// ranged starts a server of one file, and returns what was asked for since the last call.
func ranged(t testing.TB, length int, spoil func(w http.ResponseWriter, r *http.Request) (done bool)) (addr string, asked func() []string) {
	file := bytes.Repeat([]byte("x"), length)
	var mu sync.Mutex
	var ranges []string
	addr, _ = serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		ranges = append(ranges, strings.TrimPrefix(r.Header.Get("Range"), "bytes="))
		mu.Unlock()
		if spoil == nil || !spoil(w, r) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
		}
	})
	return addr, func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := ranges
		ranges = nil
		slices.Sort(out)
		return out
	}
}

func TestParts(t *testing.T) {
	const length = 10_000_001
	cold := []string{"0-", "2500001-5000000", "5000001-7500000", "7500001-10000000"}
	warm := []string{"0-2500000", "2500001-5000000", "5000001-7500000", "7500001-10000000"}
	for _, version := range []string{"1.1", "2"} {
		t.Run(version, func(t *testing.T) {
			addr, asked := ranged(t, length, nil)
			relay := drivertest.NewRelay(t, addr)
			b := drivertest.NewBench(t, New(), drivertest.Fields{"url": "http://" + relay.Addr() + "/", "parts": 4, "version": version}, drivers.Pool{Users: 1})
			session := b.Open()
			for i := range 3 {
				r := b.Must(session)
				if r.BytesIn != length || !r.Success || r.Status != 206 {
					t.Errorf("%d bytes came, status %d, success %v", r.BytesIn, r.Status, r.Success)
				}
				if n, ok := r.Answer.Number("bytes"); n != length || !ok {
					t.Errorf("bytes is %v, %v", n, ok)
				}
				if limited, _ := r.Answer.Value("limited"); limited != false {
					t.Error("the download is called limited")
				}
				want := warm
				if i == 0 {
					want = cold
				}
				if got := asked(); !slices.Equal(got, want) {
					t.Errorf("download %d: the server was asked for %v, want %v", i, got, want)
				}
			}
			// Over HTTP/1.1 the first answer was cut, and its connection with it.
			want := map[string]int{"1.1": 5, "2": 1}[version]
			if n := relay.Opened(); n != want {
				t.Errorf("%d connections were opened, want %d", n, want)
			}
			// What was learnt holds in the next round.
			next, err := New().Connect(t.Context(), b.Call.Endpoint(), drivers.Pool{Users: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer next.Close()
			other, _ := next.Open(t.Context())
			defer other.Close()
			b.Must(other)
			if got := asked(); !slices.Equal(got, warm) {
				t.Errorf("next round: the server was asked for %v, want %v", got, warm)
			}
		})
	}
}

// Many users, and connections that they share.
func TestPartsShared(t *testing.T) {
	const length = 1_000_000
	addr, asked := ranged(t, length, nil)
	for _, version := range []string{"1.1", "2"} {
		b := drivertest.NewBench(t, New(), drivertest.Fields{"url": "http://" + addr + "/", "parts": 4, "version": version}, drivers.Pool{Users: 5, Connections: 2})
		var wg sync.WaitGroup
		for range 5 {
			session := b.Open()
			wg.Go(func() {
				for range 4 {
					if r := b.Do(t.Context(), session, time.Minute); r.Err != nil || r.BytesIn != length {
						t.Errorf("%v, %d bytes", r.Err, r.BytesIn)
					}
				}
			})
		}
		wg.Wait()
		if n := len(asked()); n != 80 {
			t.Errorf("HTTP/%s: %d requests, want 80", version, n)
		}
	}
}

func TestFewBytes(t *testing.T) {
	addr, asked := ranged(t, 3, nil)
	b := drivertest.NewBench(t, New(), drivertest.Fields{"url": "http://" + addr + "/", "parts": 4}, drivers.Pool{Users: 1})
	session := b.Open()
	b.Must(session)
	asked()
	if r := b.Must(session); r.BytesIn != 3 {
		t.Errorf("%d bytes", r.BytesIn)
	}
	if got := asked(); !slices.Equal(got, []string{"0-0", "1-1", "2-2"}) {
		t.Errorf("the server was asked for %v", got)
	}
}

// A URL that changes from call to call has no length that could be known before.
func TestPartsOfManyFiles(t *testing.T) {
	addr, asked := ranged(t, 100, nil)
	url := drivertest.Mix{"http://" + addr + "/", drivertest.Func(func(in *drivers.Input) any { return in.Iteration })}
	b := drivertest.NewBench(t, New(), drivertest.Fields{"url": url, "parts": 2}, drivers.Pool{Users: 1})
	session := b.Open()
	for range 2 {
		b.Must(session)
		if got := asked(); !slices.Equal(got, []string{"0-", "50-99"}) {
			t.Errorf("the server was asked for %v", got)
		}
	}
}

func TestWrongParts(t *testing.T) {
	second := func(r *http.Request) bool { return !strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") }
	partial := func(w http.ResponseWriter, contentRange, body string) bool {
		w.Header().Set("Content-Range", contentRange)
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, body)
		return true
	}
	for _, c := range []struct {
		name   string
		spoil  func(w http.ResponseWriter, r *http.Request) bool
		kind   drivers.Failure
		status int
		text   string
	}{
		{"no ranges", func(w http.ResponseWriter, r *http.Request) bool { io.WriteString(w, "all"); return true },
			drivers.Protocol, 200, "part 1 of 1: the server does not serve ranges: it answered 200, not 206"},
		{"no ranges later", func(w http.ResponseWriter, r *http.Request) bool {
			if second(r) {
				io.WriteString(w, "all")
			}
			return second(r)
		}, drivers.Protocol, 200, "part 2 of 2: the server does not serve ranges"},
		{"no length", func(w http.ResponseWriter, r *http.Request) bool { return partial(w, "bytes 0-9/*", "0123456789") },
			drivers.Protocol, 206, `its Content-Range is "bytes 0-9/*"`},
		{"other bytes", func(w http.ResponseWriter, r *http.Request) bool {
			return second(r) && partial(w, "bytes 40-99/100", strings.Repeat("x", 60))
		}, drivers.Protocol, 206, "part 2 of 2: the server sends the bytes 40-99, but 50-99 were asked for"},
		{"less than all", func(w http.ResponseWriter, r *http.Request) bool {
			return partial(w, "bytes 0-49/100", strings.Repeat("x", 50))
		},
			drivers.Protocol, 206, "the server sends the bytes 0-49, but 0-99 were asked for"},
		{"other length", func(w http.ResponseWriter, r *http.Request) bool {
			return second(r) && partial(w, "bytes 50-99/200", strings.Repeat("x", 50))
		}, drivers.Protocol, 206, "part 2 of 2: the whole has 200 bytes, and had 100 before"},
		{"too short", func(w http.ResponseWriter, r *http.Request) bool {
			return second(r) && partial(w, "bytes 50-99/100", strings.Repeat("x", 49))
		}, drivers.Protocol, 206, "part 2 of 2: 49 bytes came, but the answer promised 50"},
		{"unavailable", func(w http.ResponseWriter, r *http.Request) bool {
			if second(r) {
				http.Error(w, "busy", http.StatusServiceUnavailable)
			}
			return second(r)
		}, drivers.OK, 503, ""},
		{"not satisfiable", func(w http.ResponseWriter, r *http.Request) bool {
			http.Error(w, "empty", http.StatusRequestedRangeNotSatisfiable)
			return true
		}, drivers.OK, 416, ""},
		{"broken off", func(w http.ResponseWriter, r *http.Request) bool {
			if second(r) {
				w.Header().Set("Content-Length", "50")
				partial(w, "bytes 50-99/100", "x")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
			return false
		}, drivers.Reset, 206, "part 2 of 2: "},
	} {
		for _, version := range []string{"1.1", "2"} {
			t.Run(c.name+" "+version, func(t *testing.T) {
				var spoil atomic.Bool
				spoil.Store(true)
				addr, _ := ranged(t, 100, func(w http.ResponseWriter, r *http.Request) bool { return spoil.Load() && c.spoil(w, r) })
				b := drivertest.NewBench(t, New(), drivertest.Fields{"url": "http://" + addr + "/", "parts": 2, "version": version}, drivers.Pool{Users: 1})
				session := b.Open()
				for range 2 {
					r := b.Do(t.Context(), session, time.Minute)
					if drivers.KindOf(r.Err) != c.kind || r.Err != nil && !strings.Contains(r.Err.Error(), c.text) {
						t.Errorf("got %v (%v), want %v with %q", drivers.KindOf(r.Err), r.Err, c.kind, c.text)
					}
					if r.Success || r.Status != c.status {
						t.Errorf("success %v, status %d, want %d", r.Success, r.Status, c.status)
					}
				}
				spoil.Store(false)
				b.Do(t.Context(), session, time.Minute) // it may learn that the length is another one
				if r := b.Must(session); r.BytesIn != 100 {
					t.Errorf("%d bytes came afterwards", r.BytesIn)
				}
			})
		}
	}
}

// One part that says nothing ends all at the deadline, or when the run is interrupted.
func TestPartsEnd(t *testing.T) {
	for _, version := range []string{"1.1", "2"} {
		addr, _ := ranged(t, 1<<20, func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") {
				return false
			}
			<-r.Context().Done()
			return true
		})
		b := drivertest.NewBench(t, New(), drivertest.Fields{"url": "http://" + addr + "/", "parts": 4, "version": version}, drivers.Pool{Users: 1})
		session := b.Open()
		const timeout = 200 * time.Millisecond
		r := b.Fails(t.Context(), session, timeout, drivers.Timeout)
		if r.Service < timeout || !strings.Contains(r.Err.Error(), "of 4: waiting for the answer: timed out") {
			t.Errorf("after %v: %v", r.Service, r.Err)
		}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(timeout, stop)
		b.Fails(ctx, session, time.Hour, drivers.Aborted)
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		length int64
		n      int
		want   string
	}{
		{10, 3, "[{0 3} {4 6} {7 9}]"}, {12, 3, "[{0 3} {4 7} {8 11}]"}, {1, 4, "[{0 0}]"}, {4, 4, "[{0 0} {1 1} {2 2} {3 3}]"},
		{1 << 62, 2, "[{0 2305843009213693951} {2305843009213693952 4611686018427387903}]"},
	} {
		if got := fmt.Sprint(split(c.length, c.n)); got != c.want {
			t.Errorf("%d in %d: %s, want %s", c.length, c.n, got, c.want)
		}
	}
}

func FuzzContentRange(f *testing.F) {
	f.Add("bytes 0-9/10")
	f.Add("bytes */10")
	f.Add("bytes 5-4/10")
	f.Fuzz(func(t *testing.T, s string) {
		got, length, ok := contentRange(s)
		if ok && (got.first < 0 || got.last < got.first || length <= got.last) {
			t.Errorf("%q is %v of %d", s, got, length)
		}
		if !ok {
			return
		}
		again := fmt.Sprintf("bytes %d-%d/%d", got.first, got.last, length)
		if g, l, ok := contentRange(again); !ok || g != got || l != length {
			t.Errorf("%q is not what %q is", again, s)
		}
	})
}
