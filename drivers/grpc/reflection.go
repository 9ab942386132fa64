package grpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jhump/protoreflect/v2/grpcreflect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	refv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	refv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/planrun/planrun/drivers"
)

// served is what is known of a server by reflection. It outlives rounds, so that a server is asked once.
type served struct {
	asking  sync.Mutex // one asks at a time
	mu      sync.Mutex
	waiting []*call
}

// askingTime is how long a server may take to describe itself.
const askingTime = 30 * time.Second

// add makes a call wait for the server to be asked.
func (s *served) add(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, c)
}

// waits tells whether calls wait.
func (s *served) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > 0
}

// reflect asks the server for the descriptors that calls wait for, over a connection of its own, and resolves the calls.
// The error is an *drivers.Error; faults of a step are FieldErrors within it.
func (c *Client) reflect(ctx context.Context) error {
	s := c.endpoint.served
	s.asking.Lock()
	defer s.asking.Unlock()
	s.mu.Lock()
	waiting := slices.Clone(s.waiting)
	s.mu.Unlock()
	if len(waiting) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askingTime)
	defer cancel()
	var t drivers.Timing
	l, err := c.dial(ctx, &t)
	if err != nil {
		return err
	}
	defer l.retire()

	var errs drivers.FieldErrors
	schemas := map[string]*schema{} // by service
	for _, call := range waiting {
		sc, known := schemas[call.service]
		var names []string
		if !known {
			if sc, names, err = ask(ctx, l.channel, call.service); err != nil {
				return err
			}
			schemas[call.service] = sc
		}
		if sc == nil {
			p := unknownService(call.service, names)
			errs = append(errs, call.op.Errorf("call", "%s at the server", p.message).WithHint("%s", p.hint))
			continue
		}
		errs = append(errs, call.resolve(sc)...)
	}
	if len(errs) > 0 {
		return drivers.Fail(drivers.Protocol, errs)
	}
	s.mu.Lock()
	s.waiting = slices.DeleteFunc(s.waiting, func(c *call) bool { return c.plan.Load() != nil })
	s.mu.Unlock()
	return nil
}

// errNoReflection is a server that offers neither version.
var errNoReflection = errors.New("the server offers no reflection: name the .proto files (proto) or a descriptor_set")

// ask asks for the descriptors of a service: by version 1 of the reflection service, and whatever goes wrong with it,
// by version 1 alpha. A service that the server does not know gives no schema and the names of those it knows.
func ask(ctx context.Context, channel *grpc.ClientConn, service string) (*schema, []string, error) {
	fallback := grpcreflect.WithFallbackResolvers(protoregistry.GlobalFiles, nil)
	clients := []*grpcreflect.Client{
		grpcreflect.NewClientV1(ctx, refv1.NewServerReflectionClient(channel), fallback),
		grpcreflect.NewClientV1Alpha(ctx, refv1alpha.NewServerReflectionClient(channel), fallback),
	}
	var failed []error
	for _, client := range clients {
		defer client.Reset()
		names, err := client.ListServices()
		if err != nil {
			failed = append(failed, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		f, err := client.FileContainingSymbol(protoreflect.FullName(service))
		switch {
		case err == nil:
			return newSchema(f), nil, nil
		case grpcreflect.IsElementNotFoundError(err) && !slices.Contains(names, protoreflect.FullName(service)):
			texts := make([]string, len(names))
			for i, n := range names {
				texts[i] = string(n)
			}
			return nil, texts, nil
		}
		failed = append(failed, err)
	}
	if ctx.Err() != nil {
		return nil, nil, drivers.Fail(contextKind(ctx), errors.New("reflection: the server did not answer in time"))
	}
	for _, err := range failed {
		if code := status.Code(err); code != codes.Unimplemented && code != codes.Unavailable {
			return nil, nil, drivers.Fail(drivers.Protocol, fmt.Errorf("reflection: %s; name the .proto files (proto) or a descriptor_set", statusText(err)))
		}
	}
	return nil, nil, drivers.Fail(drivers.Protocol, errNoReflection)
}

func contextKind(ctx context.Context) drivers.Failure {
	if ctx.Err() == context.Canceled {
		return drivers.Aborted
	}
	return drivers.Timeout
}

// statusText is the text of an error of reflection, without what the library puts around it.
func statusText(err error) string {
	if st, ok := status.FromError(err); ok {
		return st.Message()
	}
	return err.Error()
}
