package plan

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/planrun/planrun/drivers"
)

// fake is a driver that prepares calls and keeps what it was given, for tests of decoding.
type fake struct {
	fields []drivers.Field
	answer []drivers.Name
	check  func(op *drivers.Op) error
}

type fakeCall struct{ op *drivers.Op }

func (c fakeCall) Endpoint() drivers.Endpoint { return drivers.Endpoint{} }

func (f *fake) Fields() []drivers.Field { return f.fields }
func (f *fake) Answer() []drivers.Name  { return f.answer }
func (f *fake) Prepare(op *drivers.Op) (drivers.Call, error) {
	if f.check != nil {
		if err := f.check(op); err != nil {
			return nil, err
		}
	}
	return fakeCall{op}, nil
}

func (f *fake) Connect(context.Context, drivers.Endpoint, drivers.Pool) (drivers.Client, error) {
	panic("not used")
}

var answers = []drivers.Name{
	{Name: "status", Kind: drivers.IntName, Doc: "The status."},
	{Name: "headers", Kind: drivers.TextsName, Doc: "The headers."},
	{Name: "body", Kind: drivers.TextName, Doc: "The body."},
	{Name: "json", Kind: drivers.AnyName, Doc: "The body, decoded."},
	{Name: "bytes", Kind: drivers.SizeName, Doc: "The size of the body."},
}

func field(key string, kind drivers.Kind, more ...drivers.Field) drivers.Field {
	return drivers.Field{Key: key, Kind: kind, Title: key, Doc: "The " + key + ".", Fields: more}
}

// fakes are drivers with fields of every kind, and the shorthands of the real ones.
func fakes() map[string]drivers.Driver {
	main := func(f drivers.Field) drivers.Field { f.Main = true; return f }
	choice := field("version", drivers.Choice)
	choice.Choices = []string{"1.1", "2"}
	http := &fake{
		fields: []drivers.Field{
			main(field("request", drivers.URL)), field("url", drivers.URL), field("get", drivers.URL), field("post", drivers.URL), choice,
			field("headers", drivers.Texts), field("body", drivers.Text), field("body_file", drivers.File), field("json", drivers.Tree),
			field("multipart", drivers.Groups, main(field("value", drivers.Text)), field("file", drivers.File)),
			field("redirects", drivers.Int), field("max_body", drivers.Size), field("idle", drivers.Duration),
			field("compressed", drivers.TextOrBool),
			field("tls", drivers.Group, field("ca", drivers.FileList), field("cert", drivers.File), field("insecure", drivers.Bool)),
		},
		answer: answers,
		check: func(op *drivers.Op) error {
			var errs drivers.FieldErrors
			n := 0
			for _, k := range []string{"request", "url", "get", "post"} {
				if op.Has(k) {
					n++
				}
				if v, ok := op.Get(k); ok && v.Template != nil {
					if c, constant := v.Template.Constant(); constant {
						errs = append(errs, fakeURL(op, k, fmt.Sprint(c))...)
					}
				}
			}
			switch {
			case n == 0:
				errs = append(errs, op.Errorf("url", "a URL is missing").WithHint("write get: and the URL"))
			case n > 1:
				errs = append(errs, op.Errorf("post", "one call has one URL"))
			}
			for _, e := range op.Entries("headers") {
				if c, ok := e.Value.Template.Constant(); ok && c == "" {
					errs = append(errs, op.Errorf("headers", "an empty header").At(e.Key))
				}
			}
			if tls := op.Group("tls"); tls.Has("cert") && !tls.Has("ca") {
				errs = append(errs, tls.Errorf("cert", "a certificate needs ca too"))
			}
			return errs.Err()
		},
	}
	sql := &fake{
		fields: []drivers.Field{field("dsn", drivers.Text), main(field("query", drivers.Text)), field("exec", drivers.Text), field("prepare", drivers.Bool), field("args", drivers.Args), field("list", drivers.List), field("value", drivers.Scalar)},
		answer: []drivers.Name{{Name: "rows", Kind: drivers.ListName}, {Name: "affected", Kind: drivers.IntName}},
		check: func(op *drivers.Op) error {
			if a, ok := op.Get("args"); ok && !a.IsMap {
				for i, v := range a.List {
					if c, ok := v.Template.Constant(); ok && c == "bad" {
						return drivers.FieldErrors{op.Errorf("args", "a bad argument").At(fmt.Sprint(i))}
					}
				}
			}
			return nil
		},
	}
	download := &fake{fields: []drivers.Field{main(field("url", drivers.URL)), field("headers", drivers.Texts)}, answer: answers}
	grpc := &fake{
		fields: []drivers.Field{field("call", drivers.Text), field("address", drivers.Text), field("message", drivers.Tree)},
		answer: []drivers.Name{{Name: "status", Kind: drivers.TextName}, {Name: "message", Kind: drivers.AnyName}},
	}
	return map[string]drivers.Driver{"http": http, "sql": sql, "download": download, "grpc": grpc}
}

