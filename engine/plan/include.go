package plan

import (
	"slices"
	"strings"

	"github.com/planrun/planrun/engine/expression"
)

// includable are the keys that a file may bring into a plan.
var includable = []string{"vars", "environments", "secrets", "data", "targets", "reference", "defaults", "scenarios", "assert", "lab", "include"}

// maxIncluded bounds the files of a plan.
const maxIncluded = 100

// included lays the files that a plan includes under it. Every value keeps the file and place that it is written at.
func (b *binder) included(root *node) *node {
	b.scope = &expression.Scope{Roots: map[string]expression.Root{"env": b.env}}
	main := real(b.folder.dir + "/" + b.source.file[strings.LastIndexAny(b.source.file, `/\`)+1:])
	count := 0
	out := b.include(root, []string{main}, &count)
	if count > 0 {
		var files []string
		for _, it := range listOf(root.value("include")) {
			files = append(files, it.text)
		}
		b.changed("include", strings.Join(files, ", "))
	}
	return out
}

func listOf(n *node) []*node {
	switch {
	case n == nil || n.shape == empty || n.shape == null:
		return nil
	case n.shape == sequence:
		return n.items
	}
	return []*node{n}
}

func (b *binder) include(root *node, open []string, count *int) *node {
	n := root.value("include")
	if n == nil || root.shape != mapping {
		return root
	}
	var under *node
	for _, it := range listOf(n) {
		path, ok := b.file(it, b.scope)
		if !ok {
			continue
		}
		if i := slices.Index(open, path); i >= 0 {
			what := "the plan includes itself"
			if i < len(open)-1 || i > 0 {
				what = "the files include each other in a circle"
			}
			b.on(it, "", "%s", what)
			continue
		}
		if *count++; *count > maxIncluded {
			b.on(it, "", "the plan includes more than %d files", maxIncluded)
			return root
		}
		text, err := read(path)
		if err != nil {
			b.on(it, "", "the file %s: %s", it.text, err)
			continue
		}
		src, inner := readTree(b.beside(it), text)
		src.folder = folderOf(path)
		b.adopt(src)
		if inner == nil {
			continue
		}
		if inner.shape != mapping {
			b.on(inner, "write vars:, defaults:, scenarios: or another key of a plan", "an included file is a mapping, not %s", inner.describe())
			continue
		}
		inner = b.part(inner)
		under = mergeRoot(under, b.include(inner, append(slices.Clip(open), path), count))
	}
	return mergeRoot(under, root)
}

// beside is how findings call an included file: as it is written, seen from where the file is that names it.
func (b *binder) beside(n *node) string {
	outer := b.of(n).file
	if i := strings.LastIndexAny(outer, `/\`); i >= 0 && !strings.HasPrefix(n.text, "/") {
		return outer[:i+1] + n.text
	}
	return n.text
}

// part leaves out of an included file what only a plan can have.
func (b *binder) part(root *node) *node {
	root = b.asMeant(root, b.format.plan)
	c := *root
	c.pairs = nil
	for _, p := range root.pairs {
		switch {
		case strings.HasPrefix(p.key.text, "x-"):
		case slices.Contains(includable, p.key.text):
			c.pairs = append(c.pairs, p)
		case find(b.format.plan, p.key.text) != nil:
			b.on(p.key, "write it in the plan", "%s can't stand in an included file", p.key.text)
		default:
			b.unknownField(p.key, b.format.plan)
		}
	}
	return &c
}

// mergeRoot lays one file over another: deeply, but lists of assertions add up.
func mergeRoot(outer, inner *node) *node {
	if outer == nil {
		return inner
	}
	m := merge(outer, inner)
	var all []*node
	for _, n := range []*node{outer.value("assert"), inner.value("assert")} {
		all = append(all, listOf(n)...)
	}
	if outer.value("assert") == nil || inner.value("assert") == nil {
		return m
	}
	for i, p := range m.pairs {
		if p.key.text == "assert" {
			list := *p.value
			list.shape, list.items, list.flow = sequence, all, false
			m.pairs[i].value = &list
		}
	}
	return m
}
