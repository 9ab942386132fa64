package plan

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/expression"
)

// folder is where a plan's input files may be: they are relative to the plan's folder, and stay inside the git work tree
// around it, or inside the folder where there is none. So a plan that came with a pull request can't send a file of the
// machine to a server of its choice.
type folder struct {
	dir  string // the plan's, absolute
	root string // without symbolic links
	git  bool
}

func folderOf(file string) folder {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		dir = filepath.Dir(file)
	}
	f := folder{dir: dir, root: real(dir)}
	for d := f.root; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			f.root, f.git = d, true
			return f
		}
		if d == filepath.Dir(d) {
			return f
		}
	}
}

// real resolves symbolic links as far as the path exists.
func real(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}

func (f folder) contains(path string) bool {
	rel, err := filepath.Rel(f.root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// file decodes the path of an input file and checks that it may be read. It returns an absolute path.
func (b *binder) file(n *node, scope *expression.Scope) (string, bool) {
	text, _, ok := b.fixed(n, drivers.File, scope)
	if !ok {
		return "", false
	}
	if text == "" {
		b.on(n, "", "expected the path of a file, not empty text")
		return "", false
	}
	around := b.of(n).folder
	path := filepath.FromSlash(text)
	if !filepath.IsAbs(path) {
		path = filepath.Join(around.dir, path)
	}
	outside := func() (string, bool) {
		where := "the plan's folder"
		if around.git {
			where = "the git work tree that the plan is in"
		}
		b.on(n, "", "%s is outside %s", text, where)
		return "", false
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		if !around.contains(filepath.Join(real(filepath.Dir(path)), filepath.Base(path))) {
			return outside()
		}
		reason := "can't be read"
		switch {
		case errors.Is(err, fs.ErrNotExist):
			reason = "does not exist"
		case errors.Is(err, fs.ErrPermission):
			reason = "may not be read"
		}
		hint := ""
		if !filepath.IsAbs(filepath.FromSlash(text)) {
			hint = "paths are relative to the plan's file"
		}
		b.on(n, hint, "the file %s %s", text, reason)
		return "", false
	}
	if !around.contains(resolved) {
		return outside()
	}
	return resolved, true
}
