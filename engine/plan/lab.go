package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/expression"
	"github.com/planrun/planrun/lab"
)

// labNames are the routes and services of a lab, known before anything that leads to it is decoded.
type labNames struct {
	routes   []string
	services []string
	kinds    map[string]string // of services
	secure   map[string]bool   // services with TLS
	// placeholders has what stands for addresses while the lab is not running, and what they are called.
	placeholders map[string]string
}

func (b *binder) labNames(n *node) *labNames {
	l := &labNames{kinds: map[string]string{}, secure: map[string]bool{}}
	for _, p := range n.value("routes").entries() {
		l.routes = append(l.routes, p.key.text)
	}
	for _, p := range n.value("services").entries() {
		l.services = append(l.services, p.key.text)
		if p.value != nil && p.value.shape == scalar {
			l.kinds[p.key.text] = p.value.text
		}
		for _, k := range p.value.entries() {
			l.kinds[p.key.text] = k.key.text
			if t := k.value.value("tls"); t != nil && t.text == "true" {
				l.secure[p.key.text] = true
			}
		}
	}
	return l
}

// entries returns the pairs of a mapping, none for nil.
func (n *node) entries() []pair {
	if n == nil {
		return nil
	}
	return n.pairs
}

// labRoot resolves lab.<route>.<service>.
func (b *binder) labRoot(path []string) (any, int, error) {
	if len(b.lab.routes) == 0 || len(b.lab.services) == 0 {
		return nil, 0, &expression.NameError{Index: -1, Message: "the plan has no lab", Hint: "write lab: with services: and routes:"}
	}
	if len(path) < 2 {
		return nil, 0, &expression.NameError{Index: len(path) - 1, Message: "an address of the lab has a route and a service", Hint: fmt.Sprintf("write lab.%s.%s", b.lab.routes[0], b.lab.services[0])}
	}
	unknown := func(i int, what string, known []string) error {
		hint := nearest(path[i], "", known, what+"s are "+strings.Join(known, ", "))
		return &expression.NameError{Index: i, Message: fmt.Sprintf("the lab has no %s %q", what, path[i]), Hint: hint}
	}
	route, service := path[0], path[1]
	if !slices.Contains(b.lab.routes, route) {
		return nil, 0, unknown(0, "route", b.lab.routes)
	}
	if !slices.Contains(b.lab.services, service) {
		return nil, 0, unknown(1, "service", b.lab.services)
	}
	if a := b.opt.Lab[route][service]; a != "" {
		return a, 2, nil
	}
	// Nothing listens on port 1; the address only has to have the right form, and to tell where it came from.
	n := slices.Index(b.lab.routes, route)*len(b.lab.services) + slices.Index(b.lab.services, service)
	host := fmt.Sprintf("127.%d.%d.%d:1", n>>16&255, n>>8&255, n&255+1)
	if b.lab.placeholders == nil {
		b.lab.placeholders = map[string]string{}
	}
	b.lab.placeholders[host] = "lab." + route + "." + service
	switch {
	case b.lab.kinds[service] == lab.Postgres:
		return "postgres://lab:lab@" + host + "/lab?sslmode=disable", 2, nil
	case b.lab.kinds[service] == lab.GRPC:
		return host, 2, nil
	case b.lab.secure[service]:
		return "https://" + host, 2, nil
	}
	return "http://" + host, 2, nil
}

// labSpec decodes the lab.
func (b *binder) labSpec(n, key *node) *lab.Spec {
	if n == nil {
		return nil
	}
	s := b.section(n, key, b.format.lab, b.scope)
	spec := &lab.Spec{}
	for _, p := range b.named(s.node("services"), s.n.keyOf("services"), "service") {
		kind, at, params := b.oneOf(p.value, p.key, b.format.service, "what service "+p.key.text+" speaks")
		if kind == nil {
			continue
		}
		k := b.section(params, at, kind.Keys, b.scope)
		d := k.values["delay"].span
		svc := lab.Service{
			Name: p.key.text, Kind: kind.Key, Node: k.text("node"), Timeout: k.duration("timeout", 0),
			TLS: k.boolean("tls", false), Delay: d.Min, Serial: k.duration("serial", 0), Slots: int(k.whole("slots", 0)),
		}
		if d.Max > d.Min {
			svc.DelayMax = d.Max
		}
		if kind.Key == lab.Postgres {
			svc.Rows, svc.Payload = int(k.whole("rows", 1000)), k.whole("payload", 8<<10)
			if svc.Rows > 10_000_000 || svc.Payload > 1<<30 || int64(svc.Rows)*svc.Payload > 1<<30 {
				b.on(at, "the lab keeps the table in memory", "the table has more than 1 GiB")
			}
		}
		if v, ok := k.values["slots"]; ok && d.Max == 0 && (k.has("delay") || k.node("delay") == nil) {
			b.on(v.node, "write how long they work, such as delay: 100ms", "slots need a delay, for a request that takes no time needs no slot")
		}
		if v, ok := k.values["node"]; ok {
			b.node(v)
		} else if kind.Key == lab.Gateway && params == nil {
			b.on(at, "write gateway: {node: NAME}", "a gateway needs a node")
		}
		spec.Services = append(spec.Services, svc)
	}
	for _, p := range b.named(s.node("routes"), s.n.keyOf("routes"), "route") {
		r := b.section(p.value, p.key, b.format.route, b.scope)
		route := lab.Route{
			Name: p.key.text, RTT: r.duration("rtt", 0), Jitter: r.duration("jitter", 0),
			Bandwidth: r.values["bandwidth"].f, Window: r.whole("window", 0),
		}
		if v, ok := r.values["bandwidth"]; ok && v.f == 0 {
			b.on(v.node, "leave it out for no limit", "a bandwidth of nothing lets nothing through")
		}
		if n := r.node("relay"); n != nil {
			y := b.section(n, r.n.keyOf("relay"), b.format.relay, b.scope)
			route.Relay = &lab.Relay{RTT: y.duration("rtt", 0), Window: y.whole("window", 0)}
		}
		spec.Routes = append(spec.Routes, route)
	}
	return spec
}

