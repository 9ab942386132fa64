package expression

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/quantity"
)

// builder turns the tree of a template or an expectation into nodes: it resolves names, checks kinds, and computes what
// does not depend on the moment of the call.
type builder struct {
	*source
	scope  *Scope
	answer map[string]drivers.Name // nil in a template
	reads  []string                // names of the answer, in order of appearance
	// capture tells that the value is kept of the answer, and may be drawn; drawn that it is.
	capture, drawn bool
	headerTold     string // the last header that was told to be written in brackets
	// unreached is greater than 0 in parts that will never be evaluated. They are checked, but no root is asked.
	unreached int
	predicate int // depth of predicates
}

func newBuilder(s *source, scope *Scope) *builder {
	if scope == nil {
		scope = &Scope{}
	}
	return &builder{source: s, scope: scope}
}

func (b *builder) inTemplate() bool { return b.answer == nil }

// node makes a node of an operation on kids; nil if one of them is.
func (b *builder) node(op nodeOp, n ast.Node, k kind, kids ...*node) *node {
	return &node{op: op, kids: kids, source: b.source, at: b.span(n), kind: k}
}

func (b *builder) constant(n ast.Node, v value) *node {
	return &node{op: evalConstant, value: v, source: b.source, at: b.span(n), kind: v.kind}
}

// build returns nil when it has reported why it can't.
func (b *builder) build(n ast.Node) *node {
	switch n := n.(type) {
	case *ast.NilNode:
		return b.constant(n, value{})
	case *ast.BoolNode:
		return b.constant(n, truthOf(n.Value))
	case *ast.IntegerNode:
		c := b.constant(n, wholeOf(int64(n.Value)))
		c.literal = true
		return c
	case *ast.FloatNode:
		c := b.constant(n, decimalOf(n.Value))
		c.literal = true
		return c
	case *ast.StringNode:
		return b.constant(n, textOf(n.Value))
	case *ast.IdentifierNode, *ast.MemberNode:
		return b.reference(n)
	case *ast.ChainNode:
		return b.build(n.Node)
	case *ast.PointerNode:
		switch {
		case b.predicate == 0:
			b.fail(b.span(n), "# is only known inside all, any, filter and their like", "")
			return nil
		case n.Name == "":
			return b.node(evalItem, n, dynamic)
		case n.Name == "index":
			return b.node(evalIndex, n, whole)
		}
		name := "#" + n.Name
		if _, ok := b.quantityOf(n.Name); ok {
			name = "#"
		}
		b.fail(b.span(n), "unknown name "+name, "write # for the element and #index for its index")
		return nil
	case *ast.UnaryNode:
		return b.unary(n)
	case *ast.BinaryNode:
		return b.binary(n)
	case *ast.ConditionalNode:
		return b.choose(n)
	case *ast.ArrayNode:
		kids, ok := b.all(n.Nodes)
		if !ok {
			return nil
		}
		return b.fold(b.node(evalList, n, list, kids...))
	case *ast.MapNode:
		return b.mapping(n)
	case *ast.CallNode:
		if f, ok := n.Callee.(*ast.IdentifierNode); ok {
			return b.function(n, f.Value, n.Arguments)
		}
		b.fail(b.span(n.Callee), b.text(n.Callee)+" is not a function", b.methodHint(n))
		return nil
	case *ast.BuiltinNode:
		return b.each(n)
	case *ast.SequenceNode:
		b.fail(b.span(n), "one expression at a time: unexpected ;", "")
	case *ast.VariableDeclaratorNode:
		b.fail(b.span(n), "let is not available here", "")
	case *ast.SliceNode:
		b.fail(b.span(n), "a part of a list is not available here", "write one index")
	default:
		b.fail(b.span(n), "can't use "+shorten(b.text(n), 40)+" here", "")
	}
	return nil
}

// methodHint says how to write what other languages have a method for, as in body.contains("x").
func (b *builder) methodHint(n *ast.CallNode) string {
	m, ok := n.Callee.(*ast.MemberNode)
	if !ok || len(n.Arguments) != 1 {
		return ""
	}
	name, ok := m.Property.(*ast.StringNode)
	if !ok {
		return ""
	}
	for _, operator := range []string{"contains", "startsWith", "endsWith", "matches"} {
		if strings.EqualFold(strings.ReplaceAll(name.Value, "_", ""), operator) {
			return "write " + b.text(m.Node) + " " + operator + " " + b.text(n.Arguments[0])
		}
	}
	return ""
}

func (b *builder) all(nodes []ast.Node) ([]*node, bool) {
	kids, ok := make([]*node, len(nodes)), true
	for i, n := range nodes {
		kids[i] = b.build(n)
		ok = ok && kids[i] != nil
	}
	return kids, ok
}

