package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/planrun/planrun/"

// rules says what a package may import of this module: the first rule whose prefix fits decides.
var rules = []struct {
	from string
	may  []string // prefixes; with $ exactly that package
}{
	{"drivers$", nil},
	{"drivers/", []string{"drivers"}},
	{"engine/diag", nil},
	{"engine/quantity", nil},
	{"engine/profile", nil},
	{"engine/secret", nil},
	{"engine/data", nil},
	{"engine/clock", nil},
	{"engine/record", []string{"drivers$"}},
	{"engine/metric", []string{"drivers$", "engine/record", "engine/quantity"}},
	{"engine/compare", []string{"engine/record", "engine/metric", "engine/quantity"}},
	{"engine/expression", []string{"drivers$", "engine/diag", "engine/quantity"}},
	{"engine/result", []string{"drivers$", "engine/record", "engine/quantity"}},
	{"engine/verdict", []string{"drivers$", "engine/"}},
	{"engine/plan", []string{"drivers$", "engine/diag", "engine/quantity", "engine/expression", "engine/data", "engine/secret", "lab$"}},
	{"engine$", []string{"drivers$", "engine/"}},
	{"sinks", []string{"drivers$", "sinks", "engine/result", "engine/record", "engine/metric", "engine/compare", "engine/quantity"}},
	{"lab$", nil},
	{"lab/", []string{"lab", "engine/clock"}},
	{"bench", []string{""}},
	{"cmd/", []string{""}},
}

// only says in which package alone a library may occur.
var only = map[string]string{
	"github.com/goccy/go-yaml":          "engine/plan",
	"github.com/expr-lang/expr":         "engine/expression",
	"github.com/vmihailenco/msgpack/v5": "engine/result",
}

func fits(path, rule string) bool {
	if exact, ok := strings.CutSuffix(rule, "$"); ok {
		return path == exact
	}
	return strings.HasPrefix(path, rule)
}

func TestImportsFollowTheHouse(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for d := json.NewDecoder(bytes.NewReader(out)); ; packages++ {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		from := strings.TrimPrefix(p.ImportPath, module)
		i := slices.IndexFunc(rules, func(r struct {
			from string
			may  []string
		}) bool {
			return fits(from, r.from)
		})
		if i < 0 {
			t.Errorf("no rule says what %s may import", from)
			continue
		}
		for _, imported := range p.Imports {
			for library, home := range only {
				if strings.HasPrefix(imported, library) && !strings.HasPrefix(from, home) {
					t.Errorf("%s imports %s, which belongs into %s alone", from, imported, home)
				}
			}
			to, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			if strings.HasPrefix(to, "cmd/") {
				t.Errorf("%s imports %s", from, to)
			}
			if !slices.ContainsFunc(rules[i].may, func(rule string) bool { return fits(to, rule) }) {
				t.Errorf("%s imports %s, which it may not", from, to)
			}
		}
	}
	if packages < 20 {
		t.Errorf("only %d packages were looked at", packages)
	}
}