// fakeURL refuses some of what real drivers do: URLs without an origin, except single words, and braces.
func fakeURL(op *drivers.Op, key, text string) drivers.FieldErrors {
	url := regexp.MustCompile(`^[A-Z]+ `).ReplaceAllString(text, "")
	switch {
	case strings.Contains(url, "{"):
		return drivers.FieldErrors{op.Errorf(key, "a URL has no braces")}
	case !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") && strings.ContainsAny(url, ".:/"):
		return drivers.FieldErrors{op.Errorf(key, "a URL begins with http:// or https://").WithHint("write https://%s", url)}
	}
	return nil
}

// dump writes a plan as tests compare it.
func dump(p *Plan) string {
	var b strings.Builder
	line := func(depth int, format string, args ...any) {
		b.WriteString(strings.Repeat("  ", depth))
		fmt.Fprintf(&b, format, args...)
		b.WriteByte('\n')
	}
	line(0, "plan %q %q reference=%d preflight=%v", p.Name, p.Description, p.Reference, p.Preflight)
	for _, k := range slices.Sorted(maps.Keys(p.Settings)) {
		line(0, "setting %s=%s", k, p.Settings[k])
	}
	for _, t := range p.Targets {
		line(0, "target %s lab=%v", t.Name, t.Lab)
	}
	for _, x := range []*Scenario{p.Before, p.After} {
		if x != nil {
			line(0, "%s of the plan: %d steps, captures %v", x.Name, len(x.Steps), x.Captures)
		}
	}
	for _, s := range p.Scenarios {
		line(0, "scenario %s %q at %s", s.Name, s.Title, s.Place)
		for _, st := range s.Steps {
			line(1, "step %q timeout=%v at %s%s", st.Name, st.Timeout, st.Place, map[bool]string{true: " continue"}[st.Continue])
			for i, a := range st.Actions {
				line(2, "%s: %s", p.Targets[i].Name, a.Driver)
				op := a.Call.(fakeCall).op
				for _, f := range fakes()[a.Driver].Fields() {
					if v, ok := op.Get(f.Key); ok {
						line(3, "%s = %s", f.Key, dumpValue(v))
					}
				}
				if len(op.Roots) > 0 {
					line(3, "roots %s", op.Roots)
				}
				for _, e := range a.Expect {
					line(3, "expect %s reads %v", e, e.Reads())
				}
				for _, c := range a.Captures {
					line(3, "capture %s as %d of %s secret=%v", c.Name, c.Index, c.Value, c.Secret)
				}
			}
		}
		for _, x := range []*Scenario{s.Before, s.After} {
			if x != nil {
				line(1, "%s: %d steps, captures %v", x.Name, len(x.Steps), x.Captures)
			}
		}
		if len(s.Captures) > 0 || s.MostBy != "" || len(s.Tags) > 0 || s.IsBackground {
			line(1, "captures %v most %d of %q tags %v background=%v timeout=%v", s.Captures, s.Most, s.MostBy, s.Tags, s.IsBackground, s.Timeout)
		}
		if s.Flow != nil {
			line(1, "captures %v groups %v", s.Captures, s.Groups)
			dumpFlow(line, 1, s.Flow)
		}
		for _, ph := range s.Phases {
			line(1, "phase %s %q %s at %s", ph.Name, ph.Title, ph.Kind, ph.Place)
			line(2, "users=%d count=%d duration=%v pause=%v timeout=%v warmup=%v rounds=%d connections=%d", ph.Users, ph.Count, ph.Duration, ph.Pause, ph.Timeout, ph.Warmup, ph.Rounds, ph.Connections)
			if ph.Kind == RampAndHold {
				line(2, "open=%v poisson=%v max_in_flight=%d patience=%v", ph.Open, ph.Poisson, ph.MaxInFlight, ph.Patience)
			}
			if bg := ph.Background; bg != nil {
				line(2, "%d users of %s in the background", bg.Users, bg.Scenario.Name)
			}
			for _, st := range ph.Stages {
				line(2, "stage %q ramp=%v %g..%g %v judged=%v", st.Name, st.Ramp, st.From, st.To, st.Length, st.Judged)
			}
		}
	}
	for _, a := range p.Assertions {
		line(0, "assert %s at %s in %q %q warn=%v", a.Text, a.Place, a.Scenario, a.Phase, a.Warn)
	}
	for _, s := range p.Sinks {
		line(0, "sink %s %s rows=%s at %s", s.Kind, s.Path, s.Rows, s.Place)
	}
	line(0, "results %q samples=%v", p.Results.Path, p.Results.Samples)
	if p.Lab != nil {
		for _, s := range p.Lab.Services {
			line(0, "service %+v", s)
		}
		for _, r := range p.Lab.Routes {
			relay := r.Relay
			r.Relay = nil
			line(0, "route %+v", r)
			if relay != nil {
				line(1, "relay %+v", *relay)
			}
		}
	}
	return b.String()
}

