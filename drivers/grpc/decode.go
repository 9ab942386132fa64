package grpc

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// decode makes what expectations read of a message:
//
//	message           a mapping by the field names of the .proto file
//	repeated, map     a list, a mapping by the key's text; empty ones are there
//	integers          int64; a uint64 above the greatest int64 is its digits as text
//	float, double     float64; a float is the shortest number that stands for it
//	enum              its name, or its number if it has none
//	bytes             Base64
//	Timestamp         text as in RFC 3339; a Duration is text as in 1.5s
//	wrappers, Struct  what they hold
//
// Fields without presence are there with their zero value; other fields that are not set are left out.
func (s *schema) decode(md protoreflect.MessageDescriptor, data []byte) (v any, err error) {
	// The library panics at the entry of a map whose key has another wire type than the map's (protobuf-go v1.36.12).
	defer func() {
		if recover() != nil {
			v, err = nil, fmt.Errorf("the answer is not a %s: it can't be decoded", md.FullName())
		}
	}()
	m := dynamicpb.NewMessage(md)
	if err := (proto.UnmarshalOptions{Resolver: s.types, AllowPartial: true}).Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("the answer is not a %s: %s", md.FullName(), plainProto(err))
	}
	return s.fromMessage(m), nil
}

func (s *schema) fromMessage(m protoreflect.Message) any {
	if v, ok := s.fromWellKnown(m); ok {
		return v
	}
	fields := m.Descriptor().Fields()
	out := make(map[string]any, fields.Len())
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.HasPresence() && !m.Has(fd) {
			continue
		}
		out[string(fd.Name())] = s.fromField(fd, m.Get(fd))
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.IsExtension() {
			out["["+string(fd.FullName())+"]"] = s.fromField(fd, v)
		}
		return true
	})
	return out
}

func (s *schema) fromField(fd protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch {
	case fd.IsMap():
		out := make(map[string]any, v.Map().Len())
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			out[k.String()] = s.fromValue(fd.MapValue(), v)
			return true
		})
		return out
	case fd.IsList():
		out := make([]any, v.List().Len())
		for i := range out {
			out[i] = s.fromValue(fd, v.List().Get(i))
		}
		return out
	}
	return s.fromValue(fd, v)
}

func (s *schema) fromValue(fd protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return v.Bool()
	case protoreflect.StringKind:
		return v.String()
	case protoreflect.BytesKind:
		return base64.StdEncoding.EncodeToString(v.Bytes())
	case protoreflect.EnumKind:
		if value := fd.Enum().Values().ByNumber(v.Enum()); value != nil {
			return string(value.Name())
		}
		return int64(v.Enum())
	case protoreflect.FloatKind:
		f, _ := strconv.ParseFloat(strconv.FormatFloat(v.Float(), 'g', -1, 32), 64)
		return f
	case protoreflect.DoubleKind:
		return v.Float()
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		if n := v.Uint(); n > math.MaxInt64 {
			return strconv.FormatUint(n, 10)
		}
		return int64(v.Uint())
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return s.fromMessage(v.Message())
	}
	return v.Int()
}

// fromWellKnown makes the natural value of a message that has one.
func (s *schema) fromWellKnown(m protoreflect.Message) (any, bool) {
	md := m.Descriptor()
	if md.ParentFile() == nil || !strings.HasPrefix(string(md.FullName()), "google.protobuf.") {
		return nil, false
	}
	get := func(n protoreflect.FieldNumber) protoreflect.Value { return m.Get(md.Fields().ByNumber(n)) }
	switch name := md.FullName(); {
	case isWrapper(name):
		return s.fromValue(md.Fields().ByNumber(1), get(1)), true
	case name == "google.protobuf.Timestamp":
		text, ok := rfc3339(get(1).Int(), get(2).Int())
		return text, ok
	case name == "google.protobuf.Duration":
		text, ok := secondsText(get(1).Int(), get(2).Int())
		return text, ok
	case name == "google.protobuf.FieldMask":
		return maskPaths(get(1).List()), true
	case name == "google.protobuf.Struct", name == "google.protobuf.ListValue":
		return s.fromField(md.Fields().ByNumber(1), get(1)), true
	case name == "google.protobuf.Value":
		fd := m.WhichOneof(md.Oneofs().Get(0))
		if fd == nil || fd.Number() == 1 {
			return nil, true
		}
		return s.fromValue(fd, m.Get(fd)), true
	case name == "google.protobuf.Any":
		return s.fromAny(get(1).String(), get(2).Bytes()), true
	}
	return nil, false
}

// maskPaths makes the text that JSON has for a google.protobuf.FieldMask, or a list where text could not be read back: no path
// of a field has a comma or space in it, but what a server sends may.
func maskPaths(list protoreflect.List) any {
	var paths []string
	var items []any
	asText := true
	for i := range list.Len() {
		path := list.Get(i).String()
		paths, items = append(paths, path), append(items, path)
		asText = asText && path != "" && path == strings.TrimSpace(path) && !strings.Contains(path, ",")
	}
	if !asText {
		return items
	}
	return strings.Join(paths, ",")
}

// rawKey is the member of an Any that has its content as it is, where it can't be opened. JSON has no form for that.
const rawKey = "@bytes"

// fromAny opens a google.protobuf.Any as JSON has it; a message of an unknown type, or one that is none, stays bytes.
func (s *schema) fromAny(url string, data []byte) any {
	if url == "" {
		return map[string]any{}
	}
	if md := s.typeOf(url); md != nil && strings.Contains(url, "/") {
		if v, err := s.decode(md, data); err == nil {
			if fields, ok := v.(map[string]any); ok && !freeForm(md.FullName()) {
				fields["@type"] = url
				return fields
			}
			return map[string]any{"@type": url, "value": v}
		}
	}
	return map[string]any{"@type": url, rawKey: base64.StdEncoding.EncodeToString(data)}
}

// typeOf finds the message that the URL of an Any names by what stands behind its last slash; nil if there is none.
func (s *schema) typeOf(url string) protoreflect.MessageDescriptor {
	d, err := s.files.FindDescriptorByName(protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]))
	if err != nil {
		return nil
	}
	md, _ := d.(protoreflect.MessageDescriptor)
	return md
}
