package wire

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/dial"
)

// Fields are the keys that every driver on HTTP has, apart from its URL.
func Fields() []drivers.Field {
	return []drivers.Field{
		{Key: "version", Kind: drivers.Choice, Title: "HTTP version", Choices: []string{"auto", "1.1", "2", "3"}, Default: "auto",
			Doc: "`auto` is HTTP/2 where TLS negotiates it and HTTP/1.1 otherwise. `2` without TLS is HTTP/2 with prior knowledge; a server that negotiates anything else fails the call. `3` is HTTP/3, which only programs built with the tag `http3` speak."},
		{Key: "headers", Kind: drivers.Texts, Title: "Headers", Examples: []string{"{Accept: application/json}"},
			Doc: "Header fields to be sent, `Host` included. `Content-Length`, `Transfer-Encoding` and `Connection` are the driver's own."},
		{Key: "query", Kind: drivers.Texts, Title: "Query", Payload: true, Examples: []string{"{page: '${iteration}'}"},
			Doc: "Parameters added to the URL's query, names and values percent-encoded."},
		{Key: "host", Kind: drivers.Text, Title: "Host", Doc: "The `Host` header (`:authority` in HTTP/2), if it isn't the URL's host. TLS still asks for the URL's host, unless `tls.server_name` says otherwise.", Examples: []string{"shop.test"}},
		{Key: "basic", Kind: drivers.Group, Title: "Basic authentication", Doc: "User and password for the `Authorization` header. `user:password@` in the URL does the same.",
			Fields: []drivers.Field{
				{Key: "user", Kind: drivers.Text, Title: "User", Doc: "The user's name."},
				{Key: "password", Kind: drivers.Text, Title: "Password", Doc: "The user's password, best as a `${secret...}`."},
			}},
		{Key: "bearer", Kind: drivers.Text, Title: "Bearer token", Doc: "A token for `Authorization: Bearer`.", Examples: []string{"${secret.TOKEN}"}},
		{Key: "redirects", Kind: drivers.Int, Title: "Redirects", Default: "0",
			Doc: "How many redirects are followed. All hops are one sample, and each is one attempt. 301, 302 and 303 make a POST a GET, 307 and 308 repeat it. Credentials are not sent to another host."},
		{Key: "keep_alive", Kind: drivers.Bool, Title: "Keep connections", Default: "true", Doc: "Keep the connection for the user's next call. `false` opens one for every call (HTTP/1.1 only)."},
		{Key: "compression", Kind: drivers.Bool, Title: "Compression", Default: "false",
			Doc: "Ask for gzip, and unpack it. Bytes are counted as they arrive, packed; a body that can't be unpacked fails the call."},
		{Key: "proxy", Kind: drivers.Text, Title: "Proxy", Examples: []string{"http://proxy.test:3128"},
			Doc: "URL of an HTTP proxy. `https` and HTTP/2 pass it by CONNECT. Proxies named by environment variables are ignored: a plan says all that matters."},
		{Key: "unix", Kind: drivers.Text, Title: "Unix socket", Doc: "Path of a socket to connect to, instead of the URL's host and port.", Examples: []string{"/run/app.sock"}},
		dial.TLSField(),
	}
}

