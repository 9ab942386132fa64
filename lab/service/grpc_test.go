//lint:file-ignore SA1019 Clients still ask for version 1 alpha, so it is tried.

package service

import (
	"context"
	"crypto/tls"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"

	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/lab"
	"github.com/planrun/planrun/lab/service/node"
)

func listenGRPC(t testing.TB, spec lab.Service, authority *Authority) *GRPC {
	t.Helper()
	spec.Name, spec.Kind = "node", lab.GRPC
	g, err := ListenGRPC(clock.New(), spec, authority)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// dial makes a channel to a service; with an authority over TLS.
func dial(t testing.TB, g *GRPC, authority *Authority) *grpc.ClientConn {
	t.Helper()
	transport := insecure.NewCredentials()
	if authority != nil {
		transport = credentials.NewTLS(&tls.Config{RootCAs: authority.pool()})
	}
	channel, err := grpc.NewClient("passthrough:///"+g.Address(), grpc.WithTransportCredentials(transport))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { channel.Close() })
	return channel
}

func callWork(ctx context.Context, channel *grpc.ClientConn, in *node.WorkRequest) (*node.WorkReply, error) {
	out := new(node.WorkReply)
	return out, channel.Invoke(ctx, node.WorkMethod, in, out)
}

func TestWork(t *testing.T) {
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	for name, secure := range map[string]*Authority{"plaintext": nil, "tls": authority} {
		t.Run(name, func(t *testing.T) {
			g := listenGRPC(t, lab.Service{TLS: secure != nil}, authority)
			channel := dial(t, g, secure)
			seen := map[string]bool{}
			for _, n := range []int64{0, 1, 1000, 1000, contentLength, contentLength + 1} {
				out, err := callWork(t.Context(), channel, &node.WorkRequest{Text: "hello", Bytes: n})
				if err != nil {
					t.Fatal(err)
				}
				if out.Text != "hello" || int64(len(out.Payload)) != n || out.Number != 1 || seen[out.Payload] {
					t.Errorf("%d bytes: text %q, %d bytes, number %d, seen before: %v", n, out.Text, len(out.Payload), out.Number, seen[out.Payload])
				}
				seen[out.Payload] = true
			}
			for in, want := range map[*node.WorkRequest]codes.Code{
				{Bytes: -1}:              codes.InvalidArgument,
				{Bytes: mostPayload + 1}: codes.InvalidArgument,
				{Status: 5}:              codes.NotFound,
			} {
				if _, err := callWork(t.Context(), channel, in); status.Code(err) != want {
					t.Errorf("%v: %v, want %v", in, err, want)
				}
			}
			if g.Requests() != 9 || g.Connections() != 1 {
				t.Errorf("%d requests by %d connections", g.Requests(), g.Connections())
			}
		})
	}
}

func TestStreams(t *testing.T) {
	g := listenGRPC(t, lab.Service{}, nil)
	channel := dial(t, g, nil)
	open := func(method string, d grpc.StreamDesc) grpc.ClientStream {
		t.Helper()
		s, err := channel.NewStream(t.Context(), &d, "/"+node.ServiceName+"/"+method)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	numbers := func(s grpc.ClientStream) (got []int64) {
		t.Helper()
		for {
			out := new(node.WorkReply)
			err := s.RecvMsg(out)
			if err == io.EOF {
				return got
			}
			if err != nil || len(out.Payload) != 10 {
				t.Fatal(out, err)
			}
			got = append(got, out.Number)
		}
	}

	watch := open("Watch", grpc.StreamDesc{ServerStreams: true})
	watch.SendMsg(&node.WatchRequest{Count: 3, Bytes: 10})
	watch.CloseSend()
	if got := numbers(watch); !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("watched %v", got)
	}

	collect := open("Collect", grpc.StreamDesc{ClientStreams: true})
	for range 4 {
		collect.SendMsg(&node.WorkRequest{Text: "12345"})
	}
	collect.CloseSend()
	sum := new(node.CollectReply)
	if err := collect.RecvMsg(sum); err != nil || sum.Count != 4 || sum.Bytes != 20 {
		t.Errorf("collected %v, %v", sum, err)
	}

	chat := open("Chat", grpc.StreamDesc{ClientStreams: true, ServerStreams: true})
	for i := range int64(3) {
		chat.SendMsg(&node.WorkRequest{Bytes: 10})
		out := new(node.WorkReply)
		if err := chat.RecvMsg(out); err != nil || out.Number != i+1 {
			t.Errorf("answer %d: %v, %v", i, out, err)
		}
	}
	chat.SendMsg(&node.WorkRequest{Status: 8})
	if err := chat.RecvMsg(new(node.WorkReply)); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}

	// A stream without end ends when nobody wants more.
	ctx, cancel := context.WithCancel(t.Context())
	endless, err := channel.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/"+node.ServiceName+"/Watch")
	if err != nil {
		t.Fatal(err)
	}
	endless.SendMsg(&node.WatchRequest{Count: -1})
	for range 100 {
		if err := endless.RecvMsg(new(node.WorkReply)); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
}

func TestReflectionAndHealth(t *testing.T) {
	g := listenGRPC(t, lab.Service{Delay: time.Hour}, nil)
	channel := dial(t, g, nil)
	one, err := reflectionv1.NewServerReflectionClient(channel).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: node.ServiceName}})
	if r, err := one.Recv(); err != nil || len(r.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Error(r, err)
	}
	one.CloseSend()
	alpha, err := reflectionv1alpha.NewServerReflectionClient(channel).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	alpha.Send(&reflectionv1alpha.ServerReflectionRequest{MessageRequest: &reflectionv1alpha.ServerReflectionRequest_ListServices{}})
	if r, err := alpha.Recv(); err != nil || !strings.Contains(r.String(), node.ServiceName) {
		t.Error(r, err)
	}
	alpha.CloseSend()
	if r, err := healthv1.NewHealthClient(channel).Check(t.Context(), nil); err != nil || r.Status != healthv1.HealthCheckResponse_SERVING {
		t.Error(r, err)
	}
	if g.Requests() != 0 {
		t.Errorf("%d requests, none was work", g.Requests())
	}
}

// Work takes its time, in as many slots as there are; a call that is given up leaves the queue.
func TestWorkTakesTime(t *testing.T) {
	g := listenGRPC(t, lab.Service{Delay: 20 * time.Millisecond, DelayMax: 24 * time.Millisecond, Slots: 5}, nil)
	channel := dial(t, g, nil)
	start := time.Now()
	var running sync.WaitGroup
	for range 50 {
		running.Go(func() {
			if _, err := callWork(t.Context(), channel, &node.WorkRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if took := time.Since(start); took < 200*time.Millisecond {
		t.Errorf("50 calls in 5 slots took %v, want 200ms at the least", took)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := callWork(ctx, channel, &node.WorkRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
}
