package http

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/http/wire"
)

// maxBody is how much of a body is kept for an expectation.
const maxBody = 64 << 20

var answerNames = []drivers.Name{
	{Name: "status", Kind: drivers.IntName, Doc: "The status code, such as 200."},
	{Name: "headers", Kind: drivers.TextsName, Doc: "Header fields by name in lower case; several of one name are joined by a comma."},
	{Name: "body", Kind: drivers.TextName, Doc: "The body as text, unpacked if compression was asked for. At most 64 MiB."},
	{Name: "json", Kind: drivers.AnyName, Doc: "The body, decoded as JSON."},
	{Name: "bytes", Kind: drivers.SizeName, Doc: "Length of the body as it came, packed or not."},
	{Name: "proto", Kind: drivers.TextName, Doc: `The protocol that was spoken: "HTTP/1.1", "HTTP/2" or "HTTP/3".`},
	{Name: "hops", Kind: drivers.ListName, Doc: "The redirects that were followed, each with its `status` and `location`."},
}

// answer is what an expectation looks at. It also takes in the body, as far as that is kept.
type answer struct {
	response *wire.Response
	kept     bool
	body     []byte

	decoded bool
	json    any
	err     error
}

func (a *answer) reset(keep bool) {
	if cap(a.body) > 1<<20 {
		a.body = nil // one large answer should not be paid for by every user for the rest of the round
	}
	a.kept, a.body = keep, a.body[:0]
	a.decoded, a.json, a.err = false, nil, nil
}

// Take implements wire.Sink.
func (a *answer) Take(p []byte) error {
	if len(a.body)+len(p) > maxBody {
		return drivers.Fail(drivers.Protocol, fmt.Errorf("the body is larger than %d MiB, more than can be kept for an expectation", maxBody>>20))
	}
	a.body = append(a.body, p...)
	return nil
}

// String is the status and how the body of a failure begins, for the examples of failures.
func (a *answer) String() string { return a.response.String() }

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
	case "proto":
		return a.response.Protocol, nil
	case "headers":
		return a.response.Headers(), nil
	case "hops":
		hops := []any{}
		for _, h := range a.response.Hops {
			hops = append(hops, map[string]any{"status": int64(h.Status), "location": h.Location})
		}
		return hops, nil
	case "body", "json":
		if !a.kept {
			return nil, errors.New("the body was not kept, because no expectation reads it")
		}
		if name == "body" {
			return string(a.body), nil
		}
		if !a.decoded {
			a.decoded = true
			a.json, a.err = decodeJSON(a.body)
		}
		return a.json, a.err
	}
	return nil, fmt.Errorf("an answer of HTTP has no %s", name)
}

// decodeJSON decodes one JSON text. Whole numbers that fit are int64, others float64.
func decodeJSON(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows the value")
		}
	}
	if err != nil {
		return nil, notJSON(b, err)
	}
	return plain(v), nil
}

func notJSON(b []byte, err error) error {
	switch {
	case len(bytes.TrimSpace(b)) == 0:
		return errors.New("the body is empty, not JSON")
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("it ends too early")
	}
	begin := string(b[:min(len(b), 40)])
	if len(b) > 40 {
		begin += "..."
	}
	place := ""
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		place = fmt.Sprintf(" at byte %d", e.Offset)
	}
	return fmt.Errorf("the body is not JSON: %v%s; it begins with %s", err, place, strconv.QuoteToGraphic(strings.ToValidUTF8(begin, "\ufffd")))
}

// plain turns json.Number into numbers.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		for k, e := range v {
			v[k] = plain(e)
		}
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
	}
	return v
}
