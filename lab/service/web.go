package service

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/planrun/planrun/lab"
)

// web is a web server over HTTP/1.1 and HTTP/2, on the same port: with prior knowledge, or as negotiated by TLS.
type web struct {
	listener    net.Listener
	server      *http.Server
	served      chan struct{}
	requests    atomic.Int64
	connections atomic.Int64
}

// start begins to serve. The authority is needed with TLS only.
func (w *web) start(spec lab.Service, authority *Authority, handler http.Handler) error {
	w.served = make(chan struct{})
	w.server = &http.Server{
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			w.requests.Add(1)
			handler.ServeHTTP(rw, r)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				w.connections.Add(1)
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
	w.server.Protocols.SetHTTP1(true)
	if spec.TLS {
		w.server.Protocols.SetHTTP2(true)
		w.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{authority.certificate}}
	} else {
		w.server.Protocols.SetUnencryptedHTTP2(true)
	}

	var err error
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("start service %s: %w", spec.Name, err)
	}
	go func() {
		defer close(w.served)
		if spec.TLS {
			w.server.ServeTLS(w.listener, "", "")
		} else {
			w.server.Serve(w.listener)
		}
	}()
	return nil
}

// Address is host and port of the service.
func (w *web) Address() string { return w.listener.Addr().String() }

// Connections is how many connections the service has accepted.
func (w *web) Connections() int64 { return w.connections.Load() }

// Requests is how many requests the service has received.
func (w *web) Requests() int64 { return w.requests.Load() }

// Close breaks off all connections.
func (w *web) Close() error {
	err := w.server.Close()
	<-w.served
	return err
}
