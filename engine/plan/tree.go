package plan

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// loader makes nodes of the parser's tree: it resolves aliases and merge keys, and finds duplicate keys.
type loader struct {
	*source
	anchors map[string]*node
	open    map[string]bool // anchors whose value is being read
	nodes   int
}

// budget is thrown when a document expands to more than maxNodes.
type budget place

func (l *loader) spend(n int, p *token.Position) {
	if l.nodes += n; l.nodes > maxNodes {
		panic(budget{p.Line, p.Column})
	}
}

func (l *loader) node(a ast.Node, depth int) *node {
	if a == nil {
		return &node{}
	}
	p := a.GetToken().Position
	n := &node{src: l.source, line: p.Line, col: max(p.Column, 1)}
	l.spend(1, p)
	if depth > maxDepth {
		l.at(p.Line, p.Column, 0, fmt.Sprintf("values are nested deeper than %d levels", maxDepth), "")
		return n
	}
	switch a := a.(type) {
	case *ast.NullNode:
		if t := a.Token; t.Type != token.ImplicitNullType && t.Value != "" && strings.HasPrefix(l.from(p.Line, p.Column), t.Value) {
			n.shape, n.text = null, t.Value
		}
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode, *ast.MergeKeyNode:
		l.plain(n, a.GetToken().Value)
	case *ast.StringNode:
		switch a.Token.Type {
		case token.SingleQuoteType:
			n.shape, n.style, n.text = scalar, single, a.Value
			n.line, n.col = l.seek(n.line, n.col, "'")
		case token.DoubleQuoteType:
			n.shape, n.style, n.text = scalar, double, a.Value
			n.line, n.col = l.seek(n.line, n.col, `"`)
		default:
			l.plain(n, a.Value)
		}
	case *ast.LiteralNode:
		n.shape, n.style, n.text = scalar, literal, a.Value.Value
		if strings.HasPrefix(a.Start.Value, ">") {
			n.style = folded
		}
		n.line, n.col = l.seek(a.Start.Position.Line, a.Start.Position.Column, a.Start.Value)
	case *ast.AnchorNode:
		name := a.Name.GetToken().Value
		l.open[name] = true
		v := l.node(a.Value, depth)
		delete(l.open, name)
		l.anchors[name] = v
		return v
	case *ast.AliasNode:
		return l.alias(a, n)
	case *ast.SequenceNode:
		n.shape, n.flow = sequence, a.IsFlowStyle
		for _, v := range a.Values {
			n.items = append(n.items, l.node(v, depth+1))
		}
	case *ast.MappingNode:
		n.flow = a.IsFlowStyle
		l.mapping(n, a.Values, depth)
	case *ast.MappingValueNode:
		l.mapping(n, []*ast.MappingValueNode{a}, depth)
	default:
		l.at(p.Line, p.Column, 0, "this kind of YAML value is not supported", "")
	}
	return n
}

func (l *loader) plain(n *node, text string) {
	n.shape, n.text = scalar, text
	first, _, _ := strings.Cut(text, "\n")
	if words := strings.Fields(first); len(words) > 0 {
		first = words[0]
	}
	n.line, n.col = l.seek(n.line, n.col, first)
	if l.unknown[place{n.line, n.col}] {
		n.shape, n.text, n.torn = null, "", true
	}
}

func (l *loader) alias(a *ast.AliasNode, n *node) *node {
	name := a.Value.GetToken().Value
	end := n.col + 1 + len([]rune(name))
	v, ok := l.anchors[name]
	switch {
	case ok:
		l.spend(v.size(maxNodes-l.nodes), a.GetToken().Position)
		return v.used(&use{name, n.line, n.col})
	case l.open[name]:
		l.at(n.line, n.col, end, fmt.Sprintf("*%s refers to itself", name), "")
	default:
		var names []string
		for k := range l.anchors {
			names = append(names, k)
		}
		hint := nearest(name, "*", names, `write &`+name+` before the value it stands for, or quote this text if the * belongs to it`)
		l.at(n.line, n.col, end, fmt.Sprintf("there is no anchor &%s before this", name), hint)
	}
	// The value is unknown, so nothing more can be said of it.
	n.shape, n.torn = null, true
	return n
}

func (l *loader) mapping(n *node, values []*ast.MappingValueNode, depth int) {
	n.shape = mapping
	seen := map[string]*node{}
	type merged struct {
		n     *node
		place *node
	}
	var merges []merged
	for i, v := range values {
		k := l.key(v.Key, depth)
		if k == nil {
			continue
		}
		if i == 0 && !n.flow {
			n.line, n.col = k.line, k.col
		}
		if _, ok := v.Key.(*ast.MergeKeyNode); ok {
			m := l.node(v.Value, depth+1)
			switch {
			case m.shape == mapping:
				merges = append(merges, merged{m, k})
			case m.shape == sequence:
				for _, it := range m.items {
					if it.shape != mapping {
						l.on(it, "", "<< needs mappings, not %s", it.describe())
						continue
					}
					merges = append(merges, merged{it, k})
				}
			case m.shape == null:
				n.torn = m.torn
			default:
				l.on(k, "write <<: *name", "<< needs a mapping, not %s", m.describe())
			}
			continue
		}
		if o := seen[k.text]; o != nil {
			l.on(k, "remove one of the two", "duplicate key %q", k.text).Notes = []string{
				"first at " + l.place(o).String(),
			}
			l.node(v.Value, depth+1)
			continue
		}
		seen[k.text] = k
		val := l.node(v.Value, depth+1)
		if val.shape == empty {
			val.line, val.col = k.line, k.col
		}
		n.pairs = append(n.pairs, pair{k, val})
	}
	for _, m := range merges {
		for _, p := range m.n.pairs {
			if seen[p.key.text] == nil {
				seen[p.key.text] = p.key
				n.pairs = append(n.pairs, p)
			}
		}
	}
}

// key reads a key of a mapping; nil if it can't be one.
func (l *loader) key(a ast.MapKeyNode, depth int) *node {
	k := l.node(a, depth+1)
	switch k.shape {
	case null:
		k.shape = scalar
	case empty:
		k.shape = scalar
		l.on(k, "write a name before the colon", "a key is missing")
		return nil
	case mapping, sequence:
		l.on(k, "quote this text if the brackets belong to it", "a key must be text, not %s", k.describe())
		return nil
	}
	if t := l.line(k.line); strings.Contains(indentation(t), "\t") {
		l.at(k.line, strings.IndexByte(t, '\t')+1, 0, "a tab can't be used for indentation", "use spaces")
	}
	return k
}

// indentation is the white space that a line begins with.
func indentation(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}
