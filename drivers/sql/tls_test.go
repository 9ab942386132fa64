package sql

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
	"github.com/planrun/planrun/drivers/sql/sqltest"
)

// certificate makes a certificate for 127.0.0.1 that is its own authority.
func certificate(t testing.TB) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "database"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

func TestTLS(t *testing.T) {
	cert := identity(t).Certificate
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	type try struct {
		params string
		tls    drivertest.Fields
		roots  bool
		want   drivers.Failure
	}
	for _, c := range []struct {
		name  string
		start func(testing.TB) *sqltest.Server
		url   string
		query string // answers whether the connection is encrypted
		tries []try
	}{
		{"postgres", postgresServer, "postgres://", "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", []try{
			{params: "?sslmode=prefer"},
			{params: "?sslmode=require"},
			{params: "?sslmode=verify-full", want: drivers.TLS},
			{params: "?sslmode=verify-full", roots: true},
			{params: "?sslmode=verify-ca&sslrootcert=" + ca},
			{tls: drivertest.Fields{"ca": ca}},
			{tls: drivertest.Fields{"insecure": true}},
			{tls: drivertest.Fields{"ca": ca, "server_name": "elsewhere.test"}, want: drivers.TLS},
			{tls: drivertest.Fields{"server_name": ""}, want: drivers.TLS},
		}},
		{"mariadb", mariadbServer, "mysql://", "SELECT variable_value <> '' AS ssl_on FROM information_schema.session_status WHERE variable_name = 'Ssl_cipher'", []try{
			{params: "?tls=skip-verify"},
			{params: "?tls=preferred"},
			{params: "?tls=true", want: drivers.TLS},
			{params: "?tls=true", roots: true},
			{tls: drivertest.Fields{"ca": ca}},
			{tls: drivertest.Fields{"insecure": true}},
			{tls: drivertest.Fields{"ca": ca, "server_name": "elsewhere.test"}, want: drivers.TLS},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.start(t)
			relay := drivertest.NewRelay(t, s.Addr)
			for _, try := range c.tries {
				fields := drivertest.Fields{"dsn": c.url + s.User + "@" + relay.Addr() + "/" + s.Database + try.params, "password": s.Password, "query": c.query}
				if try.tls != nil {
					fields["tls"] = try.tls
				}
				op := drivertest.NewOp(t, New(), fields, "rows")
				if try.roots {
					op.Roots = cert
				}
				call, err := New().Prepare(op)
				if err != nil {
					t.Fatal(err)
				}
				client, err := New().Connect(t.Context(), call.Endpoint(), drivers.Pool{Users: 1})
				if err != nil {
					t.Fatal(err)
				}
				b := &drivertest.Bench{TB: t, Client: client, Call: call}
				session := b.Open()
				before := relay.Opened()
				if try.want != drivers.OK {
					b.Fails(t.Context(), session, long, try.want)
				} else {
					r := b.Must(session)
					v, _ := r.Answer.Value("rows")
					for _, on := range v.([]any)[0].(map[string]any) {
						if on != true && on != int64(1) {
							t.Errorf("%s %v: the connection is not encrypted", try.params, try.tls)
						}
					}
					if c.name == "postgres" && r.TLS < 0 {
						t.Errorf("%s %v: the handshake was not timed", try.params, try.tls)
					}
					if r := b.Must(session); r.Opened || r.TLS != drivers.None {
						t.Errorf("%s %v: the second call opened %v, tls %v", try.params, try.tls, r.Opened, r.TLS)
					}
				}
				if n := relay.Opened() - before; n != 1 {
					t.Errorf("%s %v: %d connections were opened, want 1", try.params, try.tls, n)
				}
			}
		})
	}
}

// A server without TLS: preferred goes on without over the same connection, required fails as TLS.
func TestServerWithoutTLS(t *testing.T) {
	s := postgresServer(t)
	a := newAdmin(t, s.PostgresURL())
	ssl := func(value string) {
		a.exec("ALTER SYSTEM SET ssl = " + value)
		a.exec("SELECT pg_reload_conf()")
		eventually(t, "ssl is "+value, func() bool { return a.one("SHOW ssl") == value })
	}
	ssl("off")
	defer ssl("on")
	for params, want := range map[string]drivers.Failure{"?sslmode=prefer": drivers.OK, "?sslmode=require": drivers.TLS, "?sslmode=disable": drivers.OK} {
		relay := drivertest.NewRelay(t, s.Addr)
		b, session := open(t, drivertest.Fields{"dsn": "postgres://" + s.User + "@" + relay.Addr() + "/" + s.Database + params, "password": s.Password, "query": "SELECT 1"})
		if want == drivers.OK {
			if r := b.Must(session); r.TLS != drivers.None {
				t.Errorf("%s: a connection without TLS has a handshake of %v", params, r.TLS)
			}
		} else {
			b.Fails(t.Context(), session, long, want)
		}
		if n := relay.Opened(); n != 1 {
			t.Errorf("%s: %d connections were opened, want 1", params, n)
		}
	}
}
