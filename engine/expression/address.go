package expression

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/engine/diag"
	"github.com/planrun/planrun/engine/quantity"
)

// part is one name of a dotted path, with the arguments of a call.
type part struct {
	name string
	at   span // of the name
	call bool
	args []ast.Node
}

// parts takes a dotted path apart; nil if the node is none.
func (s *source) parts(n ast.Node) []part {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		if _, ok := s.quantityOf(n.Value); ok {
			return nil
		}
		return []part{{name: n.Value, at: span{n.Location().From, n.Location().To}}}
	case *ast.MemberNode:
		name, ok := n.Property.(*ast.StringNode)
		if !ok || n.Optional {
			return nil
		}
		if path := s.parts(n.Node); path != nil {
			return append(path, part{name: name.Value, at: span{name.Location().From, name.Location().To}})
		}
	case *ast.CallNode:
		if path := s.parts(n.Callee); path != nil && !path[len(path)-1].call {
			last := &path[len(path)-1]
			last.call, last.args = true, n.Arguments
			return path
		}
	case *ast.BuiltinNode:
		return []part{{name: n.Name, at: span{n.Location().From, n.Location().To}, call: true, args: n.Arguments}}
	}
	return nil
}

// functions of assertions, and how they are written.
var functions = map[string]string{
	"p":        "p(99.9)",
	"within":   "within(1s)",
	"status":   `status(503) or status("5xx")`,
	"failures": `failures("timeout")`,
	"delta":    "delta(p50)",
	"change":   "change(p50)",
}

// elsewhere are names that other tools have for our metrics.
var elsewhere = map[string]string{
	"avg": "mean", "average": "mean", "median": "p50", "med": "p50", "std": "stddev",
	"errors": "failed", "error": "failed", "failure": "failed", "failure_rate": "error_rate", "errors_rate": "error_rate",
	"success": "ok", "successes": "ok", "success_rate": "100% - error_rate", "requests": "count", "total": "count",
	"iterations": "count", "qps": "rps", "tps": "rps", "rate": "rps", "latency": "p50 or mean", "ttfb": "ttfb.p50",
	"response_time": "p50 or mean", "response_times": "p50 or mean", "avg_response_time": "mean", "mean_response_time": "mean",
	"max_response_time": "max", "min_response_time": "min", "http_req_duration": "p50 or mean", "http_req_failed": "error_rate",
	"http_reqs": "count", "throughput_rps": "rps", "fail_rate": "error_rate", "failed_rate": "error_rate", "error_ratio": "error_rate",
	"duration": "p50 or mean", "bytes": "bytes_in", "timeouts": `failures("timeout")`,
}

func metricInfo(name string) (MetricInfo, bool) {
	for _, m := range Metrics {
		if m.Name == name {
			return m, true
		}
	}
	return MetricInfo{}, false
}

func isGroup(name string) bool {
	return slices.ContainsFunc(Groups, func(g GroupInfo) bool { return g.Name == name })
}

var percentileName = regexp.MustCompile(`^p[0-9]+$`)

// percentiles above the two digits that a name can have.
var longPercentiles = map[string]float64{"p999": 99.9, "p9999": 99.99}

// keywords of the language, which can't be names.
var keywords = []string{"and", "or", "not", "in", "contains", "matches", "startsWith", "endsWith", "let", "if", "else", "true", "false", "nil"}

// roots that assertions have or may have.
var roots = []string{"vars", "env", "matrix"}

// Reserved tells why a name can't be one of a scenario, phase, stage, target or step, as in "p95 is a metric"; "" if it
// can.
func Reserved(name string) string {
	switch _, metric := metricInfo(name); {
	case functions[name] != "":
		return name + " is a function of assertions"
	case metric || percentileName.MatchString(name):
		return name + " is a metric"
	case isGroup(name):
		return name + " stands before metrics"
	case name == "ramp" || name == "previous":
		return name + " has a meaning of its own in assertions"
	case slices.Contains(roots, name):
		return name + " has a meaning of its own in expressions"
	case slices.Contains(keywords, name):
		return name + " is a word of the expression language"
	}
	return ""
}

