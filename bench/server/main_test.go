package main

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

func get(h *handler, path string) []byte {
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("http://server.test" + path)
	h.handle(&ctx)
	return ctx.Response.Body()
}

func TestHandler(t *testing.T) {
	h := newHandler(100, 2*time.Millisecond, 3*time.Millisecond)
	get(h, "/before")
	get(h, "/control/reset")
	for range 3 {
		if body := get(h, "/strings"); len(body) != 100 {
			t.Fatalf("answered %d bytes", len(body))
		}
	}
	if got := string(get(h, "/control/count")); got != "3" {
		t.Errorf("counted %s requests since the reset, want 3", got)
	}
	arrivals := get(h, "/control/arrivals")
	if len(arrivals) != 3*8 {
		t.Fatalf("%d bytes of arrivals", len(arrivals))
	}
	for i := 8; i < len(arrivals); i += 8 {
		gap := time.Duration(binary.LittleEndian.Uint64(arrivals[i:]) - binary.LittleEndian.Uint64(arrivals[i-8:]))
		if gap < 2*time.Millisecond {
			t.Errorf("arrivals %v apart, although each waits for the one before, which takes 2 ms", gap)
		}
	}
}

func TestParseDelay(t *testing.T) {
	for text, want := range map[string][2]time.Duration{
		"0s":           {0, 0},
		"5ms":          {5 * time.Millisecond, 5 * time.Millisecond},
		"100ms..120ms": {100 * time.Millisecond, 120 * time.Millisecond},
	} {
		low, high, err := parseDelay(text)
		if err != nil || low != want[0] || high != want[1] {
			t.Errorf("%s is %v to %v (%v), want %v", text, low, high, err, want)
		}
	}
	for _, text := range []string{"", "5", "5ms..", "-1ms", "9ms..3ms"} {
		if _, _, err := parseDelay(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
