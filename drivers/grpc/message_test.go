package grpc

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// treeFrom makes a tree of simple values, as a plan would hold it.
func treeFrom(t testing.TB, v any) any {
	t.Helper()
	op := drivertest.NewOp(t, New(), drivertest.Fields{"message": v})
	value, _ := op.Get("message")
	return treeOf(value)
}

// allDynamic turns every leaf of simple values into one that is only known at the time of the call.
func allDynamic(v any) any {
	switch v := v.(type) {
	case drivertest.Fields:
		out := drivertest.Fields{}
		for k, item := range v {
			out[k] = item
			if k != "@type" {
				out[k] = allDynamic(item)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = allDynamic(item)
		}
		return out
	case int:
		return drivertest.Func(func(*drivers.Input) any { return int64(v) })
	}
	return drivertest.Func(func(*drivers.Input) any { return v })
}

// A message in a plan, the same as JSON in the mapping of protobuf, and what an expectation reads of it (nil: left to the
// comparison of messages).
var messages = []struct {
	name string
	tree drivertest.Fields
	json string
	want map[string]any // some fields of the decoded message
}{
	{"empty", drivertest.Fields{}, `{}`, map[string]any{
		"flag": false, "i64": int64(0), "text": "", "raw": "", "colour": "COLOUR_UNSPECIFIED", "numbers": []any{}, "counts": map[string]any{}, "real": 0.0,
		"sub": nil, "maybe": nil, "name": nil, "at": nil,
	}},
	{"scalars", drivertest.Fields{
		"flag": true, "i32": -3, "i64": -1 << 60, "u32": 4000000000, "u64": "18446744073709551615", "s32": -5, "s64": "-9223372036854775808",
		"f32": 7, "f64": 1 << 40, "sf32": -9, "sf64": -10, "single": 0.1, "real": 0.1, "text": "ä", "raw": "AAEC",
	}, `{"flag": true, "i32": -3, "i64": "-1152921504606846976", "u32": 4000000000, "u64": "18446744073709551615", "s32": -5,
		"s64": "-9223372036854775808", "f32": 7, "f64": "1099511627776", "sf32": -9, "sf64": "-10", "single": 0.1, "real": 0.1, "text": "ä", "raw": "AAEC"}`,
		map[string]any{
			"i32": int64(-3), "i64": int64(-1 << 60), "u64": "18446744073709551615", "s64": int64(math.MinInt64), "single": 0.1, "real": 0.1, "text": "ä", "raw": "AAEC",
		}},
	{"zeros", drivertest.Fields{"flag": false, "i32": 0, "real": 0, "text": "", "raw": "", "colour": 0, "maybe": "", "id": 0},
		`{"maybe": "", "id": "0"}`, map[string]any{"maybe": "", "id": int64(0), "name": nil}},
	{"numbers as text", drivertest.Fields{"i64": "12", "u32": "13", "real": "1.5", "single": "NaN", "colour": "2"}, `{"i64": "12", "u32": 13, "real": 1.5, "single": "NaN", "colour": 2}`, nil},
	{"whole floats", drivertest.Fields{"i32": 3.0, "u64": 4.0, "real": "Infinity"}, `{"i32": 3, "u64": "4", "real": "Infinity"}`, nil},
	{"json names", drivertest.Fields{"byNumber": drivertest.Fields{"7": drivertest.Fields{}}, "maybeText": "x"}, `{"byNumber": {"7": {}}, "maybeText": "x"}`, nil},
	{"enums", drivertest.Fields{"colour": "COLOUR_RED", "colours": []any{"COLOUR_GREEN", 1, 77}}, `{"colour": "COLOUR_RED", "colours": ["COLOUR_GREEN", "COLOUR_RED", 77]}`,
		map[string]any{"colour": "COLOUR_RED", "colours": []any{"COLOUR_GREEN", "COLOUR_RED", int64(77)}}},
	{"nested", drivertest.Fields{"sub": drivertest.Fields{"sub": drivertest.Fields{"text": "deep", "numbers": []any{1, 2}}}, "subs": []any{drivertest.Fields{}, drivertest.Fields{"i32": 1}}},
		`{"sub": {"sub": {"text": "deep", "numbers": [1, 2]}}, "subs": [{}, {"i32": 1}]}`, nil},
	{"repeated", drivertest.Fields{"numbers": []any{1, 0, -1}, "texts": []any{"a", "", "b"}, "spread": []any{1, 0, 300}, "colours": []any{}},
		`{"numbers": [1, 0, -1], "texts": ["a", "", "b"], "spread": [1, 0, 300]}`, map[string]any{"numbers": []any{int64(1), int64(0), int64(-1)}, "texts": []any{"a", "", "b"}}},
	{"maps", drivertest.Fields{"counts": drivertest.Fields{"a": 1, "b": 0}, "by_number": drivertest.Fields{"-7": drivertest.Fields{"text": "x"}}, "by_flag": drivertest.Fields{"true": "yes", "false": ""}},
		`{"counts": {"a": 1, "b": 0}, "byNumber": {"-7": {"text": "x"}}, "byFlag": {"true": "yes", "false": ""}}`,
		map[string]any{"counts": map[string]any{"a": int64(1), "b": int64(0)}, "by_flag": map[string]any{"true": "yes", "false": ""}}},
	{"null leaves out", drivertest.Fields{"text": nil, "sub": nil, "numbers": nil, "counts": nil, "at": nil, "maybe_text": nil, "name": nil, "id": 3}, `{"id": "3"}`, nil},
	{"times", drivertest.Fields{"at": "2030-01-31T12:00:00.25+01:00", "took": "-1.5s", "times": []any{"1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"}},
		`{"at": "2030-01-31T11:00:00.250Z", "took": "-1.500s", "times": ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"]}`,
		map[string]any{"at": "2030-01-31T11:00:00.25Z", "took": "-1.5s", "times": []any{"1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"}}},
	{"durations", drivertest.Fields{"took": "2m30s", "subs": []any{drivertest.Fields{"took": "30ms"}}}, `{"took": "150s", "subs": [{"took": "0.030s"}]}`, map[string]any{"took": "150s"}},
	{"times by field", drivertest.Fields{"at": drivertest.Fields{"seconds": 5}, "took": drivertest.Fields{"nanos": 7}}, `{"at": "1970-01-01T00:00:05Z", "took": "0.000000007s"}`, nil},
	{"wrappers", drivertest.Fields{"maybe_text": "", "maybe_number": 0, "maybe_flag": true, "maybe_raw": "AA=="}, `{"maybeText": "", "maybeNumber": "0", "maybeFlag": true, "maybeRaw": "AA=="}`,
		map[string]any{"maybe_text": "", "maybe_number": int64(0), "maybe_flag": true, "maybe_raw": "AA=="}},
	{"wrapper by field", drivertest.Fields{"maybe_text": drivertest.Fields{"value": "x"}}, `{"maybeText": "x"}`, nil},
	{"struct", drivertest.Fields{"structure": drivertest.Fields{"a": 1, "b": "x", "c": true, "d": nil, "e": []any{1.5, drivertest.Fields{"f": "g"}}, "h": drivertest.Fields{}}},
		`{"structure": {"a": 1, "b": "x", "c": true, "d": null, "e": [1.5, {"f": "g"}], "h": {}}}`,
		map[string]any{"structure": map[string]any{"a": 1.0, "b": "x", "c": true, "d": nil, "e": []any{1.5, map[string]any{"f": "g"}}, "h": map[string]any{}}}},
	{"values", drivertest.Fields{"value": "x", "list": []any{1, nil}, "values": drivertest.Fields{"a": nil, "b": 2}}, `{"value": "x", "list": [1, null], "values": {"a": null, "b": 2}}`,
		map[string]any{"value": "x", "list": []any{1.0, nil}, "values": map[string]any{"a": nil, "b": 2.0}}},
	{"null value", drivertest.Fields{"value": nil}, `{"value": null}`, nil},
	{"any", drivertest.Fields{"any": drivertest.Fields{"@type": "type.googleapis.com/demo.v1.Everything", "i32": 1, "text": "inside"}},
		`{"any": {"@type": "type.googleapis.com/demo.v1.Everything", "i32": 1, "text": "inside"}}`, nil},
	{"any of a form of its own", drivertest.Fields{"any": drivertest.Fields{"@type": "google.protobuf.Duration", "value": "3s"}},
		`{"any": {"@type": "type.googleapis.com/google.protobuf.Duration", "value": "3s"}}`,
		map[string]any{"any": map[string]any{"@type": "type.googleapis.com/google.protobuf.Duration", "value": "3s"}}},
	{"mask", drivertest.Fields{"mask": "text,sub.text"}, `{"mask": "text,sub.text"}`, map[string]any{"mask": "text,sub.text"}},
	{"mask as list", drivertest.Fields{"mask": []any{"text", "i32"}}, `{"mask": "text,i32"}`, nil},
	{"nothing inside", drivertest.Fields{"empty": drivertest.Fields{}, "sub": drivertest.Fields{}}, `{"empty": {}, "sub": {}}`, map[string]any{"empty": map[string]any{}}},
	{"base64 of the other alphabet", drivertest.Fields{"raw": "-_8"}, `{"raw": "+/8="}`, map[string]any{"raw": "+/8="}},
	{"long", drivertest.Fields{"sub": drivertest.Fields{"text": strings.Repeat("x", 300), "sub": drivertest.Fields{"text": strings.Repeat("y", 20000)}}},
		fmt.Sprintf(`{"sub": {"text": %q, "sub": {"text": %q}}}`, strings.Repeat("x", 300), strings.Repeat("y", 20000)), nil},
}

func TestMessages(t *testing.T) {
	s := testSchema(t, "everything.proto")
	md := messageType(t, s, "demo.v1.Everything")
	for _, test := range messages {
		t.Run(test.name, func(t *testing.T) {
			want := dynamicpb.NewMessage(md)
			if err := (protojson.UnmarshalOptions{Resolver: s.types}).Unmarshal([]byte(test.json), want); err != nil {
				t.Fatal(err)
			}
			p, faults := compile(s, md, treeFrom(t, test.tree))
			if faults != nil {
				t.Fatal(faults)
			}
			b, constant := p.constant()
			if !constant {
				t.Fatal("a message without expressions is not constant")
			}
			same(t, s, md, b, want)

			// The same message with all its leaves known only at the time of the call.
			dynamic, faults := compile(s, md, treeFrom(t, allDynamic(test.tree)))
			if faults != nil {
				t.Fatal(faults)
			}
			var e encoder
			e.schema = s
			for range 2 {
				late, err := dynamic.append([]byte("before"), &e, &drivers.Input{})
				if err != nil {
					t.Fatal(err)
				}
				late = bytes.TrimPrefix(late, []byte("before"))
				same(t, s, md, late, want)
			}

			got, err := s.decode(md, b)
			if err != nil {
				t.Fatal(err)
			}
			for name, v := range test.want {
				if diff := cmp.Diff(v, got.(map[string]any)[name]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// same compares an encoded message with another.
func same(t *testing.T, s *schema, md protoreflect.MessageDescriptor, b []byte, want proto.Message) {
	t.Helper()
	got := dynamicpb.NewMessage(md)
	if err := (proto.UnmarshalOptions{Resolver: s.types}).Unmarshal(b, got); err != nil {
		t.Fatalf("the encoded message does not decode: %v", err)
	}
	wanted, err := (proto.MarshalOptions{Deterministic: true}).Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	gotBytes, err := (proto.MarshalOptions{Deterministic: true}).Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(gotBytes, wanted) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if len(b) != proto.Size(want) {
		t.Errorf("%d bytes are sent, %d are enough", len(b), proto.Size(want))
	}
}

func TestMessageFaults(t *testing.T) {
	s := testSchema(t, "everything.proto")
	md := messageType(t, s, "demo.v1.Everything")
	for _, test := range []struct {
		tree any
		want string
	}{
		{drivertest.Fields{"colr": "x"}, `colr: demo.v1.Everything has no field "colr": did you mean colour?`},
		{drivertest.Fields{"sub": drivertest.Fields{"sub": drivertest.Fields{"TEXT": "x"}}}, `sub.sub.TEXT: demo.v1.Everything has no field "TEXT": did you mean text?`},
		{drivertest.Fields{"subs": []any{drivertest.Fields{}, drivertest.Fields{"i32": "x"}}}, `subs.1.i32: expected a whole number, not "x"`},
		{drivertest.Fields{"counts": drivertest.Fields{"a": "x"}}, `counts.a: expected a whole number, not "x"`},
		{drivertest.Fields{"by_number": drivertest.Fields{"x": drivertest.Fields{}}}, `by_number.x: expected a whole number, not "x"`},
		{drivertest.Fields{"by_flag": drivertest.Fields{"maybe": "x"}}, `by_flag.maybe: the keys of this map are true and false, not "maybe"`},
		{drivertest.Fields{"counts": drivertest.Fields{"a": nil}}, "counts.a: a value of a map can't be null"},
		{drivertest.Fields{"flag": "true"}, `flag: expected true or false, not the text "true"`},
		{drivertest.Fields{"flag": 1}, "flag: expected true or false, not the number 1"},
		{drivertest.Fields{"text": 17}, `text: expected text, not the number 17: write "17"`},
		{drivertest.Fields{"text": true}, `text: expected text, not true: write "true"`},
		{drivertest.Fields{"text": []any{"a"}}, "text: expected text, not a list"},
		{drivertest.Fields{"text": "a\xffb"}, "text: a text must be valid UTF-8"},
		{drivertest.Fields{"i32": 1 << 31}, "i32: 2147483648 is out of the range of int32"},
		{drivertest.Fields{"i32": 1.5}, "i32: expected a whole number, not 1.5"},
		{drivertest.Fields{"u32": -1}, "u32: -1 is out of the range of uint32"},
		{drivertest.Fields{"u32": 1 << 32}, "u32: 4294967296 is out of the range of uint32"},
		{drivertest.Fields{"i64": "9223372036854775808"}, "i64: 9223372036854775808 is out of the range of int64"},
		{drivertest.Fields{"i64": true}, "i64: expected a whole number, not true"},
		{drivertest.Fields{"single": 1e300}, "single: 1e+300 is too large for a float"},
		{drivertest.Fields{"real": "x"}, `real: expected a number, not "x"`},
		{drivertest.Fields{"raw": "!"}, `raw: "!" is not Base64`},
		{drivertest.Fields{"raw": 3}, "raw: expected bytes as Base64 text, not the number 3"},
		{drivertest.Fields{"colour": "COLOUR_REED"}, `colour: demo.v1.Colour has no value "COLOUR_REED": did you mean COLOUR_RED?`},
		{drivertest.Fields{"colour": "PURPLE"}, `colour: demo.v1.Colour has no value "PURPLE": there are COLOUR_UNSPECIFIED, COLOUR_RED, COLOUR_GREEN`},
		{drivertest.Fields{"colour": true}, "colour: expected a value of demo.v1.Colour, not true"},
		{drivertest.Fields{"numbers": 3}, "numbers: the field is repeated: write a list, not the number 3"},
		{drivertest.Fields{"numbers": []any{1, nil}}, "numbers.1: expected a whole number, not null"},
		{drivertest.Fields{"texts": []any{nil}}, "texts.0: an element of a list can't be null"},
		{drivertest.Fields{"counts": []any{}}, "counts: the field is a map: write a mapping, not a list"},
		{drivertest.Fields{"sub": "x"}, `sub: demo.v1.Everything is a message: write a mapping of its fields, not the text "x"`},
		{drivertest.Fields{"name": "x", "id": 1}, `name: only one field of "choice" can be set, and id is: remove one of them`},
		{drivertest.Fields{"by_number": drivertest.Fields{}, "byNumber": drivertest.Fields{}}, `by_number: the field is there already, as "byNumber"`},
		{drivertest.Fields{"at": "noon"}, `at: expected a point in time, not the text "noon": write it as in 2030-01-31T12:00:00Z`},
		{drivertest.Fields{"took": 3}, "took: expected a duration, not the number 3: write it as in 1.5s or 2m30s"},
		{drivertest.Fields{"structure": []any{}}, "structure: expected a mapping, not a list"},
		{drivertest.Fields{"list": drivertest.Fields{"valus": []any{}}}, `list.valus: google.protobuf.ListValue has no field "valus": did you mean values?`},
		{drivertest.Fields{"any": drivertest.Fields{"text": "x"}}, "any: a google.protobuf.Any needs the type of its message"},
		{drivertest.Fields{"any": drivertest.Fields{"@type": "x/demo.Nothing"}}, `any.@type: there is no message "demo.Nothing"`},
		{drivertest.Fields{"mask": 3}, "mask: expected the paths of fields, not the number 3"},
		{drivertest.Fields{"maybe_number": "x"}, `maybe_number: expected a whole number, not "x"`},
		{[]any{}, "demo.v1.Everything is a message: write a mapping of its fields, not a list"},
		{"text", `demo.v1.Everything is a message: write a mapping of its fields, not the text "text"`},
	} {
		_, faults := compile(s, md, treeFrom(t, test.tree))
		if len(faults) != 1 {
			t.Errorf("%v: %d faults: %v", test.tree, len(faults), faults)
			continue
		}
		got := faults[0].problem.Error()
		if len(faults[0].path) > 0 {
			got = strings.Join(faults[0].path, ".") + ": " + got
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
	_, faults := compile(s, md, treeFrom(t, drivertest.Fields{"a": 1, "b": 2, "text": 3}))
	if len(faults) != 3 {
		t.Errorf("%d of 3 faults are told", len(faults))
	}
}

// What an expression gives is taken less strictly, and told by its place when it doesn't fit.
func TestLateValues(t *testing.T) {
	s := testSchema(t, "everything.proto")
	md := messageType(t, s, "demo.v1.Everything")
	give := func(v any) drivertest.Func { return func(*drivers.Input) any { return v } }
	for _, test := range []struct {
		tree any
		json string
		err  string
	}{
		{give(map[string]any{"text": "x", "sub": map[string]any{"i32": int64(1)}}), `{"text": "x", "sub": {"i32": 1}}`, ""},
		{give(nil), `{}`, ""},
		{give("x"), "", `demo.v1.Everything is a message: write a mapping of its fields, not the text "x"`},
		{give(map[string]any{"txt": "x"}), "", `txt: demo.v1.Everything has no field "txt": did you mean text?`},
		{give(fmt.Errorf("no row left")), "", "no row left"},
		{drivertest.Fields{"text": give(int64(17)), "texts": []any{give(true), give(1.5)}}, `{"text": "17", "texts": ["true", "1.5"]}`, ""},
		{drivertest.Fields{"flag": give("true"), "i32": give("12"), "colour": give("COLOUR_RED")}, `{"flag": true, "i32": 12, "colour": "COLOUR_RED"}`, ""},
		{drivertest.Fields{"sub": give(map[string]any{"text": "x", "numbers": []any{int64(1)}})}, `{"sub": {"text": "x", "numbers": [1]}}`, ""},
		{drivertest.Fields{"numbers": give([]any{int64(1), int64(2)}), "counts": give(map[string]any{"a": int64(1)})}, `{"numbers": [1, 2], "counts": {"a": 1}}`, ""},
		{drivertest.Fields{"counts": drivertest.Fields{"a": give(int64(1))}, "structure": drivertest.Fields{"headers": give(map[string]string{"k": "v"})}}, `{"counts": {"a": 1}, "structure": {"headers": {"k": "v"}}}`, ""},
		{drivertest.Fields{"sub": give(nil), "text": give(nil), "i32": give(nil), "numbers": give(nil)}, `{}`, ""},
		{drivertest.Fields{"sub": drivertest.Fields{"i32": give("x")}}, "", `sub.i32: expected a whole number, not "x"`},
		{drivertest.Fields{"subs": []any{drivertest.Fields{}, drivertest.Fields{"text": give("a\xff")}}}, "", "subs.1.text: a text must be valid UTF-8"},
		{drivertest.Fields{"sub": give(map[string]any{"sub": map[string]any{"x": int64(1)}})}, "", `sub: sub.x: demo.v1.Everything has no field "x"`},
		{drivertest.Fields{"i32": give(fmt.Errorf("no row left"))}, "", "i32: no row left"},
		{drivertest.Fields{"text": give(fmt.Errorf("no row left"))}, "", "text: no row left"},
		{drivertest.Fields{"structure": drivertest.Fields{"a": []any{give(fmt.Errorf("no row left"))}}}, "", "structure: no row left"},
	} {
		p, faults := compile(s, md, treeFrom(t, test.tree))
		if faults != nil {
			t.Fatal(faults)
		}
		b, err := p.append(nil, &encoder{schema: s}, &drivers.Input{})
		if test.err != "" {
			if err == nil || !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("got %v\nwant %s", err, test.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want := dynamicpb.NewMessage(md)
		if err := protojson.Unmarshal([]byte(test.json), want); err != nil {
			t.Fatal(err)
		}
		same(t, s, md, b, want)
	}
}

// proto2: required fields, closed enums, groups, extensions and defaults.
func TestProto2(t *testing.T) {
	s := testSchema(t, "old.proto")
	md := messageType(t, s, "demo.old.Old")
	for _, test := range []struct {
		tree drivertest.Fields
		want string
	}{
		{drivertest.Fields{}, `demo.old.Old requires the field "name"`},
		{drivertest.Fields{"name": "x", "closed": 3}, "demo.old.Closed has no value 3"},
	} {
		if _, faults := compile(s, md, treeFrom(t, test.tree)); len(faults) != 1 || faults[0].message != test.want {
			t.Errorf("got %v, want %s", faults, test.want)
		}
	}
	p, faults := compile(s, md, treeFrom(t, drivertest.Fields{"name": "x", "closed": "TWO", "inner": drivertest.Fields{"text": "y"}, "[demo.old.nick]": "z"}))
	if faults != nil {
		t.Fatal(faults)
	}
	b, _ := p.constant()
	got, err := s.decode(md, b)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"name": "x", "closed": "TWO", "inner": map[string]any{"text": "y"}, "[demo.old.nick]": "z"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A warm template of texts is encoded without allocating.
func TestTemplateAllocs(t *testing.T) {
	s := testSchema(t, "everything.proto")
	md := messageType(t, s, "demo.v1.Everything")
	text := drivertest.Mix{"user ", "17"} // not constant, as far as the encoder knows
	p, faults := compile(s, md, treeFrom(t, drivertest.Fields{"text": text, "i32": 3, "sub": drivertest.Fields{"text": text, "texts": []any{"a"}, "counts": drivertest.Fields{"a": 1}}}))
	if faults != nil {
		t.Fatal(faults)
	}
	e := &encoder{schema: s}
	buf := make([]byte, 0, 1024)
	in := &drivers.Input{}
	own := testing.AllocsPerRun(100, func() { text.AppendText(buf, in) })
	got := testing.AllocsPerRun(100, func() {
		if _, err := p.append(buf, e, in); err != nil {
			t.Fatal(err)
		}
	})
	if got > 2*own {
		t.Errorf("encoding makes %v allocations, of which its two templates make %v", got, 2*own)
	}
}

func BenchmarkEncode(b *testing.B) {
	s := testSchema(b, "everything.proto")
	md := messageType(b, s, "demo.v1.Everything")
	user := drivertest.Func(func(in *drivers.Input) any { return "user" })
	p, faults := compile(s, md, treeFrom(b, drivertest.Fields{"text": user, "i32": 3, "texts": []any{"a", "b"}, "sub": drivertest.Fields{"text": user, "counts": drivertest.Fields{"a": 1}}}))
	if faults != nil {
		b.Fatal(faults)
	}
	e := &encoder{schema: s}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.append(buf[:0], e, &drivers.Input{}); err != nil {
			b.Fatal(err)
		}
	}
}

// An entry of a map with a key of another type, at which the library panics.
var wrongMapKey = []byte("2\x0100000\xba\x01\a\b0\n\x01000")

// A field mask whose path ends in a space.
var oddMask = []byte("\x8a\x02\x06\n\x041ex ")

// An Any of a known type with content that is no message of it, and one whose URL has no slash.
var (
	brokenAny       = []byte("\x82\x02\x22\n\x14x/demo.v1.Everything\x12\n1000000000")
	anyWithoutSlash = []byte("\x82\x02\x14\n\x12demo.v1.Everything")
)

// A Duration of more than a second of nanoseconds.
var wrongDuration = []byte("\xe2\x01\x0b\x10\x80\xb6\xca\x91\xf8\xff\xff\xff\xff\x01")

// Whatever bytes an answer has, decoding ends with a value or an error, and what decodes is encoded to the same again.
func FuzzDecode(f *testing.F) {
	s := testSchema(f, "everything.proto")
	md := messageType(f, s, "demo.v1.Everything")
	f.Add(wrongMapKey)
	f.Add(oddMask)
	f.Add(brokenAny)
	f.Add(anyWithoutSlash)
	f.Add(wrongDuration)
	for _, test := range messages {
		p, faults := compile(s, md, treeFrom(f, test.tree))
		if faults != nil {
			f.Fatal(faults)
		}
		b, _ := p.constant()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := s.decode(md, b)
		if err != nil {
			return
		}
		// What was read can be sent, but for what only a .proto file can tell, such as the type of an Any.
		e := &encoder{schema: s}
		e.message(md, v)
		for _, fault := range e.faults {
			t.Logf("%v: %v", fault.path, fault.problem)
		}
		if len(e.faults) > 0 {
			return
		}
		again, err := s.decode(md, e.buf)
		if err != nil {
			t.Fatalf("what was read can't be read again: %v", err)
		}
		if fmt.Sprint(again) != fmt.Sprint(v) {
			t.Errorf("read   %v\nagain  %v", v, again)
		}
	})
}

// What of an answer has no text is shown by its parts, and can be sent again as it was: a field mask with paths that text with
// commas can't hold, a Duration that is not valid, an Any that can't be opened.
func TestDecodeWhatHasNoText(t *testing.T) {
	s := testSchema(t, "everything.proto")
	md := messageType(t, s, "demo.v1.Everything")
	for _, test := range []struct {
		field string
		want  any
	}{
		{"mask", []any{"text "}},
		{"mask", []any{"a,b", "text"}},
		{"mask", []any{""}},
		{"took", map[string]any{"seconds": int64(0), "nanos": int64(-2110612736)}},
		{"took", map[string]any{"seconds": int64(1), "nanos": int64(-1)}},
		{"took", map[string]any{"seconds": int64(315_576_000_001), "nanos": int64(0)}},
		{"took", map[string]any{"seconds": int64(math.MinInt64), "nanos": int64(0)}},
		{"any", map[string]any{"@type": "x/demo.v1.Everything", "@bytes": "MTAwMDAwMDAwMA=="}},
		{"any", map[string]any{"@type": "demo.v1.Everything", "@bytes": ""}},
		{"any", map[string]any{"@type": "type.googleapis.com/demo.v1.Unknown", "@bytes": "AAEC"}},
	} {
		tree := test.want
		if m, ok := tree.(map[string]any); ok {
			tree = drivertest.Fields(m)
		}
		p, faults := compile(s, md, treeFrom(t, drivertest.Fields{test.field: tree}))
		if faults != nil {
			t.Fatal(faults)
		}
		b, _ := p.constant()
		got, err := s.decode(md, b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got.(map[string]any)[test.field]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.field, diff)
		}
	}
	_, faults := compile(s, md, treeFrom(t, drivertest.Fields{"any": drivertest.Fields{"@type": "x/y", "@bytes": "?"}}))
	if len(faults) != 1 || strings.Join(faults[0].path, ".") != "any.@bytes" {
		t.Errorf("%+v", faults)
	}
}

func TestDecodeWrongMapKey(t *testing.T) {
	s := testSchema(t, "everything.proto")
	if _, err := s.decode(messageType(t, s, "demo.v1.Everything"), wrongMapKey); err == nil || !strings.Contains(err.Error(), "is not a demo.v1.Everything") {
		t.Errorf("%v", err)
	}
}
