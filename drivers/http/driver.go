// Package http is the driver for HTTP/1.1, HTTP/2 and HTTP/3. Every call is one attempt: nothing is retried, and redirects
// are followed only where a plan asks for it.
package http

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/http/wire"
)

// Driver makes HTTP requests. It is safe for concurrent use.
type Driver struct{ wire.Connector }

// New makes a Driver.
func New() *Driver { return &Driver{} }

// methods are the keys that set method and URL at once.
var methods = []string{"get", "post", "put", "patch", "delete", "head", "options"}

// Fields implements drivers.Driver.
func (*Driver) Fields() []drivers.Field {
	fields := []drivers.Field{
		{Key: "url", Kind: drivers.URL, Title: "URL", Main: true, Payload: true, Examples: []string{"GET https://example.test/", "/cart"},
			Doc: "Where the request goes, with its method in front if that isn't GET. The host must be known before the load. What `${...}` puts in is percent-encoded only where it can't be part of a URL at all; values of parameters are safer in `query`."},
	}
	for _, m := range methods {
		fields = append(fields, drivers.Field{Key: m, Kind: drivers.URL, Title: strings.ToUpper(m), Payload: true, Examples: []string{"/cart"},
			Doc: fmt.Sprintf("`%s: URL` is short for `url: %s URL`.", m, strings.ToUpper(m))})
	}
	fields = append(fields,
		drivers.Field{Key: "method", Kind: drivers.Text, Title: "Method", Default: "GET", Doc: "The method, for `url` without one in front.", Examples: []string{"PURGE"}},
		drivers.Field{Key: "body", Kind: drivers.Text, Title: "Body", Payload: true, Doc: "Text to be sent as it is. Name its type with the header `Content-Type`.", Examples: []string{"id=${iteration}"}},
		drivers.Field{Key: "json", Kind: drivers.Tree, Title: "JSON body", Payload: true, Doc: "A value to be sent as JSON. A `${...}` alone keeps its type; one within text is escaped.", Examples: []string{"{user: '${data.users.name}'}"}},
		drivers.Field{Key: "form", Kind: drivers.Texts, Title: "Form body", Payload: true, Doc: "Fields to be sent as `application/x-www-form-urlencoded`.", Examples: []string{"{user: ada}"}},
		multipartField,
		drivers.Field{Key: "body_file", Kind: drivers.File, Title: "Body file", Payload: true, Doc: "A file to be sent as it is, of at most 64 MiB. It is read once, before the load, and kept in memory.", Examples: []string{"order.xml"}},
		drivers.Field{Key: "cookies", Kind: drivers.Bool, Title: "Cookies", Default: "false", Doc: "Keep a jar for each user: cookies that an answer sets are sent with the user's later requests of a round."},
	)
	return append(fields, wire.Fields()...)
}

// Answer implements drivers.Driver.
func (*Driver) Answer() []drivers.Name { return answerNames }

// call is a prepared request and what of its answer is kept.
type call struct {
	*wire.Request
	keep bool // the body, for an expectation
}

// Prepare implements drivers.Driver.
func (*Driver) Prepare(op *drivers.Op) (drivers.Call, error) {
	at, method, err := target(op)
	if err != nil {
		return nil, drivers.FieldErrors{err}
	}
	split := *op
	if at == "url" {
		if word, rest, ok := splitMethod(op.Template("url")); ok {
			if op.Has("method") {
				return nil, drivers.FieldErrors{op.Errorf("method", "the URL has a method in front already: %s", word)}
			}
			if near := intended(word); near != "" {
				return nil, drivers.FieldErrors{op.Errorf("url", "%q is no method that servers know", word).WithHint("did you mean %s?", near)}
			}
			method = word
			split.Values = split.With("url", rest)
		}
	}
	if method == "CONNECT" {
		return nil, drivers.FieldErrors{op.Errorf(at, "CONNECT is for proxies").WithHint("use proxy")}
	}
	r, errs := wire.Parse(&split, at, method)
	body, bodyErrs := payload(op)
	errs = append(errs, bodyErrs...)
	if body.Present && (method == "GET" || method == "HEAD") && !op.Has("method") && at != "url" {
		errs = append(errs, op.Errorf(at, "a %s request has no body", method).WithHint("write post, or url with method: %s if the server wants one", method))
	}
	r.Body = body
	r.Cookies = op.Bool("cookies", false)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	if err := r.Seal(); err != nil {
		return nil, drivers.FieldErrors{op.Errorf(at, "%v", err)}
	}
	return &call{r, op.Reads["body"] || op.Reads["json"]}, nil
}

