// Package service holds the lab's systems under test. Each listens on 127.0.0.1, at a port of the kernel's choice, and
// serves until it is closed.
package service

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/lab"
)

// HTTP is a web service, over HTTP/1.1 and HTTP/2, on the same port: with prior knowledge, or as negotiated by TLS.
//
//	GET  /                what this is, as JSON
//	GET  /strings?bytes=N a random string of N bytes (8192)
//	GET  /file?size=S     S bytes (64MiB) of random text, ranges too; equal for equal sizes
//	any  /status/CODE     an answer with this status, once the whole request has come
//	GET  /delay?time=T    an answer after T, at most an hour
//	POST /echo            the body, up to 64 MiB
//
// Each of them but /status is worked on as the service's delay, serial and slots say.
type HTTP struct {
	name     string
	clock    *clock.Clock
	content  content
	serial   *station
	parallel *station

	listener    net.Listener
	server      *http.Server
	served      chan struct{}
	requests    atomic.Int64
	connections atomic.Int64
}

const (
	mostBytes = 1 << 40
	mostEcho  = 64 << 20
	mostDelay = time.Hour
)

// ListenHTTP starts a service of kind http. The authority is needed with TLS only.
func ListenHTTP(c *clock.Clock, spec lab.Service, authority *Authority) (*HTTP, error) {
	h := &HTTP{name: spec.Name, clock: c, content: newContent(), served: make(chan struct{})}
	if spec.Serial > 0 {
		h.serial = &station{clock: c, slots: 1, least: spec.Serial}
	}
	if spec.Delay > 0 || spec.DelayMax > 0 {
		h.parallel = &station{clock: c, slots: spec.Slots, least: spec.Delay, most: spec.DelayMax}
	}

	h.server = &http.Server{
		Handler: h.routes(),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				h.connections.Add(1)
			}
		},
		// Whoever breaks off a handshake or an answer knows it; there is no other reader.
		ErrorLog: log.New(io.Discard, "", 0),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          1000,
			MaxReceiveBufferPerConnection: 4 << 20,
			MaxReceiveBufferPerStream:     1 << 20,
		},
		Protocols: new(http.Protocols),
	}
	h.server.Protocols.SetHTTP1(true)
	if spec.TLS {
		h.server.Protocols.SetHTTP2(true)
		h.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{authority.certificate}}
	} else {
		h.server.Protocols.SetUnencryptedHTTP2(true)
	}

	var err error
	if h.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start service %s: %w", spec.Name, err)
	}
	go func() {
		defer close(h.served)
		if spec.TLS {
			h.server.ServeTLS(h.listener, "", "")
		} else {
			h.server.Serve(h.listener)
		}
	}()
	return h, nil
}

// Address is host and port of the service.
func (h *HTTP) Address() string { return h.listener.Addr().String() }

// Connections is how many connections the service has accepted.
func (h *HTTP) Connections() int64 { return h.connections.Load() }

// Requests is how many requests the service has received.
func (h *HTTP) Requests() int64 { return h.requests.Load() }

// Close breaks off all connections.
func (h *HTTP) Close() error {
	err := h.server.Close()
	<-h.served
	return err
}

func (h *HTTP) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/status/{code}", h.status)
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET /{$}":     h.home,
		"GET /strings": h.strings,
		"GET /file":    h.file,
		"GET /delay":   h.delay,
		"POST /echo":   h.echo,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if h.work(r.Context()) == nil {
				handler(w, r)
			}
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.requests.Add(1)
		mux.ServeHTTP(w, r)
	})
}

// work does the service's work for one request.
func (h *HTTP) work(ctx context.Context) error {
	if h.serial == nil && h.parallel == nil {
		return nil
	}
	waiter := h.clock.NewWaiter()
	if h.serial != nil {
		if err := h.serial.serve(ctx, waiter); err != nil {
			return err
		}
	}
	if h.parallel != nil {
		return h.parallel.serve(ctx, waiter)
	}
	return nil
}

func (h *HTTP) home(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"service": h.name, "proto": r.Proto, "tls": r.TLS != nil})
}

func (h *HTTP) strings(w http.ResponseWriter, r *http.Request) {
	n, err := size(r, "bytes", 8192)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	if r.Method != http.MethodHead {
		h.content.write(w, randomOffset(), n)
	}
}

func (h *HTTP) file(w http.ResponseWriter, r *http.Request) {
	n, err := size(r, "size", 64<<20)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("ETag", fmt.Sprintf(`"%s-%d"`, h.name, n))
	if r.Method == http.MethodHead || r.Header.Get("Range") != "" || r.Header.Get("If-None-Match") != "" {
		http.ServeContent(w, r, "", time.Time{}, &file{content: h.content, size: n})
		return
	}
	header.Set("Accept-Ranges", "bytes")
	header.Set("Content-Length", strconv.FormatInt(n, 10))
	h.content.write(w, 0, n)
}

func (h *HTTP) status(w http.ResponseWriter, r *http.Request) {
	code, err := strconv.Atoi(r.PathValue("code"))
	if err != nil || code < 200 || code > 599 {
		http.Error(w, "status must lie between 200 and 599", http.StatusBadRequest)
		return
	}
	// What was sent is taken in first, so that an upload is measured to its end.
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if code != http.StatusNoContent && code != http.StatusNotModified {
		fmt.Fprintf(w, "{\"status\":%d}\n", code)
	}
}

func (h *HTTP) delay(w http.ResponseWriter, r *http.Request) {
	arrived := h.clock.Now()
	d, err := time.ParseDuration(r.URL.Query().Get("time"))
	if err != nil || d < 0 || d > mostDelay {
		http.Error(w, "time must be a duration like 100ms, at most 1h", http.StatusBadRequest)
		return
	}
	if !h.clock.NewWaiter().Until(arrived+d, r.Context().Done()) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, "{\"delay\":%q}\n", d)
}

func (h *HTTP) echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostEcho))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		http.Error(w, fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		return
	}
	if kind := r.Header.Get("Content-Type"); kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

// size reads a query parameter that is a number of bytes.
func size(r *http.Request, name string, otherwise int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := parseSize(text)
	if err == nil && n > mostBytes {
		err = fmt.Errorf("size %q is more than %d bytes", text, int64(mostBytes))
	}
	return n, err
}