// node checks the service that a gateway asks.
func (b *binder) node(v bound) {
	var nodes []string
	for _, name := range b.lab.services {
		if kind := b.lab.kinds[name]; kind == lab.HTTP || kind == lab.GRPC {
			nodes = append(nodes, name)
		}
	}
	hint := "give the lab a service of kind http or grpc"
	if len(nodes) > 0 {
		hint = "nodes here are " + strings.Join(nodes, ", ")
	}
	if near := diag.Suggest(v.text, nodes); near != "" {
		hint = "did you mean " + near + "?"
	}
	switch kind := b.lab.kinds[v.text]; {
	case slices.Contains(nodes, v.text):
	case kind != "":
		b.on(v.node, hint, "a gateway asks a service of kind http or grpc, and %s is %s", v.text, kind)
	default:
		b.on(v.node, hint, "the lab has no service %q", v.text)
	}
}

// named returns the entries of a mapping of names, those with names that can't be read in expressions left out.
func (b *binder) named(n, key *node, what string) []pair {
	if n == nil {
		return nil
	}
	if n.shape != mapping {
		b.on(n, "write the name of each "+what+" as a key", "expected %ss by name, not %s", what, n.describe())
		return nil
	}
	var out []pair
	for _, p := range n.pairs {
		switch {
		case b.strayKey(n, p):
		case !identifier.MatchString(p.key.text):
			b.identifier(p.key, p.key.text, what)
		case p.value.shape == empty && what != "route":
			b.noValue(p.key)
		default:
			out = append(out, p)
		}
	}
	return out
}

// oneOf decodes a mapping of exactly one of some keys. It returns the field of the key, its node and its value.
func (b *binder) oneOf(n, title *node, fields []Field, what string) (*Field, *node, *node) {
	if n.shape == scalar {
		if f := find(fields, n.text); f != nil {
			return f, n, nil
		}
		if p := b.places(n); n.isPlain() && len(p) > 0 && p[len(p)-1].line > n.line {
			line := p[len(p)-1].line
			s := b.of(n)
			text := s.line(line)
			start := len(indentation(text)) + 1
			s.at(line, start, utf8.RuneCountInString(strings.TrimRight(text, " "))+1, "this line is indented too far", "begin it where the line above begins")
			return nil, nil, nil
		}
		b.unknownField(n, fields)
		if f := meant(n.text, fields); f != nil {
			return f, b.renamed(n, f.Key), nil
		}
		return nil, nil, nil
	}
	if n.shape != mapping || len(n.pairs) == 0 {
		b.on(n, "write one of "+strings.Join(keysOf(fields), ", "), "expected %s, not %s", what, n.describe())
		return nil, nil, nil
	}
	isItem := n == title
	n = b.indented(n, fields)
	if !slices.ContainsFunc(n.pairs, func(p pair) bool { return find(fields, p.key.text) != nil }) {
		n = b.asMeant(n, fields)
	}
	p := n.pairs[0]
	f := find(fields, p.key.text)
	if f == nil {
		b.unknownField(p.key, fields)
	}
	for _, q := range n.pairs[1:] {
		switch g := find(fields, q.key.text); {
		case g != nil:
			hint := ""
			if isItem {
				hint = "write - before it"
			}
			b.on(q.key, hint, "only one of %s can be here, and %s is above it", either(keysOf(fields)), p.key.text)
		case f != nil && find(f.Keys, q.key.text) != nil:
			b.on(q.key, "write it within the value of "+p.key.text, "%s belongs to %s", q.key.text, p.key.text)
		default:
			b.unknownField(q.key, fields)
		}
	}
	if f == nil {
		return nil, nil, nil
	}
	return f, p.key, p.value
}

// leadToLab decides whether the lab is needed, and refuses comparing it with something else.
func (b *binder) leadToLab(p *Plan, uses []*scenarioUse, spec *lab.Spec) {
	any := false
	for _, u := range uses {
		var on, off []string
		for _, t := range p.Targets {
			if nodes := u.lab[t.Name]; len(nodes) > 0 {
				on = append(on, t.Name)
				if b.opt.NoLab {
					b.on(nodes[0], "say where the real system is", "target %s leads to the lab, which --no-lab refuses", t.Name)
				}
			} else {
				off = append(off, t.Name)
			}
		}
		for i := range p.Targets {
			if slices.Contains(on, p.Targets[i].Name) {
				p.Targets[i].Lab = true
				any = true
			}
		}
		if len(on) > 0 && len(off) > 0 && !b.opt.NoLab {
			b.on(u.node, "send all of them to the lab, or none", "scenario %s would compare the lab with real systems: %s on the lab, %s not", u.name, leads(on), leads(off))
		}
	}
	var on, off []string
	for _, t := range p.Targets {
		if t.Lab {
			on = append(on, t.Name)
		} else {
			off = append(off, t.Name)
		}
	}
	if len(on) > 0 && len(off) > 0 && !b.opt.NoLab && !b.findings.HasErrors() {
		b.on(b.targets[0].node, "send all of them to the lab, or none", "the plan would compare the lab with real systems: %s on the lab, %s not", leads(on), leads(off))
	}
	if any {
		p.Lab = spec
	}
}

func leads(targets []string) string {
	if len(targets) == 1 {
		return targets[0] + " is"
	}
	return strings.Join(targets, " and ") + " are"
}
