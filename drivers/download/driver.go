// Package download is the driver for large answers: it reads a body to its end, however large, without keeping it,
// and checks that all of it came.
package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"

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
		{Key: "url", Kind: drivers.URL, Title: "URL", Main: true, Examples: []string{"https://example.test/file"},
			Doc: "What is downloaded, with GET. The host must be known before the load."},
		{Key: "sha256", Kind: drivers.Text, Title: "Checksum", Doc: "SHA-256 that the body must have, in hexadecimal digits. Anything else fails the call.",
			Examples: []string{"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}},
		{Key: "max_bytes", Kind: drivers.Size, Title: "Limit", Examples: []string{"100MB"},
			Doc: "Stop after so many bytes of the body and close the connection. What came up to there counts as a success."},
		{Key: "stall", Kind: drivers.Duration, Title: "Stall", Examples: []string{"10s"},
			Doc: "Fail as a timeout when no byte of the body has arrived for so long. A transfer that keeps moving is ended by `timeout` only."},
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
		{Name: "limited", Kind: drivers.AnyName, Doc: "Whether `max_bytes` ended the download."},
	}
}

// call is a prepared download.
type call struct {
	*wire.Request
	want wire.Text // the checksum
	hash bool      // the checksum is asked for
}

// Prepare implements drivers.Driver.
func (*Driver) Prepare(op *drivers.Op) (drivers.Call, error) {
	r, errs := wire.Parse(op, "url", "GET")
	r.MaxBytes = op.Int("max_bytes", 0)
	r.Stall = op.Duration("stall", 0)
	c := &call{Request: r, hash: op.Reads["sha256"]}
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
	s := &session{Session: c.Client.Open(true)}
	s.answer.response = s.Response()
	return s, nil
}

// session is one user.
type session struct {
	*wire.Session
	answer answer
	want   []byte
}

// Do implements drivers.Session.
func (s *session) Do(ctx context.Context, c drivers.Call, in *drivers.Input, out *drivers.Outcome) error {
	r, ok := c.(*call)
	if !ok {
		return drivers.Fail(drivers.Protocol, errors.New("the call is not a download"))
	}
	s.want = s.want[:0]
	var sink wire.Sink
	if r.hash {
		s.answer.begin()
		sink = &s.answer
		var err error
		if s.want, err = r.want.Append(s.want, in); err != nil {
			return drivers.Fail(drivers.Expectation, fmt.Errorf("sha256 can't be made: %w", err))
		}
	}
	s.answer.hashed = r.hash
	if err := s.Exchange(ctx, r.Request, in, out, sink); err != nil {
		return err
	}
	out.Answer = &s.answer
	out.Success = out.Status == 200 || out.Status == 206
	if out.Success && len(s.want) > 0 {
		if sum := s.answer.sum(); !strings.EqualFold(strings.TrimSpace(string(s.want)), sum) {
			out.Success, out.Answer = false, nil
			return drivers.Fail(drivers.Expectation, fmt.Errorf("the body has the SHA-256 %s, not %s", sum, strings.TrimSpace(string(s.want))))
		}
	}
	return nil
}

// answer is what an expectation looks at. It also takes in the body, if its checksum is asked for.
type answer struct {
	response *wire.Response
	hashed   bool
	hash     hash.Hash
}

func (a *answer) begin() {
	if a.hash == nil {
		a.hash = sha256.New()
	}
	a.hash.Reset()
}

// Take implements wire.Sink.
func (a *answer) Take(p []byte) error {
	a.hash.Write(p)
	return nil
}

func (a *answer) sum() string { return hex.EncodeToString(a.hash.Sum(nil)) }

// Number implements drivers.Answer.
func (a *answer) Number(name string) (float64, bool) {
	switch name {
	case "status":
		return float64(a.response.Status), true
	case "bytes":
		return float64(a.response.Bytes), true
	}
	return 0, false
}

// Value implements drivers.Answer.
func (a *answer) Value(name string) (any, error) {
	switch name {
	case "status":
		return int64(a.response.Status), nil
	case "bytes":
		return a.response.Bytes, nil
	case "headers":
		return a.response.Headers(), nil
	case "limited":
		return a.response.Limited, nil
	case "sha256":
		if !a.hashed {
			return nil, errors.New("the checksum was not computed, because no expectation reads it")
		}
		return a.sum(), nil
	}
	return nil, fmt.Errorf("a download has no %s", name)
}

var (
	_ drivers.Driver  = (*Driver)(nil)
	_ drivers.Client  = client{}
	_ drivers.Session = (*session)(nil)
	_ drivers.Answer  = (*answer)(nil)
)