// skip checks a part that will never be evaluated.
func (b *builder) skip(n ast.Node) {
	b.unreached++
	b.build(n)
	b.unreached--
}

// fold computes a node whose operands are all constant.
func (b *builder) fold(n *node) *node {
	named := false
	for _, k := range n.kids {
		named = named || k.named
		if !k.isConstant() {
			return n
		}
		if k.value.kind == nothing && k.fault != nil && k.absent && n.op != evalEqual && n.op != evalUnequal && n.op != evalMember && n.op != evalElement {
			b.blame(k)
			return nil
		}
	}
	v, err := n.eval(&frame{})
	if err != nil {
		b.report(err)
		return nil
	}
	return &node{op: evalConstant, value: v, source: n.source, at: n.at, kind: v.kind, size: n.size, named: named}
}

// reference resolves a name and the members behind it.
func (b *builder) reference(n ast.Node) *node {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return b.identifier(n)
	case *ast.MemberNode:
		if path, names, members := b.rootPath(n); path != nil {
			return b.root(n, path, names, members)
		}
		of := b.build(n.Node)
		if of == nil {
			return nil
		}
		return b.member(n, of)
	}
	return nil
}

// member looks up one member or element of a node.
func (b *builder) member(n *ast.MemberNode, of *node) *node {
	if of.unit {
		b.fail(b.span(n), of.text()+" has no members", "")
		return nil
	}
	if name, ok := n.Property.(*ast.StringNode); ok {
		switch of.kind {
		case mapping, dynamic, nothing:
		case list:
			b.fail(b.span(n.Property), of.text()+" is a list: it has no "+strconv.Quote(name.Value), "write "+of.text()+"[0]."+name.Value+" for its first element")
			return nil
		default:
			b.fail(b.span(n.Property), of.text()+" is "+of.kind.String()+": it has no members", "")
			return nil
		}
		m := b.node(evalMember, n, dynamic, of)
		m.name = name.Value
		if of.op == evalAnswer && b.answer[of.name].Kind == drivers.TextsName {
			m.kind = text
			if low := strings.ToLower(name.Value); of.name == "headers" && low != name.Value {
				if _, dashed := b.dashedHeader(b.span(n.Property).from); dashed {
					return nil // told once, at the part behind the first -
				}
				b.fail(b.span(n.Property), "names of headers are in lower case here", "write "+strconv.Quote(low))
				return nil
			}
		}
		r := b.fold(m)
		if of.fault != nil && r != nil {
			r.fault, r.absent = of.fault, of.absent
			return r
		}
		if r != nil && r.isConstant() && r.kind == nothing && of.kind == mapping && !slices.Contains(of.value.keys(), name.Value) {
			at := b.span(n.Property)
			hint := ""
			if s := diag.Suggest(name.Value, of.value.keys()); s != "" {
				hint = "did you mean " + s + "?"
			}
			r.absent = true
			r.fault = &Error{at.from, at.to - at.from, of.text() + " has no " + strconv.Quote(name.Value), hint}
		}
		return r
	}
	index := b.build(n.Property)
	if index == nil {
		return nil
	}
	switch {
	case of.kind == dynamic || index.kind == dynamic || of.kind == nothing:
	case of.kind == list && index.kind.isNumber() || of.kind == mapping && index.kind == text:
	case of.kind == list:
		b.fail(index.at, "an index is a number, but "+index.text()+" is "+index.kind.String(), "")
		return nil
	case of.kind == mapping:
		b.fail(index.at, "a key is text, but "+index.text()+" is "+index.kind.String(), "")
		return nil
	default:
		b.fail(of.at, of.text()+" is "+of.kind.String()+": it has no elements", "")
		return nil
	}
	return b.fold(b.node(evalElement, n, dynamic, of, index))
}

// rootPath takes apart a reference that begins with a root. path has the parts, members the nodes that go with names.
func (b *builder) rootPath(n ast.Node) (path []part, names []string, members []*ast.MemberNode) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		if _, ok := b.answer[n.Value]; ok || b.scope.Roots[n.Value] == nil {
			return nil, nil, nil
		}
		return []part{{name: n.Value, at: span{n.Location().From, n.Location().To}}}, nil, nil
	case *ast.ChainNode:
		return b.rootPath(n.Node)
	case *ast.MemberNode:
		path, names, members = b.rootPath(n.Node)
		if path == nil {
			return nil, nil, nil
		}
		// What follows an index is no name of the root's any more, but is still looked up in its value.
		if name, ok := n.Property.(*ast.StringNode); ok && len(names) == len(members) {
			names = append(names, name.Value)
			path = append(path, part{name: name.Value, at: b.span(n.Property)})
		}
		return path, names, append(members, n)
	}
	return nil, nil, nil
}

