package plan

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/lab"
)

// payload is what a step sends to a target and asks of it, as far as that is known before the load. Where the step goes and
// who makes it is no part of it: two payloads that are alike cost the same work.
type payload struct {
	parts   []portion
	service string // of the lab, if the step leads there
}

// portion is a named piece of a payload: a parameter of a URL, a field of a body or a message, an argument, a file.
type portion struct {
	field string // that has it: of the URL, the body, ...
	name  string
	node  *node // that it is written in; two targets may share it
	place diag.Place
	end   int

	text   string  // as it is sent, with ${...} for what only the call knows; of a file its path
	number float64 // of an amount; of a file its bytes
	kind   portionKind
}

type portionKind uint8

const (
	someText portionKind = iota
	amount               // a number or a size
	wholeFile
	itemCount
)

// identity matches names of what says who calls or what is called for, and not how much of it: they differ by design.
var identity = regexp.MustCompile(`(?i)(^|[._-])(id|ids|uid|uuid|guid|ref|key|apikey|api_key|token|secret|password|pin|user|username|login|account|tenant|customer|client|session|version|v|port|seed|nonce|name|email|phone|zip)$|[a-z](Id|ID|Key|Token|Name)$`)

// payload takes down what a step for one target sends.
func (b *binder) payload(w *writtenStep, values map[string]drivers.Value, u *usage) *payload {
	p := &payload{service: u.service}
	for _, f := range b.format.drivers[w.driver].Fields() {
		if v, ok := values[f.Key]; ok && f.Payload {
			from := len(p.parts)
			b.portions(p, f.Key, f, v, w.n.value(f.Key))
			for i := range p.parts[from:] {
				p.parts[from+i].field = f.Key
			}
		}
	}
	return p
}

// portions adds what a field holds.
func (b *binder) portions(p *payload, name string, f drivers.Field, v drivers.Value, n *node) {
	switch {
	case n == nil || n.torn:
	case f.Kind == drivers.URL:
		b.urlPortions(p, v.Template, n)
	case f.Kind == drivers.Groups: // each is a value or a file
		for _, e := range v.Map {
			for _, inner := range f.Fields {
				i := slices.IndexFunc(e.Value.Map, func(x drivers.Entry) bool { return x.Key == inner.Key })
				if i < 0 || !inner.Payload {
					continue
				}
				at := n.value(e.Key)
				b.portions(p, e.Key, inner, e.Value.Map[i].Value, cmp.Or(at.value(inner.Key), at))
			}
		}
	case v.Template != nil:
		text, constant := shown(v.Template)
		part := portion{name: name, text: text, kind: someText}
		if constant && !identity.MatchString(name) {
			part.measure()
		}
		b.portion(p, part, n, -1, 0)
	case v.IsMap:
		for _, e := range v.Map {
			inner := e.Key
			if name != f.Key {
				inner = name + "." + e.Key
			}
			b.portions(p, inner, f, e.Value, n.value(e.Key))
		}
	case v.List != nil:
		b.portion(p, portion{name: name, text: counted(len(v.List), "item"), number: float64(len(v.List)), kind: itemCount}, n, -1, 0)
		for i, item := range v.List {
			if i < len(n.items) {
				b.portions(p, fmt.Sprintf("%s[%d]", name, i), f, item, n.items[i])
			}
		}
	case f.Kind == drivers.File:
		if info, err := os.Stat(v.String); err == nil {
			b.portion(p, portion{name: name, text: v.String, number: float64(info.Size()), kind: wholeFile}, n, -1, 0)
		}
	case f.Kind == drivers.Int || f.Kind == drivers.Size:
		b.portion(p, portion{name: name, text: n.text, number: float64(v.Int), kind: amount}, n, -1, 0)
	}
}

// portion adds a piece, with the place of some runes of a node, or of all of it where offset is negative.
func (b *binder) portion(p *payload, part portion, n *node, offset, length int) {
	line, col, end, ok := b.stretch(n, offset, length)
	if !ok {
		line, col, end = b.span(n)
	}
	part.node, part.end = n, end
	part.place = diag.Place{File: b.of(n).file, Line: line, Column: col}
	p.parts = append(p.parts, part)
}

// measure makes text that is a number or a size an amount.
func (part *portion) measure() {
	f, err := strconv.ParseFloat(part.text, 64)
	if err == nil && strings.Trim(part.text, "0123456789.-") == "" {
		part.number, part.kind = f, amount
	} else if n, err := quantity.ParseSize(part.text); err == nil {
		part.number, part.kind = float64(n), amount
	}
}

