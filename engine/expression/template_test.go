package expression

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/planrun/planrun/drivers"
)

// testScope has a root env with HOME_API set and everything else unset, vars, and a lab that notes who asks.
func testScope(asked *[]string) *Scope {
	tree := func(name string, m map[string]any) Root {
		return func(path []string) (any, int, error) {
			if len(path) == 0 {
				return m, 0, nil
			}
			v, ok := m[path[0]]
			if !ok {
				return nil, 0, &NameError{Index: 0, Message: "unknown name " + path[0] + " in " + name}
			}
			return v, 1, nil
		}
	}
	return &Scope{
		Roots: map[string]Root{
			"env": func(path []string) (any, int, error) {
				if len(path) == 0 {
					return nil, 0, &NameError{Index: -1, Message: "env needs the name of a variable"}
				}
				if path[0] == "HOME_API" {
					return "http://home", 1, nil
				}
				return nil, 1, nil
			},
			"vars": tree("vars", map[string]any{
				"size": "64MiB", "users": int64(50), "ratio": 0.5, "on": true, "null": nil, "digits": "007",
				"map":  map[string]any{"a": map[string]any{"b": int64(7)}, "list": []any{"x", int64(2)}},
				"trap": "a: {b}\n# 'c' \"d\" ${vars.size}",
			}),
			"lab": func(path []string) (any, int, error) {
				*asked = append(*asked, strings.Join(path, "."))
				if len(path) < 2 || path[1] != "api" {
					return nil, 0, &NameError{Index: 1, Message: "no such service", Hint: "did you mean api?"}
				}
				return "http://lab", 2, nil
			},
		},
		Moment: []string{"token", "broken", "order"},
		Lookup: func(name string, in *drivers.Input) (any, error) {
			switch name {
			case "token":
				return fmt.Sprint("t", in.User), nil
			case "order":
				return map[string]any{"id": in.Iteration, "lines": []any{}}, nil
			}
			return nil, fmt.Errorf("no value was captured for %s", name)
		},
	}
}

// TestTemplates runs the files of testdata/template. Each case is evaluated for two iterations of two users.
func TestTemplates(t *testing.T) {
	runFiles(t, "testdata/template/*.txt", func(src string, _ []string) string {
		var b strings.Builder
		var asked []string
		tpl, errs := ParseTemplate(src, testScope(&asked))
		printErrors(&b, src, errs)
		if len(asked) > 0 {
			fmt.Fprintf(&b, "asked lab for %s\n", strings.Join(asked, " "))
		}
		if tpl == nil {
			return b.String()
		}
		show := func(v any) string {
			if v == nil {
				return "nil"
			}
			return fmt.Sprintf("%T %#v", v, v)
		}
		if v, ok := tpl.Constant(); ok {
			fmt.Fprintf(&b, "constant %s\n", show(v))
			return b.String()
		}
		for _, in := range []*drivers.Input{{Seed: 1}, {Iteration: 1999, User: 3, Seed: 2}} {
			v, err := tpl.Eval(in)
			if err != nil {
				fmt.Fprintf(&b, "fails: %v\n", err)
				continue
			}
			in.Begin(in.Iteration, in.Seed)
			text, err := tpl.AppendText(nil, in)
			fmt.Fprintf(&b, "= %s, as text %q", show(v), text)
			if err != nil {
				fmt.Fprintf(&b, ", fails: %v", err)
			}
			b.WriteString("\n")
		}
		return b.String()
	})
}

func TestTemplateWithoutScope(t *testing.T) {
	tpl := must(t, "a ${1 + 1} $${b} $$")
	if v, ok := tpl.Constant(); !ok || v != "a 2 ${b} $$" {
		t.Errorf("got %v, %v", v, ok)
	}
}

