package grpc

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/planrun/planrun/drivers"
)

// defaultMaxMessage is the gRPC library's own.
const defaultMaxMessage = 4 << 20

// call is one prepared step.
type call struct {
	endpoint drivers.Endpoint
	op       *drivers.Op

	service, method string
	path            string // "/package.Service/Method"
	metadata        []header
	fixedMetadata   metadata.MD // all of metadata, if none of it depends on the call; nil if there is none

	compressed     bool
	maxMessage     int64
	messagesLimit  int64
	streamDuration time.Duration

	// What expectations read.
	keepLast, keepAll, keepHeaders, keepTrailers bool

	// plan is what needs the schema. It is nil until the server was asked, where the schema comes by reflection.
	plan atomic.Pointer[plan]
}

// plan is the part of a call that needs its schema.
type plan struct {
	schema   *schema
	output   protoreflect.MessageDescriptor
	desc     *grpc.StreamDesc
	messages []*message
	options  []grpc.CallOption
}

// message is one request message.
type message struct {
	program *program
	ready   *outgoing // the encoded message, if it is the same for every call
}

// header is one key of the request's metadata.
type header struct {
	key    string
	value  drivers.Template
	binary bool // the value is Base64 in the plan
}

// Endpoint implements drivers.Call.
func (c *call) Endpoint() drivers.Endpoint { return c.endpoint }

// String is the method: "package.Service/Method".
func (c *call) String() string { return c.service + "/" + c.method }

