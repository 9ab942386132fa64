package grpc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// reflected are the fields of a step that leaves the schema to the server.
func reflected(t testing.TB, e *echo, message drivertest.Fields) drivertest.Fields {
	return with(fields(t, e.addr, "Unary", message), drivertest.Fields{"proto": nil})
}

// The server is asked by version 1 or by version 1 alpha, whichever works, and once for all rounds.
func TestReflection(t *testing.T) {
	for name, kind := range map[string]reflections{
		"v1 only":                    reflectV1,
		"v1alpha only":               reflectV1Alpha,
		"v1 unavailable":             reflectV1Unavailable,
		"v1 that ends its stream":    reflectBrokenV1Stream,
		"without Google's own files": reflectNoWellKnown,
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, serverConfig{reflection: kind})
			d := New()
			f := reflected(t, e, drivertest.Fields{"text": "hello", "at": "2030-01-31T12:00:00Z"})
			call := drivertest.Prepare(t, d, f, "message")
			if n := e.conns.Load(); n != 0 {
				t.Errorf("preparing opened %d connections", n)
			}
			for round := range 3 {
				client, err := d.Connect(t.Context(), call.Endpoint(), drivers.Pool{Users: 1})
				if err != nil {
					t.Fatal(err)
				}
				b := &drivertest.Bench{TB: t, Client: client, Call: call}
				s, err := client.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				// The connection of the calls is opened by a call, though the server was asked before.
				r := b.Must(s)
				if !r.Opened || r.Connect < 0 {
					t.Errorf("round %d: the call opened no connection", round)
				}
				if m := value(t, r.Answer, "message").(map[string]any); m["text"] != "hello" || m["at"] != "2030-01-31T12:00:00Z" {
					t.Errorf("round %d: %v", round, m)
				}
				client.Close()
			}
			// One connection for the question, one for each round.
			if n := e.conns.Load(); n != 4 {
				t.Errorf("%d connections, want 4", n)
			}
			if n := e.requests.Load(); n != 3 {
				t.Errorf("%d calls, want 3", n)
			}
		})
	}
}

// A probe asks the server in passing, and Connect does not ask again.
func TestReflectionByProbe(t *testing.T) {
	e := serve(t, serverConfig{reflection: reflectV1})
	d := New()
	call := drivertest.Prepare(t, d, reflected(t, e, nil))
	e2 := serve(t, serverConfig{})
	other := drivertest.Prepare(t, d, fields(t, e2.addr, "Unary", nil))

	// The probe's client can't be connected without asking either, so it is asked there.
	client, err := d.Connect(t.Context(), call.Endpoint(), drivers.Pool{Users: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 2 {
		if err := client.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := e.asked.Load(); n == 0 || n > 2 {
		t.Errorf("the server was asked %d times", n)
	}
	if prepared(call).plan.Load() == nil || prepared(other).plan.Load() == nil {
		t.Error("a call has no schema")
	}
	if n := e2.conns.Load(); n != 0 {
		t.Error("a server was asked though the .proto file is there")
	}
}

func prepared(c drivers.Call) *call { return c.(*call) }

// A constant message is encoded once, also when the schema comes late.
func TestReflectionEncodesOnce(t *testing.T) {
	e := serve(t, serverConfig{reflection: reflectV1})
	d := New()
	b := drivertest.NewBench(t, d, reflected(t, e, drivertest.Fields{"text": "hello"}), drivers.Pool{Users: 1})
	p := b.Call.(*call).plan.Load()
	if p == nil || len(p.messages) != 1 || p.messages[0].ready == nil {
		t.Fatal("the message is not ready before the load")
	}
	b.Must(b.Open())
	if b.Call.(*call).plan.Load() != p {
		t.Error("the schema was made again")
	}
}

func TestNoReflection(t *testing.T) {
	e := serve(t, serverConfig{})
	d := New()
	call := drivertest.Prepare(t, d, reflected(t, e, nil))
	for range 2 {
		_, err := d.Connect(t.Context(), call.Endpoint(), drivers.Pool{Users: 1})
		if drivers.KindOf(err) != drivers.Protocol || !strings.Contains(err.Error(), "the server offers no reflection") || !strings.Contains(err.Error(), "proto") {
			t.Errorf("%v: %v", drivers.KindOf(err), err)
		}
	}

	// A server that can't be reached is told as such.
	gone := drivertest.Prepare(t, d, with(reflected(t, e, nil), drivertest.Fields{"address": drivertest.RefusedAddr(t)}))
	if _, err := d.Connect(t.Context(), gone.Endpoint(), drivers.Pool{Users: 1}); drivers.KindOf(err) != drivers.Refused {
		t.Errorf("%v", err)
	}
}

// Faults that only the server's schema shows are told before the load, at their fields.
func TestReflectionFaults(t *testing.T) {
	e := serve(t, serverConfig{reflection: reflectV1})
	for _, test := range []struct {
		fields drivertest.Fields
		path   string
		text   string
	}{
		{drivertest.Fields{"call": "demo.v1.Ecko/Unary"}, "call", `there is no service "demo.v1.Ecko" at the server: did you mean demo.v1.Echo?`},
		{drivertest.Fields{"call": "Echo/Unary"}, "call", "did you mean demo.v1.Echo?"},
		{drivertest.Fields{"call": "demo.v1.Echo/Unari"}, "call", `service demo.v1.Echo has no method "Unari": did you mean Unary?`},
		{drivertest.Fields{"message": drivertest.Fields{"txt": "x"}}, "message.txt", `demo.v1.Request has no field "txt": did you mean text?`},
		{drivertest.Fields{"messages_limit": 3}, "messages_limit", "Unary does not answer with a stream"},
	} {
		d := New()
		call := drivertest.Prepare(t, d, with(reflected(t, e, nil), test.fields))
		_, err := d.Connect(t.Context(), call.Endpoint(), drivers.Pool{Users: 1})
		faults, ok := errors.AsType[drivers.FieldErrors](err)
		if !ok || len(faults) != 1 {
			t.Errorf("%v: %v", test.fields, err)
			continue
		}
		if path := strings.Join(faults[0].Path, "."); path != test.path || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A server that never answers the question is a timeout.
func TestReflectionTimeout(t *testing.T) {
	s := serveRaw(t, nil, func(*rawConn, uint32) {})
	d := New()
	call := drivertest.Prepare(t, d, drivertest.Fields{"call": "demo.v1.Echo/Unary", "address": s.Addr(), "plaintext": true})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := d.Connect(ctx, call.Endpoint(), drivers.Pool{Users: 1}); drivers.KindOf(err) != drivers.Timeout {
		t.Errorf("%v: %v", drivers.KindOf(err), err)
	}
}