// root asks a root, once, and looks up in its value what the root has not used.
func (b *builder) root(n ast.Node, path []part, names []string, members []*ast.MemberNode) *node {
	if b.unreached > 0 {
		return b.node(evalItem, n, dynamic)
	}
	v, used, err := b.scope.Roots[path[0].name](names)
	if err != nil {
		b.rootError(err, b.span(n), path)
		return nil
	}
	used = max(0, min(used, len(names)))
	var r *node
	why, missing := v.(Missing)
	if missing {
		v = nil
	}
	if m, ok := v.(Moment); ok {
		r = b.node(evalAtCall, n, dynamic)
		r.moment = m
		if m.Text {
			r.kind = text
		}
	} else {
		r = b.constant(n, valueOf(v))
	}
	r.named = true
	r.at = span{path[0].at.from, path[used].at.to}
	if used > 0 {
		r.at = b.span(members[used-1])
	}
	if r.kind == nothing {
		at := r.at
		r.fault = &Error{at.from, at.to - at.from, r.text() + " has no value", ""}
		if path[0].name == "env" && used > 0 {
			r.absent = true
			r.fault.Message = "environment variable " + path[used].name + " is not set"
			if missing {
				r.fault.Message = string(why)
			}
			r.fault.Hint = `write ${` + r.text() + ` ?? "default"} if it may be missing`
		}
	}
	for _, m := range members[used:] {
		if r = b.member(m, r); r == nil {
			return nil
		}
	}
	return r
}

func (b *builder) identifier(n *ast.IdentifierNode) *node {
	if v, ok := b.quantityOf(n.Value); ok {
		if v.faulty {
			return nil
		}
		return b.quantity(n, v.Value)
	}
	if name, ok := b.answer[n.Value]; ok {
		if !slices.Contains(b.reads, n.Value) {
			b.reads = append(b.reads, n.Value)
		}
		r := b.node(evalAnswer, n, dynamic)
		r.name = n.Value
		switch name.Kind {
		case drivers.IntName:
			r.op, r.kind = evalNumber, whole
		case drivers.SizeName:
			r.op, r.kind, r.size = evalNumber, whole, true
		case drivers.TextName:
			r.kind = text
		case drivers.TextsName:
			r.kind = mapping
		case drivers.ListName:
			r.kind = list
		}
		return r
	}
	if path, names, members := b.rootPath(n); path != nil {
		return b.root(n, path, names, members)
	}
	switch {
	case n.Value == "iteration":
		return b.node(evalIteration, n, whole)
	case n.Value == "user":
		return b.node(evalUser, n, whole)
	case slices.Contains(b.scope.Moment, n.Value):
		if b.scope.Lookup == nil {
			b.fail(b.span(n), n.Value+" is not known here", "")
			return nil
		}
		r := b.node(evalMoment, n, dynamic)
		r.name = n.Value
		return r
	}
	b.unknown(b.span(n), n.Value)
	return nil
}

// names that other tools have for what an answer holds.
var answerElsewhere = map[string]string{
	"code": "status", "status_code": "status", "statusCode": "status", "size": "bytes", "length": "bytes", "header": "headers",
}

// commonAnswers are what answers of most protocols have.
var commonAnswers = []string{"status", "headers", "body", "json", "rows", "affected", "message", "messages", "trailers", "bytes"}

func (b *builder) unknown(at span, name string) {
	valid := []string{"iteration", "user"}
	for n := range b.answer {
		valid = append(valid, n)
	}
	for n := range b.scope.Roots {
		valid = append(valid, n)
	}
	valid = append(valid, b.scope.Moment...)
	slices.Sort(valid)
	hint := ""
	_, env := b.scope.Roots["env"]
	header, dashed := b.dashedHeader(at.from)
	if dashed && b.headerTold == header {
		return
	}
	switch s := diag.Suggest(name, valid); {
	case b.scope.Later[name] != "":
		hint = b.scope.Later[name]
	case dashed:
		hint = `write headers["` + header + `"]`
		b.headerTold = header
	case slices.Contains(valid, answerElsewhere[name]):
		hint = "write " + answerElsewhere[name]
	case s != "":
		hint = "did you mean " + s + "?"
	case !b.inTemplate() && (name == "latency" || name == "duration" || name == "time"):
		hint = "limits for times are assertions, such as p95 < 300ms"
	case calls[name] != nil:
		hint = "write " + calls[name].form
	case b.inTemplate() && name == "uuid":
		hint = "write uuid()"
	case b.inTemplate() && name == "random":
		hint = "write random(1, 100)"
	case beginning(name, valid) != "":
		hint = "did you mean " + beginning(name, valid) + "?"
	case b.inTemplate() && slices.Contains(commonAnswers, name):
		hint = "what an answer has is captured first, as in capture: {seen: " + name + "}"
	case env && name == strings.ToUpper(name) && len(name) > 1:
		hint = "write env." + name
	case len(b.answer) > 0 && len(b.answer) <= mostNames:
		hint = "an answer has " + strings.Join(slices.Sorted(maps.Keys(b.answer)), ", ")
	case len(b.answer) == 0 && len(valid) <= mostNames+2: // two of them are there always
		hint = "names here are " + strings.Join(valid, ", ")
	}
	b.fail(at, "unknown name "+strconv.Quote(shorten(name, 40)), hint)
}