// String is the address in canonical order.
func (a *Address) String() string {
	var b strings.Builder
	for _, n := range slices.Concat([]string{a.Scenario, a.Phase, a.Stage}, a.Around, []string{a.Step, a.Target}) {
		if n != "" {
			b.WriteString(n + ".")
		}
	}
	if a.Ramp {
		b.WriteString("ramp.")
	}
	plain := a.Metric
	plain.Diff, plain.Bound, plain.Previous = "", "", false
	s := b.String() + plain.String()
	switch {
	case a.Metric.Diff != "" && a.Metric.Previous:
		s = a.Metric.Diff + "(" + s + ", previous)"
	case a.Metric.Diff != "":
		s = a.Metric.Diff + "(" + s + ")"
	case a.Metric.Previous:
		s = "previous." + s
	}
	if a.Metric.Bound != "" {
		s += "." + a.Metric.Bound
	}
	return s
}

// String is the metric as it is written.
func (m Metric) String() string {
	s := m.Name
	switch m.Name {
	case "p":
		s = strconv.FormatFloat(m.Percentile, 'f', -1, 64)
		if len(s) <= 2 || s == "99.9" || s == "99.99" {
			s = "p" + strings.Replace(s, ".", "", 1)
		} else {
			s = "p(" + s + ")"
		}
	case "within":
		s = "within(" + quantity.Value{F: float64(m.Within), Dim: quantity.Time}.Text(15) + ")"
	case "status":
		s = "status(" + m.Status + ")"
		if strings.HasSuffix(m.Status, "xx") {
			s = `status("` + m.Status + `")`
		}
	case "failures":
		s = `failures("` + m.Failure + `")`
	}
	if m.Group != "" {
		s = m.Group + "." + s
	}
	switch {
	case m.Diff != "" && m.Previous:
		s = m.Diff + "(" + s + ", previous)"
	case m.Diff != "":
		s = m.Diff + "(" + s + ")"
	case m.Previous:
		s = "previous." + s
	}
	if m.Bound != "" {
		s += "." + m.Bound
	}
	return s
}

// address reads a path that ends in a metric. It returns nil when it has reported why it can't.
func (c *checker) address(n ast.Node, path []part) *Address {
	at := c.span(n)
	a := &Address{Offset: at.from, Length: at.to - at.from, Text: c.textOf(at)}
	if d := path[0]; d.call && (d.name == "delta" || d.name == "change") {
		return c.difference(a, d, path[1:])
	}
	if !c.resolve(a, path) {
		return nil
	}
	return a
}

// difference reads delta(x) and change(x), perhaps with a bound.
func (c *checker) difference(a *Address, d part, rest []part) *Address {
	switch len(d.args) {
	case 1:
	case 2:
		p := c.parts(d.args[1])
		if len(p) != 1 || p[0].name != "previous" || p[0].call {
			c.fail(c.span(d.args[1]), d.name+" compares with the reference target, or with previous", "write "+d.name+"("+c.text(d.args[0])+", previous)")
			return nil
		}
		a.Metric.Previous = true
	default:
		c.fail(d.at, d.name+" takes one metric", "write "+functions[d.name])
		return nil
	}
	path := c.parts(d.args[0])
	switch {
	case path == nil:
		c.fail(c.span(d.args[0]), d.name+" takes one metric", "write "+functions[d.name])
		return nil
	case path[0].call && (path[0].name == "delta" || path[0].name == "change"):
		c.fail(path[0].at, d.name+" takes a metric, not a difference", "")
		return nil
	case path[0].name == "previous" && !path[0].call:
		c.fail(path[0].at, "previous is what is compared with", "write "+d.name+"("+c.textOf(span{path[1%len(path)].at.from, c.span(d.args[0]).to})+", previous)")
		return nil
	}
	if !c.resolve(a, path) {
		return nil
	}
	a.Metric.Diff = d.name
	if d.name == "change" {
		a.Metric.Dim = quantity.Share
	}
	if len(rest) == 0 {
		return a
	}
	if b := rest[0]; b.call || b.name != "low" && b.name != "high" {
		c.fail(b.at, "unknown "+strconv.Quote(b.name)+" behind "+d.name, "write .low or .high for the bounds of its interval, or nothing")
		return nil
	}
	if len(rest) > 1 {
		c.fail(rest[1].at, "unexpected "+strconv.Quote(rest[1].name), "")
		return nil
	}
	a.Metric.Bound = rest[0].name
	return a
}

