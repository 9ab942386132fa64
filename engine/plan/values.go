package plan

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/engine/quantity"
)

// Variables get their values from, the later over the earlier: the plan's vars, the environment that --env names, variables
// of the process's environment that begin with PLANRUN_VAR_, files that --vars names, and --set.

// variablePrefix is what environment variables begin with that set a variable of the plan.
const variablePrefix = "PLANRUN_VAR_"

// setting is a value that replaces one of the plan's vars.
type setting struct {
	value any
	from  string // --set, or where else it was given, for messages
	node  *node  // in the plan; nil for the command line
}

// variables decodes vars, with what was set elsewhere in their place. They may use env, and those before them.
func (b *binder) variables(n, environments *node) {
	b.vars, b.own, b.unread = map[string]any{}, map[string]any{}, map[string]bool{}
	var order []string
	switch {
	case n == nil || n.shape == null || n.shape == empty:
		n = &node{}
	case n.shape != mapping:
		b.on(n, "write name: value", "expected a mapping of names to values, not %s", n.describe())
	}
	for _, p := range n.pairs {
		if identifier.MatchString(p.key.text) {
			order = append(order, p.key.text)
			b.unread[p.key.text] = true
		}
	}
	set := b.settings(order, environments)
	scope := &expression.Scope{Roots: map[string]expression.Root{"env": b.env, "vars": b.varsRoot, "secret": b.secretRoot}}
	for _, p := range n.pairs {
		name := p.key.text
		switch {
		case b.strayKey(n, p):
		case !identifier.MatchString(name):
			b.identifier(p.key, name, "variable")
		case p.value.shape == empty:
			b.noValue(p.key)
		default:
			v := b.variable(p.value, scope)
			b.own[name] = v
			if s, ok := set[name]; ok {
				if b.alike(name, v, s) {
					v = s.value
				}
				delete(set, name)
			}
			b.vars[name] = v
		}
		delete(b.unread, name)
	}
	var left []otherSetting // of variables that there are not
	for _, name := range slices.Sorted(maps.Keys(set)) {
		left = append(left, otherSetting{name, set[name]})
	}
	for _, s := range b.others {
		if !slices.Contains(order, s.name) {
			left = append(left, s)
		} else if s.value != nil {
			b.alike(s.name, b.own[s.name], s.setting)
		}
	}
	for _, s := range left {
		name := s.name
		hint := "the plan has no vars"
		if len(order) > 0 {
			hint = "variables are " + strings.Join(order, ", ")
		}
		if near := diag.Suggest(name, order); near != "" {
			hint = "did you mean " + map[bool]string{true: "vars."}[s.from == "--set"] + near + "?"
		}
		if s.node != nil {
			b.on(s.node, hint, "there is no variable %q", name)
			continue
		}
		b.command(s.from, hint, "there is no variable %q", name)
	}
}

// alike wants a value to be of the kind of the plan's own, so that a mistyped one is found before the load.
func (b *binder) alike(name string, own any, s setting) bool {
	kind := kindOf(own)
	if kind == "" || kind == kindOf(s.value) {
		return true
	}
	message, hint := fmt.Sprintf("variable %s is %s in the plan, but %v is not", name, kind, s.value), "write it as the plan does: "+fmt.Sprint(own)
	if s.node != nil {
		b.on(s.node, hint, "%s", message)
	} else {
		b.command(s.from, hint, "%s", message)
	}
	return false
}

// kindOf says what a value is, with its article; "" for text, which may be anything.
func kindOf(v any) string {
	switch v := v.(type) {
	case bool:
		return "true or false"
	case int64, float64:
		return "a number"
	case string:
		if q, err := quantity.Parse(v); err == nil {
			return q.Dim.String()
		}
	}
	return ""
}

