package wire

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/planrun/planrun/drivers"
)

// read reads a whole answer as a session does.
func read(answer []byte, buffer int) (status int, data []byte, err error) {
	con := connection{}
	con.source.pending = answer
	con.source.conn = nobody{}
	con.reader = bufio.NewReaderSize(&con.source, buffer)
	var s Session
	if len(answer) == 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	head, _, err := s.readHead(&con)
	if err != nil {
		return 0, nil, err
	}
	s.body.begin(con.reader, false, head)
	for {
		p, err := s.body.next()
		if err == io.EOF {
			return head.StatusCode(), data, nil
		}
		if err != nil {
			return head.StatusCode(), data, err
		}
		if len(p) == 0 {
			panic("an empty piece")
		}
		data = append(data, p...)
	}
}

// FuzzAnswer: no answer makes the reader panic, loop or read past the end, and what net/http reads of a body is what
// we read of it.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;a=b\r\nlo\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
		"\r\n\r\n", "HTTP/", "SSH-2.0",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		_, data, err := read(answer, 16)
		_, again, err2 := read(answer, 4096)
		if !bytes.Equal(data, again) || (err == nil) != (err2 == nil) {
			t.Fatalf("the size of the buffer matters: %q, %v and %q, %v", data, err, again, err2)
		}
		if err != nil || bytes.HasPrefix(answer, []byte("HTTP/1.1 1")) {
			return
		}
		theirs, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), nil)
		if err != nil {
			return // they are stricter in places
		}
		body, err := io.ReadAll(theirs.Body)
		if err == nil && !bytes.Equal(body, data) {
			t.Fatalf("net/http reads %q, we read %q", body, data)
		}
	})
}

// FuzzChunks: a chunked body is read as the standard library reads it.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\n"))
	f.Add([]byte("5;x=y\r\nhello\r\n00\r\nA: b\r\n\r\n"))
	f.Add([]byte("5\nhello\n0\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, ours, err := read(append([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), b...), 4096)
		if err != nil {
			return
		}
		theirs, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(b)))
		if err == nil && !bytes.Equal(ours, theirs) {
			t.Fatalf("the standard library reads %q, we read %q", theirs, ours)
		}
	})
}

// FuzzEscape: what is put into a URL can be sent in a request's line, and a query's value comes back as it was.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"a b", "%", "%4", "%41", "%%41", "ü", "\r\nX: y", "a&b=c#d?e/f", "%zz%2F"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		target := string(substituteEscaping.apply([]byte("/x"+s), 2))
		if strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' }) {
			t.Fatalf("%q becomes %q", s, target)
		}
		if _, err := url.ParseRequestURI(target); err != nil {
			t.Fatalf("%q becomes %q: %v", s, target, err)
		}
		if again := string(substituteEscaping.apply([]byte(target), 2)); again != target {
			t.Fatalf("%q becomes %q, and that %q", s, target, again)
		}
		value := string(componentEscaping.apply([]byte(s), 0))
		if back, err := url.QueryUnescape(value); err != nil || back != s {
			t.Fatalf("%q becomes %q and comes back as %q, %v", s, value, back, err)
		}
	})
}

// FuzzURL: a URL is refused or makes a request, and no password of it is in a message or a name.
func FuzzURL(f *testing.F) {
	for _, s := range []string{"http://a/", "https://u:hunter2@a.test:8443/x?y#z", "http://u:hunter2@", "http://u:hunter2@[::1", "http://[::1]:80?x", "/x", "http://a:hunter2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		op := &drivers.Op{Values: drivers.NewValues(map[string]drivers.Value{"url": {Kind: drivers.URL, Template: drivers.Constant(s)}})}
		r, errs := Parse(op, "url", "GET")
		if secret := "hunter2@"; strings.Contains(errs.Error(), secret) {
			t.Fatalf("%q: %v", s, errs)
		}
		if errs.Err() != nil {
			return
		}
		if err := r.Seal(); err != nil {
			return
		}
		if strings.Contains(r.Endpoint().Name, "hunter2@") {
			t.Fatalf("the name of %q is %q", s, r.Endpoint().Name)
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(r.fixed)))
		if err != nil {
			t.Fatalf("%q makes a request that can't be read: %v\n%s", s, err, r.fixed)
		}
		if req.Method != "GET" {
			t.Fatalf("%q makes a %s request", s, req.Method)
		}
	})
}

// nobody is a connection that has ended.
type nobody struct{ net.Conn }

func (nobody) Read([]byte) (int, error) { return 0, io.EOF }
