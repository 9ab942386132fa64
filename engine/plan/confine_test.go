package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes files, and folders for names that end in a slash.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestInputFilesStayInside(t *testing.T) {
	for _, c := range []struct {
		name, plan, file string
		git              bool
		want             string // of the finding; "" when the file may be read
	}{
		{"beside the plan", "repo/plans/x.yaml", "in.txt", true, ""},
		{"in the work tree", "repo/plans/x.yaml", "../top.txt", true, ""},
		{"below a link of the work tree", "repo/plans/x.yaml", "../link/in.txt", true, ""},
		{"outside the work tree", "repo/plans/x.yaml", "../../outside.txt", true, "outside the git work tree"},
		{"absolute", "repo/plans/x.yaml", "/etc/passwd", true, "outside the git work tree"},
		{"link that leads outside", "repo/plans/x.yaml", "escape.txt", true, "outside the git work tree"},
		{"link to a folder outside", "repo/plans/x.yaml", "away/outside.txt", true, "outside the git work tree"},
		{"missing behind a link to a folder outside", "repo/plans/x.yaml", "away/none.txt", true, "outside the git work tree"},
		{"no work tree", "repo/plans/x.yaml", "../top.txt", false, "outside the plan's folder"},
		{"no work tree, beside the plan", "repo/plans/x.yaml", "in.txt", false, ""},
		{"missing", "repo/plans/x.yaml", "none.txt", true, "does not exist"},
		{"empty", "repo/plans/x.yaml", "", true, "not empty text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{"repo/plans/in.txt": "a", "repo/top.txt": "b", "outside.txt": "c"}
			if c.git {
				files["repo/.git/"] = ""
			}
			dir := tree(t, files)
			for link, to := range map[string]string{"repo/link": "plans", "repo/plans/escape.txt": "../../outside.txt", "repo/plans/away": "../.."} {
				if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
					t.Skip(err)
				}
			}
			text := "scenarios:\n  a:\n    http: {post: \"https://a.test/\", body_file: \"" + c.file + "\"}\n    phases: [single]\n"
			p, found := Parse(filepath.Join(dir, c.plan), []byte(text), Options{Drivers: fakes()})
			if c.want == "" {
				if p == nil {
					t.Fatal(found)
				}
				v, _ := p.Scenarios[0].Steps[0].Actions[0].Call.(fakeCall).op.Get("body_file")
				if _, err := os.Stat(v.String); err != nil || !filepath.IsAbs(v.String) {
					t.Errorf("decoded as %q: %v", v.String, err)
				}
				return
			}
			if p != nil || !strings.Contains(found.String(), c.want) {
				t.Errorf("want %q, got:\n%s", c.want, found)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := tree(t, map[string]string{"good.yaml": "scenarios:\n  a:\n    http: GET https://a.test/\n    phases: [single]\n    assert: p50 < 1s\n", "folder/": ""})
	p, found := Load(filepath.Join(dir, "good.yaml"), Options{Drivers: fakes()})
	if p == nil || len(found) != 0 || p.Name != "good" {
		t.Errorf("got %v, %v", p, found)
	}
	for file, want := range map[string]string{"none.yaml": "does not exist", "folder": "this is a folder"} {
		p, found := Load(filepath.Join(dir, file), Options{Drivers: fakes()})
		if p != nil || !strings.Contains(found.String(), want) {
			t.Errorf("%s: got %v, want %q", file, found, want)
		}
	}
}

// A second reading, with the lab's addresses, gives the same plan but for them.
func TestParseTwice(t *testing.T) {
	text, _, opt := readFixture(t, "testdata/good/hybrid.yaml")
	first, _ := Parse("testdata/good/hybrid.yaml", []byte(text), opt)
	opt.Lab = map[string]map[string]string{
		"direct": {"api": "http://127.0.0.1:4000", "db": "postgres://127.0.0.1:4001/"},
		"hybrid": {"api": "http://127.0.0.1:4002", "db": "postgres://127.0.0.1:4003/"},
	}
	second, found := Parse("testdata/good/hybrid.yaml", []byte(text), opt)
	if second == nil {
		t.Fatal(found)
	}
	replaced := strings.NewReplacer("http://127.0.0.1:4000", "http://127.0.0.1:1", "http://127.0.0.1:4002", "http://127.0.0.3:1",
		"postgres://127.0.0.1:4001/", "postgres://lab:lab@127.0.0.2:1/lab?sslmode=disable", "postgres://127.0.0.1:4003/", "postgres://lab:lab@127.0.0.4:1/lab?sslmode=disable")
	if a, b := dump(first), replaced.Replace(dump(second)); a != b {
		t.Errorf("first:\n%s\nsecond:\n%s", a, b)
	}
}