// headerName matches a header whose name has a - in it behind a dot, as in headers.content-type.
var headerName = regexp.MustCompile(`headers\.([A-Za-z0-9]+(?:-[A-Za-z0-9]+)+)`)

// dashedHeader returns the name of such a header, in lower case, if the rune i is in it.
func (b *builder) dashedHeader(i int) (string, bool) {
	text := string(b.runes)
	at := len(string(b.runes[:i]))
	for _, m := range headerName.FindAllStringSubmatchIndex(text, -1) {
		if m[2] <= at && at < m[3] {
			return strings.ToLower(text[m[2]:m[3]]), true
		}
	}
	return "", false
}

// beginning returns the only valid name that begins with name, as random does with rand; "" if there is none.
func beginning(name string, valid []string) string {
	found := ""
	for _, v := range valid {
		if len(name) < 3 || !strings.HasPrefix(v, name) {
			continue
		}
		if found != "" {
			return ""
		}
		found = v
	}
	return found
}

// quantity is a number with a unit. Only sizes can be calculated with, and only where there is an answer.
func (b *builder) quantity(n *ast.IdentifierNode, v quantity.Value) *node {
	written := b.text(n)
	if b.inTemplate() {
		c := b.constant(n, textOf(written))
		c.unit = true
		return c
	}
	switch v.Dim {
	case quantity.Size:
		c := b.constant(n, decimalOf(v.F))
		if v.F == float64(int64(v.F)) && v.F < 1<<62 {
			c = b.constant(n, wholeOf(int64(v.F)))
		}
		c.size = true
		return c
	case quantity.Share:
		b.fail(b.span(n), "nothing in an answer is a share", "write "+strconv.FormatFloat(v.F, 'f', -1, 64))
	default:
		b.fail(b.span(n), "nothing in an answer is "+v.Dim.String(), "limits for times and rates are assertions, such as p95 < 300ms")
	}
	return nil
}

// calculable refuses numbers with units in templates.
func (b *builder) calculable(nodes ...*node) bool {
	for _, k := range nodes {
		if k.unit {
			b.fail(k.at, k.text()+" is text here: templates don't calculate with units", "")
			return false
		}
	}
	return true
}

// quantities compares texts that are quantities by their values, as in matrix.size == 1KiB. Both have to be known before the
// load.
func (b *builder) quantities(n *ast.BinaryNode, op nodeOp, l, r *node) *node {
	var v [2]quantity.Value
	for i, k := range []*node{l, r} {
		switch {
		case k.fault != nil:
			b.blame(k)
			return nil
		case !k.isConstant():
			b.fail(k.at, k.text()+" is only known when a call is made, and quantities are compared before", "")
			return nil
		}
		q, err := quantity.Parse(string(k.value.appendText(nil)))
		if err != nil {
			other := [...]*node{r, l}[i]
			b.fail(k.at, fmt.Sprintf("%s is no quantity, but %s is", k.text(), other.text()), "")
			return nil
		}
		v[i] = q
	}
	if v[0].Dim != v[1].Dim {
		b.fail(r.at, fmt.Sprintf("%s is %s but %s is %s", l.text(), v[0].Dim, r.text(), v[1].Dim), "")
		return nil
	}
	holds := map[nodeOp]bool{
		evalLess: v[0].F < v[1].F, evalLessEqual: v[0].F <= v[1].F, evalGreater: v[0].F > v[1].F, evalGreaterEqual: v[0].F >= v[1].F,
		evalEqual: v[0].F == v[1].F, evalUnequal: v[0].F != v[1].F,
	}[op]
	return b.constant(n, truthOf(holds))
}

