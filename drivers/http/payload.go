package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/http/wire"
)

// payload makes the body of a step.
func payload(op *drivers.Op) (wire.Body, drivers.FieldErrors) {
	var given []string
	for _, key := range []string{"body", "json", "form", "multipart", "body_file"} {
		if op.Has(key) {
			given = append(given, key)
		}
	}
	if len(given) == 0 {
		return wire.Body{}, nil
	}
	if len(given) > 1 {
		return wire.Body{}, drivers.FieldErrors{op.Errorf(given[1], "only one of %s can be given", strings.Join(given, " and "))}
	}
	b := wire.Body{Present: true}
	switch given[0] {
	case "body":
		text := wire.Plain(op.Template("body"))
		if c, ok := text.Constant(); ok {
			b.Constant = []byte(c)
		} else {
			b.Append = text.Append
		}
	case "form":
		text := form(op.Entries("form"))
		b.Type = "application/x-www-form-urlencoded"
		if c, ok := text.Constant(); ok {
			b.Constant = []byte(c)
		} else {
			b.Append = text.Append
		}
	case "multipart":
		text, typ, errs := formData(op)
		if len(errs) > 0 {
			return b, errs
		}
		b.Type = typ
		if c, ok := text.Constant(); ok {
			b.Constant = []byte(c)
		} else {
			b.Append = text.Append
		}
	case "body_file":
		data, err := readFile(op.Choice("body_file", ""), maxFiles)
		if err != nil {
			return b, drivers.FieldErrors{op.Errorf("body_file", "%v", err)}
		}
		b.Constant = data
	case "json":
		b.Type = "application/json"
		value, _ := op.Get("json")
		var tree jsonTree
		if err := tree.add(value); err != nil {
			return b, drivers.FieldErrors{op.Errorf("json", "it can't be written as JSON: %v", err)}
		}
		tree.flush()
		if len(tree.parts) == 1 && tree.parts[0].template == nil {
			b.Constant = tree.parts[0].text
		} else {
			b.Append = tree.append
		}
	}
	return b, nil
}

// form is a body of fields and values (WHATWG URL, section 5). A space is written %20, which every decoder knows.
func form(entries []drivers.Entry) wire.Text {
	var all wire.Text
	for i, e := range entries {
		if i > 0 {
			all.Join(wire.Fixed("&"))
		}
		all.Join(wire.Escaped(drivers.Constant(e.Key)))
		all.Join(wire.Fixed("="))
		all.Join(wire.Escaped(e.Value.Template))
	}
	return all
}

// jsonTree is a JSON text whose constant parts are encoded already.
type jsonTree struct {
	parts []jsonPart
	text  []byte // constant so far
}

type jsonPart struct {
	text     []byte
	template drivers.Template // nil: text
}

func (t *jsonTree) flush() {
	if len(t.text) > 0 {
		t.parts = append(t.parts, jsonPart{text: t.text})
		t.text = nil
	}
}

func (t *jsonTree) add(v drivers.Value) error {
	var err error
	switch {
	case v.Template != nil:
		c, ok := v.Template.Constant()
		if ok {
			t.text, err = appendJSON(t.text, c)
			return err
		}
		t.flush()
		t.parts = append(t.parts, jsonPart{template: v.Template})
	case v.IsMap:
		t.text = append(t.text, '{')
		for i, e := range v.Map {
			if i > 0 {
				t.text = append(t.text, ',')
			}
			t.text = append(appendString(t.text, e.Key), ':')
			if err := t.add(e.Value); err != nil {
				return fmt.Errorf("%s: %w", e.Key, err)
			}
		}
		t.text = append(t.text, '}')
	case v.Kind == drivers.Bool: // a value that the decoder has typed already
		t.text = strconv.AppendBool(t.text, v.Bool)
	default:
		t.text = append(t.text, '[')
		for i, item := range v.List {
			if i > 0 {
				t.text = append(t.text, ',')
			}
			if err := t.add(item); err != nil {
				return err
			}
		}
		t.text = append(t.text, ']')
	}
	return nil
}

func (t *jsonTree) append(dst []byte, in *drivers.Input) ([]byte, error) {
	for _, p := range t.parts {
		if p.template == nil {
			dst = append(dst, p.text...)
			continue
		}
		v, err := p.template.Eval(in)
		if err == nil {
			dst, err = appendJSON(dst, v)
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendJSON appends a value of an expression.
func appendJSON(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return appendString(dst, v), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return dst, fmt.Errorf("JSON has no number %v", v)
		}
		return strconv.AppendFloat(dst, v, 'f', -1, 64), nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return dst, errors.New("JSON has no such value")
	}
	return append(dst, b...), nil
}

// appendString appends a JSON string (RFC 8259, section 7). Text that is not UTF-8 is repaired.
func appendString(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += size
			continue
		}
		i++
	}
	return append(dst, '"')
}