// settings gathers what was set, by variable.
func (b *binder) settings(known []string, environments *node) map[string]setting {
	out := map[string]setting{}
	b.environment(environments, out)
	for _, name := range known {
		if text, ok := b.opt.Env(variablePrefix + name); ok && text != "" {
			out[name] = setting{value: given(text), from: variablePrefix + name}
			b.changed("vars."+name, text)
		}
	}
	for _, file := range b.opt.VarFiles {
		b.varFile(file, out)
	}
	for _, s := range b.opt.Set {
		key, text, ok := strings.Cut(s, "=")
		name, isVar := strings.CutPrefix(key, "vars.")
		if !isVar && ok && slices.Contains(known, key) {
			name, isVar = key, true
		}
		switch {
		case !ok:
			b.command("--set", "write --set vars.name=value", "expected vars.NAME=VALUE, not %q", s)
		case !isVar:
			b.command("--set", "only variables can be set: --set vars.name=value", "can't set %q", key)
		default:
			out[name] = setting{value: given(text), from: "--set"}
			b.changed("vars."+name, text)
		}
	}
	return out
}

// changed notes what was changed from outside, for the record.
func (b *binder) changed(key, text string) {
	if b.settingsMade == nil {
		b.settingsMade = map[string]string{}
	}
	b.settingsMade[key] = text
}

// otherSetting is a value of an environment that was not chosen. It is checked all the same.
type otherSetting struct {
	name string
	setting
}

// environment takes over the values of the environment that was chosen. All of them are checked.
func (b *binder) environment(n *node, out map[string]setting) {
	chosen := b.opt.Environment
	if n == nil || n.shape == null || n.shape == empty {
		if chosen != "" {
			b.command("--env", "write environments: with "+chosen+": in it", "the plan has no environments")
		}
		return
	}
	if n.shape != mapping {
		b.on(n, "write the name of each environment, and below it its vars", "expected environments by name, not %s", n.describe())
		return
	}
	var names []string
	scope := &expression.Scope{Roots: map[string]expression.Root{"env": b.env, "secret": b.secretRoot}}
	for _, p := range n.pairs {
		if b.strayKey(n, p) {
			continue
		}
		names = append(names, p.key.text)
		if !identifier.MatchString(p.key.text) {
			b.identifier(p.key, p.key.text, "environment")
		}
		if p.value.shape == empty || p.value.shape == null {
			continue
		}
		if p.value.shape != mapping {
			b.on(p.value, "write name: value for each variable that differs", "expected the vars of environment %s, not %s", p.key.text, p.value.describe())
			continue
		}
		for _, q := range p.value.pairs {
			switch {
			case b.strayKey(p.value, q):
			case q.value.shape == empty:
				b.noValue(q.key)
			case q.key.text == "vars" && q.value.shape == mapping:
				b.on(q.key, "write them one level up, without vars:", "an environment has values of variables by name")
			case chosen == p.key.text:
				if v := b.variable(q.value, scope); v != (broken{}) {
					out[q.key.text] = setting{value: v, node: q.key}
				}
			case q.value.shape == scalar && strings.Contains(q.value.text, "$"): // what it reads may be set only there
				b.others = append(b.others, otherSetting{q.key.text, setting{node: q.key}})
			default:
				if v := b.variable(q.value, scope); v != (broken{}) {
					b.others = append(b.others, otherSetting{q.key.text, setting{value: v, node: q.key}})
				}
			}
		}
	}
	if chosen == "" {
		return
	}
	b.changed("env", chosen)
	if !slices.Contains(names, chosen) {
		hint := nearest(chosen, "", names, "environments are "+strings.Join(names, ", "))
		b.command("--env", hint, "there is no environment %q", chosen)
	}
}

// varFile takes over the values of a file of variables: a mapping of names to values.
func (b *binder) varFile(file string, out map[string]setting) {
	text, err := read(file)
	if err != nil {
		b.command("--vars", "", "%s: %s", file, err)
		return
	}
	src, root := readTree(file, text)
	b.adopt(src)
	if root == nil {
		return
	}
	if root.shape != mapping {
		b.on(root, "write name: value", "expected a mapping of names to values, not %s", root.describe())
		return
	}
	if inner := root.value("vars"); inner != nil && inner.shape == mapping && len(root.pairs) == 1 {
		root = inner
	}
	scope := &expression.Scope{Roots: map[string]expression.Root{"env": b.env}}
	for _, p := range root.pairs {
		switch {
		case b.strayKey(root, p):
		case p.value.shape == empty:
			b.noValue(p.key)
		default:
			if v := b.variable(p.value, scope); v != (broken{}) {
				out[p.key.text] = setting{value: v, node: p.key}
				b.changed("vars."+p.key.text, cmp.Or(p.value.text, fmt.Sprint(v)))
			}
		}
	}
}