// resolve fills an address from its names: first those of the plan, then ramp, a group, the metric.
func (c *checker) resolve(a *Address, path []part) bool {
	slots := [...]*string{Scenario: &a.Scenario, Phase: &a.Phase, Stage: &a.Stage, Target: &a.Target, Step: &a.Step}
	good := true
	fail := func(p part, message, hint string) {
		c.fail(p.at, message, hint)
		good = false
	}
	for i, p := range path {
		last := i == len(path)-1
		kind, named := c.names.Kind(p.name)
		info, metric := metricInfo(p.name)
		percentile := percentileName.MatchString(p.name)
		switch {
		case named && !p.call:
			switch slot := slots[kind]; {
			case a.Metric.Group != "" || a.Ramp:
				fail(p, fmt.Sprintf("%s is a %s: it stands before ramp and what is measured", p.name, kind), "")
			case *slot == p.name || slices.Contains(a.Around, p.name):
				fail(p, p.name+" is there twice", "")
			case kind == Step && *slot != "" && c.names.Within(p.name, *slot):
				a.Around, *slot = append(a.Around, *slot), p.name
			case kind == Step && *slot != "" && c.names.Within(*slot, p.name):
				a.Around = append(a.Around, p.name)
			case kind == Step && *slot != "":
				fail(p, fmt.Sprintf("%s and %s are both steps, and neither lies within the other", *slot, p.name), "")
			case *slot != "":
				fail(p, fmt.Sprintf("%s and %s are both %ss", *slot, p.name, kind), "")
			default:
				*slot = p.name
			}
			if last {
				fail(p, fmt.Sprintf("%s is a %s: a metric is missing", p.name, kind), "write "+c.textOf(span{path[0].at.from, p.at.to})+".p50")
			}
		case p.name == "ramp" && !p.call:
			if a.Ramp || a.Metric.Group != "" {
				fail(p, "ramp stands before what is measured, once", "")
			}
			a.Ramp = true
			if last {
				fail(p, "a metric is missing behind ramp", "write "+c.textOf(span{path[0].at.from, p.at.to})+".p50")
			}
		case p.name == "previous" && !p.call:
			switch {
			case i > 0:
				fail(p, "previous stands in front of the address", "write previous."+c.textOf(span{path[0].at.from, path[i-1].at.to}))
			case last:
				fail(p, "a metric is missing behind previous", "write previous.p50")
			}
			a.Metric.Previous = true
		case isGroup(p.name) && !p.call && !(last && metric):
			if a.Metric.Group != "" {
				fail(p, a.Metric.Group+" and "+p.name+" can't be combined", "")
			}
			a.Metric.Group = p.name
			if last {
				fail(p, p.name+" needs a statistic", "write "+p.name+".p50 or "+p.name+".mean")
			}
		case metric || percentile:
			if !last {
				if next := path[i+1]; p.call || !percentile && !info.Grouped && metric {
					fail(next, "nothing can follow "+p.name, "")
				} else {
					fail(next, "the metric comes last", "write "+next.name+"."+p.name)
				}
				return false
			}
			if !c.metric(a, p, info) {
				good = false
			}
		default:
			c.unknown(p, i == 0, last)
			return false
		}
	}
	return good
}

// mostNames is up to how many names are listed where none is near to an unknown one: a longer list helps nobody.
const mostNames = 8

