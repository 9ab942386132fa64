package grpc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	// Files that servers and descriptor sets often leave out.
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/apipb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/sourcecontextpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/typepb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

// freeForm tells whether a mapping given for a message is not a mapping of its fields.
func freeForm(name protoreflect.FullName) bool {
	switch name {
	case "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.Any":
		return true
	}
	return false
}

// isWrapper tells the messages that only make a scalar optional.
func isWrapper(name protoreflect.FullName) bool {
	switch name {
	case "google.protobuf.DoubleValue", "google.protobuf.FloatValue", "google.protobuf.Int64Value", "google.protobuf.UInt64Value",
		"google.protobuf.Int32Value", "google.protobuf.UInt32Value", "google.protobuf.BoolValue", "google.protobuf.StringValue",
		"google.protobuf.BytesValue":
		return true
	}
	return false
}

// wellKnown writes the content of a message that has a form of its own in a plan, as it has in JSON, and tells whether
// it is one. Apart from those of free form, all may be written as mappings of their fields, too.
func (e *encoder) wellKnown(md protoreflect.MessageDescriptor, tree any) bool {
	_, mapping := members(tree)
	name := md.FullName()
	switch {
	case name == "google.protobuf.Struct":
		e.structure(tree)
	case name == "google.protobuf.Value":
		e.value(tree)
	case name == "google.protobuf.Any":
		e.any(md, tree)
	case mapping:
		return false
	case name == "google.protobuf.ListValue":
		e.listValue(tree)
	case name == "google.protobuf.Timestamp":
		e.timestamp(tree)
	case name == "google.protobuf.Duration":
		e.duration(tree)
	case name == "google.protobuf.FieldMask":
		e.fieldMask(md, tree)
	case isWrapper(name):
		e.field(md.Fields().ByNumber(1), tree)
	default:
		return false
	}
	return true
}

func (e *encoder) timestamp(v any) {
	s, ok := v.(string)
	t, err := time.Parse(time.RFC3339Nano, s)
	if !ok || err != nil {
		e.fault("expected a point in time, not "+describe(v), "write it as in 2030-01-31T12:00:00Z")
		return
	}
	e.seconds(t.Unix(), int64(t.Nanosecond()))
}

func (e *encoder) duration(v any) {
	s, ok := v.(string)
	d, err := time.ParseDuration(s)
	if !ok || err != nil {
		e.fault("expected a duration, not "+describe(v), "write it as in 1.5s or 2m30s")
		return
	}
	e.seconds(int64(d/time.Second), int64(d%time.Second))
}

// seconds writes the fields of a Timestamp and a Duration.
func (e *encoder) seconds(seconds, nanos int64) {
	if seconds != 0 {
		e.buf = protowire.AppendTag(e.buf, 1, protowire.VarintType)
		e.buf = protowire.AppendVarint(e.buf, uint64(seconds))
	}
	if nanos != 0 {
		e.buf = protowire.AppendTag(e.buf, 2, protowire.VarintType)
		e.buf = protowire.AppendVarint(e.buf, uint64(nanos))
	}
}

func (e *encoder) fieldMask(md protoreflect.MessageDescriptor, v any) {
	var paths []any
	switch v := v.(type) {
	case string:
		for p := range strings.SplitSeq(v, ",") {
			if p = strings.TrimSpace(p); p != "" {
				paths = append(paths, p)
			}
		}
	case []any:
		paths = v
	default:
		e.fault("expected the paths of fields, not "+describe(v), "write a list, or text with commas")
		return
	}
	e.list(md.Fields().ByNumber(1), paths)
}

// structure writes the content of a google.protobuf.Struct: map<string, Value> fields = 1.
func (e *encoder) structure(tree any) {
	fields, ok := members(tree)
	if !ok {
		e.fault("expected a mapping, not "+describe(tree), "")
		return
	}
	for _, m := range fields {
		e.push(m.key)
		e.buf = protowire.AppendTag(e.buf, 1, protowire.BytesType)
		e.sized(nil, func() {
			e.buf = protowire.AppendTag(e.buf, 1, protowire.BytesType)
			e.buf = protowire.AppendString(e.buf, m.key)
			e.buf = protowire.AppendTag(e.buf, 2, protowire.BytesType)
			e.sized(nil, func() { e.value(m.value) })
		})
		e.pop()
	}
}

// listValue writes the content of a google.protobuf.ListValue: repeated Value values = 1.
func (e *encoder) listValue(tree any) {
	list, ok := tree.([]any)
	if !ok {
		e.fault("expected a list, not "+describe(tree), "")
		return
	}
	for _, item := range list {
		e.buf = protowire.AppendTag(e.buf, 1, protowire.BytesType)
		e.sized(nil, func() { e.value(item) })
	}
}

