// Package grpc calls gRPC services: unary calls and all three kinds of streams, over HTTP/2 with or without TLS.
//
// What a call costs on this side is paid before the load: descriptors are loaded, the method is found and messages are
// encoded while a step is prepared; a call sends bytes that are ready, and an answer is decoded only when an
// expectation reads it. What depends on the moment of the call is put in between the ready parts.
//
// How connections are used. A connection is one HTTP/2 connection that this package dials itself, in the call that
// needs it, and hands to a channel of the gRPC library that is made for it and ends with it. So a channel never dials
// on its own and never waits out a back-off: every failure to connect is an attempt to connect, made within the
// deadline of the call that reports it. Calls that need the connection while it is being opened wait for it, and share
// its failure. A server's GOAWAY ends a connection for new calls; those under way finish on it.
//
// One attempt. Retries are off, and so are the library's transparent ones: once a stream was begun, its outcome is
// the call's. A call that finds its connection gone before anything of it was sent goes to the next connection.
//
// A server that limits the streams of a connection makes calls wait on this side; that time is Timing.Wait.
package grpc

import (
	"context"
	"io"
	"os"
	"sync"

	"google.golang.org/grpc/grpclog"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// The library reports on standard error what this package reports as the failure of a call. Its own variable brings
// the log back. The logger may only be set before the library is used, hence the init.
func init() {
	if os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL") == "" {
		grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	}
}

// Driver is the driver "grpc". It is safe for concurrent use.
type Driver struct {
	mu sync.Mutex
	// served has what is known from servers' reflection, by the key of the endpoint.
	served map[string]*served
}

// New makes the driver.
func New() *Driver { return &Driver{served: map[string]*served{}} }

// Fields implements drivers.Driver.
func (*Driver) Fields() []drivers.Field {
	return []drivers.Field{
		{Key: "call", Kind: drivers.Text, Main: true, Title: "Method", Doc: "The method, as `package.Service/Method`.",
			Examples: []string{"shop.v1.Payments/Pay"}},
		{Key: "address", Kind: drivers.Text, Title: "Address",
			Doc:      "Where the server listens: `host:port`, or with the scheme `grpcs://` (TLS) or `grpc://` (plaintext).",
			Examples: []string{"api.test:443", "grpc://127.0.0.1:50051"}},
		{Key: "plaintext", Kind: drivers.Bool, Title: "No TLS", Default: "false",
			Doc: "Speak HTTP/2 without TLS. Not needed with a scheme in `address`."},
		{Key: "proto", Kind: drivers.FileList, Title: "Proto files",
			Doc:      "The .proto files that declare the service. Without them and without `descriptor_set` the server is asked by reflection.",
			Examples: []string{"proto/shop.proto"}},
		{Key: "import_paths", Kind: drivers.FileList, Title: "Import paths",
			Doc:      "Folders in which imports of the .proto files are looked for. Without them: the folder that fits the file's package, else the file's own.",
			Examples: []string{"proto"}},
		{Key: "descriptor_set", Kind: drivers.File, Title: "Descriptor set",
			Doc:      "A file made by `protoc --include_imports --descriptor_set_out` or `buf build`, instead of `proto`.",
			Examples: []string{"shop.binpb"}},
		{Key: "message", Kind: drivers.Tree, Title: "Message", Payload: true,
			Doc:      "The request, with field names as in the .proto file. Left out, it is an empty message.",
			Examples: []string{"{id: 17, tags: [a, b]}"}},
		{Key: "messages", Kind: drivers.Tree, Title: "Messages", Payload: true,
			Doc: "The requests of a client stream or a bidirectional stream: a list of messages, sent in order."},
		{Key: "metadata", Kind: drivers.Texts, Title: "Metadata",
			Doc:      "Request metadata. Values of keys that end in `-bin` are Base64.",
			Examples: []string{"{authorization: \"Bearer ${secret.TOKEN}\"}"}},
		{Key: "authority", Kind: drivers.Text, Title: "Authority",
			Doc: "The `:authority` of requests, if it isn't the address. The name that a certificate must have is `tls.server_name`."},
		dial.TLSField(),
		{Key: "max_message", Kind: drivers.Size, Title: "Largest message", Default: "4MiB",
			Doc: "The largest message that is accepted from the server."},
		{Key: "compression", Kind: drivers.Choice, Choices: []string{"none", "gzip"}, Title: "Compression", Default: "none",
			Doc: "`gzip` compresses the request's messages, each by itself. Bytes are then counted as they travel, packed."},
		{Key: "keepalive", Kind: drivers.Duration, Title: "Keepalive",
			Doc:      "Ping a connection that has calls under way and was silent for so long, and give it up when 20 s bring no answer. At least 10 s; off unless set, as servers end connections that ping more often than they allow.",
			Examples: []string{"5m"}},
		{Key: "messages_limit", Kind: drivers.Int, Title: "Message limit", Payload: true,
			Doc: "End a server's stream, as a success, after so many messages."},
		{Key: "stream_duration", Kind: drivers.Duration, Title: "Stream duration",
			Doc: "End a server's stream, as a success, when it has run for so long and brought at least one message."},
	}
}

// Answer implements drivers.Driver.
func (*Driver) Answer() []drivers.Name {
	return []drivers.Name{
		{Name: "status", Kind: drivers.TextName, Doc: "The status, such as `OK` or `NOT_FOUND`."},
		{Name: "code", Kind: drivers.IntName, Doc: "The status as a number, 0 being OK."},
		{Name: "error", Kind: drivers.TextName, Doc: "The text that came with the status, empty if there was none."},
		{Name: "message", Kind: drivers.AnyName, Doc: "The answer, with field names as in the .proto file; of a stream, its last message."},
		{Name: "messages", Kind: drivers.ListName, Doc: "All messages of the answer."},
		{Name: "message_count", Kind: drivers.IntName, Doc: "How many messages the answer has. Counting does not decode them."},
		{Name: "bytes", Kind: drivers.SizeName, Doc: "How many bytes the messages of the answer have, unpacked."},
		{Name: "headers", Kind: drivers.TextsName, Doc: "The metadata before the answer, with keys in lower case; several values of a key are joined with commas."},
		{Name: "trailers", Kind: drivers.TextsName, Doc: "The metadata after the answer."},
	}
}

// Connect implements drivers.Driver. It dials nothing, with one exception: when a call has neither proto files nor a
// descriptor set and the server was not asked before, it is asked by reflection now, over a connection of its own that
// is closed at once, so that the calls' own connections are found in the calls.
func (*Driver) Connect(ctx context.Context, ep drivers.Endpoint, pool drivers.Pool) (drivers.Client, error) {
	e := ep.Config.(*endpoint)
	c := newClient(e, pool)
	if e.served.waits() {
		if err := c.reflect(ctx); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

var _ drivers.Driver = (*Driver)(nil)
