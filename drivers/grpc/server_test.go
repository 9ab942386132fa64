package grpc

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	refv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	refv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// testdata is the path of a file of the tests.
func testdata(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var compiled sync.Map // schemas by file name

// testSchema compiles a file of the tests.
func testSchema(t testing.TB, name string) *schema {
	t.Helper()
	if s, ok := compiled.Load(name); ok {
		return s.(*schema)
	}
	s, errs := protoFiles(drivertest.NewOp(t, New(), drivertest.Fields{"proto": testdata(t, name)}))
	if err := errs.Err(); err != nil {
		t.Fatal(err)
	}
	compiled.Store(name, s)
	return s
}

func messageType(t testing.TB, s *schema, name string) protoreflect.MessageDescriptor {
	t.Helper()
	d, err := s.files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatal(err)
	}
	return d.(protoreflect.MessageDescriptor)
}

// echo is a server of testdata/echo.proto.
type echo struct {
	addr     string
	server   *grpc.Server
	schema   *schema
	requests atomic.Int64 // calls that reached a handler, or a method that is missing
	asked    atomic.Int64 // reflection streams
	conns    atomic.Int64
	deadline atomic.Int64 // what the last call was given, in nanoseconds
	active   atomic.Int64
	peak     atomic.Int64
}

type serverConfig struct {
	tls        *tls.Config
	options    []grpc.ServerOption
	reflection reflections
}

// serve starts an echo server that stops when the test ends.
func serve(t testing.TB, config serverConfig) *echo {
	t.Helper()
	e := &echo{schema: testSchema(t, "echo.proto")}
	options := append(config.options, grpc.UnknownServiceHandler(e.unknown))
	if config.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config.tls)))
	}
	e.server = grpc.NewServer(options...)
	e.register(t, config.reflection)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e.addr = l.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() { e.server.Serve(&countingListener{l, &e.conns}) })
	t.Cleanup(func() {
		e.server.Stop()
		wg.Wait()
	})
	return e
}

type countingListener struct {
	net.Listener
	n *atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return c, err
}

func (e *echo) register(t testing.TB, kind reflections) {
	service := messageType(t, e.schema, "demo.v1.Request").ParentFile().Services().ByName("Echo")
	e.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "demo.v1.Echo",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Unary", Handler: e.unary}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Download", ServerStreams: true, Handler: e.download},
			{StreamName: "Upload", ClientStreams: true, Handler: e.upload},
			{StreamName: "Chat", ClientStreams: true, ServerStreams: true, Handler: e.chat},
		},
	}, e)
	if kind == reflectNone {
		return
	}
	real := reflection.NewServerV1(reflection.ServerOptions{Services: onlyService(service), DescriptorResolver: e.schema.files})
	v1 := &reflectionV1{real: real, asked: &e.asked, kind: kind}
	switch kind {
	case reflectV1, reflectNoWellKnown:
		refv1.RegisterServerReflectionServer(e.server, v1)
	case reflectV1Alpha:
		refv1alpha.RegisterServerReflectionServer(e.server, &reflectionV1Alpha{real: e.schema, asked: &e.asked})
	case reflectV1Unavailable, reflectBrokenV1Stream:
		refv1.RegisterServerReflectionServer(e.server, v1)
		refv1alpha.RegisterServerReflectionServer(e.server, &reflectionV1Alpha{real: e.schema, asked: &e.asked})
	}
}

func (e *echo) unknown(_ any, stream grpc.ServerStream) error {
	if name, _ := grpc.MethodFromServerStream(stream); !strings.HasPrefix(name, "/grpc.reflection.") {
		e.requests.Add(1)
	}
	return status.Error(codes.Unimplemented, "no such method here")
}

// request is a message of the test's proto, with its fields at hand.
type request struct{ *dynamicpb.Message }

func (e *echo) newRequest() request {
	d, _ := e.schema.files.FindDescriptorByName("demo.v1.Request")
	return request{dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))}
}

func (r request) get(name string) protoreflect.Value {
	return r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(name)))
}

func (e *echo) reply(ctx context.Context, r request, number int64) *dynamicpb.Message {
	d, _ := e.schema.files.FindDescriptorByName("demo.v1.Reply")
	m := dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
	set := func(name string, v any) {
		m.Set(m.Descriptor().Fields().ByName(protoreflect.Name(name)), protoreflect.ValueOf(v))
	}
	set("text", r.get("text").String())
	set("number", number)
	set("payload", make([]byte, r.get("size").Int()))
	if at := r.Descriptor().Fields().ByName("at"); r.Has(at) {
		set("at", r.Get(at).Message())
	}
	if md, ok := metadata.FromIncomingContext(ctx); ok && len(md["caller"]) > 0 {
		set("caller", strings.Join(md["caller"], ","))
	}
	return m
}