func dumpFlow(line func(int, string, ...any), depth int, parts []*Part) {
	for _, p := range parts {
		what := "group"
		switch {
		case p.Call != NoCall:
			what = fmt.Sprintf("call %d", p.Call)
		case p.Mix != nil:
			what = fmt.Sprintf("mix %v of %d turns", p.Mix.Weights, p.Mix.Cycle())
		case p.Parts == nil:
			what = fmt.Sprintf("pause %v", p.Pause)
		}
		line(depth, "%s repeat=%d sample=%d when=%v at %s", what, p.Repeat, p.Sample, p.When, p.Place)
		dumpFlow(line, depth+1, p.Parts)
		if p.Mix != nil {
			dumpFlow(line, depth+1, p.Mix.Branches)
		}
	}
}

func dumpValue(v drivers.Value) string {
	var s []string
	switch {
	case v.Template != nil:
		var parts []string
		for _, t := range drivers.Segments(v.Template) {
			if c, ok := t.Constant(); ok {
				parts = append(parts, fmt.Sprintf("%T(%v)", c, c))
				continue
			}
			text, err := t.AppendText(nil, &drivers.Input{Iteration: 7})
			parts = append(parts, fmt.Sprintf("${%s %v}", text, err))
		}
		return strings.Join(parts, "+")
	case v.IsMap:
		for _, e := range v.Map {
			s = append(s, e.Key+": "+dumpValue(e.Value))
		}
		return "{" + strings.Join(s, ", ") + "}"
	case v.List != nil:
		for _, e := range v.List {
			s = append(s, dumpValue(e))
		}
		return "[" + strings.Join(s, ", ") + "]"
	case v.String != "":
		if i := strings.LastIndex(v.String, "testdata/"); i >= 0 {
			return v.String[i:]
		}
		return v.String
	case v.Kind == drivers.Bool:
		return fmt.Sprint(v.Bool)
	}
	return fmt.Sprint(v.Int)
}
