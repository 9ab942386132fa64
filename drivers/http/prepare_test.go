package http

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

func TestFaults(t *testing.T) {
	d := New()
	dynamic := drivertest.Func(func(*drivers.Input) any { return errors.New("not yet") })
	for _, c := range []struct {
		fields drivertest.Fields
		want   string
	}{
		{drivertest.Fields{}, "url: a URL is missing: write get: https://..."},
		{drivertest.Fields{"get": "http://a/", "post": "http://a/"}, "post: only one of get and post can be given"},
		{drivertest.Fields{"get": "http://a/", "method": "PUT"}, "method: the method is given by get already: write url instead of get"},
		{drivertest.Fields{"url": "GET http://a/", "method": "PUT"}, "method: the URL has a method in front already: GET"},
		{drivertest.Fields{"url": "http://a/", "method": "GET /"}, `method: "GET /" is no method`},
		{drivertest.Fields{"url": "http://a/", "method": dynamic}, "method: method must be known before the load: it can't depend on the iteration or the user"},
		{drivertest.Fields{"url": "http://a/", "method": "connect"}, "url: CONNECT is for proxies: use proxy"},
		{drivertest.Fields{"get": "example.test/x"}, "get: a URL begins with http:// or https://: write https://example.test/x"},
		{drivertest.Fields{"url": "GTE http://a/"}, `url: "GTE" is no method that servers know: did you mean GET?`},
		{drivertest.Fields{"url": "pots http://a/"}, `url: "POTS" is no method that servers know: did you mean POST?`},
		{drivertest.Fields{"url": "http://a/", "method": "Delet"}, `method: "Delet" is no method that servers know: did you mean DELETE?`},
		{drivertest.Fields{"get": "http://a:65536/"}, "get: 65536 is no port: they go from 1 to 65535"},
		{drivertest.Fields{"get": "https://[::1]:0"}, "get: 0 is no port: they go from 1 to 65535"},
		{drivertest.Fields{"get": "http://a:99999999999999999999/"}, "get: 99999999999999999999 is no port: they go from 1 to 65535"},
		{drivertest.Fields{"get": "http://a/", "proxy": "http://b:70000"}, "proxy: 70000 is no port: they go from 1 to 65535"},
		{drivertest.Fields{"get": "$NEAR"}, "get: a URL begins with http:// or https://: write ${env.NEAR}"},
		{drivertest.Fields{"url": "GET $NEAR/x"}, "url: a URL begins with http:// or https://: write ${env.NEAR}"},
		{drivertest.Fields{"get": "$vars.near/x"}, "get: a URL begins with http:// or https://: write ${vars.near}"},
		{drivertest.Fields{"get": "{{ env.NEAR }}"}, "get: a URL begins with http:// or https://: write ${env.NEAR}"},
		{drivertest.Fields{"url": "GET {{NEAR}}/x"}, "url: a URL begins with http:// or https://: write ${env.NEAR} or ${vars.NEAR}"},
		{drivertest.Fields{"get": drivertest.Mix{"$NEAR/", dynamic}}, "get: a URL begins with http:// or https://: write ${env.NEAR}"},
		{drivertest.Fields{"get": "https://$NEAR/x"}, `get: "$NEAR" is no host: write ${env.NEAR}`},
		{drivertest.Fields{"get": "https://{{ env.NEAR }}:80/x"}, `get: "{{ env.NEAR }}:80" is no host: write ${env.NEAR}`},
		{drivertest.Fields{"get": "http:/127.0.0.1/"}, "get: a URL begins with http:// or https://: write http://127.0.0.1/"},
		{drivertest.Fields{"get": "HTTPS:me:hunter2@a.test/x"}, "get: a URL begins with http:// or https://: write https://a.test/x"},
		{drivertest.Fields{"get": "http//a.test"}, "get: a URL begins with http:// or https://: write http://a.test"},
		{drivertest.Fields{"get": "httpbin.test/x"}, "get: a URL begins with http:// or https://: write https://httpbin.test/x"},
		{drivertest.Fields{"get": "ftp://a/"}, "get: a URL begins with http:// or https://, not with ftp://"},
		{drivertest.Fields{"get": "/cart"}, "get: a path needs an address in front of it: write the whole URL, or give the target a url"},
		{drivertest.Fields{"get": "http:///x"}, `get: "" is no host: write scheme://host:port/path; a password with special characters is percent-encoded`},
		{drivertest.Fields{"get": "http://a b/x"}, `get: "a b" is no host: write scheme://host:port/path; a password with special characters is percent-encoded`},
		{drivertest.Fields{"get": "http://me:hunter2/3@a/"}, `get: "me:***" is no host: write scheme://host:port/path; a password with special characters is percent-encoded`},
		{drivertest.Fields{"get": "http://me:hunter2:/3@a/"}, `get: "me:***" is no host: write scheme://host:port/path; a password with special characters is percent-encoded`},
		{drivertest.Fields{"get": "http://a/", "proxy": "http://me:hunter2:/@b"}, "proxy: a proxy is given as http://host:port"},
		{drivertest.Fields{"get": "http://me:hunter2%@a:80x/"}, `get: "a:80x" is no host: write scheme://host:port/path; a password with special characters is percent-encoded`},
		{drivertest.Fields{"get": drivertest.Mix{"http://", dynamic, "/x"}}, "get: the host must be known before the load: it can't depend on the iteration or the user: end the host with / before the first ${...}"},
		{drivertest.Fields{"get": dynamic}, "get: the host must be known before the load: it can't depend on the iteration or the user: write scheme and host, then the path with its ${...}"},
		{drivertest.Fields{"get": "http://a/", "body": "x"}, "get: a GET request has no body: write post, or url with method: GET if the server wants one"},
		{drivertest.Fields{"post": "http://a/", "body": "x", "json": 1}, "json: only one of body and json can be given"},
		{drivertest.Fields{"post": "http://a/", "body_file": "/nowhere"}, "body_file: the file can't be read: no such file or directory"},
		{drivertest.Fields{"get": "http://a/", "headers": drivertest.Fields{"A B": "x", "Content-Length": "1", "Connection": "close", "X": "a\nb"}},
			`headers.A B: "A B" is no name of a header; ` +
				"headers.Connection: Connection is set by the driver: keep_alive: false closes the connection after each call; " +
				"headers.Content-Length: Content-Length is set by the driver, from the body; " +
				"headers.X: the value of X holds a line break or another control character"},
		{drivertest.Fields{"get": "http://a/", "bearer": "x", "basic": drivertest.Fields{"user": "u"}}, "basic: only one of bearer, basic and an Authorization header can be sent"},
		{drivertest.Fields{"get": "http://a/", "basic": drivertest.Fields{"password": "u"}}, "basic.user: basic authentication needs a user"},
		{drivertest.Fields{"get": "http://a/", "tls": drivertest.Fields{"insecure": true}}, "tls: the URL is not encrypted, so tls has no use: begin the URL with https://"},
		{drivertest.Fields{"get": "http://a/", "proxy": "hunter2@b:1"}, "proxy: a proxy is given as http://host:port"},
		{drivertest.Fields{"get": "http://a/", "proxy": "http://u:hunter2%@b:1"}, "proxy: a proxy is given as http://host:port"},
		{drivertest.Fields{"get": "http://a/", "proxy": "http://b:1", "unix": "/s"}, "unix: a Unix socket can't be reached through a proxy: leave out proxy or unix"},
		{drivertest.Fields{"get": "http://a/", "version": "2", "keep_alive": false}, "keep_alive: HTTP/2 shares a connection between users, so it can't be closed after each call: use version: 1.1"},
		{drivertest.Fields{"post": "", "json": 1, "body": 2}, "post: a URL is missing; json: only one of body and json can be given"},
	} {
		_, err := d.Prepare(drivertest.NewOp(t, d, c.fields))
		if err == nil || err.Error() != c.want {
			t.Errorf("%v:\n got %v\nwant %s", c.fields, err, c.want)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a password is shown: %v", err)
		}
		var errs drivers.FieldErrors
		if !errors.As(err, &errs) {
			t.Errorf("%v: %T has no places", c.fields, err)
		}
	}
}

