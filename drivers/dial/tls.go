package dial

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/planrun/planrun/drivers"
)

// TLSField is the group "tls" of a step.
func TLSField() drivers.Field {
	return drivers.Field{
		Key: "tls", Kind: drivers.Group, Title: "TLS",
		Doc: "Certificates and names for encrypted connections. Connections are never resumed: each one that is opened has a full handshake.",
		Fields: []drivers.Field{
			{Key: "ca", Kind: drivers.File, Title: "Authorities", Doc: "PEM certificates to be trusted besides the system's.", Examples: []string{"ca.pem"}},
			{Key: "cert", Kind: drivers.File, Title: "Client certificate", Doc: "PEM certificate that the server asks for, with its chain. Goes with `key`.", Examples: []string{"me.pem"}},
			{Key: "key", Kind: drivers.File, Title: "Client key", Doc: "PEM private key of `cert`, not encrypted.", Examples: []string{"me.key"}},
			{Key: "server_name", Kind: drivers.Text, Title: "Server name", Doc: "The name that is asked for and that the certificate must have, if it isn't the host of the address.", Examples: []string{"api.test"}},
			{Key: "insecure", Kind: drivers.Bool, Title: "Skip verification", Doc: "Accept any certificate. For rehearsals only: it does not change what a handshake costs, but what it proves.", Default: "false"},
		},
	}
}

// TLS makes the client's configuration of a step's group "tls" and op.Roots. ServerName is left empty when the step
// does not have one: Handshake then takes the host. Two steps whose fingerprints are equal have the same settings;
// the fingerprint does not reveal the key.
func TLS(op *drivers.Op) (config *tls.Config, fingerprint string, errs drivers.FieldErrors) {
	group := op.Group("tls")
	config = &tls.Config{MinVersion: tls.VersionTLS12}
	sum := sha256.New()
	read := func(key string) []byte {
		path := group.Choice(key, "")
		if path == "" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, group.Errorf(key, "%s can't be read: %v", key, reason(err)))
			return nil
		}
		fmt.Fprintf(sum, "%s %d\n%s\n", key, len(data), data)
		return data
	}

	fmt.Fprintf(sum, "roots %d\n%s\n", len(op.Roots), op.Roots)
	ca := read("ca")
	if len(ca) > 0 || len(op.Roots) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool() // the system has none: those that are named still count
		}
		pool.AppendCertsFromPEM(op.Roots)
		if len(ca) > 0 && !pool.AppendCertsFromPEM(ca) {
			errs = append(errs, group.Errorf("ca", "the file holds no PEM certificate"))
		}
		config.RootCAs = pool
	}

	cert, key := read("cert"), read("key")
	switch {
	case group.Has("cert") && !group.Has("key"):
		errs = append(errs, group.Errorf("cert", "a client certificate needs its key").WithHint("add key"))
	case group.Has("key") && !group.Has("cert"):
		errs = append(errs, group.Errorf("key", "a client key needs its certificate").WithHint("add cert"))
	case len(cert) > 0 && len(key) > 0:
		pair, err := tls.X509KeyPair(cert, key)
		switch {
		case err != nil:
			errs = append(errs, group.Errorf("cert", "certificate and key don't work: %v", trim(err)))
		case pair.Leaf != nil && time.Now().After(pair.Leaf.NotAfter):
			errs = append(errs, group.Errorf("cert", "the certificate expired on %s", pair.Leaf.NotAfter.Format(time.DateOnly)))
		default:
			// The server's list of acceptable authorities is only a hint: the certificate that the plan names is
			// sent in any case, and the server says what it thinks of it.
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
	}

	name, err := group.Fixed("server_name")
	if e, ok := errors.AsType[*drivers.FieldError](err); ok {
		errs = append(errs, e)
	}
	config.ServerName = name
	config.InsecureSkipVerify = group.Bool("insecure", false)
	fmt.Fprintf(sum, "%q %v\n", name, config.InsecureSkipVerify)
	return config, hex.EncodeToString(sum.Sum(nil)), errs
}

// Handshake makes a TLS connection of conn before ctx is done, and adds what it took to t.TLS. host is used where the
// configuration has no name. It closes conn when it fails; the error is an *drivers.Error.
func Handshake(ctx context.Context, conn net.Conn, config *tls.Config, host string, t *drivers.Timing) (*tls.Conn, error) {
	tc, _, err := handshake(ctx, conn, config, host, t)
	return tc, err
}

// HandshakeJudged is Handshake for a probe. With TLS 1.3 the handshake ends before the server has judged the client's
// certificate, so where it asks for one its verdict is waited for: a moment, because nothing comes if it is content.
// What the server sends meanwhile is lost, so the connection is good for nothing but closing.
func HandshakeJudged(ctx context.Context, conn net.Conn, config *tls.Config, host string, t *drivers.Timing) (*tls.Conn, error) {
	start := time.Now()
	tc, asked, err := handshake(ctx, conn, config, host, t)
	if err != nil || !asked || tc.ConnectionState().Version < tls.VersionTLS13 {
		return tc, err
	}
	tc.SetReadDeadline(time.Now().Add(min(max(4*time.Since(start), 200*time.Millisecond), time.Second)))
	if _, err := tc.Read(make([]byte, 1)); Classify(err) == drivers.TLS {
		tc.Close()
		return nil, Fail(ctx, "TLS handshake", err)
	}
	return tc, nil
}

// handshake also says whether the server asked for the client's certificate.
func handshake(ctx context.Context, conn net.Conn, config *tls.Config, host string, t *drivers.Timing) (_ *tls.Conn, asked bool, _ error) {
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName = host
	}
	certificate := config.GetClientCertificate
	config.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked = true
		if certificate == nil {
			return new(tls.Certificate), nil
		}
		return certificate(r)
	}
	start := time.Now()
	tc := tls.Client(conn, config)
	err := tc.HandshakeContext(ctx)
	Add(&t.TLS, time.Since(start))
	if err == nil {
		return tc, asked, nil
	}
	conn.Close()
	if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" && asked && certificate == nil {
		err = fmt.Errorf("%w (the server asks for a client certificate: name one in tls.cert and tls.key)", alert.Err)
		return nil, asked, drivers.Fail(drivers.TLS, fmt.Errorf("TLS handshake: %w", err))
	}
	return nil, asked, Fail(ctx, "TLS handshake", Explain(err))
}

// Explain adds to an error of the handshake what usually causes it.
func Explain(err error) error {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("%w (name its authority in tls.ca)", err)
	}
	if e, ok := errors.AsType[tls.RecordHeaderError](err); ok && len(e.RecordHeader) == 5 && string(e.RecordHeader[:5]) == "HTTP/" {
		return drivers.Fail(drivers.TLS, errors.New("TLS handshake: the server speaks plain HTTP at this port"))
	}
	return err
}

// reason leaves out the operation and path of an error about a file.
func reason(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// trim leaves out the package that an error of crypto/tls begins with.
func trim(err error) string {
	const prefix = "tls: "
	s := err.Error()
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):]
	}
	return s
}
