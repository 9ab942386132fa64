package grpc

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// hello is the message of calls whose cost is looked at.
var hello = drivertest.Fields{"text": "hello", "size": 100}

// bareCodec is the least that a call without decoding needs.
type bareCodec struct{}

func (bareCodec) Name() string                           { return "" }
func (bareCodec) Marshal(v any) (mem.BufferSlice, error) { return v.(mem.BufferSlice), nil }
func (bareCodec) Unmarshal(mem.BufferSlice, any) error   { return nil }

// bare makes unary calls with the gRPC library alone: a deadline, a message that is ready, an answer that is not decoded.
func bare(t testing.TB, e *echo) func() { return bareWith(t, e, hello) }

func bareWith(t testing.TB, e *echo, fields drivertest.Fields, more ...grpc.DialOption) func() {
	t.Helper()
	channel, err := grpc.NewClient("passthrough:///"+e.addr, append(more, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { channel.Close() })
	r := e.newRequest()
	for name, v := range fields {
		if n, ok := v.(int); ok {
			v = int64(n)
		}
		r.Set(r.Descriptor().Fields().ByName(protoreflect.Name(name)), valueOf(v))
	}
	b, err := proto.Marshal(r.Message)
	if err != nil {
		t.Fatal(err)
	}
	message := mem.BufferSlice{mem.SliceBuffer(b)}
	options := []grpc.CallOption{grpc.ForceCodecV2(bareCodec{}), grpc.MaxCallRecvMsgSize(defaultMaxMessage), grpc.MaxRetryRPCBufferSize(0)}
	return func() {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Minute))
		defer cancel()
		if err := channel.Invoke(ctx, "/demo.v1.Echo/Unary", message, nil, options...); err != nil {
			t.Error(err)
		}
	}
}

func leastAllocs(f func()) float64 {
	f()
	least := testing.AllocsPerRun(100, f)
	for range 4 {
		least = min(least, testing.AllocsPerRun(100, f))
	}
	return least
}

func TestConformance(t *testing.T) {
	// The server's allocations are counted as well, on both sides of the comparison.
	own := leastAllocs(bare(t, serve(t, serverConfig{})))
	drivertest.Run(t, drivertest.Suite{
		Driver: New(),
		Serve: func(t testing.TB) drivertest.Server {
			e := serve(t, serverConfig{})
			return drivertest.Server{Addr: e.addr, Requests: func() int { return int(e.requests.Load()) }}
		},
		Fields: func(addr string) drivertest.Fields { return fields(t, addr, "Unary", hello) },
		Shared: true,
		Allocs: own,
	})
}

func TestConformanceTLS(t *testing.T) {
	authority := newAuthority(t)
	config := authority.server(t)
	drivertest.Run(t, drivertest.Suite{
		Driver: New(),
		Serve: func(t testing.TB) drivertest.Server {
			e := serve(t, serverConfig{tls: config})
			return drivertest.Server{Addr: e.addr, Requests: func() int { return int(e.requests.Load()) }}
		},
		Fields: func(addr string) drivertest.Fields {
			return with(fields(t, addr, "Unary", hello), drivertest.Fields{"plaintext": nil, "tls": drivertest.Fields{"ca": authority.file}})
		},
		Reads:  []string{"message"},
		Shared: true,
		Skip:   []string{"allocations"}, // the same as without TLS
	})
}

func BenchmarkUnary(b *testing.B) {
	e := serve(b, serverConfig{})
	b.Run("library", func(b *testing.B) {
		call := bare(b, e)
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	})
	for name, f := range map[string]drivertest.Fields{
		"constant": fields(b, e.addr, "Unary", hello),
		"template": fields(b, e.addr, "Unary", drivertest.Fields{
			"text": drivertest.Func(func(in *drivers.Input) any { return "hello" }), "size": 100,
		}),
	} {
		for _, reads := range [][]string{nil, {"message"}} {
			title := name
			if reads != nil {
				title += "-decoded"
			}
			b.Run(title, func(b *testing.B) {
				bench := drivertest.NewBench(b, New(), f, drivers.Pool{Users: 1}, reads...)
				session := bench.Open()
				var in drivers.Input
				var out drivers.Outcome
				b.ReportAllocs()
				for b.Loop() {
					in.Deadline = time.Now().Add(time.Minute)
					out.Reset()
					if err := session.Do(b.Context(), bench.Call, &in, &out); err != nil {
						b.Fatal(err)
					}
					if reads != nil {
						if _, err := out.Answer.Value("message"); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

// BenchmarkUsers is many users on one connection: calls a second, with what the library alone reaches.
func BenchmarkUsers(b *testing.B) {
	e := serve(b, serverConfig{})
	b.Run("library", func(b *testing.B) {
		call := bare(b, e)
		b.SetParallelism(25)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				call()
			}
		})
	})
	b.Run("driver", func(b *testing.B) {
		bench := drivertest.NewBench(b, New(), fields(b, e.addr, "Unary", hello), drivers.Pool{Users: 50})
		b.SetParallelism(25)
		b.RunParallel(func(pb *testing.PB) {
			session, err := bench.Client.Open(b.Context())
			if err != nil {
				b.Error(err)
				return
			}
			var in drivers.Input
			var out drivers.Outcome
			for pb.Next() {
				in.Deadline = time.Now().Add(time.Minute)
				out.Reset()
				if err := session.Do(b.Context(), bench.Call, &in, &out); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
