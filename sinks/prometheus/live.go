package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/planrun/planrun/engine/record"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
)

// Live answers scrapes while a run is under way. Watch takes the frames of the stream; it costs next to nothing and never
// waits for a scrape or a network. All methods may be called at the same time.
type Live struct {
	server   *http.Server
	listener net.Listener
	served   chan struct{}

	mu      sync.Mutex
	plan    string
	cells   []*liveCell
	current int // cell of the round that runs; -1 is none
	round   int
}

// liveCell is what a cell has come to.
type liveCell struct {
	labels              []string
	ok, failed, dropped int64
	bytes               int64
	inFlight            int
	lag                 time.Duration // the greatest of the last second
	latency             record.Histogram
}

// Listen begins to answer at http://address/metrics. The address must be one of this machine's own: whoever can reach it
// learns what is measured.
func Listen(address string) (*Live, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("expected an address and a port, such as 127.0.0.1:9464, not %q", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("expected a loopback address, such as 127.0.0.1:9464, not %q", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	l := &Live{listener: listener, served: make(chan struct{}), current: -1}
	registry := prometheus.NewRegistry()
	if err := registry.Register(l); err != nil {
		listener.Close()
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2}))
	l.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() {
		defer close(l.served)
		// What goes wrong here must not disturb the load; a scrape that fails is seen by whoever scrapes.
		_ = l.server.Serve(listener)
	}()
	return l, nil
}

// Address is where it listens, with the port that was chosen for 0.
func (l *Live) Address() string { return l.listener.Addr().String() }

// Close stops answering. Scrapes under way have a second.
func (l *Live) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := l.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = l.server.Close()
	}
	<-l.served
	return err
}

// Watch takes in a frame. A header begins a new run. A nil Live does nothing.
func (l *Live) Watch(frame result.Frame) {
	if l == nil {
		return
	}
	if _, ok := frame.(*result.Block); ok {
		return // its seconds tell as much
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch f := frame.(type) {
	case *result.Header:
		l.plan, l.cells, l.current = digest.Clean(f.Plan), nil, -1
	case *result.Cell:
		l.cells = append(l.cells, &liveCell{labels: []string{l.plan, digest.Clean(f.Scenario), digest.Clean(f.Phase), digest.Clean(f.Target)}})
	case *result.Round:
		l.current, l.round = f.Cell, f.Round
	case *result.RoundEnd:
		l.current = -1
		if c := l.cell(f.Cell); c != nil {
			c.inFlight, c.lag = 0, 0
		}
	case *result.Interval:
		c := l.cell(f.Cell)
		if c == nil {
			return
		}
		c.ok += f.OK
		c.failed += f.Failed
		c.dropped += f.Dropped
		c.bytes += f.BytesIn
		c.inFlight, c.lag = f.InFlight, f.MaxLag
		if f.Latency != nil {
			c.latency.Merge(f.Latency)
		}
	}
}

func (l *Live) cell(i int) *liveCell {
	if i < 0 || i >= len(l.cells) {
		return nil
	}
	return l.cells[i]
}

var livePlace = []string{"plan", "scenario", "phase", "target"}

var (
	liveIterations = describe("live_iterations_total", "Iterations by outcome so far.", append(append([]string{}, livePlace...), "outcome")...)
	liveLatency    = describe("live_latency_seconds", "Latency of successful iterations so far, from when they were due.", livePlace...)
	liveBytes      = describe("live_received_bytes_total", "Bytes received so far.", livePlace...)
	liveInFlight   = describe("live_in_flight", "Iterations under way at the end of the last second.", livePlace...)
	liveLag        = describe("live_generator_lag_seconds", "How late the generator itself was in the last second, at most.", livePlace...)
	liveRunning    = describe("live_running", "1 for the round that runs.", append(append([]string{}, livePlace...), "round")...)
)

// buckets of the latency, in seconds.
var buckets = []float64{
	.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60,
}

// Describe lists what Collect may send.
func (l *Live) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{liveIterations, liveLatency, liveBytes, liveInFlight, liveLag, liveRunning} {
		ch <- d
	}
}

// Collect sends what is known at the moment.
func (l *Live) Collect(ch chan<- prometheus.Metric) {
	// Made under the lock and sent after it: whoever receives may be slow, and Watch must not wait.
	for _, m := range l.metrics() {
		ch <- m
	}
}

func (l *Live) metrics() []prometheus.Metric {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []prometheus.Metric
	add := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		list = append(list, prometheus.MustNewConstMetric(d, kind, v, labels...))
	}
	for i, c := range l.cells {
		if c.ok+c.failed+c.dropped+c.bytes == 0 && i != l.current {
			continue
		}
		and := func(last string) []string { return append(append([]string{}, c.labels...), last) }
		add(liveIterations, prometheus.CounterValue, float64(c.ok), and("ok")...)
		add(liveIterations, prometheus.CounterValue, float64(c.failed), and("failed")...)
		add(liveIterations, prometheus.CounterValue, float64(c.dropped), and("dropped")...)
		add(liveBytes, prometheus.CounterValue, float64(c.bytes), c.labels...)
		add(liveInFlight, prometheus.GaugeValue, float64(c.inFlight), c.labels...)
		add(liveLag, prometheus.GaugeValue, c.lag.Seconds(), c.labels...)
		if i == l.current {
			add(liveRunning, prometheus.GaugeValue, 1, and(index(l.round))...)
		}
		counts := map[float64]uint64{}
		for _, b := range buckets {
			counts[b] = uint64(c.latency.CountAtMost(int64(b * 1e9)))
		}
		list = append(list, prometheus.MustNewConstHistogram(liveLatency, uint64(c.latency.Count()), c.latency.Sum()/1e9, counts, c.labels...))
	}
	return list
}
