// Package service holds the lab's systems under test. Each listens on 127.0.0.1, at a port of the kernel's choice, and
// serves until it is closed.
package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
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
//	POST /login           a token for {"user": "ann", "password": "nna"}
//	GET  /items?page=N    a page of what a shop has
//	POST /basket          takes {"item": 17}, with the token
//
// Each of them but /status is worked on as the service's delay, serial and slots say.
type HTTP struct {
	web
	name    string
	content content
	work    work
}

const (
	mostBytes = 1 << 40
	mostEcho  = 64 << 20
	mostDelay = time.Hour
)

// ListenHTTP starts a service of kind http. The authority is needed with TLS only.
func ListenHTTP(c *clock.Clock, spec lab.Service, authority *Authority) (*HTTP, error) {
	h := &HTTP{name: spec.Name, content: newContent(), work: newWork(c, spec)}
	if err := h.start(spec, authority, h.routes()); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *HTTP) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/status/{code}", statusAsked)
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET /{$}":     home(h.name),
		"GET /strings": h.strings,
		"GET /file":    h.file,
		"GET /delay":   h.delay,
		"POST /echo":   h.echo,
		"POST /login":  h.login,
		"GET /items":   h.items,
		"POST /basket": h.basket,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if h.work.do(r.Context()) == nil {
				handler(w, r)
			}
		})
	}
	return mux
}

// home says which service answers, and how it was reached.
func home(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"service": name, "proto": r.Proto, "tls": r.TLS != nil})
	}
}

func (h *HTTP) strings(w http.ResponseWriter, r *http.Request) {
	n, err := size(r, "bytes", lab.DefaultStrings)
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
	n, err := size(r, "size", lab.DefaultFile)
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

// statusAsked answers with the status that is asked for.
func statusAsked(w http.ResponseWriter, r *http.Request) {
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
	arrived := h.work.clock.Now()
	d, err := time.ParseDuration(r.URL.Query().Get("time"))
	if err != nil || d < 0 || d > mostDelay {
		http.Error(w, "time must be a duration like 100ms, at most 1h", http.StatusBadRequest)
		return
	}
	if !h.work.clock.NewWaiter().Until(arrived+d, r.Context().Done()) {
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