// target finds the field that holds the URL, and the method that goes with it.
func target(op *drivers.Op) (at, method string, err *drivers.FieldError) {
	var given []string
	for _, key := range append([]string{"url"}, methods...) {
		if op.Has(key) {
			given = append(given, key)
		}
	}
	switch len(given) {
	case 0:
		return "", "", op.Errorf("url", "a URL is missing").WithHint("write get: https://...")
	case 1:
	default:
		return "", "", op.Errorf(given[1], "only one of %s can be given", strings.Join(given, " and "))
	}
	at = given[0]
	method = strings.ToUpper(at)
	if at == "url" {
		method = "GET"
	}
	if op.Has("method") {
		if at != "url" {
			return "", "", op.Errorf("method", "the method is given by %s already", at).WithHint("write url instead of %s", at)
		}
		m, ferr := op.Fixed("method")
		if e, ok := errors.AsType[*drivers.FieldError](ferr); ok {
			return "", "", e
		}
		if !isMethod(m) {
			return "", "", op.Errorf("method", "%q is no method", m)
		}
		method = strings.ToUpper(m)
		if near := intended(method); near != "" {
			return "", "", op.Errorf("method", "%q is no method that servers know", m).WithHint("did you mean %s?", near)
		}
	}
	return at, method, nil
}

// registered are methods that are spelt like more common ones and are not mistaken for them (IANA's registry of HTTP
// methods).
var registered = []string{"ACL", "BIND", "CHECKIN", "CHECKOUT", "CONNECT", "COPY", "LABEL", "LINK", "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR",
	"MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "ORDERPATCH", "PROPFIND", "PROPPATCH", "QUERY", "REBIND", "REPORT", "SEARCH", "TRACE",
	"UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL"}

// intended returns the method that an unknown one in capitals is most likely a misspelling of: two letters differ at
// most. It is "" for methods that are known, and for those unlike any.
func intended(method string) string {
	if slices.Contains(registered, method) {
		return ""
	}
	best, least := "", 3
	for _, m := range methods {
		m = strings.ToUpper(m)
		if m == method {
			return ""
		}
		if d := levenshtein.ComputeDistance(method, m); d < least {
			best, least = m, d
		}
	}
	return best
}

func isMethod(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !('A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || r == '-') })
}

// splitMethod takes the method off the front of a URL, as in "POST https://...".
func splitMethod(t drivers.Template) (method string, rest drivers.Template, ok bool) {
	if t == nil {
		return "", nil, false
	}
	segments := drivers.Segments(t)
	if len(segments) == 0 {
		return "", nil, false
	}
	first, constant := segments[0].Constant()
	text, isText := first.(string)
	if !constant || !isText {
		return "", nil, false
	}
	word, after, found := strings.Cut(strings.TrimLeft(text, " "), " ")
	if !found || word == "" || !isMethod(word) {
		return "", nil, false
	}
	word = strings.ToUpper(word)
	segments = slices.Clone(segments)
	segments[0] = drivers.Constant(strings.TrimLeft(after, " "))
	if len(segments) == 1 {
		return word, segments[0], true
	}
	return word, joined(segments), true
}

// joined is a template of several parts.
type joined []drivers.Template

func (j joined) Constant() (any, bool)        { return nil, false }
func (j joined) Segments() []drivers.Template { return j }
func (j joined) Eval(in *drivers.Input) (any, error) {
	b, err := j.AppendText(nil, in)
	return string(b), err
}

func (j joined) AppendText(dst []byte, in *drivers.Input) ([]byte, error) {
	var err error
	for _, t := range j {
		if dst, err = t.AppendText(dst, in); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// Connect implements drivers.Driver.
func (d *Driver) Connect(_ context.Context, ep drivers.Endpoint, pool drivers.Pool) (drivers.Client, error) {
	c, err := d.Connector.Connect(ep, pool)
	if err != nil {
		return nil, err
	}
	return client{c}, nil
}

type client struct{ *wire.Client }

// Open implements drivers.Client.
func (c client) Open(context.Context) (drivers.Session, error) {
	s := &session{Session: c.Client.Open(false)}
	s.answer.response = s.Response()
	return s, nil
}

// session is one user.
type session struct {
	*wire.Session
	answer answer
}

// Do implements drivers.Session.
func (s *session) Do(ctx context.Context, c drivers.Call, in *drivers.Input, out *drivers.Outcome) error {
	r, ok := c.(*call)
	if !ok {
		return drivers.Fail(drivers.Protocol, errors.New("the call is not one of HTTP"))
	}
	s.answer.reset(r.keep)
	var sink wire.Sink
	if r.keep {
		sink = &s.answer
	}
	if err := s.Exchange(ctx, r.Request, in, out, sink); err != nil {
		return err
	}
	out.Answer = &s.answer
	out.Success = out.Status >= 200 && out.Status < 400
	return nil
}

var (
	_ drivers.Driver    = (*Driver)(nil)
	_ drivers.Client    = client{}
	_ drivers.Addressed = client{}
	_ drivers.Session   = (*session)(nil)
	_ drivers.Answer    = (*answer)(nil)
)