func (b *builder) unary(n *ast.UnaryNode) *node {
	k := b.build(n.Node)
	if k == nil || !b.calculable(k) {
		return nil
	}
	switch n.Operator {
	case "not", "!":
		if !b.condition(k) {
			return nil
		}
		return b.fold(b.node(evalNot, n, truth, k))
	case "-":
		if !b.numeric(k) {
			return nil
		}
		r := b.node(evalNegate, n, k.kind, k)
		r.size = k.size
		return b.fold(r)
	case "+":
		if !b.numeric(k) {
			return nil
		}
		return k
	}
	b.fail(b.span(n), n.Operator+" is not available here", "")
	return nil
}

// condition wants a truth value.
func (b *builder) condition(k *node) bool {
	if k.kind == truth || k.kind == dynamic || k.kind == nothing && k.fault == nil {
		return true
	}
	if k.fault != nil {
		b.blame(k)
		return false
	}
	hint := ""
	if k.op == evalNumber || k.op == evalAnswer {
		hint = "compare it with something"
	}
	b.fail(k.at, k.text()+" is "+k.kind.String()+", not a condition", hint)
	return false
}

func (b *builder) numeric(k *node) bool {
	switch {
	case k.kind.isNumber() || k.kind == dynamic:
		return true
	case k.fault != nil:
		b.blame(k)
		return false
	}
	hint := ""
	if k.kind == text {
		hint = "write int(" + k.text() + ") for the number in it"
	}
	b.fail(k.at, "expected a number, but "+k.text()+" is "+k.kind.String(), hint)
	return false
}

var evalOps = map[string]nodeOp{
	"+": evalAdd, "-": evalSubtract, "*": evalMultiply, "/": evalDivide, "%": evalRemainder,
	"<": evalLess, "<=": evalLessEqual, ">": evalGreater, ">=": evalGreaterEqual, "==": evalEqual, "!=": evalUnequal,
	"in": evalIn, "contains": evalContains, "startsWith": evalStartsWith, "endsWith": evalEndsWith, "matches": evalMatches,
	"and": evalAnd, "&&": evalAnd, "or": evalOr, "||": evalOr, "??": evalCoalesce,
}

func (b *builder) binary(n *ast.BinaryNode) *node {
	op, known := evalOps[n.Operator]
	if !known {
		hint := ""
		if n.Operator == ".." {
			hint = "a range can only stand behind in, as in status in 200..299"
		}
		b.fail(span{n.Location().From, n.Location().To}, n.Operator+" is not available here", hint)
		return nil
	}
	if op == evalIn {
		if r, ok := n.Right.(*ast.BinaryNode); ok && r.Operator == ".." {
			return b.between(n, r)
		}
	}
	if l, ok := n.Left.(*ast.BinaryNode); ok && n.Operator == "&&" {
		if r, ok := n.Right.(*ast.BinaryNode); ok && l.Right == r.Left {
			b.fail(span{n.Location().From, n.Location().To}, "comparisons can't be chained",
				fmt.Sprintf("write %s and %s %s %s", b.text(l), b.text(r.Left), r.Operator, b.text(r.Right)))
			return nil
		}
	}
	l := b.build(n.Left)
	if l == nil {
		b.skip(n.Right)
		return nil
	}
	switch op {
	case evalCoalesce:
		return b.coalesce(n, l)
	case evalAnd, evalOr:
		return b.logic(n, op, l)
	}
	r := b.build(n.Right)
	if r != nil && (l.unit || r.unit) && op >= evalLess && op <= evalUnequal {
		return b.quantities(n, op, l, r)
	}
	if r == nil || !b.calculable(l, r) {
		return nil
	}
	switch op {
	case evalEqual, evalUnequal, evalLess, evalLessEqual, evalGreater, evalGreaterEqual:
		if !b.comparable(op, l, r) {
			return nil
		}
		return b.fold(b.node(op, n, truth, l, r))
	case evalIn:
		if r.kind != list && r.kind != mapping && r.kind != dynamic {
			b.fail(r.at, "in wants a list or a mapping, but "+r.text()+" is "+r.kind.String(), "write it as in status in [200, 204]")
			return nil
		}
		return b.fold(b.node(op, n, truth, l, r))
	case evalContains, evalStartsWith, evalEndsWith, evalMatches:
		return b.textual(n, op, l, r)
	}
	return b.arithmetic(n, op, l, r)
}

func (b *builder) coalesce(n *ast.BinaryNode, l *node) *node {
	if l.isConstant() {
		if l.kind != nothing {
			b.skip(n.Right)
			return l
		}
		return b.build(n.Right)
	}
	r := b.build(n.Right)
	if r == nil {
		return nil
	}
	k := dynamic
	if l.kind == r.kind {
		k = l.kind
	}
	return b.node(evalCoalesce, n, k, l, r)
}