func TestTemplateSegments(t *testing.T) {
	var asked []string
	tpl, errs := ParseTemplate("${lab.direct.api}/users/${iteration}/${vars.size}", testScope(&asked))
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	var got []string
	for _, s := range drivers.Segments(tpl) {
		text, err := s.AppendText(nil, &drivers.Input{Iteration: 7})
		_, constant := s.Constant()
		got = append(got, fmt.Sprintf("%s %v %v", text, constant, err))
	}
	want := []string{"http://lab/users/ true <nil>", "7 false <nil>", "/64MiB true <nil>"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := len(drivers.Segments(drivers.Template(must(t, "${iteration}")))); n != 1 {
		t.Errorf("a template that is one expression has %d segments", n)
	}
}

func must(t *testing.T, src string) *Template {
	t.Helper()
	tpl, errs := ParseTemplate(src, nil)
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	return tpl
}

func TestTemplateAllocations(t *testing.T) {
	var asked []string
	in := &drivers.Input{Iteration: 123456, User: 7, Seed: 5}
	dst := make([]byte, 0, 256)
	for _, src := range []string{
		"${vars.size}",
		"http://host/strings?bytes=8192",
		"${1 + iteration % 1000}",
		"/users/${user}/items/${random(1, 100)}?size=${vars.size}",
		`${iteration % 2 == 0 ? "even" : "odd"}`,
	} {
		tpl, errs := ParseTemplate(src, testScope(&asked))
		if len(errs) > 0 {
			t.Fatal(src, errs[0])
		}
		if n := testing.AllocsPerRun(200, func() {
			if _, err := tpl.AppendText(dst[:0], in); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations for each call", src, n)
		}
	}
}

// Both targets get the same input, and different iterations get different ones.
func TestRandomIsReproducible(t *testing.T) {
	tpl := must(t, "${uuid()} ${random(1, 6)} ${random(-5, 5)}")
	uuids := map[string]bool{}
	faces := map[string]int{}
	v4 := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for i := range 6000 {
		eval := func() string {
			in := &drivers.Input{}
			in.Begin(int64(i), uint64(i)*7919)
			v, err := tpl.Eval(in)
			if err != nil {
				t.Fatal(err)
			}
			return v.(string)
		}
		a, b := eval(), eval()
		if a != b {
			t.Fatalf("iteration %d: %s, then %s", i, a, b)
		}
		words := strings.Fields(a)
		if !v4.MatchString(words[0]) || uuids[words[0]] {
			t.Fatalf("%s is no new UUID", words[0])
		}
		uuids[words[0]] = true
		faces[words[1]]++
	}
	if len(faces) != 6 {
		t.Fatalf("faces %v", faces)
	}
	for face, n := range faces {
		if n < 850 || n > 1150 { // 1000 +- 5 standard deviations
			t.Errorf("face %s came %d times in 6000", face, n)
		}
	}
}

func TestTemplateIsSafeForConcurrentUse(t *testing.T) {
	var asked []string
	tpl, errs := ParseTemplate(`${iteration} ${map([1, 2], # + user)[0]} ${upper(token)}`, testScope(&asked))
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	var wg sync.WaitGroup
	for user := range 8 {
		wg.Go(func() {
			for i := range 200 {
				v, err := tpl.Eval(&drivers.Input{Iteration: int64(i), User: user})
				if want := fmt.Sprintf("%d %d T%d", i, user+1, user); err != nil || v != want {
					t.Errorf("got %v, %v, want %s", v, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		"a ${vars.size} $${b}", "${1 + iteration % 1000}", `${env.X ?? lab.direct.api}/x`, `${ {a: "}"}["a"] }`,
		"${random(1, 3)}${uuid()}", "${30ms}", "${all([1,2], # > user)}", "${token[0]?.x.y}", "${'a' matches 'b+'}", "${user in 1..3}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		var asked []string
		tpl, errs := ParseTemplate(src, testScope(&asked))
		checkPlaces(t, src, errs)
		if (tpl == nil) != (len(errs) > 0) {
			t.Fatalf("%q: template %v, errors %v", src, tpl, errs)
		}
		if tpl != nil {
			if _, err := tpl.Eval(&drivers.Input{Iteration: 3, User: 1, Seed: 9}); err != nil {
				checkWords(t, src, err.Error())
			}
		}
	})
}
