package wire

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/planrun/planrun/drivers"
)

// UserAgent is sent where a plan names none.
const UserAgent = "planrun"

// Request is one prepared request: immutable once sealed, and shared by all users.
type Request struct {
	Place     *Place
	Method    string
	Host      Text // empty: the place's authority
	Headers   []Header
	Body      Body
	KeepAlive bool
	Gzip      bool // ask for gzip, and unpack it
	Redirects int  // how many are followed
	Cookies   bool // keep a jar for each user
	// MaxBytes ends the answer there, as a success. 0: no limit.
	MaxBytes int64
	// Ranged asks for the part of the answer that Session.Range names.
	Ranged bool
	// Stall fails the call when no byte of the body has arrived for so long. 0: only the deadline counts.
	Stall time.Duration

	target   Text
	endpoint drivers.Endpoint
	// What needs to be made once only, when nothing depends on the moment of the call.
	fixed     []byte // the whole HTTP/1.1 message
	fixedBody int    // how many bytes of it are the body
	template  *http.Request
	payload   []byte
}

// Header is a header field.
type Header struct {
	Name  string
	Value Text
}

// Body makes the body of a request. The zero Body is none.
type Body struct {
	// Append appends the body of one call.
	Append func(dst []byte, in *drivers.Input) ([]byte, error)
	// Constant is the body if it is the same for every call; Append is not needed then.
	Constant []byte
	// Present says that there is a body, though it may be empty.
	Present bool
	// Type is the Content-Type, unless the plan names one.
	Type string
}

// Endpoint implements drivers.Call.
func (r *Request) Endpoint() drivers.Endpoint { return r.endpoint }

// String is the method and what is requested of the endpoint, for people: "GET /strings?bytes=8192". What depends on the
// moment of the call is shown as ${...}; headers and bodies, which may hold secrets, are not shown.
func (r *Request) String() string { return r.Method + " " + r.target.String() }

// Seal completes the request and encodes what is the same for every call.
func (r *Request) Seal() error {
	r.endpoint = r.Place.Endpoint()
	if len(r.Host.parts) == 0 {
		r.Host = Fixed(r.Place.Authority())
	}
	if !r.has("User-Agent") {
		r.Headers = append(r.Headers, Header{"User-Agent", Fixed(UserAgent)})
	}
	if r.Gzip && !r.has("Accept-Encoding") {
		r.Headers = append(r.Headers, Header{"Accept-Encoding", Fixed("gzip")})
	}
	if r.Body.Present && r.Body.Type != "" && !r.has("Content-Type") {
		r.Headers = append(r.Headers, Header{"Content-Type", Fixed(r.Body.Type)})
	}
	if !r.constant() {
		return nil
	}
	var m message
	if err := m.evaluate(r, nil); err != nil {
		return err
	}
	r.fixed = m.appendHTTP1(nil, r.Place, r.KeepAlive)
	r.fixed = append(r.fixed, m.body...)
	r.fixedBody = len(m.body)
	var err error
	if r.template, err = m.request(r.Place); err != nil {
		return err
	}
	r.payload = m.body
	return nil
}

// Steady tells whether every call goes to the same URL.
func (r *Request) Steady() bool {
	_, ok := r.target.Constant()
	return ok
}

func (r *Request) has(name string) bool {
	for _, h := range r.Headers {
		if strings.EqualFold(h.Name, name) {
			return true
		}
	}
	return false
}

// constant tells whether every call sends the same bytes.
func (r *Request) constant() bool {
	if r.Cookies || r.Ranged || r.Body.Append != nil {
		return false
	}
	if _, ok := r.target.Constant(); !ok {
		return false
	}
	if _, ok := r.Host.Constant(); !ok {
		return false
	}
	for _, h := range r.Headers {
		if _, ok := h.Value.Constant(); !ok {
			return false
		}
	}
	return true
}

// message is a request as one call sends it. Its memory is kept from call to call.
type message struct {
	method   string
	place    *Place
	hasBody  bool
	fields   []span // of text
	text     []byte // target, host, and the values of the fields
	target   [2]int
	host     [2]int
	body     []byte
	cookies  string // from the user's jar
	replaced bool   // by a redirect: it is no longer what the call's Request says
	// first and last byte of what is asked for, if the request is ranged; last < 0: to the end
	first, last int64
}

// span is a header field: its name, and where its value lies.
type span struct {
	name       string
	start, end int
}

// evaluate makes the message of one call.
func (m *message) evaluate(r *Request, in *drivers.Input) error {
	var err error
	m.method, m.place, m.hasBody, m.cookies, m.replaced = r.Method, r.Place, r.Body.Present, "", false
	m.text, m.body, m.fields = m.text[:0], m.body[:0], m.fields[:0]

	if m.text, err = r.target.Append(m.text, in); err != nil {
		return unsent("the URL", err)
	}
	m.target = [2]int{0, len(m.text)}

	start := len(m.text)
	if m.text, err = r.Host.Append(m.text, in); err != nil {
		return unsent("the host", err)
	}
	m.host = [2]int{start, len(m.text)}
	if !isValue(m.text[start:]) {
		return unsent("the host", fmt.Errorf("it holds a control character"))
	}

	for _, h := range r.Headers {
		start := len(m.text)
		if m.text, err = h.Value.Append(m.text, in); err != nil {
			return unsent("the header "+h.Name, err)
		}
		if !isValue(m.text[start:]) {
			return unsent("the header "+h.Name, fmt.Errorf("its value holds a line break or another control character"))
		}
		m.fields = append(m.fields, span{h.Name, start, len(m.text)})
	}

	if r.Ranged {
		start := len(m.text)
		m.text = strconv.AppendInt(append(m.text, "bytes="...), m.first, 10)
		m.text = append(m.text, '-')
		if m.last >= 0 {
			m.text = strconv.AppendInt(m.text, m.last, 10)
		}
		m.fields = append(m.fields, span{"Range", start, len(m.text)})
	}

	switch {
	case r.Body.Append != nil:
		if m.body, err = r.Body.Append(m.body, in); err != nil {
			return unsent("the body", err)
		}
	case r.Body.Present:
		m.body = append(m.body, r.Body.Constant...)
	}
	return nil
}

