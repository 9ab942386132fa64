package grpc

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/planrun/planrun/drivers"
)

// encoder writes trees as protobuf messages (https://protobuf.dev/programming-guides/encoding). With plan set it makes a
// program: dynamic leaves become steps of their own. Without, it is used while the load runs, on values.
//
// What is written in a plan is taken more strictly than what an expression gives: a number for a text, or a text for a
// truth value, is a slip in a plan, and natural in a value that comes from a table.
type encoder struct {
	schema *schema
	plan   bool
	steps  []step
	buf    []byte
	path   []string
	faults []fault
}

// fault is a problem and its place within the message.
type fault struct {
	path []string
	problem
}

// compile makes the program of a message. Faults have paths below the message.
func compile(s *schema, md protoreflect.MessageDescriptor, tree any) (*program, []fault) {
	e := &encoder{schema: s, plan: true}
	switch tree := tree.(type) {
	case nil:
	case dynamic:
		e.steps = append(e.steps, step{tree: tree, whole: md})
	default:
		e.message(md, tree)
	}
	if len(e.faults) > 0 {
		return nil, e.faults
	}
	e.flush()
	return &program{e.steps}, nil
}

// reset readies e for values to be appended to dst.
func (e *encoder) reset(dst []byte) { e.buf, e.path, e.faults = dst, e.path[:0], e.faults[:0] }

func (e *encoder) fault(message, hint string) {
	e.faults = append(e.faults, fault{slices.Clone(e.path), problem{message, hint}})
}

func (e *encoder) faultf(format string, args ...any) { e.fault(fmt.Sprintf(format, args...), "") }

func (e *encoder) push(key string) { e.path = append(e.path, key) }
func (e *encoder) pop()            { e.path = e.path[:len(e.path)-1] }

// flush ends the literal that is being written.
func (e *encoder) flush() {
	if len(e.buf) > 0 {
		e.steps = append(e.steps, step{literal: e.buf})
		e.buf = nil
	}
}

// leaf leaves a value to the time of the call.
func (e *encoder) leaf(fd protoreflect.FieldDescriptor, tree any, element bool) {
	e.flush()
	e.steps = append(e.steps, step{tree: tree, field: fd, element: element, path: slices.Clone(e.path)})
}

// sized writes what body writes, preceded by its length. content is the tree that body writes.
func (e *encoder) sized(content any, body func()) {
	if e.plan && isDynamic(content) {
		e.flush()
		e.steps = append(e.steps, step{open: true})
		body()
		e.flush()
		e.steps = append(e.steps, step{close: true})
		return
	}
	start := len(e.buf)
	body()
	e.buf = prefix(e.buf, start)
}

// message writes the fields of a message.
func (e *encoder) message(md protoreflect.MessageDescriptor, tree any) {
	fields, ok := members(tree)
	if !ok {
		e.fault(fmt.Sprintf("%s is a message", md.FullName()), "write a mapping of its fields, not "+describe(tree))
		return
	}
	given := make(map[protoreflect.FieldNumber]string, len(fields))
	oneofs := map[protoreflect.FullName]string{}
	for _, m := range fields {
		e.push(m.key)
		fd := e.lookup(md, m.key)
		if fd == nil {
			e.fault(fmt.Sprintf("%s has no field %q", md.FullName(), m.key), oneOf(m.key, fieldNames(md)))
			e.pop()
			continue
		}
		if before, twice := given[fd.Number()]; twice {
			e.faultf("the field is there already, as %q", before)
		}
		given[fd.Number()] = m.key
		if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() && m.value != nil && !isBareDynamic(m.value) {
			// Of several expressions, all but one may turn out to be null.
			if before, twice := oneofs[o.FullName()]; twice {
				e.fault(fmt.Sprintf("only one field of %q can be set, and %s is", o.Name(), before), "remove one of them")
			}
			oneofs[o.FullName()] = m.key
		}
		e.field(fd, m.value)
		e.pop()
	}
	required := md.RequiredNumbers()
	for i := range required.Len() {
		if _, ok := given[required.Get(i)]; !ok {
			e.faultf("%s requires the field %q", md.FullName(), md.Fields().ByNumber(required.Get(i)).Name())
		}
	}
}