func (b *builder) logic(n *ast.BinaryNode, op nodeOp, l *node) *node {
	if !b.condition(l) || !b.calculable(l) {
		b.skip(n.Right)
		return nil
	}
	if l.isConstant() && l.kind == truth && (op == evalOr) == l.value.isTrue() {
		b.skip(n.Right)
		return l
	}
	r := b.build(n.Right)
	if r == nil || !b.calculable(r) || !b.condition(r) {
		return nil
	}
	return b.fold(b.node(op, n, truth, l, r))
}

func (b *builder) between(n, bounds *ast.BinaryNode) *node {
	kids, ok := b.all([]ast.Node{n.Left, bounds.Left, bounds.Right})
	if !ok || !b.calculable(kids...) {
		return nil
	}
	for _, k := range kids {
		if !b.numeric(k) {
			return nil
		}
	}
	return b.fold(b.node(evalBetween, n, truth, kids...))
}

// comparable wants operands that can be equal, or in order.
func (b *builder) comparable(op nodeOp, l, r *node) bool {
	equality := op == evalEqual || op == evalUnequal
	if l.kind == nothing || r.kind == nothing {
		for i, k := range []*node{l, r} {
			// Only nil itself asks whether a value is there.
			if other := [...]*node{r, l}[i]; k.absent && !(other.kind == nothing && other.fault == nil) {
				b.blame(k)
				return false
			}
			if !equality && k.kind == nothing {
				if k.fault != nil {
					b.blame(k)
				} else {
					b.fail(k.at, "nil is neither less nor greater than anything", "")
				}
				return false
			}
		}
		return true
	}
	if l.kind == dynamic || r.kind == dynamic {
		return true
	}
	if l.kind.isNumber() && r.kind.isNumber() {
		return b.sameSize(l, r)
	}
	if l.kind == r.kind && (equality || l.kind == text) {
		return true
	}
	wrong, right := r, l
	if l.isConstant() && !r.isConstant() {
		wrong, right = l, r
	}
	hint := ""
	if wrong.isConstant() && wrong.kind == text && right.kind.isNumber() {
		if _, err := quantity.Parse(wrong.value.s); err == nil {
			hint = "write " + wrong.value.s + " without quotes"
		}
	}
	if wrong.literal && right.kind == text {
		hint = "write " + strconv.Quote(wrong.text())
		if right.op == evalAtCall {
			hint = "give the column a type, as in types: {" + right.text()[strings.LastIndexByte(right.text(), '.')+1:] + ": int}"
		}
	}
	b.fail(wrong.at, fmt.Sprintf("%s is %s but %s is %s", right.text(), right.kind, wrong.text(), wrong.kind), hint)
	return false
}

// sameSize wants bytes to be compared with, added to or subtracted from bytes.
func (b *builder) sameSize(l, r *node) bool {
	if l.size == r.size {
		return true
	}
	size, other := l, r
	if r.size {
		size, other = r, l
	}
	if other.isConstant() && other.value.number() == 0 {
		return true
	}
	hint := "write " + other.text() + " * 1B"
	if strings.Contains(other.text(), " ") {
		hint = "write (" + other.text() + ") * 1B"
	}
	if other.isConstant() && other.literal {
		hint = "write " + quantity.WithUnit(other.text(), quantity.Size)
	}
	if size.isConstant() && !other.isConstant() {
		b.fail(size.at, fmt.Sprintf("%s is a plain number but %s is a size", other.text(), size.text()), "")
	} else {
		b.fail(other.at, fmt.Sprintf("%s is a size but %s is a plain number", size.text(), other.text()), hint)
	}
	return false
}

func (b *builder) textual(n *ast.BinaryNode, op nodeOp, l, r *node) *node {
	for _, k := range []*node{l, r} {
		if k.kind != text && k.kind != dynamic && k.kind != nothing {
			b.fail(k.at, n.Operator+" is for text, but "+k.text()+" is "+k.kind.String(), "")
			return nil
		}
	}
	if op != evalMatches {
		return b.fold(b.node(op, n, truth, l, r))
	}
	if !r.isConstant() || r.kind != text {
		b.fail(r.at, "the pattern has to be known before the load", "")
		return nil
	}
	pattern, err := regexp.Compile(r.value.s)
	if err != nil {
		message := err.Error()
		if i := strings.LastIndex(message, ": "); i >= 0 && strings.HasPrefix(message, "error parsing regexp: ") {
			message = strings.TrimPrefix(message, "error parsing regexp: ")
		}
		b.fail(r.at, "can't read the pattern: "+shorten(message, 100), "")
		return nil
	}
	m := b.node(op, n, truth, l)
	m.pattern = pattern
	return b.fold(m)
}

