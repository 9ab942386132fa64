package sql

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/planrun/planrun/drivers"
)

// call is one prepared step.
type call struct {
	endpoint drivers.Endpoint
	bindings bindings
	// constants has the values of bindings that are the same for every call; varying says which are not.
	constants []any
	varying   []bool
	// fixed is the statement if its text is the same for every call; otherwise text makes it.
	fixed statement
	text  drivers.Template

	exec    bool
	prepare bool
	keep    bool // an expectation reads the rows
	shown   string
}

// String is the statement on one line and shortened, for people.
func (c *call) String() string { return c.shown }

// maxShown is how many characters of a statement are shown.
const maxShown = 80

// oneLine is a statement for people: without comments and line breaks, with ${...} for what depends on the moment of the
// call, and cut at a space, so that no word of it, which might be a secret's, is shown in part.
func oneLine(text drivers.Template, d dialect) string {
	var sql strings.Builder
	for _, t := range drivers.Segments(text) {
		if v, ok := t.Constant(); ok {
			sql.Write(drivers.AppendText(nil, v))
		} else {
			sql.WriteString("${...}")
		}
	}
	var bare strings.Builder
	s := scanner{dialect: d, rest: sql.String()}
	for t, ok := s.next(); ok; t, ok = s.next() {
		if t.kind == opaque && (strings.HasPrefix(t.text, "--") || strings.HasPrefix(t.text, "/*") || t.text[0] == '#') {
			t.text = " "
		}
		bare.WriteString(t.text)
	}
	line, length := "", 0
	for i, w := range strings.Fields(bare.String()) {
		n := utf8.RuneCountInString(w)
		if i > 0 {
			if length+1+n > maxShown {
				return line + " ..."
			}
			line, length = line+" ", length+1
		} else if n > maxShown {
			return "..."
		}
		line, length = line+w, length+n
	}
	return line
}

// Endpoint is the database.
func (c *call) Endpoint() drivers.Endpoint { return c.endpoint }

