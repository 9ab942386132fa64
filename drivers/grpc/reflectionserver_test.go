package grpc

//lint:file-ignore SA1019 Servers still offer version 1 alpha, so it is tried.

import (
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	refv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	refv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// reflections are the ways in which a server describes itself.
type reflections int

const (
	reflectNone reflections = iota
	reflectV1
	reflectV1Alpha
	reflectV1Unavailable  // v1 answers Unavailable, v1alpha works
	reflectNoWellKnown    // v1 that does not know Google's own files
	reflectBrokenV1Stream // v1 ends its stream at once, v1alpha works
)

type serviceInfo map[string]grpc.ServiceInfo

func (s serviceInfo) GetServiceInfo() map[string]grpc.ServiceInfo { return s }

func onlyService(sd protoreflect.ServiceDescriptor) serviceInfo {
	return serviceInfo{string(sd.FullName()): grpc.ServiceInfo{Metadata: sd.ParentFile().Path()}}
}

// reflectionV1 is version 1 with the faults of kind.
type reflectionV1 struct {
	refv1.UnimplementedServerReflectionServer
	real  refv1.ServerReflectionServer
	asked *atomic.Int64
	kind  reflections
}

func (r *reflectionV1) ServerReflectionInfo(stream refv1.ServerReflection_ServerReflectionInfoServer) error {
	r.asked.Add(1)
	switch r.kind {
	case reflectV1Unavailable:
		return status.Error(codes.Unavailable, "try again later")
	case reflectBrokenV1Stream:
		return nil
	case reflectNoWellKnown:
		return r.real.ServerReflectionInfo(&withoutWellKnown{stream})
	}
	return r.real.ServerReflectionInfo(stream)
}

// withoutWellKnown leaves Google's own files out of the answers.
type withoutWellKnown struct {
	refv1.ServerReflection_ServerReflectionInfoServer
}

func (w *withoutWellKnown) Send(resp *refv1.ServerReflectionResponse) error {
	if files := resp.GetFileDescriptorResponse(); files != nil {
		var kept [][]byte
		for _, b := range files.FileDescriptorProto {
			var f descriptorpb.FileDescriptorProto
			if err := proto.Unmarshal(b, &f); err != nil {
				return err
			}
			if !strings.HasPrefix(f.GetName(), "google/") {
				kept = append(kept, b)
			}
		}
		files.FileDescriptorProto = kept
		if len(kept) == 0 {
			resp.MessageResponse = &refv1.ServerReflectionResponse_ErrorResponse{ErrorResponse: &refv1.ErrorResponse{ErrorCode: int32(codes.NotFound), ErrorMessage: "no such file"}}
		}
	}
	return w.ServerReflection_ServerReflectionInfoServer.Send(resp)
}

// reflectionV1Alpha is version 1 alpha, written by hand: it knows one service.
type reflectionV1Alpha struct {
	refv1alpha.UnimplementedServerReflectionServer
	real  *schema
	asked *atomic.Int64
}

func (r *reflectionV1Alpha) ServerReflectionInfo(stream refv1alpha.ServerReflection_ServerReflectionInfoServer) error {
	r.asked.Add(1)
	for {
		req, err := stream.Recv()
		if err != nil {
			return nil
		}
		resp := &refv1alpha.ServerReflectionResponse{OriginalRequest: req}
		var f protoreflect.FileDescriptor
		switch m := req.MessageRequest.(type) {
		case *refv1alpha.ServerReflectionRequest_ListServices:
			resp.MessageResponse = &refv1alpha.ServerReflectionResponse_ListServicesResponse{ListServicesResponse: &refv1alpha.ListServiceResponse{
				Service: []*refv1alpha.ServiceResponse{{Name: "demo.v1.Echo"}},
			}}
		case *refv1alpha.ServerReflectionRequest_FileContainingSymbol:
			if d, err := r.real.files.FindDescriptorByName(protoreflect.FullName(m.FileContainingSymbol)); err == nil {
				f = d.ParentFile()
			}
		case *refv1alpha.ServerReflectionRequest_FileByFilename:
			f, _ = r.real.files.FindFileByPath(m.FileByFilename)
		}
		switch {
		case f != nil:
			b, err := proto.Marshal(protodesc.ToFileDescriptorProto(f))
			if err != nil {
				return err
			}
			resp.MessageResponse = &refv1alpha.ServerReflectionResponse_FileDescriptorResponse{FileDescriptorResponse: &refv1alpha.FileDescriptorResponse{FileDescriptorProto: [][]byte{b}}}
		case resp.MessageResponse == nil:
			resp.MessageResponse = &refv1alpha.ServerReflectionResponse_ErrorResponse{ErrorResponse: &refv1alpha.ErrorResponse{ErrorCode: int32(codes.NotFound), ErrorMessage: "not here"}}
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
}
