package route

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/lab/labtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func link(t testing.TB, shape Shape, address string) *Link {
	t.Helper()
	k, err := NewLine(clock.New(), shape).Listen(To(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// trips measures round trips of one byte: the first, and the median of n more.
func trips(t testing.TB, address string, n int) (first, median time.Duration) {
	t.Helper()
	start := time.Now() // of the first, with opening the connection
	c := labtest.Dial(t, address)
	var all []time.Duration
	for i := range n + 1 {
		if i > 0 {
			start = time.Now()
		}
		if _, err := c.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		var b [1]byte
		if _, err := io.ReadFull(c, b[:]); err != nil || b[0] != byte(i) {
			t.Fatalf("echo %d: %d, %v", i, b[0], err)
		}
		all = append(all, time.Since(start))
	}
	first = all[0]
	slices.Sort(all[1:])
	return first, all[1+n/2]
}

var shapes = map[string]Shape{
	"straight":  {},
	"rtt":       {RTT: 4 * time.Millisecond},
	"jitter":    {RTT: time.Millisecond, Jitter: 3 * time.Millisecond},
	"bandwidth": {Bandwidth: 50e6},
	"window":    {RTT: 2 * time.Millisecond, Window: 100_000},
	"all":       {RTT: 2 * time.Millisecond, Jitter: time.Millisecond, Bandwidth: 50e6, Window: 200_000},
	"tiny":      {RTT: 10 * time.Microsecond, Window: 3000, Jitter: time.Microsecond},
}

func TestBytesComeOutAsTheyWentIn(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := link(t, shape, labtest.Serve(t, labtest.Echo))
			c := labtest.Dial(t, k.Address())
			want := make([]byte, 1<<20+123)
			r := rand.NewChaCha8([32]byte{1})
			r.Read(want)
			go func() {
				// Pieces of all sizes, then half a close.
				rest := want
				for len(rest) > 0 {
					n := min(1+rand.IntN(20_000), len(rest))
					c.Write(rest[:n])
					rest = rest[n:]
				}
				c.CloseWrite()
			}()
			got, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			if sha256.Sum256(got) != sha256.Sum256(want) {
				t.Errorf("%d bytes came back of %d, or they differ", len(got), len(want))
			}
			if k.Connections() != 1 {
				t.Errorf("%d connections", k.Connections())
			}
		})
	}
}

// Machines are slow at times, never fast: tests of time look for what it takes at the least, and compare.

func TestRoundTripTakesAnRTT(t *testing.T) {
	const rtt = 20 * time.Millisecond
	k := link(t, Shape{RTT: rtt}, labtest.Serve(t, labtest.Echo))
	first, median := trips(t, k.Address(), 15)
	if median < rtt {
		t.Errorf("a round trip takes %v, want %v", median, rtt)
	}
	if first < 2*rtt {
		t.Errorf("the first takes %v, want %v", first, 2*rtt)
	}
}

func TestServiceSpeaksFirst(t *testing.T) {
	const rtt = 20 * time.Millisecond
	k := link(t, Shape{RTT: rtt}, labtest.Serve(t, func(c *net.TCPConn) { c.Write([]byte("hello")) }))
	start := time.Now()
	got, err := io.ReadAll(labtest.Dial(t, k.Address()))
	took := time.Since(start)
	if string(got) != "hello" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	if took < 2*rtt {
		t.Errorf("took %v, want %v", took, 2*rtt)
	}
}

func TestDelaysDoNotAddUp(t *testing.T) {
	// Twenty bytes under way at the same time take hardly longer than one.
	const rtt = 20 * time.Millisecond
	k := link(t, Shape{RTT: rtt}, labtest.Serve(t, labtest.Echo))
	start := time.Now()
	trips(t, k.Address(), 20)
	apart := time.Since(start)

	c := labtest.Dial(t, k.Address())
	start = time.Now()
	for range 20 {
		c.Write([]byte("x"))
		time.Sleep(time.Millisecond)
	}
	c.CloseWrite()
	got, err := io.ReadAll(c)
	if len(got) != 20 || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	if together := time.Since(start); together > apart/2 {
		t.Errorf("took %v together, %v one after the other", together, apart)
	}
}

// download measures how fast size bytes come through a link, once its connection is warm, in bytes a second.
func download(t testing.TB, address string, size int64) float64 {
	t.Helper()
	c := labtest.Dial(t, address)
	start := time.Now()
	n, err := io.Copy(io.Discard, c)
	if n != size || err != nil {
		t.Fatalf("%d bytes of %d, %v", n, size, err)
	}
	return float64(n) / time.Since(start).Seconds()
}

func source(size int64) func(*net.TCPConn) {
	return func(c *net.TCPConn) { io.CopyN(c, zeros{}, size) }
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestWindowBoundsThroughput(t *testing.T) {
	const size = 4 << 20
	shape := Shape{RTT: 10 * time.Millisecond, Window: 100_000} // 10 MB/s
	rate := download(t, link(t, shape, labtest.Serve(t, source(size))).Address(), size)
	if rate > 10.5e6 || rate < 1e6 {
		t.Errorf("%.1f MB/s, want about 10", rate/1e6)
	}
}

func TestBandwidthIsSharedByTheConnectionsOfALine(t *testing.T) {
	const size = 2 << 20
	line := NewLine(clock.New(), Shape{Bandwidth: 20e6})
	address := labtest.Serve(t, source(size))
	rates := make(chan float64, 4)
	start := time.Now()
	for range 4 {
		k, err := line.Listen(To(address))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { k.Close() })
		go func() {
			c := labtest.Dial(t, k.Address())
			s := time.Now()
			n, _ := io.Copy(io.Discard, c)
			rates <- float64(n) / time.Since(s).Seconds()
		}()
	}
	var all []float64
	for range 4 {
		all = append(all, <-rates)
	}
	total := 4 * size / time.Since(start).Seconds()
	if total > 21e6 || total < 2e6 {
		t.Errorf("%.1f MB/s in all, want about 20", total/1e6)
	}
	if slices.Max(all) > 3*slices.Min(all) {
		t.Errorf("shared unfairly: %v", all)
	}
}