// lookup finds a field by its name in the .proto file or its name in JSON.
func (e *encoder) lookup(md protoreflect.MessageDescriptor, key string) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByName(protoreflect.Name(key)); fd != nil {
		return fd
	}
	if fd := md.Fields().ByJSONName(key); fd != nil {
		return fd
	}
	if name, ok := strings.CutPrefix(key, "["); ok && strings.HasSuffix(name, "]") && e.schema != nil {
		name = name[:len(name)-1]
		if xt, err := e.schema.types.FindExtensionByName(protoreflect.FullName(name)); err == nil && xt.TypeDescriptor().ContainingMessage().FullName() == md.FullName() {
			return xt.TypeDescriptor()
		}
	}
	return nil
}

func fieldNames(md protoreflect.MessageDescriptor) []string {
	names := make([]string, md.Fields().Len())
	for i := range names {
		names[i] = string(md.Fields().Get(i).Name())
	}
	return names
}

// field writes a field as a whole. null leaves it out.
func (e *encoder) field(fd protoreflect.FieldDescriptor, tree any) {
	switch {
	case tree == nil && fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Value" && !fd.IsList() && !fd.IsMap():
		e.element(fd, tree) // null is a value of its own there
	case tree == nil:
	case isBareDynamic(tree) && e.plan:
		e.leaf(fd, tree, false)
	case fd.IsMap():
		e.entries(fd, tree)
	case fd.IsList():
		e.list(fd, tree)
	case e.plan && isDynamic(tree) && !plain(fd, tree):
		e.leaf(fd, tree, false)
	case !fd.HasPresence() && fd.Message() == nil:
		// A field without presence that has its zero value is not on the wire.
		before := len(e.buf)
		e.element(fd, tree)
		if b := e.buf[before:]; len(b) > 0 {
			_, _, n := protowire.ConsumeTag(b)
			if !slices.ContainsFunc(b[n:], func(c byte) bool { return c != 0 }) {
				e.buf = e.buf[:before]
			}
		}
	default:
		e.element(fd, tree)
	}
}

// isBareDynamic tells whether a tree is one dynamic leaf.
func isBareDynamic(tree any) bool { _, ok := tree.(dynamic); return ok }

// plain tells whether a tree is a mapping of the fields of an ordinary message.
func plain(fd protoreflect.FieldDescriptor, tree any) bool {
	_, ok := members(tree)
	return ok && fd.Message() != nil && !freeForm(fd.Message().FullName())
}

func (e *encoder) list(fd protoreflect.FieldDescriptor, tree any) {
	list, ok := tree.([]any)
	if !ok {
		e.fault("the field is repeated", "write a list, not "+describe(tree))
		return
	}
	if len(list) == 0 {
		return
	}
	if !fd.IsPacked() {
		for i, item := range list {
			e.push(strconv.Itoa(i))
			if e.plan && isDynamic(item) && !plain(fd, item) {
				e.leaf(fd, item, true)
			} else {
				e.element(fd, item)
			}
			e.pop()
		}
		return
	}
	if e.plan && isDynamic(list) {
		e.leaf(fd, tree, false)
		return
	}
	e.buf = protowire.AppendTag(e.buf, fd.Number(), protowire.BytesType)
	e.sized(list, func() {
		for i, item := range list {
			e.push(strconv.Itoa(i))
			e.scalar(fd, item)
			e.pop()
		}
	})
}

func (e *encoder) entries(fd protoreflect.FieldDescriptor, tree any) {
	entries, ok := members(tree)
	if !ok {
		e.fault("the field is a map", "write a mapping, not "+describe(tree))
		return
	}
	key, value := fd.MapKey(), fd.MapValue()
	for _, m := range entries {
		e.push(m.key)
		e.buf = protowire.AppendTag(e.buf, fd.Number(), protowire.BytesType)
		e.sized(m.value, func() {
			e.mapKey(key, m.key)
			switch {
			case m.value == nil && (value.Message() == nil || value.Message().FullName() != "google.protobuf.Value"):
				e.faultf("a value of a map can't be null")
			case e.plan && isDynamic(m.value) && !plain(value, m.value):
				e.leaf(value, m.value, true)
			default:
				e.element(value, m.value)
			}
		})
		e.pop()
	}
}

// mapKey writes the key of a map's entry. Keys are text in a plan, whatever they are in the message.
func (e *encoder) mapKey(fd protoreflect.FieldDescriptor, key string) {
	var v any = key
	if fd.Kind() == protoreflect.BoolKind {
		b, err := strconv.ParseBool(key)
		if err != nil {
			e.fault(fmt.Sprintf("the keys of this map are true and false, not %q", key), "")
			return
		}
		v = b
	}
	e.element(fd, v)
}

