package grpc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/stats"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// ledger is what a server knows of the messages that it received and sent.
type ledger struct {
	mu                   sync.Mutex
	encodings            []string // of the calls' messages
	in, inPacked         int64
	out, outPacked       int64
	messagesIn, messages int
}

func (l *ledger) HandleRPC(_ context.Context, event stats.RPCStats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := event.(type) {
	case *stats.InHeader:
		l.encodings = append(l.encodings, e.Compression)
	case *stats.InPayload:
		l.messagesIn++
		l.in += int64(e.Length)
		l.inPacked += int64(e.CompressedLength)
	case *stats.OutPayload:
		l.messages++
		l.out += int64(e.Length)
		l.outPacked += int64(e.CompressedLength)
	}
}

func (*ledger) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*ledger) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*ledger) HandleConn(context.Context, stats.ConnStats)                       {}

// noise is text that gets no shorter than about three quarters.
func noise(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

// Bytes are counted as they travel, by both sides alike, and what an expectation reads is unpacked.
func TestCompression(t *testing.T) {
	text := strings.Repeat("compressible ", 1000)
	message := drivertest.Fields{"text": text, "size": 1000, "count": 3}
	for _, c := range []struct {
		method   string
		fields   drivertest.Fields
		in, out  int // messages
		moving   bool
		unpacked bool
	}{
		{method: "Unary", fields: drivertest.Fields{"message": message}, in: 1, out: 1},
		{method: "Unary", fields: drivertest.Fields{"message": drivertest.Fields{"text": drivertest.Func(func(*drivers.Input) any { return text })}}, in: 1, out: 1},
		{method: "Download", fields: drivertest.Fields{"message": message}, in: 1, out: 3},
		{method: "Upload", fields: drivertest.Fields{"messages": []any{message, message}}, in: 2, out: 1},
		{method: "Chat", fields: drivertest.Fields{"messages": []any{message, message}}, in: 2, out: 2},
		{method: "Unary", fields: drivertest.Fields{"message": message, "compression": "none"}, in: 1, out: 1, unpacked: true},
	} {
		t.Run(fmt.Sprint(c.method, c.unpacked), func(t *testing.T) {
			l := &ledger{}
			e := serve(t, serverConfig{options: []grpc.ServerOption{grpc.StatsHandler(l)}})
			r := once(t, with(with(fields(t, e.addr, c.method, nil), drivertest.Fields{"compression": "gzip"}), c.fields), "message", "bytes")
			if r.Err != nil || !r.Success {
				t.Fatalf("%v, status %d", r.Err, r.Status)
			}
			e.server.GracefulStop() // after which the server has counted all
			encoding := "gzip"
			if c.unpacked {
				encoding = ""
			}
			if len(l.encodings) != 1 || l.encodings[0] != encoding || l.messagesIn != c.in || l.messages != c.out {
				t.Errorf("the server saw %d messages (%q) and sent %d", l.messagesIn, l.encodings, l.messages)
			}
			if r.BytesOut != l.inPacked || r.BytesIn != l.outPacked {
				t.Errorf("%d bytes out and %d in; the server received %d and sent %d", r.BytesOut, r.BytesIn, l.inPacked, l.outPacked)
			}
			if n, _ := r.Answer.Number("bytes"); int64(n) != l.out {
				t.Errorf("the answer has %v bytes, the server's messages had %d", n, l.out)
			}
			if packed := l.inPacked < l.in/10 && l.outPacked < l.out/10; packed == c.unpacked {
				t.Errorf("%d bytes travelled as %d, and %d as %d", l.in, l.inPacked, l.out, l.outPacked)
			}
			if got := value(t, r.Answer, "message").(map[string]any)["text"]; got != text {
				t.Errorf("the answer's text has %d characters", len(got.(string)))
			}
		})
	}
}

func TestConformanceCompressed(t *testing.T) {
	message := drivertest.Fields{"text": noise(200)}
	own := leastAllocs(bareWith(t, serve(t, serverConfig{}), message, grpc.WithStatsHandler(&nothing{}), grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name))))
	drivertest.Run(t, drivertest.Suite{
		Driver: New(),
		Serve: func(t testing.TB) drivertest.Server {
			e := serve(t, serverConfig{})
			return drivertest.Server{Addr: e.addr, Requests: func() int { return int(e.requests.Load()) }}
		},
		Fields: func(addr string) drivertest.Fields {
			return with(fields(t, addr, "Unary", message), drivertest.Fields{"compression": "gzip"})
		},
		Shared: true,
		Allocs: own + 1, // the session in the context of its call
	})
}

// nothing is a handler of statistics that does nothing.
type nothing struct{ traffic }

func (nothing) HandleRPC(context.Context, stats.RPCStats) {}

// A server that does not know gzip has to say UNIMPLEMENTED. It is an answer, and what to do about it is told.
func TestServerWithoutCompression(t *testing.T) {
	s := serveRaw(t, nil, func(c *rawConn, id uint32) {
		c.headers(id, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "12",
			"grpc-message", `grpc: Decompressor is not installed for grpc-encoding "gzip"`, "grpc-accept-encoding", "identity")
	})
	r := once(t, with(fields(t, s.Addr(), "Unary", hello), drivertest.Fields{"compression": "gzip"}), "status")
	if r.Err != nil || r.Success || value(t, r.Answer, "status") != "UNIMPLEMENTED" {
		t.Fatalf("err %v, success %v, status %d", r.Err, r.Success, r.Status)
	}
	const want = `UNIMPLEMENTED: grpc: Decompressor is not installed for grpc-encoding "gzip"; if it is that the server does not take gzip, write compression: none`
	if got := r.Answer.(*answer).String(); got != want {
		t.Errorf("it is told as %q", got)
	}
	r = once(t, fields(t, s.Addr(), "Unary", hello))
	if got := r.Answer.(*answer).String(); strings.Contains(got, "compression: none") {
		t.Errorf("without compression it is told as %q", got)
	}
	if n := s.calls.Load(); n != 2 {
		t.Errorf("%d attempts, want 2", n)
	}
}

// An answer that can't be unpacked, and one that is larger than allowed once it is.
func TestCompressedAnswersThatAreWrong(t *testing.T) {
	s := serveRaw(t, nil, func(c *rawConn, id uint32) {
		c.headers(id, false, ":status", "200", "content-type", "application/grpc", "grpc-encoding", "gzip")
		c.data(id, false, "\x01\x00\x00\x00\x05wrong")
		c.headers(id, true, "grpc-status", "0")
	})
	compressed := drivertest.Fields{"compression": "gzip"}
	r := once(t, with(fields(t, s.Addr(), "Unary", hello), compressed))
	if drivers.KindOf(r.Err) != drivers.Protocol || !strings.Contains(r.Err.Error(), "gzip: invalid header") && !strings.Contains(r.Err.Error(), "unexpected EOF") {
		t.Errorf("got %v", r.Err)
	}
	e := serve(t, serverConfig{})
	r = once(t, with(fields(t, e.addr, "Unary", drivertest.Fields{"size": 5 << 20}), compressed))
	if drivers.KindOf(r.Err) != drivers.Protocol || !strings.Contains(r.Err.Error(), "larger than 4MiB: raise max_message") {
		t.Errorf("got %v", r.Err)
	}
	if r := once(t, with(fields(t, e.addr, "Unary", drivertest.Fields{"size": 5 << 20}), with(compressed, drivertest.Fields{"max_message": 6 << 20}))); r.Err != nil || r.BytesIn > 1<<20 {
		t.Errorf("%v, %d bytes in", r.Err, r.BytesIn)
	}
}
