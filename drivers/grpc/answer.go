package grpc

import (
	"encoding/base64"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/planrun/planrun/drivers"
)

// answer is what the session keeps of its last call.
type answer struct {
	call *call
	plan *plan

	code              codes.Code
	text              string
	count             int64
	bytes             int64
	headers, trailers metadata.MD

	data []byte // the messages that are kept, one after the other
	ends []int  // where each of them ends in data

	last    any // decoded
	all     []any
	decoded bool
	lastSet bool
	err     error
}

func (a *answer) reset(c *call, p *plan) {
	*a = answer{call: c, plan: p, data: a.data[:0], ends: a.ends[:0]}
}

// Number implements drivers.Answer.
func (a *answer) Number(name string) (float64, bool) {
	switch name {
	case "code":
		return float64(a.code), true
	case "message_count":
		return float64(a.count), true
	case "bytes":
		return float64(a.bytes), true
	}
	return 0, false
}

// Value implements drivers.Answer.
func (a *answer) Value(name string) (any, error) {
	switch name {
	case "status":
		return statusName(a.code), nil
	case "code":
		return int64(a.code), nil
	case "error":
		return a.text, nil
	case "message_count":
		return a.count, nil
	case "bytes":
		return a.bytes, nil
	case "headers":
		return texts(a.headers), nil
	case "trailers":
		return texts(a.trailers), nil
	case "message":
		return a.message()
	case "messages":
		return a.messages()
	}
	return nil, fmt.Errorf("a gRPC answer has no %q", name)
}

// message decodes the last message, once.
func (a *answer) message() (any, error) {
	if a.count == 0 {
		if a.code != codes.OK {
			return nil, fmt.Errorf("the answer has no message: its status is %s", a)
		}
		return nil, fmt.Errorf("the answer has no message")
	}
	if !a.lastSet {
		a.lastSet = true
		start := 0
		if n := len(a.ends); n > 1 {
			start = a.ends[n-2]
		}
		a.last, a.err = a.plan.schema.decode(a.plan.output, a.data[start:])
	}
	return a.last, a.err
}

// messages decodes all messages, once.
func (a *answer) messages() (any, error) {
	if !a.decoded {
		a.decoded = true
		a.all = make([]any, len(a.ends))
		start := 0
		for i, end := range a.ends {
			m, err := a.plan.schema.decode(a.plan.output, a.data[start:end])
			if err != nil {
				a.err = err
				return nil, err
			}
			a.all[i], start = m, end
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	return a.all, nil
}

// String is the status and its text, for the examples of failures.
func (a *answer) String() string {
	s := statusName(a.code)
	if a.text != "" {
		s += ": " + a.text
	}
	if a.code == codes.Unimplemented && a.call.compressed {
		// What a server has to answer that can't unpack (compression.md of gRPC), and one without the method answers too.
		s += "; if it is that the server does not take gzip, write compression: none"
	}
	return s
}

// texts makes plain texts of metadata. Values of keys that end in -bin are Base64 again.
func texts(md metadata.MD) map[string]string {
	out := make(map[string]string, len(md))
	for k, values := range md {
		if strings.HasSuffix(k, "-bin") {
			encoded := make([]string, len(values))
			for i, v := range values {
				encoded[i] = base64.StdEncoding.EncodeToString([]byte(v))
			}
			values = encoded
		}
		out[k] = strings.Join(values, ", ")
	}
	return out
}

var (
	_ drivers.Answer = (*answer)(nil)
	_ fmt.Stringer   = (*answer)(nil)
)
