package grpc

import (
	"context"

	"google.golang.org/grpc/stats"
)

// traffic tells sessions how many bytes their messages had as they travelled, which only the library knows where it
// compresses them. Connections without compression do without it: it costs more than all else that this package does in
// a call.
type traffic struct{}

// owner is the key of the context's value that has the session of a call.
type owner struct{}

// HandleRPC implements stats.Handler. What is sent and what is received are counted by one goroutine each.
func (traffic) HandleRPC(ctx context.Context, event stats.RPCStats) {
	s, ok := ctx.Value(owner{}).(*session)
	if !ok {
		return // a question to the server's reflection
	}
	switch e := event.(type) {
	case *stats.OutPayload:
		s.sent += int64(e.CompressedLength)
	case *stats.InPayload:
		s.arrive(int64(e.CompressedLength))
	}
}

func (traffic) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (traffic) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (traffic) HandleConn(context.Context, stats.ConnStats)                       {}