// work does what a request says before it is answered.
func (e *echo) work(ctx context.Context, r request) error {
	if n := e.active.Add(1); n > e.peak.Load() {
		e.peak.Store(n)
	}
	defer e.active.Add(-1)
	if d, ok := ctx.Deadline(); ok {
		e.deadline.Store(int64(time.Until(d)))
	}
	if r.get("early_header").Bool() {
		grpc.SendHeader(ctx, metadata.Pairs("early", "yes"))
	} else if r.get("status").Int() == 0 {
		grpc.SetHeader(ctx, metadata.Pairs("server", "echo", "raw-bin", "\x00\x01"))
		grpc.SetTrailer(ctx, metadata.Pairs("took", "a while"))
	}
	if d := time.Duration(r.get("delay_ms").Int()) * time.Millisecond; d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	if code := codes.Code(r.get("status").Int()); code != codes.OK {
		return status.Error(code, r.get("status_text").String())
	}
	return nil
}

func (e *echo) unary(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	e.requests.Add(1)
	r := e.newRequest()
	if err := decode(r.Message); err != nil {
		return nil, err
	}
	if err := e.work(ctx, r); err != nil {
		return nil, err
	}
	return e.reply(ctx, r, 1), nil
}

func (e *echo) download(_ any, stream grpc.ServerStream) error {
	e.requests.Add(1)
	r := e.newRequest()
	if err := stream.RecvMsg(r.Message); err != nil {
		return err
	}
	count := max(r.get("count").Int(), 1)
	endless := r.get("count").Int() < 0
	for i := int64(1); endless || i <= count; i++ {
		if i > 1 && r.get("status").Int() != 0 {
			break
		}
		if err := stream.SendMsg(e.reply(stream.Context(), r, i)); err != nil {
			return err
		}
		if endless {
			select {
			case <-time.After(time.Millisecond):
			case <-stream.Context().Done():
				return stream.Context().Err()
			}
		}
	}
	return e.work(stream.Context(), r)
}

func (e *echo) upload(_ any, stream grpc.ServerStream) error {
	e.requests.Add(1)
	var n int64
	last := e.newRequest()
	for {
		r := e.newRequest()
		err := stream.RecvMsg(r.Message)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		last = r
		n++
	}
	if err := e.work(stream.Context(), last); err != nil {
		return err
	}
	return stream.SendMsg(e.reply(stream.Context(), last, n))
}

func (e *echo) chat(_ any, stream grpc.ServerStream) error {
	e.requests.Add(1)
	var n int64
	for {
		r := e.newRequest()
		err := stream.RecvMsg(r.Message)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		n++
		if err := e.work(stream.Context(), r); err != nil {
			return err
		}
		if err := stream.SendMsg(e.reply(stream.Context(), r, n)); err != nil {
			return err
		}
	}
}

// fields are those of a step that calls a method of the echo server at addr without TLS.
func fields(t testing.TB, addr, method string, message drivertest.Fields) drivertest.Fields {
	f := drivertest.Fields{"call": "demo.v1.Echo/" + method, "address": addr, "plaintext": true, "proto": testdata(t, "echo.proto")}
	if message != nil {
		f["message"] = message
	}
	return f
}

// with returns fields with more of them; nil removes one.
func with(f drivertest.Fields, more drivertest.Fields) drivertest.Fields {
	out := drivertest.Fields{}
	for k, v := range f {
		out[k] = v
	}
	for k, v := range more {
		if v == nil {
			delete(out, k)
			continue
		}
		out[k] = v
	}
	return out
}

// value reads a name of an answer.
func value(t testing.TB, a drivers.Answer, name string) any {
	t.Helper()
	v, err := a.Value(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// once makes one call of a new client.
func once(t testing.TB, f drivertest.Fields, reads ...string) drivertest.Result {
	t.Helper()
	b := drivertest.NewBench(t, New(), f, drivers.Pool{Users: 1}, reads...)
	return b.Do(t.Context(), b.Open(), 20*time.Second)
}

func valueOf(v any) protoreflect.Value { return protoreflect.ValueOf(v) }