// unknown reports a name that is nothing, the first or the last of an address.
func (c *checker) unknown(p part, first, last bool) {
	if p.call && (p.name == "delta" || p.name == "change") {
		c.fail(p.at, p.name+" stands in front of the whole address", "write it as in "+p.name+"(hybrid.p50)")
		return
	}
	if p.call {
		hint := ""
		if f := diag.Suggest(p.name, []string{"p", "within", "status", "failures", "delta", "change"}); f != "" {
			hint = "did you mean " + functions[f] + "?"
		}
		c.fail(p.at, "unknown function "+p.name, hint)
		return
	}
	if is, ok := elsewhere[p.name]; ok {
		c.fail(p.at, "unknown name "+p.name, "write "+is)
		return
	}
	valid := c.names.All()
	for _, m := range Metrics {
		if m.Name != "p" {
			valid = append(valid, m.Name)
		}
	}
	valid = append(valid, "p50", "p75", "p90", "p95", "p99", "p999", "ramp")
	for _, g := range Groups {
		valid = append(valid, g.Name)
	}
	if first && last {
		valid = append(valid, roots...)
	}
	hint := ""
	if s := diag.Suggest(p.name, valid); s != "" {
		hint = "did you mean " + s + "?"
	} else if n := c.names.All(); !last && len(n) > 0 && len(n) <= mostNames {
		hint = "names here are " + strings.Join(n, ", ")
	}
	c.fail(p.at, "unknown name "+strconv.Quote(p.name), hint)
}

// metric fills in the last part of an address.
func (c *checker) metric(a *Address, p part, info MetricInfo) bool {
	m := &a.Metric
	fail := func(message, hint string) bool {
		c.fail(p.at, message, hint)
		return false
	}
	if info.Name == "" { // p95
		info, _ = metricInfo("p")
		digits := p.name[1:]
		value, long := longPercentiles[p.name]
		switch n, _ := strconv.Atoi(digits); {
		case long:
		case strings.Trim(digits, "0") == "":
			return fail("there is no percentile 0", "write min")
		case p.name == "p100":
			return fail("there is no percentile 100", "write max")
		case digits[0] == '0':
			return fail(p.name+" has a leading zero", "write p"+strings.TrimLeft(digits, "0"))
		case len(digits) > 2:
			hint := "write p(...) with a number below 100"
			if short := strings.TrimRight(digits[2:], "0"); digits[0] == '9' && short != "" { // as p999 is p99.9
				hint = "write p(" + shorten(digits[:2]+"."+short, 20) + ")"
			}
			return fail("unknown percentile "+shorten(p.name, 20), hint)
		default:
			value = float64(n)
		}
		if p.call {
			return fail(p.name+" is a metric, not a function", "write "+p.name)
		}
		m.Name, m.Percentile, m.Dim = "p", value, info.Dim
	} else {
		m.Name, m.Dim = info.Name, info.Dim
		switch form := functions[info.Name]; {
		case form != "" && (!p.call || len(p.args) != 1):
			return fail(info.Name+" takes one argument", "write "+form)
		case form == "" && p.call:
			return fail(info.Name+" is a metric, not a function", "write "+info.Name)
		case form != "" && !c.argument(m, p):
			return false
		}
	}
	if m.Group != "" && !info.Grouped {
		return fail(fmt.Sprintf("%s has no %s", m.Group, m.Name), "behind "+m.Group+" stand mean, min, max, stddev and percentiles")
	}
	if info.Name == "rate_held" && a.Step != "" {
		return fail("rate_held is of a whole phase, not of a step", "")
	}
	return true
}

var statusClass = regexp.MustCompile(`^[1-9]xx$`)