// Parse makes a request of the fields that every driver on HTTP has. at is the field that holds the URL, and method
// what it is requested with. The caller adds the body and calls Seal.
func Parse(op *drivers.Op, at, method string) (*Request, drivers.FieldErrors) {
	var errs drivers.FieldErrors
	add := func(err error) {
		if e, ok := errors.AsType[*drivers.FieldError](err); ok {
			errs = append(errs, e)
		}
	}
	r := &Request{
		Method:    method,
		KeepAlive: op.Bool("keep_alive", true),
		Gzip:      op.Bool("compression", false),
		Redirects: int(op.Int("redirects", 0)),
	}
	p := &Place{}
	r.Place = p
	var user *url.Userinfo
	if target, u, err := parseURL(op, at); err != nil {
		add(err)
	} else {
		r.target = target
		p.Secure, p.Host, p.Port, user = u.Scheme == "https", u.Hostname(), portOf(u), u.User
	}
	p.Version = map[string]Version{"1.1": HTTP1, "2": HTTP2, "3": HTTP3}[op.Choice("version", "auto")]

	// The query's parameters follow those that the URL has.
	separator := "?"
	if hasQuery(r.target) {
		separator = "&"
	}
	for _, e := range op.Entries("query") {
		name := string(componentEscaping.apply([]byte(e.Key), 0))
		r.target.add(separator + name + "=")
		r.target.Join(Escaped(e.Value.Template))
		separator = "&"
	}

	for _, e := range op.Entries("headers") {
		switch name := strings.ToLower(e.Key); {
		case !isToken(e.Key):
			errs = append(errs, op.Errorf("headers", "%q is no name of a header", e.Key).At(e.Key))
		case name == "host":
			r.Host = Plain(e.Value.Template)
		case name == "content-length" || name == "transfer-encoding":
			errs = append(errs, op.Errorf("headers", "%s is set by the driver, from the body", e.Key).At(e.Key))
		case name == "connection" || name == "keep-alive" || name == "proxy-connection" || name == "upgrade":
			errs = append(errs, op.Errorf("headers", "%s is set by the driver", e.Key).At(e.Key).WithHint("keep_alive: false closes the connection after each call"))
		default:
			h := Header{Name: e.Key, Value: Plain(e.Value.Template)}
			if c, ok := h.Value.Constant(); ok && !isValue([]byte(c)) {
				errs = append(errs, op.Errorf("headers", "the value of %s holds a line break or another control character", e.Key).At(e.Key))
			}
			r.Headers = append(r.Headers, h)
		}
	}
	if t := op.Template("host"); t != nil {
		r.Host = Plain(t)
	}
	add(r.authorize(op, user))

	config, print, tlsErrs := dial.TLS(op)
	errs = append(errs, tlsErrs...)
	if op.Has("tls") && !p.Secure && r.target.parts != nil {
		errs = append(errs, op.Errorf("tls", "the URL is not encrypted, so tls has no use").WithHint("begin the URL with https://"))
	}
	p.TLS, p.tlsPrint = config, print // a plain place has them for where it redirects to

	proxy, err := op.Fixed("proxy")
	add(err)
	if proxy != "" {
		// The text of url.Parse's errors holds the URL, and with it perhaps a password.
		u, err := url.Parse(proxy)
		if err != nil || u.Scheme != "http" || u.Hostname() == "" || strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Host, "[") {
			errs = append(errs, op.Errorf("proxy", "a proxy is given as http://host:port"))
		} else if err := checkPort(u.Port()); err != nil {
			errs = append(errs, op.Errorf("proxy", "%v", err))
		}
		p.Proxy = u
	}
	p.Unix, err = op.Fixed("unix")
	add(err)
	if p.Unix != "" && p.Proxy != nil {
		errs = append(errs, op.Errorf("unix", "a Unix socket can't be reached through a proxy").WithHint("leave out proxy or unix"))
	}
	if (p.Version == HTTP2 || p.Version == HTTP3) && !r.KeepAlive {
		errs = append(errs, op.Errorf("keep_alive", "HTTP/%s shares a connection between users, so it can't be closed after each call", op.Choice("version", "")).WithHint("use version: 1.1"))
	}
	if p.Version == HTTP3 {
		switch {
		case !builtHTTP3:
			errs = append(errs, op.Errorf("version", "this program was built without HTTP/3").WithHint("build it with go build -tags http3"))
		case !p.Secure && r.target.parts != nil:
			errs = append(errs, op.Errorf(at, "HTTP/3 is always encrypted").WithHint("begin the URL with https://"))
		}
		for _, key := range []string{"proxy", "unix"} {
			if op.Has(key) {
				errs = append(errs, op.Errorf(key, "HTTP/3 comes in datagrams, which can't go that way").WithHint("leave out %s, or use version: 2", key))
			}
		}
	}
	return r, errs
}

