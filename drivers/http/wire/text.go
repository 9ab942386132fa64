package wire

import (
	"errors"
	"fmt"
	"strings"

	"github.com/planrun/planrun/drivers"
)

// Text is a template cut into constant text and what is put in at the moment of a call, escaped for its place.
type Text struct {
	parts []part
}

type part struct {
	text     string
	template drivers.Template // nil: text
	escape   *escaping
}

// Plain is a text that is sent as it is.
func Plain(t drivers.Template) Text { return compile(t, nil, nil) }

// Escaped is a text of a URL's query or a form: everything but unreserved characters is percent-encoded
// (RFC 3986, section 2.3).
func Escaped(t drivers.Template) Text { return compile(t, &componentEscaping, &componentEscaping) }

// Quoted is a text between the quotation marks of a part's head in a multipart body: what would end it is
// percent-encoded (WHATWG HTML, multipart/form-data encoding).
func Quoted(t drivers.Template) Text { return compile(t, &quotedEscaping, &quotedEscaping) }

// Fixed is constant text.
func Fixed(s string) Text { return Text{parts: []part{{text: s}}} }

func compile(t drivers.Template, constant, dynamic *escaping) Text {
	var x Text
	for _, segment := range drivers.Segments(t) {
		if c, ok := segment.Constant(); ok {
			x.add(string(constant.apply(drivers.AppendText(nil, c), 0)))
		} else {
			x.parts = append(x.parts, part{template: segment, escape: dynamic})
		}
	}
	return x
}

// add appends constant text.
func (x *Text) add(s string) {
	if n := len(x.parts); n > 0 && x.parts[n-1].template == nil {
		x.parts[n-1].text += s
	} else if s != "" {
		x.parts = append(x.parts, part{text: s})
	}
}

// Join appends another text.
func (x *Text) Join(other Text) {
	for _, p := range other.parts {
		if p.template == nil {
			x.add(p.text)
		} else {
			x.parts = append(x.parts, p)
		}
	}
}

// Constant returns the text if it is the same for every call.
func (x Text) Constant() (string, bool) {
	switch {
	case len(x.parts) == 0:
		return "", true
	case len(x.parts) == 1 && x.parts[0].template == nil:
		return x.parts[0].text, true
	}
	return "", false
}

// Skeleton is the constant part of the text.
func (x Text) Skeleton() string {
	var all strings.Builder
	for _, p := range x.parts {
		all.WriteString(p.text)
	}
	return all.String()
}

// String is the text with ${...} for what is put in at the moment of a call.
func (x Text) String() string {
	var all strings.Builder
	for _, p := range x.parts {
		if p.template == nil {
			all.WriteString(p.text)
		} else {
			all.WriteString("${...}")
		}
	}
	return all.String()
}

// Append appends the text of one call.
func (x Text) Append(dst []byte, in *drivers.Input) ([]byte, error) {
	for _, p := range x.parts {
		if p.template == nil {
			dst = append(dst, p.text...)
			continue
		}
		start := len(dst)
		var err error
		if dst, err = p.template.AppendText(dst, in); err != nil {
			return dst, err
		}
		dst = p.escape.apply(dst, start)
	}
	return dst, nil
}

// An escaping is the set of bytes that are percent-encoded.
type escaping struct {
	unsafe [256]bool
	// keepEncoded leaves "%" alone where two hexadecimal digits follow it.
	keepEncoded bool
}

const hexDigits = "0123456789ABCDEF"

// apply escapes dst[start:] in place. A nil escaping changes nothing.
func (e *escaping) apply(dst []byte, start int) []byte {
	if e == nil {
		return dst
	}
	n := 0
	for i := start; i < len(dst); i++ {
		if e.escapes(dst, i) {
			n++
		}
	}
	if n == 0 {
		return dst
	}
	end := len(dst)
	for range n {
		dst = append(dst, 0, 0)
	}
	// From the back, so that nothing is overwritten before it was read. What follows position i has been moved, so
	// whether "%" is followed by digits is asked of the copy.
	w := len(dst)
	for i := end - 1; i >= start; i-- {
		c := dst[i]
		escape := e.unsafe[c]
		if c == '%' && e.keepEncoded {
			escape = !(w+1 < len(dst) && isHex(dst[w]) && isHex(dst[w+1]))
		}
		if escape {
			w -= 3
			dst[w], dst[w+1], dst[w+2] = '%', hexDigits[c>>4], hexDigits[c&15]
		} else {
			w--
			dst[w] = c
		}
	}
	return dst
}

func (e *escaping) escapes(b []byte, i int) bool {
	if b[i] == '%' && e.keepEncoded {
		return !(i+2 < len(b) && isHex(b[i+1]) && isHex(b[i+2]))
	}
	return e.unsafe[b[i]]
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

var (
	// componentEscaping is for values of a query or a form.
	componentEscaping escaping
	// targetEscaping is for text of a URL: what can't be there at all, and nothing that has a meaning there.
	targetEscaping escaping
	// substituteEscaping is for what is put into a URL: "#" as well, which would cut the URL off.
	substituteEscaping escaping
	// quotedEscaping is for names within quotation marks.
	quotedEscaping = escaping{unsafe: [256]bool{'"': true, '\r': true, '\n': true}}
)

func init() {
	for c := range 256 {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		componentEscaping.unsafe[c] = !letter && c != '-' && c != '_' && c != '.' && c != '~'
		switch c {
		case '"', '<', '>', '\\', '^', '`', '{', '|', '}', '%':
			targetEscaping.unsafe[c] = true
		default:
			targetEscaping.unsafe[c] = c <= ' ' || c >= 0x7f
		}
	}
	substituteEscaping = targetEscaping
	substituteEscaping.unsafe['#'] = true
	targetEscaping.keepEncoded, substituteEscaping.keepEncoded = true, true
}

// unsent is the error of a request that could not be made of its templates, so that nothing was sent.
func unsent(what string, err error) error {
	if e, ok := errors.AsType[*drivers.Error](err); ok {
		return e
	}
	return drivers.Fail(drivers.Expectation, fmt.Errorf("%s can't be made: %w", what, err))
}
