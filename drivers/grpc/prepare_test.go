package grpc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// faults are what Prepare says, as "path: message", with hints.
func faults(t testing.TB, f drivertest.Fields) []string {
	t.Helper()
	d := New()
	_, err := d.Prepare(drivertest.NewOp(t, d, f))
	if err == nil {
		return nil
	}
	list, ok := errors.AsType[drivers.FieldErrors](err)
	if !ok {
		t.Fatalf("the error has no fields: %v", err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Error())
	}
	return out
}

// A call says its method, however the plan wrote it.
func TestCallDescribesItself(t *testing.T) {
	for _, name := range []string{"demo.v1.Echo/Unary", "/demo.v1.Echo/Unary", "demo.v1.Echo.Unary"} {
		call := drivertest.Prepare(t, New(), with(fields(t, "127.0.0.1:1", "Unary", nil), drivertest.Fields{"call": name}))
		if got := fmt.Sprint(call); got != "demo.v1.Echo/Unary" {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestFaults(t *testing.T) {
	ok := fields(t, "127.0.0.1:1", "Unary", nil)
	perCall := drivertest.Func(func(*drivers.Input) any { return "x" })
	for name, test := range map[string]struct {
		fields drivertest.Fields
		want   []string // one fault each, in order
	}{
		"fine":                  {ok, nil},
		"dots":                  {with(ok, drivertest.Fields{"call": "demo.v1.Echo.Unary"}), nil},
		"leading slash":         {with(ok, drivertest.Fields{"call": "/demo.v1.Echo/Unary"}), nil},
		"no call":               {with(ok, drivertest.Fields{"call": nil}), []string{"call: the method is missing: write call: package.Service/Method"}},
		"no method":             {with(ok, drivertest.Fields{"call": "Echo"}), []string{`call: "Echo" is no method: write package.Service/Method`}},
		"no name":               {with(ok, drivertest.Fields{"call": "demo.v1.Echo/Una ry"}), []string{`call: "demo.v1.Echo/Una ry" is no method`}},
		"call per call":         {with(ok, drivertest.Fields{"call": perCall}), []string{"call: call must be known before the load"}},
		"unknown service":       {with(ok, drivertest.Fields{"call": "demo.v1.Ehco/Unary"}), []string{`call: there is no service "demo.v1.Ehco": did you mean demo.v1.Echo?`}},
		"package left out":      {with(ok, drivertest.Fields{"call": "Echo/Unary"}), []string{`call: there is no service "Echo": did you mean demo.v1.Echo?`}},
		"a message":             {with(ok, drivertest.Fields{"call": "demo.v1.Request/Unary"}), []string{"call: demo.v1.Request is not a service"}},
		"unknown method":        {with(ok, drivertest.Fields{"call": "demo.v1.Echo/unary"}), []string{`call: service demo.v1.Echo has no method "unary": did you mean Unary?`}},
		"far method":            {with(ok, drivertest.Fields{"call": "demo.v1.Echo/Xyzzyplugh"}), []string{`has no method "Xyzzyplugh": there are Unary, Download, Upload, Chat, Missing`}},
		"no address":            {with(ok, drivertest.Fields{"address": nil}), []string{"address: the address is missing: write host:port"}},
		"no port":               {with(ok, drivertest.Fields{"address": "api.test"}), []string{`address: "api.test" has no port: write host:port`}},
		"bad port":              {with(ok, drivertest.Fields{"address": "api.test:99999"}), []string{`address: "99999" is no port: write host:port`}},
		"another scheme":        {with(ok, drivertest.Fields{"address": "https://api.test:443"}), []string{`address: the scheme "https" is none of gRPC's: write api.test:443, or grpc:// for plaintext, or grpcs:// for TLS`}},
		"two minds":             {with(ok, drivertest.Fields{"address": "grpcs://api.test:443"}), []string{"plaintext: grpcs:// stands for TLS: write grpc:// for plaintext"}},
		"two minds again":       {with(ok, drivertest.Fields{"address": "grpc://api.test:443", "plaintext": false}), []string{"plaintext: grpc:// stands for plaintext: write grpcs:// for TLS"}},
		"address per call":      {with(ok, drivertest.Fields{"address": perCall}), []string{"address: address must be known before the load"}},
		"tls in the open":       {with(ok, drivertest.Fields{"tls": drivertest.Fields{"insecure": true}}), []string{"tls: a plaintext connection has no TLS"}},
		"no such file":          {with(ok, drivertest.Fields{"proto": "/nowhere/x.proto"}), []string{"proto.0: /nowhere/x.proto can't be read: no such file or directory"}},
		"no such folder":        {with(ok, drivertest.Fields{"import_paths": "/nowhere"}), []string{"import_paths.0: /nowhere is not a folder"}},
		"imports of nothing":    {with(ok, drivertest.Fields{"proto": nil, "import_paths": "."}), []string{"import_paths: there are no proto files to import from: add proto"}},
		"two schemas":           {with(ok, drivertest.Fields{"descriptor_set": "x"}), []string{"descriptor_set: there are proto files, too"}},
		"no descriptors":        {with(ok, drivertest.Fields{"proto": nil, "descriptor_set": testdata(t, "echo.proto")}), []string{"holds no descriptors: make it with protoc"}},
		"zero":                  {with(ok, drivertest.Fields{"max_message": 0}), []string{"max_message: must be more than 0"}},
		"too much":              {with(ok, drivertest.Fields{"max_message": 1 << 40}), []string{"max_message: must be less than 2GiB"}},
		"limits of no stream":   {with(ok, drivertest.Fields{"messages_limit": 3, "stream_duration": time.Second}), []string{"messages_limit: Unary does not answer with a stream", "stream_duration: Unary does not answer with a stream"}},
		"messages of no stream": {with(ok, drivertest.Fields{"messages": []any{}}), []string{"messages: Unary takes one message: write message"}},
		"message and messages":  {with(ok, drivertest.Fields{"call": "demo.v1.Echo/Chat", "message": drivertest.Fields{}, "messages": []any{}}), []string{"messages: there is a message, too"}},
		"messages as one":       {with(ok, drivertest.Fields{"call": "demo.v1.Echo/Chat", "messages": drivertest.Fields{"text": "x"}}), []string{"messages: expected a list of messages: for a single one, write message"}},
		"metadata": {with(ok, drivertest.Fields{"metadata": drivertest.Fields{
			":authority": "x", "a b": "x", "content-type": "x", "grpc-timeout": "x", "line": "a\nb", "raw-bin": "no base64",
		}}), []string{
			`metadata.:authority: ":authority" is gRPC's own: write authority`,
			`metadata.a b: ' ' can't be in a key of metadata`,
			`metadata.content-type: "content-type" is set by the protocol`,
			`metadata.grpc-timeout: "grpc-timeout" is gRPC's own: it is made from timeout`,
			`metadata.line: "a\nb" can't be sent`,
			"metadata.raw-bin: the key ends in -bin, so its value must be Base64",
		}},
		"everything at once": {with(ok, drivertest.Fields{
			"address": "nowhere", "keepalive": time.Second, "message": drivertest.Fields{"txt": 1, "size": "many"},
		}), []string{
			"address: \"nowhere\" has no port", "keepalive: must be at least 10s",
			`message.size: expected a whole number, not "many"`, `message.txt: demo.v1.Request has no field "txt": did you mean text?`,
		}},
		"messages in a list": {with(ok, drivertest.Fields{"call": "demo.v1.Echo/Upload", "messages": []any{drivertest.Fields{}, drivertest.Fields{"at": "noon"}, 3}}), []string{
			`messages.1.at: expected a point in time, not the text "noon": write it as in 2030-01-31T12:00:00Z`,
			"messages.2: demo.v1.Request is a message: write a mapping of its fields, not the number 3",
		}},
		"three faults in a proto": {drivertest.Fields{"call": "wrong.S/Get", "address": "a:1", "proto": testdata(t, "faulty/wrong.proto")}, []string{
			"proto.0: wrong.proto:6:3: ", "proto.0: wrong.proto:10:11: ",
		}},
		"no syntax": {drivertest.Fields{"call": "wrong.S/Get", "address": "a:1", "proto": testdata(t, "faulty/syntax.proto")}, []string{
			"proto.0: syntax.proto:1:1: syntax error",
		}},
		"missing import": {drivertest.Fields{"call": "faulty.S/Get", "address": "a:1", "proto": testdata(t, "faulty/faulty.proto")}, []string{
			"proto.0: faulty/faulty.proto:5:8: there is no missing.proto in " + testdata(t, "") + ": name the folder",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := faults(t, test.fields)
			if len(got) != len(test.want) {
				t.Fatalf("%d faults, want %d:\n%s", len(got), len(test.want), strings.Join(got, "\n"))
			}
			for i, want := range test.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got  %s\nwant %s", got[i], want)
				}
			}
		})
	}
}

// Imports are found in the folder that fits the package, or in those that the plan names.
func TestImports(t *testing.T) {
	shop := testdata(t, "tree/shop/v1/shop.proto")
	f := drivertest.Fields{"call": "shop.v1.Payments/Pay", "address": "a:1", "proto": shop, "message": drivertest.Fields{"amount": drivertest.Fields{"cents": 100}}}
	if got := faults(t, f); got != nil {
		t.Errorf("by package: %v", got)
	}
	if got := faults(t, with(f, drivertest.Fields{"import_paths": testdata(t, "tree")})); got != nil {
		t.Errorf("by import path: %v", got)
	}
	if got := faults(t, with(f, drivertest.Fields{"proto": []any{shop, testdata(t, "tree/shop/types/money.proto")}})); got != nil {
		t.Errorf("two files: %v", got)
	}
	got := faults(t, with(f, drivertest.Fields{"import_paths": testdata(t, "tree/shop/v1")}))
	if len(got) != 1 || !strings.Contains(got[0], "shop.proto:5:8") || !strings.Contains(got[0], "shop/types/money.proto") {
		t.Errorf("with a wrong import path: %v", got)
	}
}

func TestDescriptorSet(t *testing.T) {
	e := serve(t, serverConfig{})
	set := &descriptorpb.FileDescriptorSet{}
	file, err := e.schema.files.FindFileByPath("echo.proto")
	if err != nil {
		t.Fatal(err)
	}
	set.File = append(set.File, protodesc.ToFileDescriptorProto(file)) // without google/protobuf/timestamp.proto
	b, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "echo.binpb")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f := with(fields(t, e.addr, "Unary", drivertest.Fields{"at": "2030-01-31T12:00:00Z"}), drivertest.Fields{"proto": nil, "descriptor_set": path})
	r := once(t, f, "message")
	if r.Err != nil || value(t, r.Answer, "message").(map[string]any)["at"] != "2030-01-31T12:00:00Z" {
		t.Errorf("%v", r.Err)
	}

	money, err := testSchema(t, "tree/shop/v1/shop.proto").files.FindFileByPath("shop/v1/shop.proto")
	if err != nil {
		t.Fatal(err)
	}
	if b, err = proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(money)}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	got := faults(t, with(f, drivertest.Fields{"descriptor_set": path}))
	if len(got) != 1 || !strings.Contains(got[0], "is not complete") || !strings.Contains(got[0], "--include_imports") {
		t.Errorf("an incomplete set: %v", got)
	}
}

