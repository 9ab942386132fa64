package grpc

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// long is a deadline that no test should reach.
const long = 20 * time.Second

func TestUnary(t *testing.T) {
	e := serve(t, serverConfig{})
	f := with(fields(t, e.addr, "Unary", drivertest.Fields{"text": "hello", "size": 1000, "at": "2030-01-31T12:00:00.5Z"}), drivertest.Fields{
		"metadata": drivertest.Fields{"Caller": "me"},
	})
	r := once(t, f, "message", "messages", "headers", "trailers")
	if r.Err != nil || !r.Success || r.Status != 0 {
		t.Fatalf("err %v, success %v, status %d", r.Err, r.Success, r.Status)
	}
	if r.BytesIn < 1000 || r.BytesOut < 7 || r.BytesOut > 100 {
		t.Errorf("bytes in %d, out %d", r.BytesIn, r.BytesOut)
	}
	if r.TLS >= 0 || r.DNS >= 0 || r.Connect < 0 || !r.Opened || r.Protocol != "HTTP/2" {
		t.Errorf("outcome %+v", r.Outcome)
	}
	m := value(t, r.Answer, "message").(map[string]any)
	if m["text"] != "hello" || m["number"] != int64(1) || m["caller"] != "me" || m["at"] != "2030-01-31T12:00:00.5Z" {
		t.Errorf("message %v", m)
	}
	if b, err := base64.StdEncoding.DecodeString(m["payload"].(string)); err != nil || len(b) != 1000 {
		t.Errorf("payload of %d bytes, %v", len(b), err)
	}
	if list := value(t, r.Answer, "messages").([]any); len(list) != 1 || list[0].(map[string]any)["text"] != "hello" {
		t.Errorf("messages %v", list)
	}
	for name, want := range map[string]any{"status": "OK", "code": int64(0), "error": "", "message_count": int64(1), "bytes": r.BytesIn} {
		if v := value(t, r.Answer, name); v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	for name, want := range map[string]float64{"code": 0, "message_count": 1, "bytes": float64(r.BytesIn)} {
		if v, ok := r.Answer.Number(name); !ok || v != want {
			t.Errorf("number %s is %v, %v, want %v", name, v, ok, want)
		}
	}
	if h := value(t, r.Answer, "headers").(map[string]string); h["server"] != "echo" || h["raw-bin"] != "AAE=" || h["content-type"] != "application/grpc" {
		t.Errorf("headers %v", h)
	}
	if h := value(t, r.Answer, "trailers").(map[string]string); h["took"] != "a while" {
		t.Errorf("trailers %v", h)
	}
	if _, err := r.Answer.Value("body"); err == nil {
		t.Error("there is a body")
	}
}

// A status that the server sent is an answer, whatever it says.
func TestStatus(t *testing.T) {
	e := serve(t, serverConfig{})
	for _, test := range []struct {
		code codes.Code
		text string
	}{
		{codes.NotFound, "no such document"},
		{codes.DeadlineExceeded, "the node took too long"},
		{codes.Canceled, "somebody else gave up"},
		{codes.ResourceExhausted, "slow down"},
		{codes.Unauthenticated, ""},
		{codes.Code(42), "a code of its own"},
		// Texts that a server passes on from its own client.
		{codes.Unavailable, "error reading from server: EOF"},
		{codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 10.0.0.1:1: connect: connection refused"`},
		{codes.Unavailable, "unexpected HTTP status code received from server: 502 (Bad Gateway)"},
		{codes.Unavailable, "stream terminated by RST_STREAM with error code: REFUSED_STREAM"},
		{codes.Unavailable, "the connection is draining"},
	} {
		for _, early := range []bool{false, true} {
			f := fields(t, e.addr, "Unary", drivertest.Fields{"status": int64(test.code), "status_text": test.text, "early_header": early})
			r := once(t, f, "status", "message")
			if r.Err != nil || r.Success || r.Status != int(test.code) {
				t.Errorf("%v %q: err %v, success %v, status %d", test.code, test.text, r.Err, r.Success, r.Status)
				continue
			}
			if v := value(t, r.Answer, "error"); v != test.text {
				t.Errorf("the text is %q, want %q", v, test.text)
			}
			if v := value(t, r.Answer, "status"); v != statusName(test.code) {
				t.Errorf("the status is %q", v)
			}
			if s := r.Answer.(*answer).String(); !strings.HasPrefix(s, statusName(test.code)) || !strings.HasSuffix(s, test.text) {
				t.Errorf("the answer is told as %q", s)
			}
			if _, err := r.Answer.Value("message"); err == nil || !strings.Contains(err.Error(), statusName(test.code)) {
				t.Errorf("message: %v", err)
			}
		}
	}
	if got := statusName(codes.NotFound); got != "NOT_FOUND" {
		t.Errorf("NotFound is named %s", got)
	}
}

// A status of the server, a server slower than the deadline and a method that does not exist are three things.
func TestStatusDeadlineAndMissing(t *testing.T) {
	e := serve(t, serverConfig{})
	r := once(t, fields(t, e.addr, "Unary", drivertest.Fields{"status": 5}))
	if r.Err != nil || r.Status != int(codes.NotFound) || r.Success {
		t.Errorf("not found: err %v, status %d", r.Err, r.Status)
	}

	b := drivertest.NewBench(t, New(), fields(t, e.addr, "Unary", drivertest.Fields{"delay_ms": 20000}), drivers.Pool{Users: 1})
	r = b.Fails(t.Context(), b.Open(), 200*time.Millisecond, drivers.Timeout)
	if r.Status != 0 || r.Success {
		t.Errorf("slow: status %d, success %v", r.Status, r.Success)
	}
	if d := time.Duration(e.deadline.Load()); d <= 0 || d > 200*time.Millisecond {
		t.Errorf("the server was given %v of 200ms", d)
	}

	before := e.requests.Load()
	r = once(t, fields(t, e.addr, "Missing", nil))
	if r.Err != nil || r.Status != int(codes.Unimplemented) || r.Success {
		t.Errorf("missing: err %v, status %d", r.Err, r.Status)
	}
	if n := e.requests.Load() - before; n != 1 {
		t.Errorf("the missing method was asked for %d times", n)
	}
}

func TestLargeMessage(t *testing.T) {
	e := serve(t, serverConfig{})
	f := fields(t, e.addr, "Unary", drivertest.Fields{"size": 6 << 20})
	r := once(t, f)
	if drivers.KindOf(r.Err) != drivers.Protocol || r.Success {
		t.Fatalf("6 MiB: %v", r.Err)
	}
	if s := r.Err.Error(); !strings.Contains(s, "max_message") || !strings.Contains(s, "4MiB") {
		t.Errorf("the message does not name the key: %s", s)
	}
	r = once(t, with(f, drivertest.Fields{"max_message": 8 << 20}), "message")
	if r.Err != nil || !r.Success || r.BytesIn < 6<<20 {
		t.Errorf("with max_message: %v, %d bytes", r.Err, r.BytesIn)
	}
}

// The whole answer, its end included, may have come before the library looks at the size of a message.
func TestSmallMessageLimit(t *testing.T) {
	e := serve(t, serverConfig{})
	small := with(fields(t, e.addr, "Unary", drivertest.Fields{"size": 1000}), drivertest.Fields{"max_message": 100})
	b := drivertest.NewBench(t, New(), small, drivers.Pool{Users: 1})
	session := b.Open()
	for range 50 {
		r := b.Do(t.Context(), session, time.Minute)
		if drivers.KindOf(r.Err) != drivers.Protocol || !strings.Contains(r.Err.Error(), "is larger than 100B: raise max_message") {
			t.Fatalf("got %v, status %d", r.Err, r.Status)
		}
	}
}

func TestMetadata(t *testing.T) {
	e := serve(t, serverConfig{})
	user := drivertest.Func(func(in *drivers.Input) any { return in.Iteration })
	f := with(fields(t, e.addr, "Unary", nil), drivertest.Fields{"metadata": drivertest.Fields{"caller": drivertest.Mix{"user ", user}, "trace-bin": "AAEC"}})
	b := drivertest.NewBench(t, New(), f, drivers.Pool{Users: 1}, "message")
	s := b.Open()
	for i := range 3 {
		in := drivers.Input{Iteration: int64(i), Deadline: time.Now().Add(long)}
		var out drivers.Outcome
		if err := s.Do(t.Context(), b.Call, &in, &out); err != nil {
			t.Fatal(err)
		}
		want := "user " + string(rune('0'+i))
		if m := value(t, out.Answer, "message").(map[string]any); m["caller"] != want {
			t.Errorf("caller %v, want %s", m["caller"], want)
		}
	}
	bad := drivertest.Func(func(*drivers.Input) any { return "line\nbreak" })
	r := once(t, with(f, drivertest.Fields{"metadata": drivertest.Fields{"caller": bad}}))
	if r.Err == nil || !strings.Contains(r.Err.Error(), "metadata.caller") {
		t.Errorf("a line break was sent: %v", r.Err)
	}
}

func TestTemplates(t *testing.T) {
	e := serve(t, serverConfig{})
	f := fields(t, e.addr, "Unary", drivertest.Fields{
		"text": drivertest.Mix{"user ", drivertest.Func(func(in *drivers.Input) any { return in.User })},
		"size": drivertest.Func(func(in *drivers.Input) any { return 10 + in.Iteration }),
		"at":   drivertest.Func(func(in *drivers.Input) any { return "2030-01-31T12:00:00Z" }),
	})
	b := drivertest.NewBench(t, New(), f, drivers.Pool{Users: 2}, "message")
	for user := range 2 {
		s := b.Open()
		for i := range 3 {
			in := drivers.Input{User: user, Iteration: int64(i), Deadline: time.Now().Add(long)}
			var out drivers.Outcome
			if err := s.Do(t.Context(), b.Call, &in, &out); err != nil {
				t.Fatal(err)
			}
			m := value(t, out.Answer, "message").(map[string]any)
			payload, _ := base64.StdEncoding.DecodeString(m["payload"].(string))
			if m["text"] != "user "+string(rune('0'+user)) || len(payload) != 10+i || m["at"] != "2030-01-31T12:00:00Z" {
				t.Errorf("user %d, iteration %d: %v", user, i, m)
			}
		}
	}
	wrong := drivertest.Func(func(*drivers.Input) any { return "many" })
	r := once(t, fields(t, e.addr, "Unary", drivertest.Fields{"size": wrong}))
	if r.Err == nil || !strings.Contains(r.Err.Error(), `size: expected a whole number, not "many"`) {
		t.Errorf("a text was sent for a number: %v", r.Err)
	}
}

// Streams of all kinds.
func TestStreams(t *testing.T) {
	e := serve(t, serverConfig{})
	three := []any{drivertest.Fields{"text": "a"}, drivertest.Fields{"text": "b"}, drivertest.Fields{"text": "c"}}

	r := once(t, fields(t, e.addr, "Download", drivertest.Fields{"count": 5, "size": 100, "text": "x"}), "message", "messages")
	if r.Err != nil || !r.Success {
		t.Fatalf("download: %v", r.Err)
	}
	if n := value(t, r.Answer, "message_count"); n != int64(5) {
		t.Errorf("download: %v messages", n)
	}
	if list := value(t, r.Answer, "messages").([]any); len(list) != 5 || list[4].(map[string]any)["number"] != int64(5) {
		t.Errorf("download: messages %v", list)
	}
	if m := value(t, r.Answer, "message").(map[string]any); m["number"] != int64(5) {
		t.Errorf("download: the last message is %v", m)
	}
	if r.BytesIn < 500 || r.TTFB < 0 || r.Transfer <= 0 {
		t.Errorf("download: %d bytes, ttfb %v, transfer %v", r.BytesIn, r.TTFB, r.Transfer)
	}

	upload := with(fields(t, e.addr, "Upload", nil), drivertest.Fields{"messages": three})
	r = once(t, upload, "message")
	if m := value(t, r.Answer, "message").(map[string]any); r.Err != nil || m["number"] != int64(3) || m["text"] != "c" {
		t.Errorf("upload: %v, %v", r.Err, m)
	}
	if r.BytesOut != 9 {
		t.Errorf("upload: %d bytes out, want 9", r.BytesOut)
	}

	r = once(t, with(fields(t, e.addr, "Chat", nil), drivertest.Fields{"messages": three}), "messages")
	if list := value(t, r.Answer, "messages").([]any); r.Err != nil || len(list) != 3 || list[1].(map[string]any)["text"] != "b" {
		t.Errorf("chat: %v, %v", r.Err, list)
	}
	if r.BytesOut != 9 {
		t.Errorf("chat: %d bytes out, want 9", r.BytesOut)
	}

	// None is a stream, too.
	r = once(t, fields(t, e.addr, "Upload", nil), "message")
	if m := value(t, r.Answer, "message").(map[string]any); r.Err != nil || m["number"] != int64(0) {
		t.Errorf("empty upload: %v, %v", r.Err, m)
	}
	r = once(t, fields(t, e.addr, "Chat", nil), "messages")
	if list := value(t, r.Answer, "messages").([]any); r.Err != nil || len(list) != 0 || !r.Success {
		t.Errorf("empty chat: %v, %v", r.Err, list)
	}

	// A status after messages.
	r = once(t, fields(t, e.addr, "Download", drivertest.Fields{"status": 13, "status_text": "broke down"}))
	if r.Err != nil || r.Success || r.Status != 13 || value(t, r.Answer, "message_count") != int64(1) {
		t.Errorf("failing download: %v, status %d", r.Err, r.Status)
	}
	if n := e.requests.Load(); n != 6 {
		t.Errorf("the server counted %d calls, want 6", n)
	}
}

// A chat whose messages are more than the windows hold needs both directions at the same time.
func TestChatBothWays(t *testing.T) {
	e := serve(t, serverConfig{})
	var messages []any
	for range 200 {
		messages = append(messages, drivertest.Fields{"text": strings.Repeat("x", 20000), "size": 20000})
	}
	r := once(t, with(fields(t, e.addr, "Chat", nil), drivertest.Fields{"messages": messages}))
	if r.Err != nil || value(t, r.Answer, "message_count") != int64(200) {
		t.Fatalf("%v, %v messages", r.Err, value(t, r.Answer, "message_count"))
	}
}

// An endless stream is a success when a limit of the plan is reached.
func TestEndlessStream(t *testing.T) {
	e := serve(t, serverConfig{})
	f := fields(t, e.addr, "Download", drivertest.Fields{"count": -1, "size": 10})
	r := once(t, with(f, drivertest.Fields{"messages_limit": 10}), "messages")
	if r.Err != nil || !r.Success || value(t, r.Answer, "message_count") != int64(10) || len(value(t, r.Answer, "messages").([]any)) != 10 {
		t.Errorf("limit of messages: %v, %v messages", r.Err, value(t, r.Answer, "message_count"))
	}
	if r.TTFB < 0 || r.Transfer <= 0 {
		t.Errorf("limit of messages: ttfb %v, transfer %v", r.TTFB, r.Transfer)
	}

	const duration = 300 * time.Millisecond
	r = once(t, with(f, drivertest.Fields{"stream_duration": duration}))
	if n := value(t, r.Answer, "message_count").(int64); r.Err != nil || !r.Success || n < 2 {
		t.Errorf("duration: %v, %v messages", r.Err, n)
	}
	if r.Service < duration || r.Service > long/2 {
		t.Errorf("duration: the call took %v", r.Service)
	}
	if d := time.Duration(e.deadline.Load()); d != 0 && d < duration {
		t.Errorf("the server was given %v", d)
	}

	// Without a limit it is a timeout, and what came is known.
	b := drivertest.NewBench(t, New(), f, drivers.Pool{Users: 1})
	s := b.Open()
	r = b.Fails(t.Context(), s, 300*time.Millisecond, drivers.Timeout)
	if r.BytesIn == 0 || r.TTFB < 0 {
		t.Errorf("no limit: %d bytes, ttfb %v", r.BytesIn, r.TTFB)
	}
	// The other side sees the ends.
	for end := time.Now().Add(long); e.server != nil && e.active.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server still streams")
		}
	}
}