// secrets decodes secrets. Their values are read at once, and kept out of everything that is written.
func (b *binder) secrets(n, key *node) {
	b.secret = map[string]any{}
	if n == nil || n.shape == null || n.shape == empty { // an empty one is noted with the plan
		return
	}
	if n.shape != mapping {
		b.on(n, "write a name, and below it env: or file:", "expected secrets by name, not %s", n.describe())
		return
	}
	for _, p := range n.pairs {
		if b.strayKey(n, p) {
			continue
		}
		b.secret[p.key.text] = broken{}
		if !identifier.MatchString(p.key.text) {
			b.identifier(p.key, p.key.text, "secret")
			continue
		}
		if p.value.shape == scalar {
			b.on(p.value, "write "+p.key.text+": {env: NAME} or {file: path}", "a secret can't stand in a plan")
			continue
		}
		if p.value.shape == empty || p.value.shape == null {
			b.on(p.key, "write env: and the name of an environment variable, or file: and a path", "secret %s comes from nowhere", p.key.text)
			continue
		}
		s := b.section(p.value, p.key, b.format.secret, b.scope)
		env, fromEnv := s.values["env"]
		file, fromFile := s.values["file"]
		var value string
		switch {
		case fromEnv && fromFile:
			b.on(file.node, "", "a secret comes from env or from file, not from both")
			continue
		case fromEnv:
			v, ok := b.opt.Env(env.text)
			if !ok || v == "" {
				if b.opt.Offline {
					b.secret[p.key.text] = "unset"
					continue
				}
				message := "environment variable " + env.text + " is not set"
				if ok {
					message = emptyVariable(env.text)
				}
				b.on(env.node, "set it, or take the secret from a file", "%s", message)
				continue
			}
			value = v
		case fromFile:
			path := filepath.FromSlash(file.text)
			if !filepath.IsAbs(path) {
				path = filepath.Join(b.of(p.value).folder.dir, path)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				if b.opt.Offline {
					b.secret[p.key.text] = "unset"
					continue
				}
				b.on(file.node, "", "the file %s can't be read", file.text)
				continue
			}
			value = strings.TrimRight(string(text), "\r\n")
			if value == "" {
				b.on(file.node, "", "the file %s is empty", file.text)
				continue
			}
		default:
			if len(s.unknown) == 0 && p.value.shape == mapping && len(p.value.pairs) == 0 {
				b.on(p.key, "write env: and the name of an environment variable, or file: and a path", "secret %s comes from nowhere", p.key.text)
			}
			continue // noted with the section
		}
		b.secret[p.key.text] = value
		b.hidden = append(b.hidden, value)
		if n := utf8.RuneCountInString(value); n < shortSecret {
			f := diag.Finding{
				Place: b.place(p.key), Severity: diag.Warning, Hint: "take a longer one, or a variable if it is none",
				Message: fmt.Sprintf("secret %s has %s: it is hidden wherever that stands, also within words and figures", p.key.text, counted(n, "character")),
			}
			_, f.Column, f.EndColumn = b.span(p.key)
			b.of(p.key).add(f)
		}
	}
}

// shortSecret is how many characters a secret needs, or what hides it hides much else.
const shortSecret = 4

// secretRoot resolves secret.<name>.
func (b *binder) secretRoot(path []string) (any, int, error) {
	if len(path) == 0 {
		return nil, 0, &expression.NameError{Index: -1, Message: "secret needs the name of a secret", Hint: "write secret.NAME"}
	}
	v, ok := b.secret[path[0]]
	if !ok {
		known := slices.Sorted(maps.Keys(b.secret))
		hint := "write secrets: with " + path[0] + ": {env: " + strings.ToUpper(path[0]) + "} in it"
		if near := diag.Suggest(path[0], known); near != "" {
			hint = "did you mean secret." + near + "?"
		} else if len(known) > 0 {
			hint = "secrets are " + strings.Join(known, ", ")
		}
		return nil, 0, &expression.NameError{Index: 0, Message: fmt.Sprintf("there is no secret %q", path[0]), Hint: hint}
	}
	if _, bad := v.(broken); bad {
		b.taint()
		return "1", 1, nil
	}
	return v, 1, nil
}
