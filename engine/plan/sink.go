package plan

import (
	"path/filepath"
	"strings"
)

// sinks decodes the reports that a plan asks for.
func (b *binder) sinks(n *node) []Sink {
	if n == nil {
		return nil
	}
	if n.shape != sequence {
		b.on(n, "write - before each report", "expected a list of reports, not %s", n.describe())
		return nil
	}
	var out []Sink
	paths := map[string]*node{}
	for _, it := range n.items {
		kind, key, v := b.oneOf(it, it, b.format.sink, "a report")
		if kind == nil {
			continue
		}
		switch {
		case v == nil || v.shape == empty || v.shape == null:
			b.on(key, "write "+kind.Key+": results/"+kind.Key+"."+kind.Key, "%s needs the path of a file", kind.Key)
			continue
		case v.shape == scalar:
			v = &node{shape: mapping, src: v.src, line: v.line, col: v.col, pairs: []pair{{&node{shape: scalar, src: v.src, text: "path", line: v.line, col: v.col}, v}}}
		}
		s := b.section(v, key, kind.Keys, b.scope)
		sink := Sink{Kind: kind.Key, Path: b.output(s), Rows: s.text("rows"), Place: b.place(key)}
		if sink.Rows == "" && kind.Key == "csv" {
			sink.Rows = "cells"
		}
		if sink.Path == "" {
			continue
		}
		clean := filepath.Clean(sink.Path)
		if first := paths[clean]; first != nil {
			b.on(s.values["path"].node, "", "two reports are written to %s", sink.Path).Notes = []string{"the first is at " + b.place(first).String()}
			continue
		}
		paths[clean] = key
		out = append(out, sink)
	}
	return out
}

// results decodes where the results stream goes.
func (b *binder) results(n, key *node) Results {
	s := b.section(n, key, b.format.results, b.scope)
	return Results{Path: b.output(s), Samples: s.boolean("samples", true)}
}

// output is the path of a file that is written.
func (b *binder) output(s *section) string {
	v, ok := s.values["path"]
	switch {
	case !ok:
		return ""
	case v.text == "":
		b.on(v.node, "", "expected the path of a file, not empty text")
	case strings.HasSuffix(v.text, "/"):
		b.on(v.node, "", "expected the path of a file, not a folder")
	}
	return filepath.FromSlash(v.text)
}
