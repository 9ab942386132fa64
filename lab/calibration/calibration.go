// Package calibration measures what a lab's routes really do, to be shown beside what was asked for. The two differ by what
// the machine adds, and that is worth knowing before a figure of the lab is believed.
package calibration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/planrun/planrun/lab"
)

// Row is a route to a service.
type Row struct {
	Route, Service  string
	Asked, Measured Figures
}

// Figures of a route. What does not apply, or has no limit, is 0.
type Figures struct {
	// P50 and P99 are of a call without work, by a connection that is open already.
	P50, P99 time.Duration
	// Connection is what a new connection costs beyond such a call: TCP's handshake, that of TLS or the database, and the
	// rendezvous of a relay.
	Connection time.Duration
	// Rendezvous is the relay's part of Connection: measured, it is all that is more than was asked for without it.
	Rendezvous time.Duration
	// Down and Up are the throughput of one connection from and to a service of kind http, in bytes a second.
	Down, Up float64
}

const (
	calls       = 50
	connections = 5
	transfer    = 8 << 20 // bytes
)

// Measure measures every route to every service of a lab, one after the other, in the order of the spec. addresses and ca
// are the running lab's. It takes about a hundred round trips and two transfers of 8 MiB each.
func Measure(ctx context.Context, spec lab.Spec, addresses map[string]map[string]string, ca []byte) ([]Row, error) {
	var rows []Row
	for _, r := range spec.Routes {
		for _, s := range spec.Services {
			row := Row{Route: r.Name, Service: s.Name, Asked: Asked(r, s)}
			address := addresses[r.Name][s.Name]
			if address == "" {
				return rows, fmt.Errorf("no address of %s by %s is known", s.Name, r.Name)
			}
			var err error
			if row.Measured, err = measure(ctx, s, address, ca); err != nil {
				return rows, fmt.Errorf("measure %s by %s: %w", s.Name, r.Name, err)
			}
			if r.Relay != nil {
				direct := r
				direct.Relay = nil
				trips := time.Duration(handshakes(s)) * r.Relay.RTT
				row.Measured.Rendezvous = max(0, row.Measured.Connection-Asked(direct, s).Connection-trips)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// Asked is what a route to a service should do, on a machine that adds nothing:
//
//	P50        = RTT + jitter + the relay's RTT
//	Connection = RTT + the rendezvous + a trip for each handshake above TCP
//	Rendezvous = 2 of the relay's RTT: half for the call to the listener, one for its TCP handshake, half for its request
//	Down, Up   = min(bandwidth, window / RTT, the relay's window / the relay's RTT)
func Asked(r lab.Route, s lab.Service) Figures {
	trip := r.RTT
	down := math.Inf(1)
	if r.Bandwidth > 0 {
		down = r.Bandwidth
	}
	if r.Window > 0 && r.RTT > 0 {
		down = min(down, float64(r.Window)/r.RTT.Seconds())
	}
	var f Figures
	if r.Relay != nil {
		trip += r.Relay.RTT
		f.Rendezvous = 2 * r.Relay.RTT
		if r.Relay.Window > 0 && r.Relay.RTT > 0 {
			down = min(down, float64(r.Relay.Window)/r.Relay.RTT.Seconds())
		}
	}
	f.P50 = trip + r.Jitter
	// Of the sum of two uniform numbers between 0 and 1, 99 % are below 2 - sqrt(2 * 0.01).
	f.P99 = trip + time.Duration(float64(r.Jitter)*(2-math.Sqrt(0.02)))
	f.Connection = r.RTT + f.Rendezvous + time.Duration(handshakes(s))*(trip+r.Jitter)
	if s.Kind == lab.HTTP && !math.IsInf(down, 1) {
		f.Down, f.Up = down, down
	}
	return f
}

// handshakes is how many round trips a connection takes above TCP before the first call. A client of gRPC waits for the
// server's settings.
func handshakes(s lab.Service) int {
	n := 0
	if s.TLS || s.Kind == lab.Postgres {
		n++
	}
	if s.Kind == lab.GRPC {
		n++
	}
	return n
}

func measure(ctx context.Context, s lab.Service, address string, ca []byte) (Figures, error) {
	switch s.Kind {
	case lab.GRPC:
		return timings(ctx, func(context.Context) (call, func(), error) {
			transport := insecure.NewCredentials()
			if s.TLS {
				transport = credentials.NewTLS(trust(ca))
			}
			channel, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(transport), grpc.WithNoProxy())
			if err != nil {
				return nil, nil, err
			}
			health := healthv1.NewHealthClient(channel)
			return func(ctx context.Context) error {
				_, err := health.Check(ctx, &healthv1.HealthCheckRequest{})
				return err
			}, func() { channel.Close() }, nil
		})
	case lab.Postgres:
		return timings(ctx, func(ctx context.Context) (call, func(), error) {
			conn, err := pgconn.Connect(ctx, address)
			if err != nil {
				return nil, nil, err
			}
			return func(ctx context.Context) error {
				_, err := conn.Exec(ctx, "SELECT 1").ReadAll()
				return err
			}, func() { conn.Close(context.WithoutCancel(ctx)) }, nil
		})
	}
	open := func(context.Context) (call, func(), error) {
		client := newClient(ca)
		return func(ctx context.Context) error {
			_, err := do(ctx, client, http.MethodGet, address+"/status/200", nil)
			return err
		}, client.CloseIdleConnections, nil
	}
	f, err := timings(ctx, open)
	if err != nil || s.Kind == lab.Gateway {
		return f, err
	}
	client := newClient(ca)
	defer client.CloseIdleConnections()
	if _, err := do(ctx, client, http.MethodGet, address+"/status/200", nil); err != nil {
		return f, err
	}
	start := time.Now()
	n, err := do(ctx, client, http.MethodGet, fmt.Sprintf("%s/file?size=%d", address, transfer), nil)
	if err != nil {
		return f, err
	}
	if n != transfer {
		return f, fmt.Errorf("%d bytes arrived of %d", n, transfer)
	}
	f.Down = transfer / time.Since(start).Seconds()
	start = time.Now()
	if _, err := do(ctx, client, http.MethodPost, address+"/status/200", io.LimitReader(zeros{}, transfer)); err != nil {
		return f, err
	}
	f.Up = transfer / time.Since(start).Seconds()
	return f, nil
}

// call makes one call on a connection.
type call func(context.Context) error

// timings times first calls on new connections, and many on the last of them. What open takes is part of the first call.
func timings(ctx context.Context, open func(context.Context) (call, func(), error)) (Figures, error) {
	var f Figures
	var first, later []time.Duration
	for i := range connections {
		start := time.Now()
		call, closeIt, err := open(ctx)
		if err != nil {
			return f, err
		}
		err = call(ctx)
		first = append(first, time.Since(start))
		if i == connections-1 {
			for range calls {
				if err != nil {
					break
				}
				start := time.Now()
				err = call(ctx)
				later = append(later, time.Since(start))
			}
		}
		closeIt()
		if err != nil {
			return f, err
		}
	}
	f.P50, f.P99 = percentile(later, 0.5), percentile(later, 0.99)
	f.Connection = max(0, percentile(first, 0.5)-f.P50)
	return f, nil
}

// percentile is the nearest rank, ceil(q n).
func percentile(all []time.Duration, q float64) time.Duration {
	slices.Sort(all)
	return all[max(0, int(math.Ceil(q*float64(len(all))))-1)]
}

// newClient makes a client with one connection of HTTP/1.1.
func newClient(ca []byte) *http.Client {
	tr := &http.Transport{MaxConnsPerHost: 1, WriteBufferSize: 64 << 10, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP1(true)
	if len(ca) > 0 {
		tr.TLSClientConfig = trust(ca)
	}
	return &http.Client{Transport: tr}
}

// trust is a configuration that trusts an authority alone.
func trust(ca []byte) *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &tls.Config{RootCAs: roots}
}

func do(ctx context.Context, client *http.Client, method, url string, body io.Reader) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return 0, err
	}
	if body != nil {
		req.ContentLength = transfer
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return n, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
