// Package download is the driver for large answers: it reads a body to its end, however large, without keeping it,
// and checks that all of it came.
package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/http/wire"
)

// Driver downloads. It is safe for concurrent use.
type Driver struct{ wire.Connector }

// New makes a Driver.
func New() *Driver { return &Driver{} }

// Fields implements drivers.Driver.
func (*Driver) Fields() []drivers.Field {
	fields := []drivers.Field{
		{Key: "url", Kind: drivers.URL, Title: "URL", Main: true, Payload: true, Examples: []string{"https://example.test/file"},
			Doc: "What is downloaded, with GET. The host must be known before the load."},
		{Key: "sha256", Kind: drivers.Text, Title: "Checksum", Doc: "SHA-256 that the body must have, in hexadecimal digits. Anything else fails the call.",
			Examples: []string{"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}},
		{Key: "max_bytes", Kind: drivers.Size, Title: "Limit", Payload: true, Examples: []string{"100MB"},
			Doc: "Stop after so many bytes of the body and close the connection. What came up to there counts as a success."},
		{Key: "stall", Kind: drivers.Duration, Title: "Stall", Examples: []string{"10s"},
			Doc: "Fail as a timeout when no byte of the body has arrived for so long, of any of its `parts`. A transfer that keeps moving is ended by `timeout` only."},
		{Key: "parts", Kind: drivers.Int, Title: "Parts", Default: "1", Examples: []string{"4"},
			Doc: "Download so many parts of the body at the same time, each with one request for its range; over HTTP/1.1 each on a connection of its own. All of them are one sample. The server has to answer each with 206 and its very range. Goes without `sha256`, `max_bytes` and `compression`."},
	}
	return append(fields, wire.Fields()...)
}

// Answer implements drivers.Driver.
func (*Driver) Answer() []drivers.Name {
	return []drivers.Name{
		{Name: "status", Kind: drivers.IntName, Doc: "The status code, such as 200."},
		{Name: "headers", Kind: drivers.TextsName, Doc: "Header fields by name in lower case; several of one name are joined by a comma."},
		{Name: "bytes", Kind: drivers.SizeName, Doc: "Length of the body as it came, packed or not, up to `max_bytes`."},
		{Name: "sha256", Kind: drivers.TextName, Doc: "SHA-256 of the body in hexadecimal digits, unpacked if compression was asked for."},
		{Name: "stalls", Kind: drivers.IntName, Doc: "How often no byte of the body arrived for a second or longer."},
		{Name: "steady", Kind: drivers.SizeName, Doc: "Bytes in a second, leaving out the first second of the transfer or its first tenth, whichever is shorter: the speed apart from TCP's slow start. No value if the transfer was too short to tell."},
		{Name: "limited", Kind: drivers.AnyName, Doc: "Whether `max_bytes` ended the download."},
	}
}

// call is a prepared download.
type call struct {
	*wire.Request
	want  wire.Text // the checksum
	hash  bool      // the checksum is asked for
	parts int
	// length is that of the whole, once an answer has told it, where all calls go to the same URL; otherwise 0. It
	// outlives rounds, as the call does.
	length atomic.Int64
}

// Prepare implements drivers.Driver.
func (*Driver) Prepare(op *drivers.Op) (drivers.Call, error) {
	r, errs := wire.Parse(op, "url", "GET")
	r.MaxBytes = op.Int("max_bytes", 0)
	r.Stall = op.Duration("stall", 0)
	c := &call{Request: r, hash: op.Reads["sha256"], parts: int(op.Int("parts", 1))}
	if t := op.Template("sha256"); t != nil {
		c.want, c.hash = wire.Plain(t), true
		if text, ok := c.want.Constant(); ok && !isSum(text) {
			errs = append(errs, op.Errorf("sha256", "a SHA-256 has 64 hexadecimal digits, this has %d characters", len(text)))
		}
		if r.MaxBytes > 0 {
			errs = append(errs, op.Errorf("sha256", "the checksum of a download that may stop early is not known").WithHint("leave out max_bytes or sha256"))
		}
	}
	if op.Has("max_bytes") && r.MaxBytes == 0 {
		errs = append(errs, op.Errorf("max_bytes", "a limit of nothing downloads nothing").WithHint("leave it out for no limit"))
	}
	errs = append(errs, c.checkParts(op)...)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	if err := r.Seal(); err != nil {
		return nil, drivers.FieldErrors{op.Errorf("url", "%v", err)}
	}
	return c, nil
}

func isSum(s string) bool {
	b, err := hex.DecodeString(strings.TrimSpace(s))
	return err == nil && len(b) == sha256.Size
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
	return &session{client: c.Client}, nil
}

// session is one user.
type session struct {
	client *wire.Client
	parts  []*part // as many as the calls so far had
	answer answer
	want   []byte
}

// Close implements drivers.Session.
func (s *session) Close() error {
	for _, p := range s.parts {
		p.Session.Close()
	}
	return nil
}

// Do implements drivers.Session.
func (s *session) Do(ctx context.Context, c drivers.Call, in *drivers.Input, out *drivers.Outcome) error {
	r, ok := c.(*call)
	if !ok {
		return drivers.Fail(drivers.Protocol, errors.New("the call is not a download"))
	}
	for len(s.parts) < r.parts {
		s.parts = append(s.parts, &part{Session: s.client.Open(true), meter: &s.answer.meter})
	}
	a := &s.answer
	a.begin(r.hash, s.parts[0].Response())
	var err error
	if s.want, err = r.want.Append(s.want[:0], in); err != nil {
		return drivers.Fail(drivers.Expectation, fmt.Errorf("sha256 can't be made: %w", err))
	}
	if r.parts > 1 {
		err = s.parallel(ctx, r, in, out)
	} else {
		err = s.parts[0].Exchange(ctx, r.Request, in, out, a)
		a.bytes, a.limited = a.response.Bytes, a.response.Limited
	}
	a.status = out.Status
	if err != nil {
		if n := a.meter.broken(); n > 0 {
			err = drivers.Fail(drivers.KindOf(err), fmt.Errorf("%w (%s)", err, stalled(n)))
		}
		return err
	}
	out.Answer = a
	out.Success = out.Status == 200 || out.Status == 206
	if out.Success && len(s.want) > 0 {
		if sum := a.sum(); !strings.EqualFold(strings.TrimSpace(string(s.want)), sum) {
			out.Success, out.Answer = false, nil
			return drivers.Fail(drivers.Expectation, fmt.Errorf("the body has the SHA-256 %s, not %s", sum, strings.TrimSpace(string(s.want))))
		}
	}
	return nil
}

var (
	_ drivers.Driver    = (*Driver)(nil)
	_ drivers.Client    = client{}
	_ drivers.Addressed = client{}
	_ drivers.Session   = (*session)(nil)
	_ drivers.Answer    = (*answer)(nil)
	_ wire.Observer     = (*answer)(nil)
	_ wire.Observer     = (*part)(nil)
)
