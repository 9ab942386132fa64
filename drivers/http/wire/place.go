package wire

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/planrun/planrun/drivers"
)

// Version is which HTTP a plan asks for.
type Version uint8

const (
	// Auto is HTTP/2 where TLS negotiates it, and HTTP/1.1 otherwise.
	Auto Version = iota
	// HTTP1 is HTTP/1.1.
	HTTP1
	// HTTP2 is HTTP/2, over plain TCP with prior knowledge (RFC 9113, section 3.3).
	HTTP2
	// HTTP3 is HTTP/3 (RFC 9114), in builds that have it.
	HTTP3
)

// Place is where calls connect to and how: what tells one endpoint from another. It is immutable.
type Place struct {
	Secure     bool
	Host, Port string // Host without brackets
	Version    Version
	TLS        *tls.Config
	tlsPrint   string // tells two TLS configurations apart
	Proxy      *url.URL
	Unix       string
}

func (p *Place) scheme() string {
	if p.Secure {
		return "https"
	}
	return "http"
}

// Authority is host and port as they appear in a request: without the scheme's own port.
func (p *Place) Authority() string {
	if p.Secure && p.Port == "443" || !p.Secure && p.Port == "80" {
		if strings.Contains(p.Host, ":") {
			return "[" + p.Host + "]"
		}
		return p.Host
	}
	return net.JoinHostPort(p.Host, p.Port)
}

func (p *Place) origin() string { return p.scheme() + "://" + p.Authority() }

// Endpoint is the place as the engine sees it.
func (p *Place) Endpoint() drivers.Endpoint {
	name := p.origin()
	switch {
	case p.Version == HTTP1 && p.Secure:
		name += " (HTTP/1.1)"
	case p.Version == HTTP2:
		name += " (HTTP/2)"
	case p.Version == HTTP3:
		name += " (HTTP/3)"
	}
	if p.Unix != "" {
		name += " at " + p.Unix
	}
	proxy := ""
	if p.Proxy != nil {
		name += " by proxy " + p.Proxy.Host
		proxy = p.Proxy.String()
	}
	return drivers.Endpoint{
		Name:   name,
		Key:    fmt.Sprintf("%s %d %q %q %s", net.JoinHostPort(p.Host, p.Port)+" "+p.scheme(), p.Version, p.Unix, proxy, p.tlsPrint),
		Config: p,
	}
}

// at is the same place at another origin, as a redirect names it.
func (p *Place) at(u *url.URL) *Place {
	other := *p
	other.Secure, other.Host, other.Port = u.Scheme == "https", u.Hostname(), portOf(u)
	if other.Host != p.Host || other.Port != p.Port {
		other.Unix = ""
	}
	if other.Version == HTTP2 && other.Secure != p.Secure {
		other.Version = Auto // prior knowledge was of the other scheme
	}
	if other.Version == HTTP3 && !other.Secure {
		other.Version = Auto // there is no HTTP/3 without TLS
	}
	return &other
}

// same tells whether two places are one origin (RFC 6454).
func (p *Place) same(other *Place) bool {
	return p.Secure == other.Secure && strings.EqualFold(p.Host, other.Host) && p.Port == other.Port
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
