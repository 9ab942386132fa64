package wire

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxExcerpt is how many bytes of a failure's body are kept for messages.
const maxExcerpt = 200

// excerpt is the beginning of the body of an answer that reports a failure. Its memory is kept from call to call.
type excerpt struct {
	open bool // the body is wanted, and it is text as far as its head tells
	more bool // the body is longer
	text []byte
}

// begin says whether the body that follows is kept. packed is a body that arrives in an encoding nobody undoes.
func (e *excerpt) begin(status int, packed bool) { e.open = status >= 400 && !packed }

// take keeps what there is room for.
func (e *excerpt) take(p []byte) {
	if !e.open {
		return
	}
	if e.text == nil {
		e.text = make([]byte, 0, maxExcerpt)
	}
	n := min(len(p), maxExcerpt-len(e.text))
	e.text = append(e.text, p[:n]...)
	if n < len(p) {
		e.open, e.more = false, true
	}
}

// String is the text on one line: white space of any length is a space, and what can't be shown is U+FFFD.
func (e *excerpt) String() string {
	text := e.text
	if e.more {
		// A character that was cut in two is not shown at all.
		for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
			if utf8.RuneStart(text[len(text)-i]) {
				if !utf8.FullRune(text[len(text)-i:]) {
					text = text[:len(text)-i]
				}
				break
			}
		}
	}
	var b strings.Builder
	space := false
	for _, r := range string(text) {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		if !unicode.IsPrint(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	if e.more && b.Len() > 0 {
		b.WriteString("...")
	}
	return b.String()
}

// String says what the answer was, for the examples of failures: "status was 404", and from 400 on how its body begins,
// up to 200 bytes of it on one line, as in `status was 404: {"error":"no such user"}`. A body in an encoding that was not
// asked for is left out. Redirects that were followed are named: "status was 404 after 302 to /b".
func (r *Response) String() string {
	s := fmt.Sprintf("status was %d", r.Status)
	if len(r.Hops) > 0 {
		s += " " + r.trail()
	}
	if text := r.excerpt.String(); text != "" {
		s += ": " + text
	}
	return s
}