// Methods that are unlike those which servers know, or that others have registered, are sent as they are.
func TestRareMethods(t *testing.T) {
	d := New()
	for _, m := range []string{"PURGE", "BAN", "LOCK", "PROPFIND", "ORDERPATCH", "TRACE", "update"} {
		for _, fields := range []drivertest.Fields{{"url": m + " http://a/"}, {"url": "http://a/", "method": m}} {
			if _, err := d.Prepare(drivertest.NewOp(t, d, fields)); err != nil {
				t.Errorf("%v: %v", fields, err)
			}
		}
	}
}

func TestEndpoints(t *testing.T) {
	d := New()
	name := func(f drivertest.Fields) string { return drivertest.Prepare(t, d, f).Endpoint().Name }
	for _, c := range []struct {
		fields drivertest.Fields
		want   string
	}{
		{drivertest.Fields{"get": "https://me:hunter2@127.0.0.1:8443/x", "version": "2"}, "https://127.0.0.1:8443 (HTTP/2)"},
		{drivertest.Fields{"get": "https://a.test:443/x"}, "https://a.test"},
		{drivertest.Fields{"get": "HTTP://[::1]/x"}, "http://[::1]"},
		{drivertest.Fields{"get": "https://a.test", "version": "1.1"}, "https://a.test (HTTP/1.1)"},
		{drivertest.Fields{"get": "http://a.test", "proxy": "http://me:hunter2@p:3128"}, "http://a.test by proxy p:3128"},
		{drivertest.Fields{"get": "http://a.test", "unix": "/run/s"}, "http://a.test at /run/s"},
	} {
		if got := name(c.fields); got != c.want {
			t.Errorf("%v: got %q, want %q", c.fields, got, c.want)
		}
	}
	key := func(f drivertest.Fields) string { return drivertest.Prepare(t, d, f).Endpoint().Key }
	base := key(drivertest.Fields{"get": "https://a.test/x"})
	for _, same := range []drivertest.Fields{
		{"post": "https://a.test/y", "body": "z"}, {"get": "https://me:pw@a.test:443"}, {"get": "https://a.test", "headers": drivertest.Fields{"A": "b"}},
	} {
		if key(same) != base {
			t.Errorf("%v is another endpoint", same)
		}
	}
	for _, other := range []drivertest.Fields{
		{"get": "http://a.test:443"}, {"get": "https://a.test:444"}, {"get": "https://a.test", "version": "2"}, {"get": "https://a.test", "unix": "/s"},
		{"get": "https://a.test", "proxy": "http://p:1"}, {"get": "https://a.test", "tls": drivertest.Fields{"insecure": true}},
		{"get": "https://a.test", "tls": drivertest.Fields{"server_name": "b"}},
	} {
		if key(other) == base {
			t.Errorf("%v is the same endpoint", other)
		}
	}
}

func TestBodyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "order.xml")
	if err := os.WriteFile(path, []byte("<order>${not a template}</order>"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, plain1, echo)
	r := do(t, drivertest.Fields{"post": "http://" + s.addr(), "body_file": path}, "body")
	if got := value(t, r, "body").(string); !strings.HasSuffix(got, "\n\n<order>${not a template}</order>") {
		t.Errorf("the server saw %q", got)
	}
	if r.BytesOut != 32 {
		t.Errorf("%d bytes out, want 32", r.BytesOut)
	}
}
