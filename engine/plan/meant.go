package plan

import (
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
)

// asMeant notes keys of a mapping that are unknown and most likely misspelt, and returns the mapping with the keys that
// were meant, so that what is wrong below them is found at the same time. Keys whose value could not be that of the key
// that was meant stay as they are, as do those without one clear meaning.
func (b *binder) asMeant(n *node, fields []Field) *node {
	if n == nil || n.shape != mapping {
		return n
	}
	var c *node
	for i, p := range n.pairs {
		f := meant(p.key.text, fields)
		if f == nil || n.value(f.Key) != nil || c.value(f.Key) != nil || !f.takes(p.value) {
			continue
		}
		b.unknownField(p.key, fields)
		if c == nil {
			copied := *n
			copied.pairs = slices.Clone(n.pairs)
			c = &copied
		}
		c.pairs[i].key = b.renamed(p.key, f.Key)
	}
	if c == nil {
		return n
	}
	return c
}

// meant returns the only field whose key is near to a misspelt one; nil for known keys, for those that begin with x-, and
// where several are near.
func meant(key string, fields []Field) *Field {
	if find(fields, key) != nil || strings.HasPrefix(key, "x-") {
		return nil
	}
	keys := keysOf(fields)
	near := diag.Suggest(key, keys)
	if near == "" || diag.Suggest(key, slices.DeleteFunc(keys, func(k string) bool { return k == near })) != "" {
		return nil
	}
	return find(fields, near)
}

// renamed is a key with another text, at the same place.
func (b *binder) renamed(key *node, text string) *node {
	b.places(key) // of the text that is written
	c := *key
	c.text, c.misspelt = text, true
	return &c
}

// takes tells whether a value has a shape that the field may have.
func (f *Field) takes(n *node) bool {
	switch n.shape {
	case empty, null:
		return false
	case mapping:
		return !slices.Contains(plainKinds, f.Kind) && f.Kind != SequenceKind
	case sequence:
		return !slices.Contains(plainKinds, f.Kind) && !slices.Contains(mappingKinds, f.Kind)
	}
	return f.Kind != SequenceKind && (!slices.Contains(mappingKinds, f.Kind) || f.Kind == drivers.Group && mainOf(f.Keys) != nil)
}

var (
	// plainKinds are written as one scalar.
	plainKinds = []drivers.Kind{
		drivers.Text, drivers.URL, drivers.Bool, drivers.Int, drivers.Duration, drivers.Size, drivers.Choice, drivers.File,
		drivers.Scalar, drivers.TextOrBool, CountKind, RateKind, SpeedKind, ShareKind, SpanKind, WarmupKind, NameKind, TreeFileKind,
	}
	// mappingKinds are written as a mapping, and a Group with a main field as text as well.
	mappingKinds = []drivers.Kind{
		drivers.Texts, drivers.Group, drivers.Groups, MatrixKind, DataTypesKind, CaptureKind, NamedKind, VarsKind, TextMapKind,
	}
)