// argument reads the argument of p, within, status or failures. It has to be known before the load.
func (c *checker) argument(m *Metric, p part) bool {
	arg := p.args[0]
	at := c.span(arg)
	fail := func(message, hint string) bool {
		c.fail(at, message, hint)
		return false
	}
	if s, ok := arg.(*ast.StringNode); ok {
		switch m.Name {
		case "status":
			if n, err := strconv.Atoi(s.Value); statusClass.MatchString(s.Value) || err == nil && n >= 0 && strconv.Itoa(n) == s.Value {
				m.Status = s.Value
				return true
			}
			return fail("expected a status or a class of them", `write status(503) or status("5xx")`)
		case "failures":
			if _, ok := drivers.ParseFailure(s.Value); ok {
				m.Failure = s.Value
				return true
			}
			var kinds []string
			for _, f := range drivers.Failures {
				kinds = append(kinds, f.String())
			}
			if near := diag.Suggest(s.Value, kinds); near != "" {
				return fail("unknown kind of failure "+strconv.Quote(shorten(s.Value, 40)), "did you mean "+strconv.Quote(near)+"?")
			}
			return fail("unknown kind of failure "+strconv.Quote(shorten(s.Value, 40)), "it is one of "+strings.Join(kinds, ", "))
		}
	}
	if m.Name == "failures" {
		hint := `write failures("timeout")`
		if path := c.parts(arg); len(path) == 1 {
			if _, ok := drivers.ParseFailure(path[0].name); ok {
				hint = `write failures("` + path[0].name + `")`
			}
		}
		return fail("expected the kind of failure, in quotes", hint)
	}
	if path := c.parts(arg); m.Name == "status" && len(path) == 1 && statusClass.MatchString(path[0].name) {
		return fail("expected text in quotes", `write status("`+path[0].name+`")`)
	}

	before := len(c.addresses)
	v := c.build(arg)
	switch {
	case v == nil:
		return false
	case len(c.addresses) > before || !v.constant || v.truth:
		c.addresses = c.addresses[:before]
		return fail("the argument of "+m.Name+" must be a constant", "write "+functions[m.Name])
	}
	switch m.Name {
	case "p":
		switch {
		case v.dim != quantity.Number:
			return fail("expected a plain number, but "+c.textOf(at)+" is "+v.dim.String(), "write "+functions["p"])
		case v.value == 0:
			return fail("there is no percentile 0", "write min")
		case v.value == 100:
			return fail("there is no percentile 100", "write max")
		case !(v.value > 0 && v.value < 100):
			return fail("a percentile lies between 0 and 100", "")
		}
		m.Percentile = v.value
	case "within":
		switch {
		case v.dim == quantity.Number && v.literal:
			return fail("expected a duration", "write "+quantity.WithUnit(c.textOf(at), quantity.Time))
		case v.dim != quantity.Time:
			return fail("expected a duration, but "+c.textOf(at)+" is "+v.dim.String(), "write within(1s)")
		case v.value < 1 || v.value >= 1<<62:
			return fail("expected a duration greater than zero", "write within(1s)")
		}
		m.Within = time.Duration(v.value)
	case "status":
		if v.dim != quantity.Number || v.value < 0 || v.value > 1e6 || v.value != float64(int(v.value)) {
			return fail("expected a status or a class of them", `write status(503) or status("5xx")`)
		}
		m.Status = strconv.Itoa(int(v.value))
	}
	return true
}

// constant reads a path that begins with a root, such as vars.limit.
func (c *checker) constant(n ast.Node, root Root, path []part) *term {
	var names []string
	for _, p := range path[1:] {
		if p.call {
			c.fail(p.at, p.name+" is not a function", "")
			return nil
		}
		names = append(names, p.name)
	}
	value, used, err := root(names)
	if err != nil {
		c.rootError(err, c.span(n), path)
		return nil
	}
	for i := max(0, min(used, len(names))); i < len(names); i++ {
		m, _ := value.(map[string]any)
		var ok bool
		if value, ok = m[names[i]]; !ok {
			c.fail(path[i+1].at, c.textOf(span{path[0].at.from, path[i].at.to})+" has no "+strconv.Quote(names[i]), "")
			return nil
		}
	}
	t := &term{op: opConstant, at: c.span(n), constant: true, root: true}
	switch v := value.(type) {
	case bool:
		t.truth, t.value = true, 0
		if v {
			t.value = 1
		}
	case int64:
		t.value = float64(v)
	case int:
		t.value = float64(v)
	case float64:
		t.value = v
	case string:
		q, err := quantity.Parse(v)
		if err != nil {
			c.fail(t.at, c.textOf(t.at)+" is the text "+strconv.Quote(shorten(v, 40))+", not a number or a quantity", "")
			return nil
		}
		t.value, t.dim = q.F, q.Dim
	case nil:
		c.fail(t.at, c.textOf(t.at)+" has no value", "")
		return nil
	case Missing:
		c.fail(t.at, string(v), "")
		return nil
	default:
		c.fail(t.at, c.textOf(t.at)+" is not a number or a quantity", "")
		return nil
	}
	return t
}

// rootError places an error of a Root at the name that is at fault.
func (s *source) rootError(err error, all span, path []part) {
	var e *NameError
	if !errors.As(err, &e) {
		s.fail(all, err.Error(), "")
		return
	}
	if i := e.Index + 1; i >= 0 && i < len(path) {
		all = path[i].at
	}
	s.fail(all, e.Message, e.Hint)
}
