package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestNeverGreen runs every plan of testdata/never. Each is wrong, or measures something that nobody may call a success, and
// says in its first line with which exit code it ends; a second line may have more arguments. None of them is 0.
func TestNeverGreen(t *testing.T) {
	serve := func(f http.HandlerFunc) string {
		s := httptest.NewServer(f)
		t.Cleanup(s.Close)
		return s.URL
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	var calls atomic.Int64
	done := make(chan struct{})
	for name, value := range map[string]string{
		"OK":       serve(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok")) }),
		"FAILING":  serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }),
		"SLOW":     serve(func(http.ResponseWriter, *http.Request) { time.Sleep(100 * time.Millisecond) }),
		"HANGING":  serve(func(_ http.ResponseWriter, r *http.Request) { <-done }),
		"REFUSING": "http://" + closed.Addr().String(),
		"ONE_IN_A_HUNDRED": serve(func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1)%100 != 50 {
				w.WriteHeader(http.StatusBadGateway)
			}
		}),
	} {
		t.Setenv(name, value)
	}
	t.Cleanup(func() { close(done) }) // runs before the servers are closed, which wait for their handlers
	files, err := filepath.Glob("testdata/never/*.yaml")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d plans, %v", len(files), err)
	}
	texts := map[string][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = text
	}
	t.Chdir(t.TempDir())
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			lines := strings.SplitN(string(text), "\n", 3)
			var want int
			if _, err := fmt.Sscanf(lines[0], "# exit %d", &want); err != nil || want == 0 {
				t.Fatalf("the first line says %q, not which exit code other than 0 it ends with", lines[0])
			}
			args := []string{"run", "--quiet", "--no-ci", name}
			if more, ok := strings.CutPrefix(lines[1], "# args "); ok {
				args = append(args, strings.Fields(more)...)
			}
			if err := os.WriteFile(name, text, 0o644); err != nil {
				t.Fatal(err)
			}
			var out, messages bytes.Buffer
			if exit := Main(args, strings.NewReader(""), &out, &messages); exit != want {
				t.Errorf("exit %d, want %d\n%s%s", exit, want, out.String(), messages.String())
			}
		})
	}
}