func (b *builder) arithmetic(n *ast.BinaryNode, op nodeOp, l, r *node) *node {
	if op == evalAdd && (l.kind == text || r.kind == text) {
		for _, k := range []*node{l, r} {
			if k.kind == text || k.kind == dynamic {
				continue
			}
			if k.fault != nil {
				b.blame(k)
				return nil
			}
			b.fail(k.at, k.text()+" is "+k.kind.String()+": it can't be added to text", "write string("+k.text()+")")
			return nil
		}
		k := text
		if l.kind == dynamic || r.kind == dynamic {
			k = dynamic
		}
		return b.fold(b.node(op, n, k, l, r))
	}
	if op == evalAdd && (l.kind == dynamic || r.kind == dynamic) {
		for _, k := range []*node{l, r} {
			if k.kind != dynamic && !b.numeric(k) {
				return nil
			}
		}
	} else if lok, rok := b.numeric(l), b.numeric(r); !lok || !rok {
		return nil
	}
	t := b.node(op, n, dynamic, l, r)
	if l.kind != dynamic && r.kind != dynamic {
		t.kind = decimal
		if l.kind == whole && r.kind == whole && op != evalDivide {
			t.kind = whole
		}
		switch op {
		case evalAdd, evalSubtract:
			if !b.sameSize(l, r) {
				return nil
			}
			t.size = l.size || r.size
		case evalMultiply:
			if l.size && r.size {
				b.fail(t.at, "a size can't be multiplied by a size", "")
				return nil
			}
			t.size = l.size || r.size
		case evalDivide, evalRemainder:
			if r.size && !l.size {
				b.fail(t.at, "a number can't be divided by a size", "")
				return nil
			}
			t.size = l.size && !r.size
		}
	}
	return b.fold(t)
}

func (b *builder) choose(n *ast.ConditionalNode) *node {
	c := b.build(n.Cond)
	if c == nil || !b.condition(c) {
		b.skip(n.Exp1)
		b.skip(n.Exp2)
		return nil
	}
	if c.isConstant() {
		taken, other := n.Exp1, n.Exp2
		if !c.value.isTrue() {
			taken, other = other, taken
		}
		b.skip(other)
		return b.build(taken)
	}
	kids, ok := b.all([]ast.Node{n.Exp1, n.Exp2})
	if !ok {
		return nil
	}
	k := dynamic
	if kids[0].kind == kids[1].kind {
		k = kids[0].kind
	}
	return b.node(evalChoose, n, k, c, kids[0], kids[1])
}

func (b *builder) mapping(n *ast.MapNode) *node {
	m := b.node(evalMapping, n, mapping)
	for _, p := range n.Pairs {
		pair, ok := p.(*ast.PairNode)
		if !ok {
			return nil
		}
		if k, ok := pair.Key.(*ast.StringNode); ok {
			if v, ok := b.quantityOf(k.Value); ok {
				if !v.faulty {
					b.fail(b.span(k), b.text(k)+" is not a key", "write "+strconv.Quote(b.text(k)))
				}
				return nil
			}
		}
		key := b.build(pair.Key)
		v := b.build(pair.Value)
		if key == nil || v == nil {
			return nil
		}
		if !key.isConstant() || key.kind != text {
			b.fail(key.at, "a key has to be text that is known before the load", "")
			return nil
		}
		m.names, m.kids = append(m.names, key.value.s), append(m.kids, v)
	}
	return b.fold(m)
}

// function is a call of one of ours.
func (b *builder) function(n *ast.CallNode, name string, arguments []ast.Node) *node {
	at := span{n.Location().From, n.Location().To}
	if v, ok := b.quantityOf(name); ok {
		if !v.faulty {
			b.fail(at, b.textOf(at)+" is not a function", "")
		}
		return nil
	}
	if name == "uuid" || name == "random" {
		if !b.inTemplate() && !b.capture {
			b.fail(at, name+" makes a new value each time: it can't be expected of an answer", "")
			return nil
		}
		b.drawn = true
	}
	switch name {
	case "uuid":
		if len(arguments) > 0 {
			b.fail(at, "uuid takes no arguments", "write uuid()")
			return nil
		}
		return b.node(evalUUID, n, text)
	case "random":
		return b.random(n, at, arguments)
	case "now", "date":
		b.fail(at, name+" is not available: the same plan has to send the same calls", "")
		return nil
	}
	f := calls[name]
	if f == nil {
		b.unknownFunction(at, name)
		return nil
	}
	kids, ok := b.all(arguments)
	if !ok {
		return nil
	}
	if len(kids) < len(f.args)-f.optional || len(kids) > len(f.args) && !f.more {
		b.fail(at, "wrong number of arguments for "+name, "write "+f.form)
		return nil
	}
	for i, k := range kids {
		if k.unit && f.args[min(i, len(f.args)-1)]&takesText == 0 && !b.calculable(k) {
			return nil
		}
		switch want := f.args[min(i, len(f.args)-1)]; {
		case want.has(k.kind):
		case k.fault != nil:
			b.blame(k)
			return nil
		case k.kind == nothing:
			b.fail(k.at, k.text()+" has no value", "")
			return nil
		default:
			b.fail(k.at, fmt.Sprintf("%s wants %s, but %s is %s", name, want, k.text(), k.kind), "")
			return nil
		}
	}
	r := b.node(evalCall, n, f.result, kids...)
	r.call = f
	return b.fold(r)
}