// parseURL takes a URL apart: its origin has to be known before the load, its path and query need not.
func parseURL(op *drivers.Op, at string) (target Text, origin *url.URL, err error) {
	t := op.Template(at)
	if t == nil {
		return Text{}, nil, op.Errorf(at, "a URL is missing")
	}
	// The origin ends where the path, the query or the first part that isn't constant begins.
	var head strings.Builder
	segments := drivers.Segments(t)
	rest := -1
	for i, s := range segments {
		c, ok := s.Constant()
		if !ok {
			break
		}
		head.Write(drivers.AppendText(nil, c))
		rest = i + 1
	}
	text := strings.TrimSpace(head.String())
	scheme, after, found := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if rest < 0 && len(segments) == 1 {
		// All of the URL is one ${...}. What it is for a call that does not exist tells the origin, if anything does.
		return parseOpaque(op, at, t)
	}
	switch {
	case !found && schemeHint(text) != "":
		return Text{}, nil, op.Errorf(at, "a URL begins with http:// or https://").WithHint("%s", schemeHint(text))
	case !found && strings.HasPrefix(text, "/"):
		return Text{}, nil, op.Errorf(at, "a path needs an address in front of it").WithHint("write the whole URL, or give the target a url")
	case !found && rest < len(segments):
		return Text{}, nil, op.Errorf(at, "the host must be known before the load: it can't depend on the iteration or the user")
	case text == "":
		return Text{}, nil, op.Errorf(at, "a URL is missing")
	case !found:
		return Text{}, nil, op.Errorf(at, "a URL begins with http:// or https://").WithHint("write https://%s", clean(text))
	case scheme != "http" && scheme != "https":
		return Text{}, nil, op.Errorf(at, "a URL begins with http:// or https://, not with %s://", clean(scheme))
	}
	end := strings.IndexAny(after, "/?#")
	if end < 0 {
		if rest < len(segments) {
			return Text{}, nil, op.Errorf(at, "the host must be known before the load: it can't depend on the iteration or the user").WithHint("end the host with / before the first ${...}")
		}
		end = len(after)
	}
	origin, err = parseOrigin(op, at, scheme, after[:end])
	if err != nil {
		return Text{}, nil, err
	}
	path, _, fragment := strings.Cut(after[end:], "#")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	target.add(string(targetEscaping.apply([]byte(path), 0)))
	for _, s := range segments[max(rest, 0):] {
		if fragment {
			break // a fragment is not sent
		}
		c, ok := s.Constant()
		if !ok {
			target.parts = append(target.parts, part{template: s, escape: &substituteEscaping})
			continue
		}
		var more string
		more, _, fragment = strings.Cut(string(drivers.AppendText(nil, c)), "#")
		target.add(string(targetEscaping.apply([]byte(more), 0)))
	}
	return target, origin, nil
}

func parseOrigin(op *drivers.Op, at, scheme, authority string) (*url.URL, error) {
	u, err := url.Parse(scheme + "://" + authority)
	if err != nil || u.Hostname() == "" || strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Host, "[") {
		// The text of the error holds the URL, and with it perhaps a password. So may what is no port here: where a password
		// has a /, the host seems to end in it.
		user := strings.LastIndex(authority, "@")
		host := authority[user+1:]
		if name, port, ok := strings.Cut(host, ":"); ok && user < 0 && !strings.HasPrefix(host, "[") && strings.Trim(port, "0123456789") != "" {
			host = name + ":***"
		}
		hint := variableHint(host)
		if hint == "" {
			hint = "write scheme://host:port/path; a password with special characters is percent-encoded"
		}
		return nil, op.Errorf(at, "%q is no host", clean(host)).WithHint("%s", hint)
	}
	if hint := variableHint(u.Hostname()); hint != "" {
		return nil, op.Errorf(at, "%q is no host", clean(u.Hostname())).WithHint("%s", hint)
	}
	if err := checkPort(u.Port()); err != nil {
		return nil, op.Errorf(at, "%v", err)
	}
	return u, nil
}

// checkPort tells whether the port of a URL, if there is one, can be dialled.
func checkPort(port string) error {
	if port == "" {
		return nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%s is no port: they go from 1 to 65535", clean(port))
	}
	return nil
}

