package grpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// codec hands encoded messages through: requests are ready, and answers are kept as bytes, or only counted.
type codec struct{}

var _ encoding.CodecV2 = codec{}

// outgoing is a request message. Its bytes don't change any more: the library may still be reading them after the call
// has ended.
type outgoing struct{ parts mem.BufferSlice }

// Name is empty, so that the content type is application/grpc, as it is with the library's own codec.
func (codec) Name() string { return "" }

func (codec) Marshal(v any) (mem.BufferSlice, error) { return v.(*outgoing).parts, nil }

// Unmarshal lets the session look at a message of the answer. The bytes are only valid during the call.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	v.(*session).take(data)
	return nil
}