func TestOneDirectionLeavesTheOtherAlone(t *testing.T) {
	// A line busy with a download still carries a request in time: the other direction is free, and its own is shared fairly.
	const rtt = 10 * time.Millisecond
	line := NewLine(clock.New(), Shape{RTT: rtt, Bandwidth: 10e6})
	bulk, err := line.Listen(To(labtest.Serve(t, source(1<<40))))
	if err != nil {
		t.Fatal(err)
	}
	defer bulk.Close()
	small, err := line.Listen(To(labtest.Serve(t, labtest.Echo)))
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	c := labtest.Dial(t, bulk.Address())
	go io.Copy(io.Discard, c)
	_, median := trips(t, small.Address(), 10)
	c.Close()
	if median > 20*rtt {
		t.Errorf("a small request takes %v beside a download", median)
	}
}

func TestResetArrivesAsReset(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Run("of the service", func(t *testing.T) {
				k := link(t, shape, labtest.Serve(t, labtest.Reset))
				c := labtest.Dial(t, k.Address())
				c.Write([]byte("x"))
				if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("got %v, want a reset", err)
				}
			})
			t.Run("of the client", func(t *testing.T) {
				seen := make(chan error, 1)
				k := link(t, shape, labtest.Serve(t, func(c *net.TCPConn) {
					_, err := io.ReadAll(c)
					seen <- err
				}))
				c := labtest.Dial(t, k.Address())
				c.Write([]byte("x"))
				time.Sleep(10 * time.Millisecond)
				c.SetLinger(0)
				c.Close()
				select {
				case err := <-seen:
					if !errors.Is(err, syscall.ECONNRESET) {
						t.Errorf("got %v, want a reset", err)
					}
				case <-time.After(10 * time.Second):
					t.Error("the service never learns of it")
				}
			})
		})
	}
}

func TestCloseArrivesAfterTheBytes(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			k := link(t, shape, labtest.Serve(t, func(c *net.TCPConn) { c.Write(bytes.Repeat([]byte("x"), 200_000)) }))
			got, err := io.ReadAll(labtest.Dial(t, k.Address()))
			if len(got) != 200_000 || err != nil {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

func TestServiceThatIsNotThere(t *testing.T) {
	address := labtest.Nobody(t)
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", link(t, shape, address).Address())
			if err == nil {
				defer c.Close()
				_, err = io.ReadAll(c)
			}
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got %v, want a reset", err)
			}
		})
	}
}

func TestCloseEndsConnections(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			k := link(t, shape, labtest.Serve(t, labtest.Echo))
			var open []*net.TCPConn
			for range 20 {
				c := labtest.Dial(t, k.Address())
				c.Write([]byte("x"))
				open = append(open, c)
			}
			for _, c := range open {
				io.ReadFull(c, make([]byte, 1))
			}
			done := make(chan struct{})
			go func() { k.Close(); close(done) }()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("Close hangs")
			}
			for _, c := range open {
				if _, err := c.Read(make([]byte, 1)); err == nil {
					t.Error("a connection outlives its link")
				}
			}
		})
	}
}

// A reader that does not read holds back the writer, instead of filling memory.
func TestSlowReaderIsBounded(t *testing.T) {
	written := make(chan int64, 1)
	k := link(t, Shape{RTT: time.Millisecond}, labtest.Serve(t, func(c *net.TCPConn) {
		c.SetWriteDeadline(time.Now().Add(time.Second))
		n, _ := io.Copy(c, zeros{})
		written <- n
	}))
	c := labtest.Dial(t, k.Address())
	defer c.Close()
	if n := <-written; n > 64<<20 {
		t.Errorf("%d MiB were taken from a service whose client reads nothing", n>>20)
	}
}

func TestDialIsGivenUpOnClose(t *testing.T) {
	k, err := NewLine(clock.New(), Shape{}).Listen(func(ctx context.Context) (Stream, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	labtest.Dial(t, k.Address())
	time.Sleep(10 * time.Millisecond)
	k.Close()
}

func BenchmarkThroughput(b *testing.B) {
	for name, shape := range map[string]Shape{"straight": {}, "rtt": {RTT: time.Millisecond}} {
		b.Run(name, func(b *testing.B) {
			const size = 256 << 20
			k := link(b, shape, labtest.Serve(b, source(size)))
			b.SetBytes(size)
			for b.Loop() {
				download(b, k.Address(), size)
			}
		})
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for name, shape := range map[string]Shape{"straight": {}, "12ms": {RTT: 12 * time.Millisecond}} {
		b.Run(name, func(b *testing.B) {
			k := link(b, shape, labtest.Serve(b, labtest.Echo))
			_, median := trips(b, k.Address(), 200)
			for b.Loop() {
			}
			b.ReportMetric(float64(median.Microseconds()), "us/trip")
		})
	}
}