// volume matches names of path segments that are followed by how much is asked for, as in /bytes/8192.
var (
	volume    = regexp.MustCompile(`(?i)(bytes?|sizes?|length|count|limit|rows|stream|strings?)$`)
	sizeIn    = regexp.MustCompile(`[0-9]+(\.[0-9]+)?[kKMGT]i?B?\b`)
	urlMethod = regexp.MustCompile(`^[A-Za-z]+[ \t]+`)
	urlOrigin = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*`)
)

// urlPortions takes the parameters of a URL, and the sizes in its path. The rest of a path is an address: it may differ
// from target to target, and what is asked for be the same.
func (b *binder) urlPortions(p *payload, t drivers.Template, n *node) {
	// What only the call knows is one rune, so that none of it is taken for the URL's own punctuation.
	var dynamic []string
	var text strings.Builder
	for _, s := range drivers.Segments(t) {
		part, constant := shown(s)
		if constant || len(dynamic) > 1000 {
			text.WriteString(part)
			continue
		}
		text.WriteRune(rune(0xE000 + len(dynamic)))
		dynamic = append(dynamic, part)
	}
	add := func(name, value string) {
		part := portion{name: name, text: value}
		for i, d := range dynamic {
			part.text = strings.ReplaceAll(part.text, string(rune(0xE000+i)), d)
		}
		if part.text == value && !identity.MatchString(name) {
			part.measure()
		}
		offset, length := -1, 0
		if i := strings.Index(n.text, name+"="); i > 0 {
			offset = len([]rune(n.text[:i]))
			length = len([]rune(n.text[i:]))
			if j := strings.IndexAny(n.text[i:], "&# "); j > 0 && !strings.Contains(n.text[i:i+j], "${") {
				length = len([]rune(n.text[i : i+j]))
			}
		}
		b.portion(p, part, n, offset, length)
	}
	whole := urlOrigin.ReplaceAllString(urlMethod.ReplaceAllString(text.String(), ""), "")
	whole, _, _ = strings.Cut(whole, "#")
	path, query, _ := strings.Cut(whole, "?")
	before := ""
	for segment := range strings.SplitSeq(path, "/") {
		if m := sizeIn.FindString(segment); m != "" {
			add("the size in the path", strings.TrimSpace(m))
		} else if volume.MatchString(before) {
			add(before, segment)
		}
		before = segment
	}
	if query == "" {
		return
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if decoded, err := url.QueryUnescape(value); err == nil {
			value = decoded
		}
		add(name, value)
	}
}

// shown is a template as it is sent, with ${...} as written for what only the call knows.
func shown(t drivers.Template) (text string, constant bool) {
	if v, ok := t.Constant(); ok {
		return string(drivers.AppendText(nil, v)), true
	}
	for _, s := range drivers.Segments(t) {
		switch v, ok := s.Constant(); {
		case ok:
			text += string(drivers.AppendText(nil, v))
		default:
			text += fmt.Sprint(s)
		}
	}
	return text, false
}

// unlike finds in which portions the payloads of two targets differ: for each what to say, and where the second target, or
// else the first, has it.
func (p *Plan) unlike(step *Step, i, j int) (said []string, at portion) {
	one, other := step.Actions[i], step.Actions[j]
	if one.payload == nil || other.payload == nil { // begin and commit, which nobody writes
		return nil, portion{}
	}
	add := func(part portion, format string, args ...any) {
		if len(said) == 0 {
			at = part
		}
		said = append(said, fmt.Sprintf(format, args...))
	}
	first, second := p.Targets[i].Name, p.Targets[j].Name
	n, service, known := p.answers(one)
	m, otherService, otherKnown := p.answers(other)
	weighed := known && otherKnown
	if weighed && n != m {
		part := portion{place: step.Place}
		for _, q := range other.payload.parts {
			if q.kind == amount || part.node == nil {
				part = q
			}
		}
		add(part, "service %s answers %s with %d bytes, and service %s answers %s with %d", service, first, n, otherService, second, m)
	}
	protocol := one.Driver == other.Driver && scheme(one) == scheme(other)
	for _, a := range one.payload.parts {
		k := other.payload.find(a.name, a.field)
		switch {
		case weighed && answerSizes[a.name]:
		case k >= 0:
			b := other.payload.parts[k]
			if a.differs(b, protocol) {
				add(b, "%s %s for %s, and %s for %s", a.name, a.figure(), first, b.figure(), second)
			}
		case one.Driver == other.Driver && a.counts():
			add(a, "%s %s for %s, and is left out for %s", a.name, a.figure(), first, second)
		}
	}
	for _, b := range other.payload.parts {
		if one.Driver == other.Driver && one.payload.find(b.name, b.field) < 0 && b.counts() && !(weighed && answerSizes[b.name]) {
			add(b, "%s is left out for %s, and %s for %s", b.name, first, b.figure(), second)
		}
	}
	return said, at
}

// find is the index of the portion with a name: that of the same field if there are several, and -1 if there is none.
func (p *payload) find(name, field string) int {
	first := -1
	for i, a := range p.parts {
		if a.name == name && a.field == field {
			return i
		}
		if a.name == name && first < 0 {
			first = i
		}
	}
	return first
}

// scheme is the protocol of an action, with or without TLS: databases have dialects, so that texts are compared within one.
func scheme(a Action) string {
	s, _, _ := strings.Cut(a.Call.Endpoint().Name, "://")
	return strings.TrimSuffix(s, "s")
}

// counts tells whether a portion counts where the other target has none. Items of a list are counted with the list.
func (a portion) counts() bool {
	return !identity.MatchString(a.name) && !strings.Contains(a.name, "[")
}

// differs tells whether two portions of one name are different amounts of work. Texts that the plan writes once, and targets
// fill in, such as names, differ only when one of them is notably longer.
func (a portion) differs(b portion, protocol bool) bool {
	switch {
	case identity.MatchString(a.name):
		return false
	case a.kind == b.kind && a.kind != someText:
		return a.number != b.number
	case a.node != b.node:
		return protocol && strings.Join(strings.Fields(a.text), " ") != strings.Join(strings.Fields(b.text), " ")
	}
	n, m := len(a.text), len(b.text)
	return max(n, m)-min(n, m) >= 64 && 10*(max(n, m)-min(n, m)) > max(n, m)
}

// figure is what findings say of a portion, with a verb.
func (a portion) figure() string {
	switch {
	case a.kind == wholeFile:
		return fmt.Sprintf("is a file of %.0f bytes", a.number)
	case a.kind == itemCount:
		return "has " + a.text
	case a.text == "":
		return "is empty"
	case a.kind == someText && (len(a.text) > 60 || multiline(a.text)):
		return fmt.Sprintf("has %d bytes", len(a.text))
	case a.kind == someText:
		return `is "` + a.text + `"`
	}
	return "is " + a.text
}

var (
	// answerSizes are the parameters by which services of the lab are told how much to answer with.
	answerSizes = map[string]bool{"bytes": true, "size": true}
	// onePayload matches a statement that answers with the payload of one row of a lab's database.
	onePayload = regexp.MustCompile(`(?i)^\s*select\s+payload\s+from\s+documents\s+where\s+id\s*=\s*\S+\s*$`)
)

// answers tells how many bytes of content the lab will answer with, where the plan says it.
func (p *Plan) answers(a Action) (bytes int64, service string, known bool) {
	if p.Described == nil || a.payload.service == "" {
		return 0, "", false
	}
	i := slices.IndexFunc(p.Described.Services, func(s lab.Service) bool { return s.Name == a.payload.service })
	call, ok := a.Call.(fmt.Stringer)
	if i < 0 || !ok {
		return 0, "", false
	}
	s := p.Described.Services[i]
	asked, _, _ := strings.Cut(urlMethod.ReplaceAllString(call.String(), ""), "?")
	parameter, otherwise := "", int64(0)
	switch {
	case s.Kind == lab.Postgres:
		for _, part := range a.payload.parts {
			if part.name == "query" && onePayload.MatchString(part.text) {
				return s.Payload, s.Name, true
			}
		}
		return 0, "", false
	case s.Kind == lab.GRPC && asked == "lab.v1.Node/Work":
		parameter = "bytes"
	case (s.Kind == lab.HTTP || s.Kind == lab.Gateway) && asked == "/strings":
		parameter, otherwise = "bytes", lab.DefaultStrings
	case s.Kind == lab.HTTP && asked == "/file":
		parameter, otherwise = "size", lab.DefaultFile
	default:
		return 0, "", false
	}
	k := a.payload.find(parameter, "")
	if k < 0 {
		return otherwise, s.Name, true
	}
	part := a.payload.parts[k]
	return int64(part.number), s.Name, part.kind == amount
}
