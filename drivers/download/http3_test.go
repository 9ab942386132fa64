//go:build http3

package download

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

func TestHTTP3(t *testing.T) {
	const size = 32 << 20
	file := bytes.Repeat([]byte("x"), size)
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	defer certified.Close()
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	server := &http3.Server{
		TLSConfig: &tls.Config{Certificates: certified.TLS.Certificates},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/short" {
				w.Header().Set("Content-Length", "1000")
				io.WriteString(w, strings.Repeat("x", 600))
				return
			}
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
		}),
	}
	var wg sync.WaitGroup
	wg.Go(func() { server.Serve(socket) })
	defer func() { server.Close(); wg.Wait(); socket.Close() }()

	fields := func(path string) drivertest.Fields {
		return drivertest.Fields{"url": "https://" + socket.LocalAddr().String() + path, "version": "3", "tls": drivertest.Fields{"insecure": true}}
	}
	for _, parts := range []int{1, 4} {
		with := fields("/")
		with["parts"] = parts
		b := drivertest.NewBench(t, New(), with, drivers.Pool{Users: 1})
		session := b.Open()
		for range 2 {
			if r := b.Must(session); r.BytesIn != size || r.Protocol != "HTTP/3" {
				t.Errorf("in %d parts: %d bytes over %s", parts, r.BytesIn, r.Protocol)
			}
		}
	}
	r := get(t, fields("/short"), time.Minute)
	if drivers.KindOf(r.Err) != drivers.Reset || r.BytesIn != 600 || !strings.Contains(r.Err.Error(), "600 of 1000 bytes") {
		t.Errorf("%v (%v) after %d bytes", r.Err, drivers.KindOf(r.Err), r.BytesIn)
	}
}
