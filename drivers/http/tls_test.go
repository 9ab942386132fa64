package http

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// issuer is a certificate authority.
type issuer struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newIssuer(t testing.TB) *issuer {
	i := &issuer{t: t, dir: t.TempDir()}
	i.cert, i.key = i.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "test authority"}})
	i.write("ca.pem", "CERTIFICATE", i.cert.Raw)
	return i
}

func (i *issuer) sign(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.NotBefore = time.Now().Add(-48 * time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(24 * time.Hour)
	}
	parent, signer := i.cert, i.key
	if parent == nil {
		parent, signer = c, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		i.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		i.t.Fatal(err)
	}
	return cert, key
}

func (i *issuer) write(name, kind string, raw []byte) string {
	i.t.Helper()
	path := filepath.Join(i.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		i.t.Fatal(err)
	}
	return path
}

// pair writes a certificate and its key.
func (i *issuer) pair(name string, c *x509.Certificate) (certFile, keyFile string) {
	cert, key := i.sign(c)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		i.t.Fatal(err)
	}
	return i.write(name+".pem", "CERTIFICATE", cert.Raw), i.write(name+".key", "PRIVATE KEY", raw)
}

func TestMutualTLS(t *testing.T) {
	ours, theirs := newIssuer(t), newIssuer(t)
	serverCert, serverKey := ours.pair("server", &x509.Certificate{DNSNames: []string{"api.test"}})
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ours.cert)
	client := func(i *issuer, name string, c *x509.Certificate) (string, string) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		return i.pair(name, c)
	}
	good, goodKey := client(ours, "good", &x509.Certificate{})
	stranger, strangerKey := client(theirs, "stranger", &x509.Certificate{})
	expired, expiredKey := client(ours, "expired", &x509.Certificate{NotAfter: time.Now().Add(-time.Hour)})
	ca := filepath.Join(ours.dir, "ca.pem")

	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for name, p := range map[string]protocols{"1.1": secure1, "2": secure2} {
			s := serve(t, p, nil, func(s *httptest.Server) {
				s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MaxVersion: version}
			})
			for _, c := range []struct {
				name string
				tls  drivertest.Fields
				want string // a part of the error
			}{
				{"right", drivertest.Fields{"ca": ca, "cert": good, "key": goodKey, "server_name": "api.test"}, ""},
				{"insecure", drivertest.Fields{"cert": good, "key": goodKey, "insecure": true}, ""},
				{"no certificate", drivertest.Fields{"ca": ca, "server_name": "api.test"}, "certificate"},
				{"unknown client", drivertest.Fields{"ca": ca, "cert": stranger, "key": strangerKey, "server_name": "api.test"}, "unknown certificate authority"},
				{"unknown server", drivertest.Fields{"ca": filepath.Join(theirs.dir, "ca.pem"), "cert": good, "key": goodKey, "server_name": "api.test"}, "name its authority in tls.ca"},
				{"other name", drivertest.Fields{"ca": ca, "cert": good, "key": goodKey}, "127.0.0.1"},
			} {
				t.Run(strings.Join([]string{tls.VersionName(version), "HTTP", name, c.name}, " "), func(t *testing.T) {
					b := drivertest.NewBench(t, New(), drivertest.Fields{"get": s.URL, "version": name, "tls": c.tls}, drivers.Pool{Users: 1})
					probe := b.Client.Probe(t.Context())
					call := b.Do(t.Context(), b.Open(), time.Minute)
					for what, err := range map[string]error{"probe": probe, "call": call.Err} {
						// With TLS 1.3 the call has sent its request before the server judges it, and the reset that
						// follows may overtake the server's reason. The probe, which sends nothing, always hears it.
						overtaken := what == "call" && version == tls.VersionTLS13 && drivers.KindOf(err) == drivers.Reset
						switch {
						case c.want != "" && overtaken:
						case c.want == "" && err != nil:
							t.Errorf("%s: %v", what, err)
						case c.want != "" && (drivers.KindOf(err) != drivers.TLS || !strings.Contains(err.Error(), c.want)):
							t.Errorf("%s: got %v (%v), want tls with %q", what, err, drivers.KindOf(err), c.want)
						}
					}
					if n := s.requests.Load(); c.want != "" && n != 0 {
						t.Errorf("%d requests came through", n)
					}
				})
				s.requests.Store(0)
			}
		}
	}

	d := New()
	for _, c := range []struct {
		tls  drivertest.Fields
		want string
	}{
		{drivertest.Fields{"cert": good, "key": strangerKey}, "tls.cert: certificate and key don't work: private key does not match public key"},
		{drivertest.Fields{"cert": expired, "key": expiredKey}, "tls.cert: the certificate expired on " + time.Now().Add(-time.Hour).UTC().Format(time.DateOnly)},
		{drivertest.Fields{"cert": good}, "tls.cert: a client certificate needs its key: add key"},
		{drivertest.Fields{"key": goodKey}, "tls.key: a client key needs its certificate: add cert"},
		{drivertest.Fields{"ca": goodKey}, "tls.ca: the file holds no PEM certificate"},
		{drivertest.Fields{"ca": "/nowhere"}, "tls.ca: ca can't be read: no such file or directory"},
	} {
		_, err := d.Prepare(drivertest.NewOp(t, d, drivertest.Fields{"get": "https://127.0.0.1/", "tls": c.tls}))
		if err == nil || err.Error() != c.want {
			t.Errorf("%v:\n got %v\nwant %s", c.tls, err, c.want)
		}
	}
}

