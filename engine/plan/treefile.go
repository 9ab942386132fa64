package plan

import (
	"path/filepath"
	"regexp"
	"strings"
)

// filed puts what stands in files of its own where it belongs: json_file becomes json.
func (b *binder) filed(w *writtenStep, n *node) *node {
	if n == nil || n.shape != mapping {
		return n
	}
	fields := find(b.format.step, w.driver).Keys
	var c *node
	for i, p := range n.pairs {
		f := find(fields, p.key.text)
		if f == nil || f.Kind != TreeFileKind || p.value.shape == empty || p.value.shape == null {
			continue
		}
		if c == nil {
			copied := *n
			copied.pairs = append([]pair(nil), n.pairs...)
			c = &copied
		}
		key := *p.key
		key.text = strings.TrimSuffix(p.key.text, "_file")
		if n.value(key.text) != nil {
			b.on(p.key, "remove one of the two", "%s and %s say the same thing", key.text, p.key.text)
		}
		b.places(p.key)
		key.placed, key.places = p.key.placed, p.key.places
		c.pairs[i] = pair{&key, b.treeFile(p.value)}
	}
	if c == nil {
		return n
	}
	return c
}

// leadingTabs matches how JSON may be indented and YAML not.
var leadingTabs = regexp.MustCompile(`(?m)^\t+`)

// treeFile reads a file of any YAML. Its values keep their places in it.
func (b *binder) treeFile(n *node) *node {
	broken := &node{src: n.src, shape: null, torn: true, line: n.line, col: n.col}
	path, ok := b.file(n, b.scope)
	if !ok {
		return broken
	}
	if known := b.trees[path]; known != nil {
		return known
	}
	text, err := read(path)
	if err != nil {
		b.on(n, "", "the file %s: %s", n.text, err)
		return broken
	}
	if filepath.Ext(path) == ".json" {
		text = leadingTabs.ReplaceAllFunc(text, func(tabs []byte) []byte { return []byte(strings.Repeat(" ", len(tabs))) })
	}
	src, root := readTree(b.beside(n), text)
	src.folder = folderOf(path)
	b.adopt(src)
	if root == nil {
		root = broken
	}
	if b.trees == nil {
		b.trees = map[string]*node{}
	}
	b.trees[path] = root
	return root
}
