package grpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/planrun/planrun/drivers"
)

// The gRPC library reports what it finds wrong on this side as a status, too. Whether a status came from the server
// decides between an answer and a failure. Every answer of a gRPC server has headers or trailers that are not empty, if
// only for the content type, so a status without either was made up here. With headers but without trailers it can be
// either; then the library's texts decide, along with what the wire has seen: a server may well pass on texts that its
// own client made up.

// marks are what is known of a call besides its status.
type marks struct {
	ctx      context.Context
	deadline time.Time
	wire     *wire
	reset    bool // the server reset a stream of the connection meanwhile
	headers  bool // the server sent headers
	trailers bool // the server sent trailers that are not empty
	max      int64
	sent     int64 // size of the largest message of the request
	packed   bool  // the call has compression
}

// isSpent tells that nothing was sent because the channel's only connection is gone.
func isSpent(err error) bool {
	return err != nil && status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), errSpent.Error())
}

// local are the beginnings of texts that the library has for an answer that breaks the protocol after its headers.
var local = map[codes.Code][]string{
	codes.Internal: {
		"server closed the stream without sending trailers", "cardinality violation", "unexpected EOF", "grpc: ", "transport: ",
		"peer header list size exceeded", "a HEADERS frame cannot appear", "received invalid frame", "received ",
	},
	codes.Unknown:       {"transport: malformed"},
	codes.Unimplemented: {"grpc: Decompressor is not installed"},
}

// propagation is how long before its own end a deadline may come back from the server, which was told it and keeps its own
// time: the two race, and it is the same time-out whoever says so first.
const propagation = 10 * time.Millisecond

// failure returns why a call that ended with st was not answered, nil if it was.
func (m *marks) failure(st *status.Status) error {
	code, text := st.Code(), st.Message()
	if code == codes.DeadlineExceeded && time.Until(m.deadline) < propagation {
		return drivers.Fail(drivers.Timeout, errors.New("waiting for the answer: timed out"))
	}
	if m.headers {
		if err := m.refused(code, text); err != nil {
			return err
		}
	}
	if m.trailers {
		return nil
	}
	switch code {
	case codes.DeadlineExceeded:
		if !time.Now().Before(m.deadline) || m.ctx.Err() != nil {
			return drivers.Fail(drivers.Timeout, errors.New("waiting for the answer: timed out"))
		}
	case codes.Canceled:
		switch {
		case m.ctx.Err() == context.Canceled:
			return drivers.Fail(drivers.Aborted, errors.New("waiting for the answer: the run was interrupted"))
		case m.ctx.Err() != nil:
			return drivers.Fail(drivers.Timeout, errors.New("waiting for the answer: timed out"))
		}
	}
	if name, ok := strings.CutPrefix(text, "stream terminated by RST_STREAM with error code: "); ok && m.reset {
		switch name {
		case "REFUSED_STREAM", "ENHANCE_YOUR_CALM":
			return drivers.Fail(drivers.Refused, fmt.Errorf("the server refused the call: %s", name))
		}
		return drivers.Fail(drivers.Reset, fmt.Errorf("the server broke off the call: %s", name))
	}
	// The connection broke, or the server's GOAWAY left this call out.
	if code == codes.Unavailable && m.wire.ended.Load() && (!m.headers || lost(text)) {
		return m.wire.loss("waiting for the answer")
	}
	if !m.headers {
		return drivers.Fail(drivers.Protocol, fmt.Errorf("the answer is not gRPC's: %s", strings.TrimPrefix(text, "transport: ")))
	}
	for _, prefix := range local[code] {
		if strings.HasPrefix(text, prefix) {
			return drivers.Fail(drivers.Protocol, fmt.Errorf("the answer breaks off: %s", strings.TrimPrefix(text, "transport: ")))
		}
	}
	return nil
}

// refused returns why the library refused a message that it received. All of the answer, trailers included, may have come
// by then. A server says the same of messages that it gets, so the figures have to be this call's.
func (m *marks) refused(code codes.Code, text string) error {
	switch {
	case code == codes.ResourceExhausted && m.sent <= m.max && (strings.HasPrefix(text, "grpc: received message larger than max (") && strings.HasSuffix(text, fmt.Sprintf(" vs. %d)", m.max)) ||
		text == fmt.Sprintf("grpc: received message after decompression larger than max %d", m.max)):
		return drivers.Fail(drivers.Protocol, fmt.Errorf("a message of the answer%s is larger than %s: raise max_message", sizeIn(text), size(m.max)))
	case code == codes.Internal && m.packed && strings.HasPrefix(text, "grpc: failed to decompress "):
		return drivers.Fail(drivers.Protocol, fmt.Errorf("the answer breaks off: %s", text))
	}
	return nil
}

// lost tells the texts that the library has for a connection that broke.
func lost(text string) bool {
	for _, prefix := range []string{
		"error reading from server", "connection error: ", "closing transport due to", "transport is closing",
		"the connection is draining", "keepalive ping failed", "closing connection since",
	} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// sizeIn finds the size in the library's "received message larger than max (6291461 vs. 4194304)".
func sizeIn(text string) string {
	_, rest, ok := strings.Cut(text, "(")
	var n, limit int64
	if _, err := fmt.Sscanf(rest, "%d vs. %d", &n, &limit); !ok || err != nil {
		return ""
	}
	return fmt.Sprintf(" (%d bytes)", n)
}

// size writes bytes as a plan has them.
func size(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprintf("%dB", n)
}
