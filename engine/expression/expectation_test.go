package expression

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/planrun/planrun/drivers"
)

var answerNames = []drivers.Name{
	{Name: "status", Kind: drivers.IntName}, {Name: "bytes", Kind: drivers.SizeName}, {Name: "body", Kind: drivers.TextName},
	{Name: "headers", Kind: drivers.TextsName}, {Name: "json", Kind: drivers.AnyName}, {Name: "rows", Kind: drivers.ListName},
	{Name: "proto", Kind: drivers.TextName},
}

// answer is one with a JSON body, or with one that is none.
type answer struct {
	status float64
	body   string
}

func (a *answer) Number(name string) (float64, bool) {
	switch name {
	case "status":
		return a.status, a.status > 0
	case "bytes":
		return float64(len(a.body)), true
	}
	return 0, false
}

func (a *answer) Value(name string) (any, error) {
	switch name {
	case "body":
		return a.body, nil
	case "proto":
		return "HTTP/2", nil
	case "headers":
		return map[string]string{"content-type": "application/json; charset=utf-8", "x-request-id": "7"}, nil
	case "rows":
		return []any{
			map[string]any{"id": int64(1), "amount": 12.5, "name": "ann"},
			map[string]any{"id": int64(2), "amount": nil, "name": "bob"},
		}, nil
	case "json":
		var v any
		if err := json.Unmarshal([]byte(a.body), &v); err != nil {
			return nil, errors.New("the body is not JSON")
		}
		return v, nil
	}
	return nil, fmt.Errorf("no %s", name)
}

const body = `{"ok": true, "items": [{"id": 3, "tags": ["a", "b"]}, {"id": 4}], "note": null, "big": "` + "xxxxxxxxxx" + `", "pi": 3.25}`

// TestExpectations runs the files of testdata/expectation against an answer of status 200 with a JSON body and against
// one of status 503 without.
func TestExpectations(t *testing.T) {
	runFiles(t, "testdata/expectation/*.txt", func(src string, _ []string) string {
		var b strings.Builder
		var asked []string
		e, errs := ParseExpectation(src, answerNames, testScope(&asked))
		printErrors(&b, src, errs)
		if e == nil {
			return b.String()
		}
		fmt.Fprintf(&b, "reads %s\n", strings.Join(e.Reads(), " "))
		in := &drivers.Input{Iteration: 3, User: 1}
		for _, a := range []*answer{{200, body}, {503, "gone"}} {
			ok, err := e.Check(a, in)
			fmt.Fprintf(&b, "%v: %v", a.status, ok)
			if err != nil {
				fmt.Fprintf(&b, ", fails: %v", err)
			}
			why := e.Explain(a, in)
			if ok == (why != "") {
				t.Errorf("%s: %v, but explained by %q", src, ok, why)
			}
			if why != "" {
				fmt.Fprintf(&b, "\n  %s", why)
			}
			b.WriteString("\n")
		}
		return b.String()
	})
}

func TestExpectationAllocations(t *testing.T) {
	a, in := &answer{200, body}, &drivers.Input{Iteration: 3}
	for _, src := range []string{
		"status == 200",
		"status == 200 and bytes >= 8B",
		"status in 200..299 or status in [301, 404]",
		"not (status >= 500) and bytes / 2 < 1MiB and iteration % 2 == 1",
		"status * 2 - 100 > 3.5 and (status != 404 ? bytes > 1B : false)",
	} {
		e, errs := ParseExpectation(src, answerNames, nil)
		if len(errs) > 0 {
			t.Fatal(src, errs[0])
		}
		var answer drivers.Answer = a
		if n := testing.AllocsPerRun(200, func() {
			if ok, err := e.Check(answer, in); !ok || err != nil {
				t.Fatal(src, ok, err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations for each answer", src, n)
		}
	}
}

func TestExplainIsShort(t *testing.T) {
	e, errs := ParseExpectation(`body contains "zebra"`, answerNames, nil)
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	why := e.Explain(&answer{200, strings.Repeat("long ", 10000)}, &drivers.Input{})
	if len(why) > 300 || !strings.HasPrefix(why, `body contains "zebra": body was "long long`) {
		t.Error(why)
	}
}

func FuzzExpectation(f *testing.F) {
	for _, s := range []string{
		"status == 200 and bytes >= 8KiB", "json.items[0].id == 3", `headers["content-type"] startsWith "application/json"`,
		"len(rows) == 2 and rows[1].amount < 0", "any(rows, .id == 1)", "status in 200..299", `json.a?.b ?? 3 > 2`, "sum(rows, .id) % 2 == 1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		var asked []string
		e, errs := ParseExpectation(src, answerNames, testScope(&asked))
		checkPlaces(t, src, errs)
		if (e == nil) != (len(errs) > 0) {
			t.Fatalf("%q: expectation %v, errors %v", src, e, errs)
		}
		if e == nil {
			return
		}
		for _, a := range []*answer{{200, body}, {0, ""}} {
			in := &drivers.Input{Iteration: 3, Seed: 4}
			ok, err := e.Check(a, in)
			if err != nil {
				checkWords(t, src, err.Error())
			}
			in.Begin(3, 4)
			if why := e.Explain(a, in); ok && why != "" {
				t.Fatalf("%q: met, but explained by %q", src, why)
			}
		}
	})
}
