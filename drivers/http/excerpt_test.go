package http

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// failing answers with a status and a body, in the form that the query asks for.
func failing(w http.ResponseWriter, r *http.Request) {
	code, _ := strconv.Atoi(r.FormValue("code"))
	var body io.Writer = w
	if e := r.FormValue("encoding"); e != "" {
		w.Header().Set("Content-Encoding", e)
		if e == "gzip" {
			z := gzip.NewWriter(w)
			defer z.Close()
			body = z
		}
	}
	if to := r.FormValue("to"); to != "" {
		w.Header().Set("Location", to)
	}
	w.WriteHeader(code)
	io.WriteString(body, r.FormValue("body"))
}

// excerpts are queries of failing, and what is said of its answers.
var excerpts = []struct {
	name   string
	fields drivertest.Fields
	want   string
}{
	{"success", drivertest.Fields{"code": "200", "body": "fine"}, "status was 200"},
	{"failure", drivertest.Fields{"code": "401", "body": `{"error":"no such user"}`}, `status was 401: {"error":"no such user"}`},
	{"no body", drivertest.Fields{"code": "503"}, "status was 503"},
	{"only white space", drivertest.Fields{"code": "503", "body": " \r\n\t"}, "status was 503"},
	{"lines", drivertest.Fields{"code": "500", "body": "\n<h1>\r\n\tOops\n</h1>\n"}, "status was 500: <h1> Oops </h1>"},
	{"control characters", drivertest.Fields{"code": "500", "body": "a\x1b[31mb\x00\x85\u202ec"}, "status was 500: a\ufffd[31mb\ufffd\ufffd\ufffdc"},
	{"just fits", drivertest.Fields{"code": "500", "body": strings.Repeat("x", 200)}, "status was 500: " + strings.Repeat("x", 200)},
	{"too long", drivertest.Fields{"code": "500", "body": strings.Repeat("x", 201)}, "status was 500: " + strings.Repeat("x", 200) + "..."},
	{"cut within a character", drivertest.Fields{"code": "500", "body": strings.Repeat("x", 198) + "€€"}, "status was 500: " + strings.Repeat("x", 198) + "..."},
	{"cut after a character", drivertest.Fields{"code": "500", "body": strings.Repeat("x", 197) + "€€"}, "status was 500: " + strings.Repeat("x", 197) + "€..."},
	{"packed", drivertest.Fields{"code": "500", "body": "text", "encoding": "gzip"}, "status was 500: text"},
	{"in another encoding", drivertest.Fields{"code": "500", "body": "text", "encoding": "br"}, "status was 500"},
	{"after a redirect", drivertest.Fields{"code": "302", "body": "elsewhere", "to": "/?code=404&body=gone"}, "status was 404 after 302 to /?code=404&body=gone: gone"},
}

// tellExcerpts compares what answers say of themselves.
func tellExcerpts(t *testing.T, base drivertest.Fields) {
	t.Helper()
	for _, c := range excerpts {
		for _, reads := range [][]string{nil, {"body"}} {
			fields := drivertest.Fields{"query": c.fields, "compression": true, "redirects": 1}
			for k, v := range base {
				fields[k] = v
			}
			b := drivertest.NewBench(t, New(), fields, drivers.Pool{Users: 1}, reads...)
			r := b.Do(t.Context(), b.Open(), time.Minute)
			if r.Err != nil {
				t.Errorf("%s: %v", c.name, r.Err)
			} else if got := fmt.Sprint(r.Answer); got != c.want {
				t.Errorf("%s, reading %v:\n got %q\nwant %q", c.name, reads, got, c.want)
			}
		}
	}
}

// An answer that reports a failure says how its body begins, whether an expectation reads that or not.
func TestExcerpts(t *testing.T) {
	for _, p := range []protocols{plain1, plain2} {
		t.Run(string(p), func(t *testing.T) {
			fields := drivertest.Fields{"url": serve(t, p, failing).URL}
			if p == plain2 {
				fields["version"] = "2"
			}
			tellExcerpts(t, fields)
		})
	}
}

// A body that was packed without being asked for is left out, and what one answer said is not said of the next.
func TestExcerptOfEachAnswer(t *testing.T) {
	s := serve(t, plain1, failing)
	b := drivertest.NewBench(t, New(), drivertest.Fields{"get": s.URL + "/?code=500&body=long+text"}, drivers.Pool{Users: 1})
	session := b.Open()
	for query, want := range map[string]string{
		"code=500&body=long+text":            "status was 500: long text",
		"code=500&body=no":                   "status was 500: no",
		"code=200&body=yes":                  "status was 200",
		"code=500&body=packed&encoding=gzip": "status was 500",
	} {
		call := drivertest.Prepare(t, New(), drivertest.Fields{"get": s.URL + "/?" + query})
		if r := b.DoCall(t.Context(), session, call, time.Minute); r.Err != nil || fmt.Sprint(r.Answer) != want {
			t.Errorf("%s: %v, %q, want %q", query, r.Err, fmt.Sprint(r.Answer), want)
		}
	}
}

// Keeping how a body begins costs a warm call no allocation.
func TestExcerptsDoNotAllocate(t *testing.T) {
	body := strings.Repeat("x", 1000)
	s := raw(t, fmt.Appendf(nil, "HTTP/1.1 500 Oops\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	b := drivertest.NewBench(t, New(), drivertest.Fields{"get": "http://" + s.Addr()}, drivers.Pool{Users: 1})
	session := b.Open()
	if r := b.Do(t.Context(), session, time.Minute); r.Err != nil || fmt.Sprint(r.Answer) != "status was 500: "+body[:200]+"..." {
		t.Fatalf("%v, %v", r.Err, r.Answer)
	}
	var in drivers.Input
	var out drivers.Outcome
	ctx := t.Context()
	least := 1e9
	for range 5 {
		least = min(least, testing.AllocsPerRun(100, func() {
			in.Deadline = time.Now().Add(time.Minute)
			out.Reset()
			if err := session.Do(ctx, b.Call, &in, &out); err != nil {
				t.Error(err)
			}
		}))
	}
	if least > 0 {
		t.Errorf("a call that is answered with a failure makes %v allocations", least)
	}
}
