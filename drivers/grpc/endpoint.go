package grpc

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/encoding/gzip"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// endpoint is where calls go, and what their connections depend on.
type endpoint struct {
	host, port string
	tls        *tls.Config // nil: plaintext
	authority  string
	keepalive  time.Duration // 0: off
	compressed bool          // its calls send gzip, and bytes are counted as they travel
	served     *served
}

// minKeepalive is what the gRPC library raises shorter times to.
const minKeepalive = 10 * time.Second

// endpoint makes the endpoint of a step.
func (d *Driver) endpoint(op *drivers.Op) (drivers.Endpoint, *endpoint, drivers.FieldErrors) {
	var errs drivers.FieldErrors
	fixed := func(key string) string {
		s, err := op.Fixed(key)
		if e, ok := errors.AsType[*drivers.FieldError](err); ok {
			errs = append(errs, e)
		}
		return s
	}
	e := &endpoint{}
	address := fixed("address")
	plaintext := op.Bool("plaintext", false)
	scheme, rest, found := strings.Cut(address, "://")
	switch {
	case !found:
		rest = address
	case scheme == "grpc" && op.Has("plaintext") && !plaintext:
		errs = append(errs, op.Errorf("plaintext", "grpc:// stands for plaintext").WithHint("write grpcs:// for TLS"))
	case scheme == "grpc":
		plaintext = true
	case scheme == "grpcs" && plaintext:
		errs = append(errs, op.Errorf("plaintext", "grpcs:// stands for TLS").WithHint("write grpc:// for plaintext"))
	case scheme == "grpcs":
	default:
		errs = append(errs, op.Errorf("address", "the scheme %q is none of gRPC's", scheme).WithHint("write %s, or grpc:// for plaintext, or grpcs:// for TLS", strings.TrimSuffix(rest, "/")))
	}
	if _, err := op.Fixed("address"); err == nil {
		if err := e.split(rest); err != nil {
			errs = append(errs, op.Errorf("address", "%v", err).WithHint("write host:port"))
		}
	}

	config, fingerprint, tlsErrs := dial.TLS(op)
	errs = append(errs, tlsErrs...)
	if plaintext {
		if op.Has("tls") {
			errs = append(errs, op.Errorf("tls", "a plaintext connection has no TLS").WithHint("remove tls or plaintext"))
		}
		fingerprint = ""
	} else {
		config.NextProtos = []string{"h2"}
		e.tls = config
	}
	e.authority = fixed("authority")
	e.compressed = op.Choice("compression", "none") == gzip.Name
	e.keepalive = op.Duration("keepalive", 0)
	if e.keepalive != 0 && e.keepalive < minKeepalive {
		errs = append(errs, op.Errorf("keepalive", "must be at least %s", minKeepalive).WithHint("write 5m, which servers allow as they come"))
	}

	hostport := net.JoinHostPort(e.host, e.port)
	name := "grpcs://" + hostport
	if plaintext {
		name = "grpc://" + hostport
	}
	if e.authority != "" {
		name += " (" + e.authority + ")"
	} else {
		e.authority = hostport
	}
	ep := drivers.Endpoint{Name: name, Key: fmt.Sprintf("grpc %s %s %q %d %v", name, fingerprint, e.authority, e.keepalive, e.compressed), Config: e}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.served[ep.Key] == nil {
		d.served[ep.Key] = &served{}
	}
	e.served = d.served[ep.Key]
	return ep, e, errs
}

// split takes an address apart.
func (e *endpoint) split(address string) error {
	address = strings.TrimSuffix(address, "/")
	if address == "" {
		return errors.New("the address is missing")
	}
	host, port, err := net.SplitHostPort(address)
	switch {
	case err != nil && strings.Contains(err.Error(), "missing port"):
		return fmt.Errorf("%q has no port", address)
	case err != nil || host == "" || strings.ContainsAny(host, "/ "):
		return fmt.Errorf("%q is no address", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%q is no port", port)
	}
	e.host, e.port = host, port
	return nil
}