// A server whose certificate has expired is told as such before the load.
func TestExpiredServer(t *testing.T) {
	ours := newIssuer(t)
	cert, key := ours.pair("server", &x509.Certificate{DNSNames: []string{"api.test"}, NotAfter: time.Now().Add(-time.Hour)})
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for version, p := range map[string]protocols{"1.1": secure1, "2": secure2} {
		s := serve(t, p, nil, func(s *httptest.Server) { s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}} })
		b := drivertest.NewBench(t, New(), drivertest.Fields{"get": s.URL, "version": version,
			"tls": drivertest.Fields{"ca": filepath.Join(ours.dir, "ca.pem"), "server_name": "api.test"}}, drivers.Pool{Users: 1})
		if err := b.Client.Probe(t.Context()); drivers.KindOf(err) != drivers.TLS || !strings.Contains(err.Error(), "expired") {
			t.Errorf("HTTP/%s: got %v (%v)", version, err, drivers.KindOf(err))
		}
		if n := s.requests.Load(); n != 0 {
			t.Errorf("HTTP/%s: %d requests came through", version, n)
		}
	}
}

// Roots of the run are trusted besides the system's.
func TestRoots(t *testing.T) {
	s := serve(t, secure1, nil)
	d := New()
	op := drivertest.NewOp(t, d, drivertest.Fields{"get": s.URL})
	op.Roots = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	call, err := d.Prepare(op)
	if err != nil {
		t.Fatal(err)
	}
	client, err := d.Connect(t.Context(), call.Endpoint(), drivers.Pool{Users: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Probe(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNotTLS(t *testing.T) {
	s := serve(t, plain1, nil)
	r := do(t, drivertest.Fields{"get": "https://" + s.addr()})
	if drivers.KindOf(r.Err) != drivers.TLS || !strings.Contains(r.Err.Error(), "plain HTTP") {
		t.Errorf("TLS to a plain server: %v (%v)", r.Err, drivers.KindOf(r.Err))
	}
	s = serve(t, secure1, nil)
	if r = do(t, drivertest.Fields{"get": "http://" + s.addr()}); r.Err == nil && r.Status != 400 {
		t.Errorf("plain HTTP to a TLS server: %v, status %d", r.Err, r.Status)
	}
}

// proxy is an HTTP proxy that counts. It asks for a password where one is set, and refuses to connect where told to.
func proxy(t testing.TB, password string, refuse int) (addr string, seen *[]string) {
	seen = new([]string)
	s := serve(t, plain1, func(w http.ResponseWriter, r *http.Request) {
		*seen = append(*seen, r.Method+" "+r.RequestURI)
		if password != "" && r.Header.Get("Proxy-Authorization") != password {
			w.WriteHeader(407)
			return
		}
		if refuse != 0 {
			w.WriteHeader(refuse)
			return
		}
		if r.Method != "CONNECT" {
			out, _ := http.NewRequest(r.Method, r.RequestURI, r.Body)
			resp, err := http.DefaultTransport.RoundTrip(out)
			if err != nil {
				w.WriteHeader(502)
				return
			}
			defer resp.Body.Close()
			w.WriteHeader(resp.StatusCode)
			io.Copy(w, resp.Body)
			return
		}
		back, err := net.Dial("tcp", r.RequestURI)
		if err != nil {
			w.WriteHeader(502)
			return
		}
		front, buffered, _ := http.NewResponseController(w).Hijack()
		io.WriteString(front, "HTTP/1.1 200 Connection established\r\n\r\n")
		t.Cleanup(func() { back.Close(); front.Close() })
		go io.Copy(back, buffered)
		io.Copy(front, back)
		front.Close()
	})
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return s.addr(), seen
}

func TestProxy(t *testing.T) {
	ca := authority(t)
	for _, c := range []struct {
		server  protocols
		version string
		tunnel  bool
	}{{plain1, "auto", false}, {secure1, "auto", true}, {secure2, "2", true}, {plain2, "2", true}} {
		t.Run(string(c.server), func(t *testing.T) {
			s := serve(t, c.server, nil)
			addr, seen := proxy(t, "Basic dTpwYXNz", 0)
			fields := drivertest.Fields{"get": s.URL + "/x", "version": c.version, "proxy": "http://u:pass@" + addr}
			if strings.HasPrefix(s.URL, "https") {
				fields["tls"] = drivertest.Fields{"ca": ca}
			}
			b := drivertest.NewBench(t, New(), fields, drivers.Pool{Users: 1})
			session := b.Open()
			for i := range 2 {
				r := b.Must(session)
				if r.BytesIn != 100 || r.Opened != (i == 0) {
					t.Errorf("%d bytes, opened %v", r.BytesIn, r.Opened)
				}
			}
			want := "GET " + s.URL + "/x GET " + s.URL + "/x"
			if c.tunnel {
				want = "CONNECT " + s.addr()
			}
			if got := strings.Join(*seen, " "); got != want {
				t.Errorf("the proxy saw %q, want %q", got, want)
			}
			if name := b.Call.Endpoint().Name; !strings.Contains(name, addr) || strings.Contains(name, "pass") {
				t.Errorf("the endpoint's name is %q", name)
			}
		})
	}
}

// A proxy's own failures are told from the server's.
func TestProxyFailures(t *testing.T) {
	asking, _ := proxy(t, "secret", 0)
	refusing, _ := proxy(t, "", 503)
	for _, c := range []struct {
		proxy string
		kind  drivers.Failure
		want  string
	}{
		{"http://u:hunter2@" + asking, drivers.Refused, "proxy " + asking + ": it answered 407 to CONNECT"},
		{"http://" + refusing, drivers.Refused, "it answered 503 to CONNECT"},
		{"http://u:hunter2@" + drivertest.RefusedAddr(t), drivers.Refused, "proxy 127.0.0.1:"},
		{"http://" + drivertest.NewGarbage(t).Addr(), drivers.Protocol, "proxy "},
	} {
		r := do(t, drivertest.Fields{"get": "https://127.0.0.1:1/", "proxy": c.proxy})
		if drivers.KindOf(r.Err) != c.kind || !strings.Contains(r.Err.Error(), c.want) || strings.Contains(r.Err.Error(), "hunter2") {
			t.Errorf("%s: got %v (%v), want %v with %q", c.proxy, r.Err, drivers.KindOf(r.Err), c.kind, c.want)
		}
	}
}

// A plan says all that matters: proxies of the environment are ignored.
func TestEnvironmentProxiesAreIgnored(t *testing.T) {
	addr, seen := proxy(t, "", 0)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, "http://"+addr)
	}
	for version, p := range both {
		s := serve(t, p, nil)
		if r := do(t, drivertest.Fields{"get": "http://" + s.addr(), "version": version}); r.Err != nil {
			t.Error(r.Err)
		}
	}
	if len(*seen) > 0 {
		t.Errorf("the proxy saw %v", *seen)
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skip(err)
	}
	for version := range both {
		s := &http.Server{Handler: http.HandlerFunc(echo), Protocols: new(http.Protocols)}
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetUnencryptedHTTP2(true)
		go s.Serve(l)
		t.Cleanup(func() { s.Close() })
		b := drivertest.NewBench(t, New(), drivertest.Fields{"get": "http://app.test/x", "unix": path, "version": version}, drivers.Pool{Users: 1}, "body")
		r := b.Must(b.Open())
		drivertest.WentTo(t, b.Client, drivers.Address{Addr: path, Opened: 1})
		if got := value(t, r, "body").(string); !strings.HasPrefix(got, "GET /x app.test\n") {
			t.Errorf("HTTP/%s: the server saw %q", version, got)
		}
	}
}

func TestLocalhost(t *testing.T) {
	s := serve(t, plain1, nil)
	_, port := drivertest.Split(t, s.addr())
	b := drivertest.NewBench(t, New(), drivertest.Fields{"get": "http://localhost:" + port, "keep_alive": false}, drivers.Pool{Users: 1})
	session := b.Open()
	var named int
	for range 100 {
		if r := b.Must(session); r.DNS >= 0 {
			named++
		}
	}
	if named != 1 {
		t.Errorf("the name was resolved %d times, want once", named)
	}
}