// Calls share a client when everything that a connection depends on is equal, and else not.
func TestEndpointKeys(t *testing.T) {
	d := New()
	base := fields(t, "127.0.0.1:1", "Unary", nil)
	key := func(f drivertest.Fields) string { return drivertest.Prepare(t, d, f).Endpoint().Key }
	same := []drivertest.Fields{
		with(base, drivertest.Fields{"call": "demo.v1.Echo/Chat"}),
		with(base, drivertest.Fields{"address": "grpc://127.0.0.1:1", "plaintext": nil}),
		with(base, drivertest.Fields{"max_message": 1000, "message": drivertest.Fields{"text": "x"}, "metadata": drivertest.Fields{"a": "b"}}),
	}
	for _, f := range same {
		if key(f) != key(base) {
			t.Errorf("another endpoint: %v", f)
		}
	}
	tls := with(base, drivertest.Fields{"plaintext": nil})
	different := []drivertest.Fields{
		base,
		tls,
		with(base, drivertest.Fields{"address": "127.0.0.1:2"}),
		with(base, drivertest.Fields{"authority": "api.test"}),
		with(base, drivertest.Fields{"keepalive": time.Minute}),
		with(tls, drivertest.Fields{"tls": drivertest.Fields{"insecure": true}}),
		with(tls, drivertest.Fields{"tls": drivertest.Fields{"server_name": "api.test"}}),
	}
	seen := map[string]int{}
	for i, f := range different {
		k := key(f)
		if j, ok := seen[k]; ok {
			t.Errorf("%v and %v are one endpoint", f, different[j])
		}
		seen[k] = i
	}
	if name := drivertest.Prepare(t, d, tls).Endpoint().Name; name != "grpcs://127.0.0.1:1" {
		t.Errorf("the endpoint is named %s", name)
	}
}

func FuzzSplitCall(f *testing.F) {
	for _, s := range []string{"a.b.C/D", "/a.b.C/D", "a.b.C.D", "", "/", ".", "a/b/c", "a./b", "ä/ö"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if service, method, ok := splitCall(s); ok && (service == "" || method == "" || strings.ContainsAny(service+method, "/ ")) {
			t.Errorf("%q is %q and %q", s, service, method)
		}
	})
}
