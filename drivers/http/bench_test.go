package http

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// BenchmarkCall is one warm call after the other; the server's work is part of it.
func BenchmarkCall(b *testing.B) {
	ca := authority(b)
	for _, p := range []protocols{"quiet HTTP/1.1", plain1, secure1, plain2, secure2} {
		b.Run(string(p), func(b *testing.B) {
			fields := drivertest.Fields{}
			if p == "quiet HTTP/1.1" {
				fields["get"] = "http://" + quiet(b).Addr
			} else {
				s := serve(b, p, nil)
				fields["get"] = s.URL
				if p == plain2 || p == secure2 {
					fields["version"] = "2"
				}
				if p == secure1 || p == secure2 {
					fields["tls"] = drivertest.Fields{"ca": ca}
				}
			}
			bench := drivertest.NewBench(b, New(), fields, drivers.Pool{Users: 1})
			session := bench.Open()
			bench.Must(session)
			var in drivers.Input
			var out drivers.Outcome
			var received atomic.Int64
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				in.Deadline, in.Received = time.Now().Add(time.Minute), &received
				out.Reset()
				if err := session.Do(ctx, bench.Call, &in, &out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
