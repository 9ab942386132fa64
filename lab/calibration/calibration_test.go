package calibration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/planrun/planrun/lab"
	"github.com/planrun/planrun/lab/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

func TestAsked(t *testing.T) {
	web, safe, db := lab.Service{Kind: lab.HTTP}, lab.Service{Kind: lab.HTTP, TLS: true}, lab.Service{Kind: lab.Postgres}
	relay := &lab.Relay{RTT: 11 * ms, Window: 220_000}
	for name, test := range map[string]struct {
		route   lab.Route
		service lab.Service
		want    Figures
	}{
		"nothing":   {lab.Route{}, web, Figures{}},
		"rtt":       {lab.Route{RTT: 12 * ms}, web, Figures{P50: 12 * ms, P99: 12 * ms, Connection: 12 * ms}},
		"tls":       {lab.Route{RTT: 12 * ms}, safe, Figures{P50: 12 * ms, P99: 12 * ms, Connection: 24 * ms}},
		"database":  {lab.Route{RTT: 12 * ms, Bandwidth: 1e6}, db, Figures{P50: 12 * ms, P99: 12 * ms, Connection: 24 * ms}},
		"grpc":      {lab.Route{RTT: 12 * ms, Bandwidth: 1e6}, lab.Service{Kind: lab.GRPC}, Figures{P50: 12 * ms, P99: 12 * ms, Connection: 24 * ms}},
		"grpc tls":  {lab.Route{RTT: 12 * ms}, lab.Service{Kind: lab.GRPC, TLS: true}, Figures{P50: 12 * ms, P99: 12 * ms, Connection: 36 * ms}},
		"gateway":   {lab.Route{RTT: 12 * ms, Bandwidth: 1e6}, lab.Service{Kind: lab.Gateway}, Figures{P50: 12 * ms, P99: 12 * ms, Connection: 12 * ms}},
		"bandwidth": {lab.Route{Bandwidth: 75e6}, web, Figures{Down: 75e6, Up: 75e6}},
		"window": {lab.Route{RTT: 10 * ms, Bandwidth: 75e6, Window: 320_000}, web,
			Figures{P50: 10 * ms, P99: 10 * ms, Connection: 10 * ms, Down: 32e6, Up: 32e6}},
		"relay": {lab.Route{RTT: 10 * ms, Window: 320_000, Relay: relay}, web,
			Figures{P50: 21 * ms, P99: 21 * ms, Connection: 32 * ms, Rendezvous: 22 * ms, Down: 20e6, Up: 20e6}},
		"jitter": {lab.Route{Jitter: 10 * ms}, web, Figures{P50: 10 * ms, P99: 18585786}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Asked(test.route, test.service)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Machines are slow at times, never fast: what is measured is no less than what was asked for, and throughput no more.
func TestMeasure(t *testing.T) {
	spec := lab.Spec{
		Services: []lab.Service{
			{Name: "api", Kind: lab.HTTP, Serial: ms},
			{Name: "safe", Kind: lab.HTTP, TLS: true},
			{Name: "db", Kind: lab.Postgres, Rows: 1},
			{Name: "rpc", Kind: lab.GRPC, Delay: ms},
			{Name: "sure", Kind: lab.GRPC, TLS: true},
			{Name: "front", Kind: lab.Gateway, Node: "rpc"},
		},
		Routes: []lab.Route{
			{Name: "direct", RTT: 4 * ms, Window: 320_000},
			{Name: "hybrid", RTT: 4 * ms, Relay: &lab.Relay{RTT: 5 * ms, Window: 320_000}},
		},
	}
	s, err := server.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rows, err := Measure(t.Context(), spec, s.Addresses(), s.CA())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range rows {
		t.Logf("%+v", row)
		names = append(names, row.Route+"."+row.Service)
		asked, got := row.Asked, row.Measured
		if got.P50 < asked.P50 || got.P99 < got.P50 {
			t.Errorf("%s: trips take %v (p99 %v), asked for %v", names[len(names)-1], got.P50, got.P99, asked.P50)
		}
		// A difference of two measurements, each of which may be slow.
		if got.Connection+got.P50 < asked.Connection+asked.P50 {
			t.Errorf("%s: a first call takes %v, asked for %v", names[len(names)-1], got.Connection+got.P50, asked.Connection+asked.P50)
		}
		if (asked.Down > 0) != (got.Down > 0) || got.Down > 1.05*asked.Down || got.Up > 1.05*asked.Up {
			t.Errorf("%s: %.1f and %.1f MB/s, asked for %.1f", names[len(names)-1], got.Down/1e6, got.Up/1e6, asked.Down/1e6)
		}
	}
	if got, want := strings.Join(names, " "), "direct.api direct.safe direct.db direct.rpc direct.sure direct.front hybrid.api hybrid.safe hybrid.db hybrid.rpc hybrid.sure hybrid.front"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMeasureGivesUp(t *testing.T) {
	spec := lab.Spec{
		Services: []lab.Service{{Name: "api", Kind: lab.HTTP}},
		Routes:   []lab.Route{{Name: "direct", RTT: time.Minute}},
	}
	s, err := server.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
	defer cancel()
	if _, err := Measure(ctx, spec, s.Addresses(), nil); err == nil || !strings.Contains(err.Error(), "measure api by direct") {
		t.Errorf("got %v", err)
	}
	if _, err := Measure(t.Context(), spec, nil, nil); err == nil {
		t.Error("no error without addresses")
	}
}