// element writes one value of a field, with its tag.
func (e *encoder) element(fd protoreflect.FieldDescriptor, tree any) {
	if tree == nil && !(fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Value") {
		e.faultf("an element of a list can't be null")
		return
	}
	switch {
	case fd.Kind() == protoreflect.GroupKind:
		e.buf = protowire.AppendTag(e.buf, fd.Number(), protowire.StartGroupType)
		e.message(fd.Message(), tree)
		e.buf = protowire.AppendTag(e.buf, fd.Number(), protowire.EndGroupType)
	case fd.Message() != nil:
		e.buf = protowire.AppendTag(e.buf, fd.Number(), protowire.BytesType)
		e.sized(tree, func() {
			if !e.wellKnown(fd.Message(), tree) {
				e.message(fd.Message(), tree)
			}
		})
	default:
		e.buf = protowire.AppendTag(e.buf, fd.Number(), wireType(fd.Kind()))
		e.scalar(fd, tree)
	}
}

func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	case protoreflect.StringKind, protoreflect.BytesKind:
		return protowire.BytesType
	}
	return protowire.VarintType
}

var errUTF8 = errors.New("a text must be valid UTF-8")

// scalar writes a value that is no message, without a tag.
func (e *encoder) scalar(fd protoreflect.FieldDescriptor, v any) {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		e.bool(v)
	case protoreflect.EnumKind:
		e.enum(fd.Enum(), v)
	case protoreflect.StringKind:
		e.string(v)
	case protoreflect.BytesKind:
		e.bytes(v)
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		e.buf = protowire.AppendVarint(e.buf, uint64(e.signed(v, fd.Kind(), fd.Kind() == protoreflect.Int32Kind)))
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		e.buf = protowire.AppendVarint(e.buf, protowire.EncodeZigZag(e.signed(v, fd.Kind(), fd.Kind() == protoreflect.Sint32Kind)))
	case protoreflect.Sfixed32Kind:
		e.buf = protowire.AppendFixed32(e.buf, uint32(e.signed(v, fd.Kind(), true)))
	case protoreflect.Sfixed64Kind:
		e.buf = protowire.AppendFixed64(e.buf, uint64(e.signed(v, fd.Kind(), false)))
	case protoreflect.Uint32Kind:
		e.buf = protowire.AppendVarint(e.buf, e.unsigned(v, fd.Kind(), 32))
	case protoreflect.Uint64Kind:
		e.buf = protowire.AppendVarint(e.buf, e.unsigned(v, fd.Kind(), 64))
	case protoreflect.Fixed32Kind:
		e.buf = protowire.AppendFixed32(e.buf, uint32(e.unsigned(v, fd.Kind(), 32)))
	case protoreflect.Fixed64Kind:
		e.buf = protowire.AppendFixed64(e.buf, e.unsigned(v, fd.Kind(), 64))
	case protoreflect.FloatKind:
		f := e.float(v)
		if !math.IsInf(f, 0) && math.Abs(f) > math.MaxFloat32 {
			e.faultf("%v is too large for a float", f)
		}
		e.buf = protowire.AppendFixed32(e.buf, math.Float32bits(float32(f)))
	case protoreflect.DoubleKind:
		e.buf = protowire.AppendFixed64(e.buf, math.Float64bits(e.float(v)))
	}
}

func (e *encoder) bool(v any) {
	b, ok := v.(bool)
	if s, isText := v.(string); isText && !e.plan && (s == "true" || s == "false") {
		b, ok = s == "true", true
	}
	if !ok {
		e.fault("expected true or false, not "+describe(v), "")
	}
	e.buf = protowire.AppendVarint(e.buf, protowire.EncodeBool(b))
}

func (e *encoder) string(v any) {
	s, ok := v.(string)
	if !ok {
		switch v.(type) {
		case int64, float64, bool:
			if e.plan {
				e.fault("expected text, not "+describe(v), fmt.Sprintf("write %q", drivers.AppendText(nil, v)))
			}
			s = string(drivers.AppendText(nil, v))
		default:
			e.fault("expected text, not "+describe(v), "")
		}
	}
	if !utf8.ValidString(s) {
		e.fault(errUTF8.Error(), "")
	}
	e.buf = protowire.AppendString(e.buf, s)
}

func (e *encoder) bytes(v any) {
	s, ok := v.(string)
	if !ok {
		e.fault("expected bytes as Base64 text, not "+describe(v), "")
		return
	}
	b, err := decodeBase64(s)
	if err != nil {
		e.fault(fmt.Sprintf("%q is not Base64", abbreviate(s)), "")
		return
	}
	e.buf = protowire.AppendBytes(e.buf, b)
}