func (b *builder) unknownFunction(at span, name string) {
	valid := []string{"uuid", "random"}
	for f := range calls {
		valid = append(valid, f)
	}
	for f := range each {
		valid = append(valid, f)
	}
	slices.Sort(valid)
	hint := ""
	if s := cmp.Or(beginning(name, valid), diag.Suggest(name, valid)); s != "" {
		hint = "did you mean " + s + "?"
	}
	_, known := b.answer[name]
	if known || b.scope.Roots[name] != nil || name == "iteration" || name == "user" {
		b.fail(at, name+" is not a function", "write "+name)
		return
	}
	b.fail(at, "unknown function "+shorten(name, 40), hint)
}

func (b *builder) random(n *ast.CallNode, at span, arguments []ast.Node) *node {
	kids, ok := b.all(arguments)
	if !ok {
		return nil
	}
	if len(kids) != 2 {
		b.fail(at, "random takes the smallest and the greatest number", "write random(1, 100)")
		return nil
	}
	for _, k := range kids {
		if !k.kind.isNumber() && k.kind != dynamic || k.isConstant() && k.kind != whole {
			if k.fault != nil {
				b.blame(k)
			} else {
				b.fail(k.at, k.text()+" is not a whole number", "")
			}
			return nil
		}
	}
	if lo, hi := kids[0], kids[1]; lo.isConstant() && hi.isConstant() && lo.value.n > hi.value.n {
		b.fail(hi.at, "random goes from the smaller to the greater number", fmt.Sprintf("write random(%s, %s)", hi.text(), lo.text()))
		return nil
	}
	return b.node(evalRandom, n, whole, kids...)
}

// each is a call of a function that takes a predicate.
func (b *builder) each(n *ast.BuiltinNode) *node {
	at := span{n.Location().From, n.Location().To}
	f, ok := each[n.Name]
	if !ok {
		b.unknownFunction(at, n.Name)
		return nil
	}
	if len(n.Arguments) == 0 || len(n.Arguments) > 2 || len(n.Arguments) == 1 && !f.optional {
		b.fail(at, "wrong number of arguments for "+n.Name, "write "+f.form)
		return nil
	}
	items := b.build(n.Arguments[0])
	if items == nil {
		return nil
	}
	if items.kind != list && items.kind != dynamic {
		if items.fault != nil {
			b.blame(items)
		} else {
			b.fail(items.at, n.Name+" wants a list, but "+items.text()+" is "+items.kind.String(), "")
		}
		return nil
	}
	r := b.node(evalEach, n, f.result, items)
	r.name = n.Name
	if len(n.Arguments) == 2 {
		p, ok := n.Arguments[1].(*ast.PredicateNode)
		if !ok {
			return nil
		}
		b.predicate++
		body := b.build(p.Node)
		b.predicate--
		if body == nil {
			return nil
		}
		switch n.Name {
		case "map":
		case "sum":
			if !b.numeric(body) {
				return nil
			}
		default:
			if !b.condition(body) {
				return nil
			}
		}
		r.kids = append(r.kids, body)
	}
	if !items.isConstant() || len(r.kids) > 1 && r.kids[1].depends() {
		return r
	}
	v, err := r.eval(&frame{})
	if err != nil {
		b.report(err)
		return nil
	}
	return b.constant(n, v)
}

// depends tells whether a predicate depends on more than its element.
func (n *node) depends() bool {
	switch n.op {
	case evalConstant, evalItem, evalIndex:
		return false
	case evalIteration, evalUser, evalUUID, evalRandom, evalMoment, evalAtCall, evalNumber, evalAnswer:
		return true
	}
	return slices.ContainsFunc(n.kids, (*node).depends)
}

// blame reports why a constant is nothing.
func (b *builder) blame(n *node) {
	e := *n.fault
	b.errs = append(b.errs, &e)
}

// report turns an error of the evaluation of something constant into a fault of the plan.
func (b *builder) report(err error) {
	var e *evalError
	if errors.As(err, &e) {
		b.fail(e.node.at, e.message, "")
	}
}