// Prepare checks a step, and brings its query into the database's own form.
func (*Driver) Prepare(op *drivers.Op) (drivers.Call, error) {
	var errs drivers.FieldErrors
	c := &call{
		exec:    op.Has("exec"),
		prepare: op.Bool("prepare", true),
		keep:    op.Reads["rows"],
	}
	db, problems := parseDatabase(op)
	errs = append(errs, problems...)

	field, text := "", drivers.Template(nil)
	for _, key := range []string{"query", "exec", "query_file"} {
		if !op.Has(key) {
			continue
		}
		if field != "" {
			errs = append(errs, op.Errorf(key, "a step has one statement, but there is %s as well", field))
			continue
		}
		field, text = key, op.Template(key)
	}
	switch {
	case field == "":
		errs = append(errs, op.Errorf("query", "the statement is missing").WithHint("write query: for rows, or exec: for a change"))
	case field == "query_file":
		content, err := os.ReadFile(op.Choice(field, ""))
		if err != nil {
			errs = append(errs, op.Errorf(field, "can't be read: %v", err))
			break
		}
		text = drivers.Constant(strings.TrimPrefix(string(content), "\ufeff"))
	}
	if field != "" && c.exec && op.Reads["rows"] {
		errs = append(errs, op.Errorf(field, "an expectation reads rows, which exec doesn't keep").WithHint("write query: instead of exec:"))
	}
	if field != "" && !c.exec && op.Reads["affected"] {
		errs = append(errs, op.Errorf(field, "an expectation reads affected, which only exec knows").WithHint("write exec: instead of %s:", field))
	}

	errs = append(errs, c.bind(op, db)...)
	if db != nil {
		c.endpoint = drivers.Endpoint{Name: db.name, Key: db.key(), Config: db}
		c.bindings.dialect = db.dialect
	}
	if text != nil {
		if db != nil {
			c.shown = oneLine(text, db.dialect)
		}
		if s, ok := text.Constant(); ok {
			sql := string(drivers.AppendText(nil, s))
			if strings.TrimSpace(sql) == "" {
				errs = append(errs, op.Errorf(field, "the statement is empty"))
			} else if db != nil {
				var flaws []flaw
				c.fixed, flaws = c.bindings.compile(sql)
				for _, f := range flaws {
					path := f.path
					if len(path) == 0 {
						path = []string{field}
					}
					errs = append(errs, op.Errorf(path[0], "%s", f.message).At(path[1:]...).WithHint("%s", f.hint))
				}
			}
		} else {
			c.text = text
		}
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// bind reads the arguments. db is nil if the step does not say which database it is for.
func (c *call) bind(op *drivers.Op, db *database) (errs drivers.FieldErrors) {
	args, ok := op.Get("args")
	if !ok {
		return nil
	}
	if db == nil {
		db = &database{}
	}
	b := &c.bindings
	b.given = true
	add := func(key string, v drivers.Value) {
		path, typed := []string{key}, untyped
		if v.IsMap {
			if len(v.Map) != 1 {
				errs = append(errs, op.Errorf("args", "an argument has one type").At(key).WithHint("write one of time, datetime and date, with a value"))
				v.Map = nil
			}
			for _, e := range v.Map {
				path, typed, v = append(path, e.Key), temporalOf(e.Key), e.Value
			}
			if v.Template == nil {
				v.Template = drivers.Constant(nil)
			}
		}
		if v.Template == nil {
			errs = append(errs, op.Errorf("args", "an argument is text, a number, true, false or null").At(key))
			v.Template = drivers.Constant(nil) // counted, so that the number of arguments is not another fault
		}
		b.templates = append(b.templates, v.Template)
		b.types = append(b.types, typed)
		value, constant := v.Template.Constant()
		if constant {
			var err error
			if value, err = argument(db, typed, value); err != nil {
				errs = append(errs, op.Errorf("args", "%v", err).At(path...))
			}
		}
		c.constants = append(c.constants, value)
		c.varying = append(c.varying, !constant)
	}
	if args.IsMap {
		b.names = []string{}
		for _, e := range args.Map {
			b.names = append(b.names, e.Key)
			add(e.Key, e.Value)
		}
		return errs
	}
	for i, v := range args.List {
		add(fmt.Sprint(i), v)
	}
	return errs
}

// argument brings a value of a template into one of the types that every database takes: nil, string, int64, float64
// and bool, or, for a time, into what this one takes.
func argument(db *database, typed temporal, v any) (any, error) {
	if typed != untyped {
		return typed.value(db, v)
	}
	switch v := v.(type) {
	case nil, string, int64, float64, bool:
		return v, nil
	case int:
		return int64(v), nil
	}
	return nil, fmt.Errorf("an argument is text, a number, true, false or null, not %s", kindOf(v))
}

func kindOf(v any) string {
	switch v.(type) {
	case []any:
		return "a list"
	case map[string]any, map[string]string:
		return "a mapping"
	}
	return "something else"
}

// statement returns the statement of one call and its arguments, which are kept in buf.
func (c *call) statement(buf *[]any, in *drivers.Input) (statement, []any, error) {
	s := c.fixed
	if c.text != nil {
		text, err := c.text.AppendText(nil, in)
		if err != nil {
			return s, nil, err
		}
		var flaws []flaw
		if s, flaws = c.bindings.compile(string(text)); len(flaws) > 0 {
			return s, nil, flaws[0]
		}
	}
	// A value is made once, however often the text names it: buf has the values, and then the arguments.
	values := (*buf)[:0]
	db := c.endpoint.Config.(*database)
	for i, v := range c.constants {
		if c.varying[i] {
			got, err := c.bindings.templates[i].Eval(in)
			if err == nil {
				v, err = argument(db, c.bindings.types[i], got)
			}
			if err != nil {
				return s, nil, fmt.Errorf("args: %w", err)
			}
		}
		values = append(values, v)
	}
	n := len(values)
	for _, i := range s.order {
		values = append(values, values[i])
	}
	*buf = values
	return s, values[n:], nil
}