// A stream that stays silent is no success when its duration is over.
func TestSilentStream(t *testing.T) {
	e := serve(t, serverConfig{})
	f := with(fields(t, e.addr, "Chat", nil), drivertest.Fields{
		"messages": []any{drivertest.Fields{"delay_ms": 20000}}, "stream_duration": 50 * time.Millisecond,
	})
	b := drivertest.NewBench(t, New(), f, drivers.Pool{Users: 1})
	b.Fails(t.Context(), b.Open(), 300*time.Millisecond, drivers.Timeout)

	// A late first message ends it.
	late := with(f, drivertest.Fields{"messages": []any{drivertest.Fields{"delay_ms": 200}, drivertest.Fields{"delay_ms": 20000}}})
	r := once(t, late)
	if r.Err != nil || !r.Success || value(t, r.Answer, "message_count") != int64(1) {
		t.Errorf("late: %v", r.Err)
	}
}

// One slow call does no harm to others on the same connection.
func TestSlowNeighbour(t *testing.T) {
	e := serve(t, serverConfig{})
	d := New()
	b := drivertest.NewBench(t, d, fields(t, e.addr, "Unary", nil), drivers.Pool{Users: 21})
	slow := drivertest.Prepare(t, d, fields(t, e.addr, "Unary", drivertest.Fields{"delay_ms": 20000}))
	b.Must(b.Open())
	var wg sync.WaitGroup
	wg.Go(func() {
		if r := b.DoCall(t.Context(), b.Open(), slow, time.Second); drivers.KindOf(r.Err) != drivers.Timeout {
			t.Errorf("the slow call: %v", r.Err)
		}
	})
	for range 20 {
		s := b.Open()
		wg.Go(func() {
			for range 10 {
				r := b.Do(t.Context(), s, long)
				if r.Err != nil || r.Service > 900*time.Millisecond {
					t.Errorf("a neighbour took %v: %v", r.Service, r.Err)
				}
			}
		})
	}
	wg.Wait()
	if n := e.conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestCancelStream(t *testing.T) {
	e := serve(t, serverConfig{})
	b := drivertest.NewBench(t, New(), fields(t, e.addr, "Download", drivertest.Fields{"count": -1}), drivers.Pool{Users: 1})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if r := b.Fails(ctx, b.Open(), 10*long, drivers.Aborted); r.Service > long {
		t.Errorf("the call took %v", r.Service)
	}
}
