// Package node is the interface of the lab's gRPC service: the messages of node.proto, and how a server and a client of it
// are made.
package node

import (
	"context"

	"google.golang.org/grpc"
)

// file is the path by which protobuf's registry, and so reflection, knows node.proto.
const file = "lab/v1/node.proto"

// The service and the method that answers one request with one reply.
const (
	ServiceName = "lab.v1.Node"
	WorkMethod  = "/" + ServiceName + "/Work"
)

// Server is what node.proto says of the service. Its methods are called concurrently.
type Server interface {
	Work(context.Context, *WorkRequest) (*WorkReply, error)
	Watch(*WatchRequest, grpc.ServerStreamingServer[WorkReply]) error
	Collect(grpc.ClientStreamingServer[WorkRequest, CollectReply]) error
	Chat(grpc.BidiStreamingServer[WorkRequest, WorkReply]) error
}

// Register adds the service to a gRPC server that does not serve yet.
func Register(r grpc.ServiceRegistrar, s Server) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: ServiceName,
		HandlerType: (*Server)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Work", Handler: work}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Watch", ServerStreams: true, Handler: watch},
			{StreamName: "Collect", ClientStreams: true, Handler: collect},
			{StreamName: "Chat", ServerStreams: true, ClientStreams: true, Handler: chat},
		},
		Metadata: file,
	}, s)
}

func work(s any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	in := new(WorkRequest)
	if err := decode(in); err != nil {
		return nil, err
	}
	return s.(Server).Work(ctx, in)
}

func watch(s any, stream grpc.ServerStream) error {
	in := new(WatchRequest)
	if err := stream.RecvMsg(in); err != nil {
		return err
	}
	return s.(Server).Watch(in, &grpc.GenericServerStream[WatchRequest, WorkReply]{ServerStream: stream})
}

func collect(s any, stream grpc.ServerStream) error {
	return s.(Server).Collect(&grpc.GenericServerStream[WorkRequest, CollectReply]{ServerStream: stream})
}

func chat(s any, stream grpc.ServerStream) error {
	return s.(Server).Chat(&grpc.GenericServerStream[WorkRequest, WorkReply]{ServerStream: stream})
}