// Prepare implements drivers.Driver.
//
// Where the schema comes by reflection, the fields that need it are checked, and messages are encoded, when the client
// is probed or connected: still before the load, and once for all rounds.
func (d *Driver) Prepare(op *drivers.Op) (drivers.Call, error) {
	ep, e, errs := d.endpoint(op)
	c := &call{
		endpoint:       ep,
		op:             op,
		compressed:     e.compressed,
		maxMessage:     op.Int("max_message", defaultMaxMessage),
		messagesLimit:  op.Int("messages_limit", 0),
		streamDuration: op.Duration("stream_duration", 0),
		keepLast:       op.Reads["message"],
		keepAll:        op.Reads["messages"],
		keepHeaders:    op.Reads["headers"],
		keepTrailers:   op.Reads["trailers"],
	}
	if !op.Has("call") {
		errs = append(errs, op.Errorf("call", "the method is missing").WithHint("write call: package.Service/Method"))
	} else if name, err := op.Fixed("call"); err != nil {
		errs = append(errs, fieldError(err))
	} else if service, method, ok := splitCall(name); ok {
		c.service, c.method = service, method
	} else {
		errs = append(errs, op.Errorf("call", "%q is no method", name).WithHint("write package.Service/Method"))
	}
	c.path = "/" + c.service + "/" + c.method
	for _, key := range []string{"max_message", "messages_limit", "stream_duration"} {
		if op.Has(key) && op.Int(key, 0) == 0 {
			errs = append(errs, op.Errorf(key, "must be more than 0"))
		}
	}
	if c.maxMessage > maxInt32 {
		errs = append(errs, op.Errorf("max_message", "must be less than 2GiB"))
	}
	errs = append(errs, c.prepareMetadata()...)

	if messages, ok := op.Get("messages"); ok {
		switch {
		case op.Has("message"):
			errs = append(errs, op.Errorf("messages", "there is a message, too").WithHint("put it into messages"))
		case messages.Template != nil || messages.IsMap:
			errs = append(errs, op.Errorf("messages", "expected a list of messages").WithHint("for a single one, write message"))
		}
	}

	var s *schema
	var schemaErrs drivers.FieldErrors
	switch {
	case op.Has("proto") && op.Has("descriptor_set"):
		errs = append(errs, op.Errorf("descriptor_set", "there are proto files, too").WithHint("remove one of proto and descriptor_set"))
	case op.Has("proto"):
		s, schemaErrs = protoFiles(op)
	case op.Has("descriptor_set"):
		s, schemaErrs = descriptorSet(op)
	case op.Has("import_paths"):
		errs = append(errs, op.Errorf("import_paths", "there are no proto files to import from").WithHint("add proto"))
	}
	errs = append(errs, schemaErrs...)
	if s != nil && c.method != "" {
		errs = append(errs, c.resolve(s)...)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	if s == nil {
		e.served.add(c)
	}
	return c, nil
}

const maxInt32 = 1<<31 - 1

// fieldError takes an error that Values make of a field.
func fieldError(err error) *drivers.FieldError {
	e, _ := errors.AsType[*drivers.FieldError](err)
	return e
}

// resolve finds the method and encodes the messages.
func (c *call) resolve(s *schema) drivers.FieldErrors {
	md, p := s.method(c.service, c.method)
	if p != nil {
		return drivers.FieldErrors{c.op.Errorf("call", "%s", p.message).WithHint("%s", p.hint)}
	}
	var errs drivers.FieldErrors
	pl := &plan{schema: s, output: md.Output(), desc: &grpc.StreamDesc{
		StreamName: c.method, ClientStreams: md.IsStreamingClient(), ServerStreams: md.IsStreamingServer(),
	}}
	if !md.IsStreamingServer() {
		for _, key := range []string{"messages_limit", "stream_duration"} {
			if c.op.Has(key) {
				errs = append(errs, c.op.Errorf(key, "%s does not answer with a stream", md.Name()))
			}
		}
	}
	add := func(v drivers.Value, path ...string) {
		program, faults := compile(s, md.Input(), treeOf(v))
		for _, f := range faults {
			errs = append(errs, c.op.Errorf(path[0], "%s", f.message).WithHint("%s", f.hint).At(path[1:]...).At(f.path...))
		}
		if program == nil {
			return
		}
		m := &message{program: program}
		if b, ok := program.constant(); ok {
			m.ready = &outgoing{mem.BufferSlice{mem.SliceBuffer(b)}}
		}
		pl.messages = append(pl.messages, m)
	}
	switch list, ok := c.op.Get("messages"); {
	case ok && !md.IsStreamingClient():
		errs = append(errs, c.op.Errorf("messages", "%s takes one message", md.Name()).WithHint("write message"))
	case ok:
		for i, v := range list.List {
			add(v, "messages", strconv.Itoa(i))
		}
	case c.op.Has("message") || !md.IsStreamingClient():
		v, ok := c.op.Get("message")
		if !ok {
			v.IsMap = true
		}
		add(v, "message")
	}
	pl.options = []grpc.CallOption{
		grpc.ForceCodecV2(codec{}),
		grpc.MaxCallRecvMsgSize(int(c.maxMessage)),
		grpc.MaxRetryRPCBufferSize(0),
	}
	if c.compressed {
		pl.options = append(pl.options, grpc.UseCompressor(gzip.Name))
	}
	if len(errs) == 0 {
		c.plan.Store(pl)
	}
	return errs
}

// prepareMetadata checks the request's metadata (gRPC over HTTP/2, Custom-Metadata).
func (c *call) prepareMetadata() (errs drivers.FieldErrors) {
	fixed := metadata.MD{}
	dynamic := false
	for _, entry := range c.op.Entries("metadata") {
		key := strings.ToLower(entry.Key)
		if p := checkKey(key); p != nil {
			errs = append(errs, c.op.Errorf("metadata", "%s", p.message).WithHint("%s", p.hint).At(entry.Key))
			continue
		}
		h := header{key: key, value: entry.Value.Template, binary: strings.HasSuffix(key, "-bin")}
		c.metadata = append(c.metadata, h)
		if _, ok := h.value.Constant(); !ok {
			dynamic = true
			continue
		}
		v, err := h.text(nil)
		if err != nil {
			errs = append(errs, c.op.Errorf("metadata", "%v", err).At(entry.Key))
			continue
		}
		fixed.Append(key, v)
	}
	if !dynamic && len(c.metadata) > 0 {
		c.fixedMetadata = fixed
	}
	return errs
}

func checkKey(key string) *problem {
	if strings.HasPrefix(key, ":") || strings.HasPrefix(key, "grpc-") {
		p := &problem{message: fmt.Sprintf("%q is gRPC's own", key)}
		switch key {
		case ":authority":
			p.hint = "write authority"
		case "grpc-timeout":
			p.hint = "it is made from timeout"
		}
		return p
	}
	switch key {
	case "content-type", "te", "connection", "host", "content-length", "transfer-encoding", "upgrade", "user-agent":
		return &problem{message: fmt.Sprintf("%q is set by the protocol", key)}
	}
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.' {
			return &problem{fmt.Sprintf("%q can't be in a key of metadata", r), "use letters, digits, -, _ and ."}
		}
	}
	if key == "" {
		return &problem{message: "a key of metadata can't be empty"}
	}
	return nil
}

// text returns the value for one call, as the library takes it.
func (h *header) text(in *drivers.Input) (string, error) {
	b, err := h.value.AppendText(nil, in)
	if err != nil {
		return "", err
	}
	if h.binary {
		raw, err := decodeBase64(string(b))
		if err != nil {
			return "", fmt.Errorf("the key ends in -bin, so its value must be Base64: %q is not (for this text write %s)", abbreviate(string(b)), base64.StdEncoding.EncodeToString(b))
		}
		return string(raw), nil
	}
	for _, c := range b {
		if c < 0x20 || c > 0x7e {
			return "", fmt.Errorf("%q can't be sent: values are printable ASCII unless the key ends in -bin", abbreviate(string(b)))
		}
	}
	return string(b), nil
}
