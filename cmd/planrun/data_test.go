package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// seen is what a server was sent.
type seen struct {
	path, query, header, body string
}

// listener is a server that remembers what it was sent, by the name of a target in the path.
func listener(t *testing.T) (url string, calls func(target string) []seen) {
	var mu sync.Mutex
	all := map[string][]seen{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		target, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		mu.Lock()
		defer mu.Unlock()
		all[target] = append(all[target], seen{rest, r.URL.Query().Get("q"), r.Header.Get("X-Value"), string(body)})
	}))
	t.Cleanup(server.Close)
	return server.URL, func(target string) []seen {
		mu.Lock()
		defer mu.Unlock()
		return all[target]
	}
}

// Values of a file arrive as they are written there, whatever they hold and wherever they are put.
func TestRowsArriveVerbatim(t *testing.T) {
	values := []string{"001", "0x1F", "1e5", "TRUE", "12345678901234567890123", "o'neill", "a, b", `say "hi"`, `{"k": [1, "x"]}`, "a&b=c d+e%20f#g/h?i", "größer → 日本", "${env.HOME}"}
	url, calls := listener(t)
	p := newPlanrun(t, "--quiet", "plan.yaml")
	var csv strings.Builder
	csv.WriteString("value,n\r\n")
	for _, v := range values {
		csv.WriteString(`"` + strings.ReplaceAll(v, `"`, `""`) + "\",7\r\n")
	}
	p.write(t, "rows.csv", "\ufeff"+csv.String())
	p.write(t, "plan.yaml", `
targets:
  a: {url: "`+url+`/a"}
  b: {url: "`+url+`/b"}
data:
  rows: {csv: rows.csv, types: {n: int}}
scenarios:
  send:
    http:
      post: /${iteration}
      query: {q: "${data.rows.value}"}
      headers: {X-Value: "${data.rows.value}"}
      json: {value: "${data.rows.value}", n: "${data.rows.n}", text: "<${data.rows.value}>"}
    phases:
      - sequential: {count: `+"12"+`}
`)
	if code := p.run(t); code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, p.stdout.String(), p.stderr.String())
	}
	got := calls("a")
	if len(got) != len(values) {
		t.Fatalf("%d calls", len(got))
	}
	for i, want := range values {
		var body struct {
			Value, Text string
			N           json.Number
		}
		if err := json.Unmarshal([]byte(got[i].body), &body); err != nil {
			t.Errorf("%q: %s: %v", want, got[i].body, err)
		}
		if got[i].query != want || got[i].header != want || body.Value != want || body.Text != "<"+want+">" || body.N != "7" {
			t.Errorf("%q arrived as %q", want, got[i])
		}
	}
	if !slices.Equal(got, calls("b")) {
		t.Error("the second target was sent something else")
	}
}

func TestShuffledRowsAreTheSameForEveryTarget(t *testing.T) {
	url, calls := listener(t)
	p := newPlanrun(t, "--quiet", "plan.yaml")
	p.write(t, "rows.json", `[{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}, {"id": "e"}, {"id": "f"}, {"id": "g"}, {"id": "h"}]`)
	p.write(t, "plan.yaml", `
targets:
  a: {url: "`+url+`/a"}
  b: {url: "`+url+`/b"}
data:
  rows: {json: rows.json, order: shuffled}
scenarios:
  send:
    http: GET /${data.rows.id}
    phases:
      - sequential: {count: 16}
`)
	if code := p.run(t); code != 0 {
		t.Fatalf("exit %d\n%s", code, p.stderr.String())
	}
	order := func(target string) string {
		var s string
		for _, c := range calls(target) {
			s += c.path
		}
		return s
	}
	a := order("a")
	if a != order("b") {
		t.Errorf("%s and %s", a, order("b"))
	}
	for _, cycle := range []string{a[:8], a[8:]} {
		letters := []byte(cycle)
		slices.Sort(letters)
		if string(letters) != "abcdefgh" {
			t.Errorf("a cycle of %s", cycle)
		}
	}
	if a[:8] == "abcdefgh" || a[:8] == a[8:] {
		t.Errorf("not shuffled: %s", a)
	}
}

// A value of the environment stands for itself: it can't change what the plan says around it.
func TestEnvironmentInAPlan(t *testing.T) {
	url, calls := listener(t)
	const plan = `
scenarios:
  send:
    http:
      get: URL/a/x
      headers: {X-Value: '${env.TEXT ?? "none"}'}
    phases:
      - sequential: {count: "${env.COUNT ?? 2}"}
`
	for _, test := range []struct {
		count, text string
		exit        int
		calls       int
		says        string
	}{
		{"", "", 0, 2, ""},
		{"3", "a: b # c 'd' \"e\" {f}", 0, 3, ""},
		{"050", "", 2, 0, "050"},
		{"5 # x", "", 2, 0, "unexpected"},
		{"x", "", 2, 0, "not a number"},
		{"1\n      - single", "", 2, 0, "unexpected"},
	} {
		before := len(calls("a"))
		p := newPlanrun(t, "--quiet", "plan.yaml")
		p.Env = append(p.Environ(), "COUNT="+test.count, "TEXT="+test.text)
		p.write(t, "plan.yaml", strings.ReplaceAll(plan, "URL", url))
		if code := p.run(t); code != test.exit || !strings.Contains(p.stderr.String(), test.says) {
			t.Errorf("COUNT=%q: exit %d\n%s", test.count, code, p.stderr.String())
		}
		got := calls("a")[before:]
		if len(got) != test.calls {
			t.Errorf("COUNT=%q: %d calls", test.count, len(got))
		}
		want := test.text
		if want == "" {
			want = "none"
		}
		for _, c := range got {
			if c.header != want {
				t.Errorf("TEXT=%q arrived as %q", want, c.header)
			}
		}
	}
}
