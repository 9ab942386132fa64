package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/lab"
	"github.com/planrun/planrun/lab/service/node"
)

// GRPC is a gRPC service, over HTTP/2 with prior knowledge or over TLS: the Node of node.proto. Its schema can be asked
// for by reflection, version 1 and version 1 alpha, and grpc.health.v1.Health says that it serves.
//
// Each reply of the Node, to a call or within a stream, is worked on as the service's delay, serial and slots say.
type GRPC struct {
	content  content
	work     work
	server   *grpc.Server
	listener *counted
	served   chan struct{}
	requests atomic.Int64
}

// mostPayload is how many bytes a reply may have.
const mostPayload = 64 << 20

// ListenGRPC starts a service of kind grpc. The authority is needed with TLS only.
func ListenGRPC(c *clock.Clock, spec lab.Service, authority *Authority) (*GRPC, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start service %s: %w", spec.Name, err)
	}
	var options []grpc.ServerOption
	if spec.TLS {
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&authority.certificate)))
	}
	g := &GRPC{
		content:  newContent(),
		work:     newWork(c, spec),
		server:   grpc.NewServer(options...),
		listener: &counted{Listener: l},
		served:   make(chan struct{}),
	}
	node.Register(g.server, g)
	healthv1.RegisterHealthServer(g.server, health.NewServer())
	reflection.Register(g.server)
	go func() {
		defer close(g.served)
		g.server.Serve(g.listener)
	}()
	return g, nil
}

// Address is host and port of the service.
func (g *GRPC) Address() string { return g.listener.Addr().String() }

// Connections is how many connections the service has accepted.
func (g *GRPC) Connections() int64 { return g.listener.accepted.Load() }

// Requests is how many calls of the Node the service has received, streams included.
func (g *GRPC) Requests() int64 { return g.requests.Load() }

// Close breaks off all connections.
func (g *GRPC) Close() error {
	g.server.Stop()
	<-g.served
	return nil
}

// reply works on a reply and makes it.
func (g *GRPC) reply(ctx context.Context, text string, bytes, number int64) (*node.WorkReply, error) {
	if bytes < 0 || bytes > mostPayload {
		return nil, status.Errorf(codes.InvalidArgument, "bytes must lie between 0 and %d", mostPayload)
	}
	if err := g.work.do(ctx); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	return &node.WorkReply{Text: text, Payload: g.content.text(bytes), Number: number}, nil
}

// answer answers a request.
func (g *GRPC) answer(ctx context.Context, in *node.WorkRequest, number int64) (*node.WorkReply, error) {
	if in.Status != 0 {
		return nil, status.Errorf(codes.Code(in.Status), "status %d, as asked for", in.Status)
	}
	return g.reply(ctx, in.Text, in.Bytes, number)
}

// Work implements [node.Server].
func (g *GRPC) Work(ctx context.Context, in *node.WorkRequest) (*node.WorkReply, error) {
	g.requests.Add(1)
	return g.answer(ctx, in, 1)
}

// Watch implements [node.Server].
func (g *GRPC) Watch(in *node.WatchRequest, stream grpc.ServerStreamingServer[node.WorkReply]) error {
	g.requests.Add(1)
	for number := int64(1); in.Count < 0 || number <= in.Count; number++ {
		reply, err := g.reply(stream.Context(), in.Text, in.Bytes, number)
		if err != nil {
			return err
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
	}
	return nil
}

// Collect implements [node.Server].
func (g *GRPC) Collect(stream grpc.ClientStreamingServer[node.WorkRequest, node.CollectReply]) error {
	g.requests.Add(1)
	sum := &node.CollectReply{}
	for {
		in, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		sum.Count++
		sum.Bytes += int64(len(in.Text))
	}
	if err := g.work.do(stream.Context()); err != nil {
		return status.FromContextError(err).Err()
	}
	return stream.SendAndClose(sum)
}

// Chat implements [node.Server].
func (g *GRPC) Chat(stream grpc.BidiStreamingServer[node.WorkRequest, node.WorkReply]) error {
	g.requests.Add(1)
	for number := int64(1); ; number++ {
		in, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		reply, err := g.answer(stream.Context(), in, number)
		if err != nil {
			return err
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
	}
}

// counted counts what a listener accepts.
type counted struct {
	net.Listener
	accepted atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return conn, err
}