// decodeBase64 decodes both alphabets of RFC 4648, padded or not.
func decodeBase64(s string) ([]byte, error) {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	return base64.RawStdEncoding.DecodeString(s)
}

func (e *encoder) enum(ed protoreflect.EnumDescriptor, v any) {
	switch v := v.(type) {
	case string:
		if value := ed.Values().ByName(protoreflect.Name(v)); value != nil {
			e.buf = protowire.AppendVarint(e.buf, uint64(value.Number()))
			return
		}
		if n, err := strconv.ParseInt(v, 10, 32); err == nil {
			e.enumNumber(ed, n)
			return
		}
		names := make([]string, ed.Values().Len())
		for i := range names {
			names[i] = string(ed.Values().Get(i).Name())
		}
		e.fault(fmt.Sprintf("%s has no value %q", ed.FullName(), v), oneOf(v, names))
	case int64:
		e.enumNumber(ed, v)
	default:
		e.fault(fmt.Sprintf("expected a value of %s, not %s", ed.FullName(), describe(v)), "")
	}
}

func (e *encoder) enumNumber(ed protoreflect.EnumDescriptor, n int64) {
	if n < math.MinInt32 || n > math.MaxInt32 || ed.IsClosed() && ed.Values().ByNumber(protoreflect.EnumNumber(n)) == nil {
		e.faultf("%s has no value %d", ed.FullName(), n)
		return
	}
	e.buf = protowire.AppendVarint(e.buf, uint64(n))
}

// signed returns a whole number. 64-bit numbers may be written as text, as JSON has it.
func (e *encoder) signed(v any, kind protoreflect.Kind, small bool) int64 {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case float64:
		if v != math.Trunc(v) || v < math.MinInt64 || v >= math.MaxInt64 {
			e.faultf("expected a whole number, not %v", v)
			return 0
		}
		n = int64(v)
	case string:
		var err error
		if n, err = strconv.ParseInt(v, 10, 64); err != nil {
			e.number(v, kind, err)
			return 0
		}
	default:
		e.fault("expected a whole number, not "+describe(v), "")
		return 0
	}
	if small && (n < math.MinInt32 || n > math.MaxInt32) {
		e.faultf("%d is out of the range of %s", n, kind)
	}
	return n
}

func (e *encoder) unsigned(v any, kind protoreflect.Kind, bits int) uint64 {
	var n uint64
	switch v := v.(type) {
	case int64:
		if v < 0 {
			e.faultf("%d is out of the range of %s", v, kind)
			return 0
		}
		n = uint64(v)
	case float64:
		if v != math.Trunc(v) || v < 0 || v >= math.MaxUint64 {
			e.faultf("expected a whole number that is not negative, not %v", v)
			return 0
		}
		n = uint64(v)
	case string:
		var err error
		if n, err = strconv.ParseUint(v, 10, 64); err != nil {
			e.number(v, kind, err)
			return 0
		}
	default:
		e.fault("expected a whole number, not "+describe(v), "")
		return 0
	}
	if bits == 32 && n > math.MaxUint32 {
		e.faultf("%d is out of the range of %s", n, kind)
	}
	return n
}

// number tells what is wrong with digits.
func (e *encoder) number(s string, kind protoreflect.Kind, err error) {
	if errors.Is(err, strconv.ErrRange) {
		e.faultf("%s is out of the range of %s", s, kind)
		return
	}
	e.fault(fmt.Sprintf("expected a whole number, not %q", abbreviate(s)), "")
}

func (e *encoder) float(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case int64:
		return float64(v)
	case string:
		switch v {
		case "NaN":
			return math.NaN()
		case "Infinity":
			return math.Inf(1)
		case "-Infinity":
			return math.Inf(-1)
		}
		if f, err := strconv.ParseFloat(v, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f
		}
		e.fault(fmt.Sprintf("expected a number, not %q", abbreviate(v)), "")
	default:
		e.fault("expected a number, not "+describe(v), "")
	}
	return 0
}

// describe names a value in a message to people.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("the text %q", abbreviate(v))
	case bool:
		return strconv.FormatBool(v)
	case int64, float64:
		return string(drivers.AppendText([]byte("the number "), v))
	case []any:
		return "a list"
	case dynamic:
		return "an expression"
	}
	if _, ok := members(v); ok {
		return "a mapping"
	}
	return "a value of another kind"
}

// abbreviate shortens a text for a message.
func abbreviate(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