// value writes the content of a google.protobuf.Value, a oneof of null_value = 1, number_value = 2, string_value = 3,
// bool_value = 4, struct_value = 5 and list_value = 6.
func (e *encoder) value(tree any) {
	switch v := tree.(type) {
	case nil:
		e.buf = protowire.AppendVarint(protowire.AppendTag(e.buf, 1, protowire.VarintType), 0)
	case int64:
		e.buf = protowire.AppendFixed64(protowire.AppendTag(e.buf, 2, protowire.Fixed64Type), math.Float64bits(float64(v)))
	case float64:
		e.buf = protowire.AppendFixed64(protowire.AppendTag(e.buf, 2, protowire.Fixed64Type), math.Float64bits(v))
	case string:
		e.buf = protowire.AppendTag(e.buf, 3, protowire.BytesType)
		e.string(v)
	case bool:
		e.buf = protowire.AppendVarint(protowire.AppendTag(e.buf, 4, protowire.VarintType), protowire.EncodeBool(v))
	case []any:
		e.buf = protowire.AppendTag(e.buf, 6, protowire.BytesType)
		e.sized(nil, func() { e.listValue(v) })
	default:
		if _, ok := members(v); !ok {
			e.fault(describe(v)+" can't be put here", "")
			return
		}
		e.buf = protowire.AppendTag(e.buf, 5, protowire.BytesType)
		e.sized(nil, func() { e.structure(v) })
	}
}

// any writes the content of a google.protobuf.Any: string type_url = 1, bytes value = 2.
func (e *encoder) any(md protoreflect.MessageDescriptor, tree any) {
	fields, ok := members(tree)
	if !ok {
		e.fault("expected a mapping with @type, not "+describe(tree), "")
		return
	}
	var url string
	rest := make(object, 0, len(fields))
	for _, m := range fields {
		if m.key == "@type" {
			url, _ = m.value.(string)
			continue
		}
		rest = append(rest, m)
	}
	switch {
	case url == "" && len(fields) == 0:
		return
	case url == "":
		e.fault("a google.protobuf.Any needs the type of its message", `add "@type": type.googleapis.com/package.Message`)
		return
	}
	if len(rest) == 1 && rest[0].key == rawKey {
		e.rawAny(md, url, rest[0].value)
		return
	}
	inner := e.schema.typeOf(url)
	if inner == nil {
		e.push("@type")
		e.fault(fmt.Sprintf("there is no message %q", url[strings.LastIndexByte(url, '/')+1:]), "")
		e.pop()
		return
	}
	if !strings.Contains(url, "/") {
		url = "type.googleapis.com/" + url
	}
	e.buf = protowire.AppendTag(e.buf, 1, protowire.BytesType)
	e.buf = protowire.AppendString(e.buf, url)
	e.buf = protowire.AppendTag(e.buf, 2, protowire.BytesType)
	e.sized(nil, func() {
		// A message with a form of its own stands under "value", as in JSON.
		if len(rest) == 1 && rest[0].key == "value" && (freeForm(inner.FullName()) || !hasField(inner, "value") || isWrapper(inner.FullName())) {
			e.push("value")
			defer e.pop()
			if e.wellKnown(inner, rest[0].value) {
				return
			}
		}
		e.message(inner, rest)
	})
}

// rawAny writes an Any whose content is given as bytes in Base64, of a type that need not be known.
func (e *encoder) rawAny(md protoreflect.MessageDescriptor, url string, content any) {
	e.buf = protowire.AppendTag(e.buf, 1, protowire.BytesType)
	e.buf = protowire.AppendString(e.buf, url)
	e.push(rawKey)
	e.field(md.Fields().ByNumber(2), content)
	e.pop()
}

func hasField(md protoreflect.MessageDescriptor, name protoreflect.Name) bool {
	return md.Fields().ByName(name) != nil
}

// rfc3339 is the text of a Timestamp; ok is false outside the years 1 to 9999, where RFC 3339 ends.
func rfc3339(seconds, nanos int64) (text string, ok bool) {
	t := time.Unix(seconds, nanos).UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		return "", false
	}
	return t.Format(time.RFC3339Nano), true
}

// secondsText is the text of a Duration, in seconds with as many decimals as it needs; ok is false of one that is not valid:
// beyond 10 000 years, a second or more of nanoseconds, or two signs.
func secondsText(seconds, nanos int64) (text string, ok bool) {
	const most = 315_576_000_000
	if seconds < -most || seconds > most || nanos <= -1e9 || nanos >= 1e9 || seconds < 0 && nanos > 0 || seconds > 0 && nanos < 0 {
		return "", false
	}
	sign := ""
	if seconds < 0 || nanos < 0 {
		sign, seconds, nanos = "-", -seconds, -nanos
	}
	s := sign + strconv.FormatInt(seconds, 10)
	if nanos != 0 {
		s += strings.TrimRight(fmt.Sprintf(".%09d", nanos), "0")
	}
	return s + "s", true
}
