package http

import (
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/planrun/planrun/drivers/drivertest"
)

// server is a real HTTP server that counts.
type server struct {
	*httptest.Server
	requests atomic.Int64
}

func (s *server) addr() string { return s.Listener.Addr().String() }

// protocols of a server.
type protocols string

const (
	plain1  protocols = "HTTP/1.1"
	plain2  protocols = "HTTP/2 without TLS"
	secure1 protocols = "HTTP/1.1 over TLS"
	secure2 protocols = "HTTP/2 over TLS"
)

// serve starts a server. A nil handler answers with 100 bytes.
func serve(t testing.TB, p protocols, handler http.HandlerFunc, options ...func(*httptest.Server)) *server {
	s := &server{}
	if handler == nil {
		body := strings.Repeat("0123456789", 10)
		handler = func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) }
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		handler(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.Protocols = new(http.Protocols)
	for _, set := range options {
		set(s.Server)
	}
	switch p {
	case plain1:
		s.Config.Protocols.SetHTTP1(true)
		s.Start()
	case plain2:
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	case secure1:
		s.Config.Protocols.SetHTTP1(true)
		s.StartTLS()
	case secure2:
		s.Config.Protocols.SetHTTP1(true)
		s.Config.Protocols.SetHTTP2(true)
		s.EnableHTTP2 = true
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	return s
}

// authority is a file with the certificate of the servers that httptest starts.
func authority(t testing.TB) string {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return pemFile(t, s.Certificate())
}

func pemFile(t testing.TB, c *x509.Certificate) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func counted(s *server) drivertest.Server {
	return drivertest.Server{Addr: s.addr(), Requests: func() int { return int(s.requests.Load()) }}
}

func TestConformance(t *testing.T) {
	ca := authority(t)
	for _, c := range []struct {
		protocols protocols
		fields    func(addr string) drivertest.Fields
		shared    bool
		allocs    float64
		quiet     func(t testing.TB) drivertest.Server
	}{
		{plain1, func(addr string) drivertest.Fields { return drivertest.Fields{"get": "http://" + addr + "/path?a=b"} }, false, 0, quiet},
		{secure1, func(addr string) drivertest.Fields {
			return drivertest.Fields{"get": "https://" + addr + "/", "tls": drivertest.Fields{"ca": ca}}
		}, false, 20, nil},
		{plain2, func(addr string) drivertest.Fields {
			return drivertest.Fields{"get": "http://" + addr + "/", "version": "2"}
		}, true, 80, nil},
		{secure2, func(addr string) drivertest.Fields {
			return drivertest.Fields{"get": "https://" + addr + "/", "version": "2", "tls": drivertest.Fields{"ca": ca}}
		}, true, 80, nil},
	} {
		t.Run(string(c.protocols), func(t *testing.T) {
			drivertest.Run(t, drivertest.Suite{
				Driver: New(),
				Serve:  func(t testing.TB) drivertest.Server { return counted(serve(t, c.protocols, nil)) },
				Fields: c.fields,
				Shared: c.shared,
				Allocs: c.allocs,
				Quiet:  c.quiet,
			})
		})
	}
}

// quiet is a server that answers without allocating.
func quiet(t testing.TB) drivertest.Server {
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("0123456789", 10))
	return drivertest.Server{Addr: raw(t, answer).Addr()}
}

// raw is a peer that gives the same answer to everything it reads.
func raw(t testing.TB, answer []byte) *drivertest.Peer {
	return drivertest.NewPeer(t, func(c net.Conn) {
		buf := make([]byte, 64<<10)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	})
}
