package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
)

// variable decodes the value of a variable.
func (b *binder) variable(n *node, scope *expression.Scope) any {
	t, ok := b.scalar(n, scope)
	if !ok {
		return broken{}
	}
	v, constant := t.Constant()
	switch {
	case !constant:
		b.on(n, "", "a variable must be known before the load: it can't depend on the iteration or the user")
		return broken{}
	case v == nil && n.shape != null:
		b.on(n, "", "the expression has no value")
		return broken{}
	}
	return v
}

// broken is the value of what could not be decoded. Whoever uses it adds no finding of its own.
type broken struct{}

// given types the text of the command line as a plan's plain scalar would be; what is doubtful there is text here.
func given(text string) any {
	if v, message, _ := plainValue(text); message == "" {
		return v
	}
	return text
}

// set notes what was changed from outside.
func (b *binder) set(p *Plan) {
	maps.Copy(p.Settings, b.settingsMade)
	p.Vars = map[string]string{}
	for name, v := range b.vars {
		if _, bad := v.(broken); !bad {
			p.Vars[name] = string(drivers.AppendText(nil, v))
		}
	}
	if len(b.opt.Only) > 0 {
		p.Settings["only"] = strings.Join(b.opt.Only, ", ")
	}
}

// command notes an error of the command line.
func (b *binder) command(flag, hint, format string, args ...any) {
	b.add(diag.Finding{Place: diag.Place{File: flag}, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// env resolves environment variables. An empty one counts as unset.
func (b *binder) env(path []string) (any, int, error) {
	if len(path) == 0 {
		return nil, 0, &expression.NameError{Index: -1, Message: "env needs the name of a variable", Hint: "write env.NAME"}
	}
	switch v, ok := b.opt.Env(path[0]); {
	case !ok:
		return nil, 1, nil
	case v == "":
		return expression.Missing(emptyVariable(path[0])), 1, nil
	default:
		return v, 1, nil
	}
}

func emptyVariable(name string) string { return "environment variable " + name + " is empty" }

// mostNames is up to how many names are listed where none is near to an unknown one: a longer list helps nobody.
const mostNames = 8

func (b *binder) varsRoot(path []string) (any, int, error) {
	if len(path) == 0 {
		return nil, 0, &expression.NameError{Index: -1, Message: "vars needs the name of a variable", Hint: "write vars.name"}
	}
	v, ok := b.vars[path[0]]
	if !ok && b.unread[path[0]] {
		return nil, 0, &expression.NameError{Index: 0, Message: fmt.Sprintf("variable %q is not known yet", path[0]), Hint: "a variable can use those that stand before it"}
	}
	if !ok {
		known := slices.Sorted(maps.Keys(b.vars))
		hint := ""
		if near := diag.Suggest(path[0], known); near != "" {
			hint = "did you mean vars." + near + "?"
		} else if len(known) == 0 {
			hint = "the plan has no vars"
		} else if len(known) <= mostNames {
			hint = "variables are " + strings.Join(known, ", ")
		}
		return nil, 0, &expression.NameError{Index: 0, Message: fmt.Sprintf("there is no variable %q", path[0]), Hint: hint}
	}
	if _, bad := v.(broken); bad {
		b.taint()
		return "1", 1, nil
	}
	return v, 1, nil
}

// taint notes that a step uses a value that could not be decoded: what a driver would say of it leads nowhere.
func (b *binder) taint() {
	if b.now != nil {
		b.now.tainted = true
	}
}

// watch tells whether what f does uses a value that could not be decoded.
func (b *binder) watch(f func()) (tainted bool) {
	outer := b.now
	b.now = &usage{}
	f()
	inner := b.now
	b.now = outer
	if outer != nil {
		outer.tainted = outer.tainted || inner.tainted
		outer.lab = append(outer.lab, inner.lab...)
	}
	return inner.tainted
}

// outerScope is for text outside of steps.
func (b *binder) outerScope() *expression.Scope {
	return &expression.Scope{Roots: map[string]expression.Root{
		"env":    b.env,
		"vars":   b.varsRoot,
		"secret": b.secretRoot,
		"matrix": b.matrixRoot,
		"data": func([]string) (any, int, error) {
			return nil, 0, &expression.NameError{Index: -1, Message: "data is known only in a step"}
		},
		"target": func([]string) (any, int, error) {
			return nil, 0, &expression.NameError{Index: -1, Message: "target is known only in a step"}
		},
		"lab": func([]string) (any, int, error) {
			return nil, 0, &expression.NameError{Index: -1, Message: "lab is known only in targets and steps"}
		},
	}}
}

// usage is what a step uses for one target.
type usage struct {
	lab     []*node // where it leads to the lab
	service string  // of the lab
	tainted bool
	reads   []string           // keys of the target
	origins map[*node]originOf // of texts that read the target
}

// originOf is what a text of a step has of its target.
type originOf struct {
	key string
	// leads tells that the text begins with the value of the key, behind a method if it has one.
	leads  bool
	method string
}

// stepScope is what the text of a step may use for a target.
func (b *binder) stepScope(t *target, n *node) *stepScope {
	read := func(key string) (any, error) {
		if b.now != nil {
			b.now.reads = append(b.now.reads, key)
		}
		v, ok := t.values[key]
		if !ok {
			hint := ""
			if near := diag.Suggest(key, t.keys); near != "" {
				hint = "did you mean target." + near + "?"
			} else if len(t.keys) > 0 {
				hint = "target " + t.name + " has " + strings.Join(t.keys, ", ")
			}
			return nil, &expression.NameError{Index: 0, Message: fmt.Sprintf("target %s has no %q", t.name, key), Hint: hint}
		}
		if v.bad {
			b.taint()
		}
		if v.lab && b.now != nil {
			b.now.lab, b.now.service = append(b.now.lab, v.node), v.service
		}
		return v.text, nil
	}
	return &stepScope{
		Scope: &expression.Scope{Moment: b.values, Lookup: lookup(b.values), Later: b.later, Roots: map[string]expression.Root{
			"env":    b.env,
			"vars":   b.varsRoot,
			"secret": b.secretRoot,
			"matrix": b.matrixRoot,
			"data":   b.dataRoot,
			"target": func(path []string) (any, int, error) {
				if len(path) == 0 {
					return nil, 0, &expression.NameError{Index: -1, Message: "target needs the name of one of its keys", Hint: "write target.key"}
				}
				v, err := read(path[0])
				return v, 1, err
			},
			"lab": func(path []string) (any, int, error) {
				v, used, err := b.labRoot(path)
				if err == nil && b.now != nil {
					b.now.lab, b.now.service = append(b.now.lab, n), path[1]
				}
				return v, used, err
			},
		}},
		url: func(n *node) (string, bool) {
			v, err := read("url")
			if err != nil {
				b.noURL(t, n)
				return "", false
			}
			return v.(string), true
		},
	}
}

// noURL says that a target has no url for a path to begin with.
func (b *binder) noURL(t *target, path *node) {
	near := diag.Suggest("url", t.keys)
	switch {
	case near != "":
		b.on(t.values[near].key, "did you mean url?", "a path needs target.url to begin with, and target %s has %s", t.name, near)
	case len(b.targets) > 1:
		b.on(path, "write the whole URL, or url: in each target", "a path needs target.url to begin with, and target %s has none", t.name)
	default:
		b.on(path, "write the whole URL, or url: in each target", "a path needs target.url to begin with")
	}
}

// target is a variant of the system under test, with the values of its keys.
type target struct {
	name   string
	node   *node // of the name
	keys   []string
	values map[string]targetValue
}

type targetValue struct {
	text string
	key  *node
	node *node
	lab  bool // it leads to the lab
	// service is that of the lab to which it leads.
	service string
	bad     bool // it could not be decoded
}

// decodeTargets decodes targets; without any there is one, named target.
func (b *binder) decodeTargets(n, key *node) {
	if n == nil {
		b.targets = []*target{{name: "target", values: map[string]targetValue{}}}
		if key == nil {
			key = &node{line: 1, col: 1}
		}
		b.declare(key, "target", expression.Target)
		return
	}
	if n.shape != mapping || len(n.pairs) == 0 {
		b.on(key, "write the name of each target, and below it its keys", "expected targets by name, not %s", n.describeList())
	}
	for _, p := range n.pairs {
		if b.strayKey(n, p) {
			continue
		}
		b.declare(p.key, p.key.text, expression.Target)
		b.targets = append(b.targets, b.decodeTarget(p.key, p.value))
	}
	if len(b.targets) == 0 {
		b.targets = []*target{{name: "target", values: map[string]targetValue{}}}
	}
}

func (b *binder) decodeTarget(key, n *node) *target {
	t := &target{name: key.text, node: key, values: map[string]targetValue{}}
	switch n.shape {
	case empty:
		b.on(key, "write its keys below it, such as url:", "target %s has no keys", key.text)
		return t
	case null:
		return t
	case scalar, sequence:
		b.on(n, "write url: and the address below the name", "expected the keys of target %s, not %s", key.text, n.describe())
		return t
	}
	for _, p := range n.pairs {
		if b.strayKey(n, p) {
			continue
		}
		if !identifier.MatchString(p.key.text) {
			b.identifier(p.key, p.key.text, "key")
			continue
		}
		if p.value.shape == empty {
			b.noValue(p.key)
			continue
		}
		v := targetValue{key: p.key, node: p.value}
		if p.value.isPlain() && rootAlone.MatchString(p.value.text) {
			b.on(p.value, `write "${`+p.value.text+`}"`, "%s is text here", p.value.text)
			v.bad = true
			t.keys, t.values[p.key.text] = append(t.keys, p.key.text), v
			continue
		}
		scope := &expression.Scope{Roots: map[string]expression.Root{
			"env": b.env, "vars": b.varsRoot, "secret": b.secretRoot,
			"lab": func(path []string) (any, int, error) {
				a, used, err := b.labRoot(path)
				if err == nil {
					v.lab, v.service = true, path[1]
				}
				return a, used, err
			},
		}}
		use := &usage{}
		b.now = use
		text, ok := b.constantText(p.value, scope)
		b.now = nil
		v.text, v.bad = text, !ok || use.tainted
		t.keys = append(t.keys, p.key.text)
		t.values[p.key.text] = v
	}
	return t
}

// constantText decodes text that has to have a value before the load.
func (b *binder) constantText(n *node, scope *expression.Scope) (string, bool) {
	t, ok := b.template(n, scope)
	if !ok {
		return "", false
	}
	if t == nil {
		return "", true
	}
	v, constant := t.Constant()
	if !constant {
		b.on(n, "", "this must be known before the load: it can't depend on the iteration or the user")
		return "", false
	}
	if v == nil {
		b.on(n, "", "the expression has no value")
		return "", false
	}
	return string(drivers.AppendText(nil, v)), true
}