var (
	nearlyScheme  = regexp.MustCompile(`^(?i)(https?)(?::/?|//)([^/].*)$`)
	shellVariable = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*)(\.[A-Za-z_][A-Za-z0-9_]*)*`)
	doubleBraces  = regexp.MustCompile(`^\{\{\s*\.?([A-Za-z_][A-Za-z0-9_.]*)\s*\}\}`)
)

// schemeHint says what to write for a text that lacks the beginning of a URL, "" if that is not sure.
func schemeHint(text string) string {
	if m := nearlyScheme.FindStringSubmatch(text); m != nil {
		return "write " + strings.ToLower(m[1]) + "://" + clean(m[2])
	}
	return variableHint(text)
}

// variableHint says what to write for a variable in the form of a shell or of another template language, "" if text
// does not begin with one.
func variableHint(text string) string {
	if m := shellVariable.FindStringSubmatch(text); m != nil {
		if m[2] != "" && isRoot(m[1]) {
			return "write ${" + m[0][1:] + "}"
		}
		return "write ${env." + m[1] + "}"
	}
	if m := doubleBraces.FindStringSubmatch(text); m != nil {
		if strings.Contains(m[1], ".") {
			return "write ${" + m[1] + "}"
		}
		return "write ${env." + m[1] + "} or ${vars." + m[1] + "}"
	}
	return ""
}

// isRoot tells whether a name is one of those that an expression may begin with.
func isRoot(name string) bool {
	return slices.Contains([]string{"env", "vars", "target", "lab", "data", "secret", "matrix"}, name)
}

// parseOpaque finds the origin of a URL that is one ${...} as a whole.
func parseOpaque(op *drivers.Op, at string, t drivers.Template) (Text, *url.URL, error) {
	sample, err := t.AppendText(nil, &drivers.Input{})
	scheme, after, found := strings.Cut(string(sample), "://")
	if err != nil || !found || scheme != "http" && scheme != "https" {
		return Text{}, nil, op.Errorf(at, "the host must be known before the load: it can't depend on the iteration or the user").WithHint("write scheme and host, then the path with its ${...}")
	}
	end := strings.IndexAny(after, "/?#")
	if end < 0 {
		end = len(after)
	}
	origin, err := parseOrigin(op, at, scheme, after[:end])
	if err != nil {
		return Text{}, nil, err
	}
	return Text{parts: []part{{template: suffix{t, scheme + "://" + after[:end]}, escape: &substituteEscaping}}}, origin, nil
}

// suffix is a template without the origin that it begins with.
type suffix struct {
	template drivers.Template
	origin   string
}

func (s suffix) Constant() (any, bool) { return nil, false }

func (s suffix) Eval(in *drivers.Input) (any, error) {
	b, err := s.AppendText(nil, in)
	return string(b), err
}

func (s suffix) AppendText(dst []byte, in *drivers.Input) ([]byte, error) {
	start := len(dst)
	dst, err := s.template.AppendText(dst, in)
	if err != nil {
		return dst, err
	}
	path, ok := strings.CutPrefix(string(dst[start:]), s.origin)
	if !ok || path != "" && !strings.Contains("/?#", path[:1]) {
		return dst, errors.New("its host is not the one that was known before the load")
	}
	path, _, _ = strings.Cut(path, "#")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return append(dst[:start], path...), nil
}

// authorize sets the Authorization header from bearer, basic or the URL's user.
func (r *Request) authorize(op *drivers.Op, user *url.Userinfo) error {
	explicit := slices.ContainsFunc(r.Headers, func(h Header) bool { return strings.EqualFold(h.Name, "Authorization") })
	var value Text
	given, field := 0, ""
	if explicit {
		given++
	}
	if t := op.Template("bearer"); t != nil {
		given, field = given+1, "bearer"
		value = Fixed("Bearer ")
		value.Join(Plain(t))
	}
	if op.Has("basic") {
		given, field = given+1, "basic"
		group := op.Group("basic")
		if group.Template("user") == nil {
			return group.Errorf("user", "basic authentication needs a user")
		}
		name, password := Plain(group.Template("user")), Text{}
		if t := group.Template("password"); t != nil {
			password = Plain(t)
		}
		value = Fixed("Basic ")
		value.Join(credentials(name, password))
	}
	if given > 1 {
		return op.Errorf(field, "only one of bearer, basic and an Authorization header can be sent")
	}
	if user != nil && given == 0 {
		password, _ := user.Password()
		value = Fixed("Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
		given, field = 1, "url"
	}
	if field != "" {
		r.Headers = append(r.Headers, Header{Name: "Authorization", Value: value})
	}
	return nil
}

func credentials(name, password Text) Text {
	n, fixedName := name.Constant()
	p, fixedPassword := password.Constant()
	if fixedName && fixedPassword {
		return Fixed(base64.StdEncoding.EncodeToString([]byte(n + ":" + p)))
	}
	return Text{parts: []part{{template: pair{name, password}}}}
}

// pair is user and password of basic authentication (RFC 7617).
type pair struct{ name, password Text }

func (p pair) Constant() (any, bool) { return nil, false }

func (p pair) Eval(in *drivers.Input) (any, error) {
	b, err := p.AppendText(nil, in)
	return string(b), err
}

func (p pair) AppendText(dst []byte, in *drivers.Input) ([]byte, error) {
	raw, err := p.name.Append(nil, in)
	if err != nil {
		return dst, err
	}
	if raw, err = p.password.Append(append(raw, ':'), in); err != nil {
		return dst, err
	}
	return base64.StdEncoding.AppendEncode(dst, raw), nil
}

func hasQuery(x Text) bool {
	return slices.ContainsFunc(x.parts, func(p part) bool { return strings.Contains(p.text, "?") })
}

// clean makes a piece of a URL fit for a message: without control characters and of bearable length.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	if i := strings.LastIndex(s, "@"); i >= 0 {
		s = s[i+1:]
	}
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return s
}

// isToken tells whether s can be a name of a header or a method (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// IsHeaderValue tells whether s can be the value of a header (RFC 9110, section 5.5).
func IsHeaderValue(s string) bool { return isValue([]byte(s)) }

// isValue is IsHeaderValue.
func isValue(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