func (m *message) part(p [2]int) []byte { return m.text[p[0]:p[1]] }

// sendsLength tells whether a Content-Length belongs to the request, even one of 0 (RFC 9110, section 8.6).
func (m *message) sendsLength() bool {
	return m.hasBody || m.method == "POST" || m.method == "PUT" || m.method == "PATCH"
}

// appendHTTP1 appends the message's head as HTTP/1.1 (RFC 9112, section 3).
func (m *message) appendHTTP1(dst []byte, p *Place, keepAlive bool) []byte {
	dst = append(dst, m.method...)
	dst = append(dst, ' ')
	byProxy := p.Proxy != nil && !p.Secure
	if byProxy {
		dst = append(dst, "http://"...)
		dst = append(dst, p.Authority()...)
	}
	dst = append(dst, m.part(m.target)...)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	dst = append(dst, m.part(m.host)...)
	dst = append(dst, "\r\n"...)
	if byProxy {
		if a := proxyAuthorization(p.Proxy); a != "" {
			dst = append(dst, "Proxy-Authorization: "...)
			dst = append(dst, a...)
			dst = append(dst, "\r\n"...)
		}
	}
	cookies := m.cookies
	for _, f := range m.fields {
		dst = append(dst, f.name...)
		dst = append(dst, ": "...)
		dst = append(dst, m.text[f.start:f.end]...)
		if cookies != "" && strings.EqualFold(f.name, "Cookie") {
			dst = append(dst, "; "...)
			dst = append(dst, cookies...)
			cookies = ""
		}
		dst = append(dst, "\r\n"...)
	}
	if cookies != "" {
		dst = append(dst, "Cookie: "...)
		dst = append(dst, cookies...)
		dst = append(dst, "\r\n"...)
	}
	if m.sendsLength() {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(m.body)), 10)
		dst = append(dst, "\r\n"...)
	}
	if !keepAlive {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// request makes the message for net/http, without its body.
func (m *message) request(p *Place) (*http.Request, error) {
	target := string(m.part(m.target))
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, unsent("the URL", fmt.Errorf("its path %q is malformed", clean(target)))
	}
	u.Scheme, u.Host = p.scheme(), p.Authority()
	h := make(http.Header, len(m.fields))
	for _, f := range m.fields {
		key := http.CanonicalHeaderKey(f.name)
		h[key] = append(h[key], string(m.text[f.start:f.end]))
	}
	if m.cookies != "" {
		h["Cookie"] = append(h["Cookie"], m.cookies)
	}
	r := &http.Request{
		Method: m.method, URL: u, Host: string(m.part(m.host)), Header: h,
		Proto: "HTTP/2.0", ProtoMajor: 2,
	}
	if m.sendsLength() {
		// A body without GetBody, even an empty one, can't be sent twice.
		r.ContentLength = int64(len(m.body))
	}
	return r, nil
}

// url is where the message goes.
func (m *message) url() (*url.URL, error) {
	u, err := url.ParseRequestURI(string(m.part(m.target)))
	if err != nil {
		return nil, err
	}
	u.Scheme, u.Host = m.place.scheme(), m.place.Authority()
	return u, nil
}

// follow turns the message into the one that a redirect asks for (RFC 9110, section 15.4).
func (m *message) follow(status int, location string) error {
	from, err := m.url()
	if err != nil {
		return drivers.Fail(drivers.Protocol, fmt.Errorf("redirect from a malformed URL"))
	}
	to, err := from.Parse(location)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Hostname() == "" {
		return drivers.Fail(drivers.Protocol, fmt.Errorf("redirect to %q, which is no URL of HTTP", clean(location)))
	}
	place := m.place.at(to)
	drop := map[string]bool{}
	if !place.same(m.place) {
		// The other host gets its own name, and nothing that was meant for this one.
		drop["authorization"], drop["cookie"] = true, true
	}
	if m.method != "GET" && m.method != "HEAD" && (status == 303 || (status == 301 || status == 302) && m.method == "POST") {
		m.method, m.hasBody, m.body = "GET", false, m.body[:0]
		drop["content-type"], drop["content-encoding"] = true, true
	}
	fields := m.fields[:0]
	for _, f := range m.fields {
		if !drop[strings.ToLower(f.name)] {
			fields = append(fields, f)
		}
	}
	m.fields = fields
	to.Fragment = ""
	if !place.same(m.place) {
		start := len(m.text)
		m.text = append(m.text, place.Authority()...)
		m.host = [2]int{start, len(m.text)}
	}
	start := len(m.text)
	m.text = append(m.text, to.RequestURI()...)
	m.target = [2]int{start, len(m.text)}
	m.place, m.cookies, m.replaced = place, "", true
	return nil
}
