package plan

// node is a value of the YAML tree with the place where it is written. Scalars keep their text; what it means is decided
// where it is used, because there it is known what is expected.
type node struct {
	shape shape
	style style
	text  string // of a scalar, as written for plain ones, without quotes and escapes for the others
	line  int
	col   int
	flow  bool    // a mapping in braces, a sequence in brackets
	src   *source // nil: the plan's own file
	// torn is set where an alias leads nowhere: more may belong here, and nobody knows what.
	torn bool
	// misspelt is set on a key whose text is what was meant, and not what is written.
	misspelt bool

	pairs []pair
	items []*node
	// use is set on what was written elsewhere and came here by an alias or a merge key.
	use *use
	// places of the scalar's runes in the file, made when first needed
	places []place
	placed bool
}

type pair struct{ key, value *node }

// use is where an anchor is used.
type use struct {
	name      string
	line, col int
}

// place is a line and a column, both from 1, the column in runes.
type place struct{ line, col int }

type shape uint8

const (
	empty    shape = iota // nothing is written where a value could be
	null                  // null or ~, written
	scalar                // text of any kind
	mapping               // keys and values
	sequence              // a list
)

type style uint8

const (
	plain style = iota
	single
	double
	literal
	folded
)

// value returns the value of a key, nil if there is none.
func (n *node) value(key string) *node {
	if n == nil {
		return nil
	}
	for _, p := range n.pairs {
		if p.key.text == key {
			return p.value
		}
	}
	return nil
}

// keyOf returns the node of a key, nil if there is none.
func (n *node) keyOf(key string) *node {
	if n == nil {
		return nil
	}
	for _, p := range n.pairs {
		if p.key.text == key {
			return p.key
		}
	}
	return nil
}

// isPlain tells whether n is text without quotes.
func (n *node) isPlain() bool { return n.shape == scalar && n.style == plain }

// merge lays inner over outer: mappings deeply, everything else as a whole. A null in inner removes what outer has.
func merge(outer, inner *node) *node {
	switch {
	case outer == nil:
		return inner
	case inner == nil:
		return outer
	case outer.shape != mapping || inner.shape != mapping:
		return inner
	}
	c := *inner
	c.pairs, c.torn = nil, inner.torn || outer.torn
	for _, p := range outer.pairs {
		i := inner.value(p.key.text)
		switch {
		case i == nil:
			c.pairs = append(c.pairs, p)
		case i.shape == null:
		default:
			c.pairs = append(c.pairs, pair{inner.keyOf(p.key.text), merge(p.value, i)})
		}
	}
	for _, p := range inner.pairs {
		if outer.value(p.key.text) == nil {
			c.pairs = append(c.pairs, p)
		}
	}
	return &c
}

// size counts the nodes below and including n, up to limit.
func (n *node) size(limit int) int {
	total := 1
	for _, p := range n.pairs {
		if total > limit {
			break
		}
		total += 1 + p.value.size(limit-total)
	}
	for _, i := range n.items {
		if total > limit {
			break
		}
		total += i.size(limit - total)
	}
	return total
}

// used returns a deep copy of n as it is used at u.
func (n *node) used(u *use) *node {
	c := *n
	c.use = u
	c.pairs = make([]pair, len(n.pairs))
	for i, p := range n.pairs {
		c.pairs[i] = pair{p.key.used(u), p.value.used(u)}
	}
	c.items = make([]*node, len(n.items))
	for i, it := range n.items {
		c.items[i] = it.used(u)
	}
	return &c
}

// describeList is describe, where a mapping can only be wrong by being empty.
func (n *node) describeList() string {
	if n.shape == mapping {
		return "an empty mapping"
	}
	return n.describe()
}

// describeEmpty is describe, where a list can only be wrong by being empty.
func (n *node) describeEmpty() string {
	if n.shape == sequence {
		return "an empty list"
	}
	return n.describe()
}

// describe says what a node is, for messages that expected something else.
func (n *node) describe() string {
	switch n.shape {
	case empty:
		return "nothing"
	case null:
		return "null"
	case mapping:
		return "a mapping"
	case sequence:
		return "a list"
	}
	return "text"
}
