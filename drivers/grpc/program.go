package grpc

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/planrun/planrun/drivers"
)

// program encodes one message of a plan. Everything that is known before the load is encoded in its literals; a message
// without dynamic leaves is one literal.
type program struct {
	steps []step
}

// step is one part of an encoded message. Exactly one of these is the case: literal bytes; a length that opens or
// closes here; a leaf whose value is put in (tree is not nil).
type step struct {
	literal []byte
	open    bool // the bytes up to the matching close are preceded by their length
	close   bool

	tree    any // the leaf
	field   protoreflect.FieldDescriptor
	element bool                           // encode the leaf as one element of the field, not as the whole field
	whole   protoreflect.MessageDescriptor // instead of field: the leaf is the message itself
	path    []string
}

// constant returns the message if it does not depend on the moment of the call.
func (p *program) constant() ([]byte, bool) {
	switch {
	case len(p.steps) == 0:
		return nil, true
	case len(p.steps) == 1 && p.steps[0].tree == nil:
		return p.steps[0].literal, true
	}
	return nil, false
}

// append appends the message of one call to dst. It allocates only what evaluating its leaves does, and the space.
func (p *program) append(dst []byte, e *encoder, in *drivers.Input) ([]byte, error) {
	var depth [16]int
	open := depth[:0]
	for i := range p.steps {
		s := &p.steps[i]
		var err error
		switch {
		case s.open:
			open = append(open, len(dst))
		case s.close:
			dst = prefix(dst, open[len(open)-1])
			open = open[:len(open)-1]
		case s.tree == nil:
			dst = append(dst, s.literal...)
		case s.text():
			dst, err = s.appendText(dst, in)
		default:
			var v any
			if v, err = evaluate(s.tree, in); err == nil {
				dst, err = s.appendValue(dst, v, e)
			}
		}
		if err != nil && len(s.path) > 0 {
			err = fmt.Errorf("%s: %w", strings.Join(s.path, "."), err)
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// text tells whether the leaf is the text of a string field, which needs no value of its own. Where null and the empty
// text differ, it does.
func (s *step) text() bool {
	_, ok := s.tree.(dynamic)
	return ok && s.field != nil && s.field.Kind() == protoreflect.StringKind && !s.element && !s.field.IsList() && !s.field.HasPresence()
}

func (s *step) appendText(dst []byte, in *drivers.Input) ([]byte, error) {
	before := len(dst)
	dst = protowire.AppendTag(dst, s.field.Number(), protowire.BytesType)
	start := len(dst)
	dst, err := s.tree.(dynamic).AppendText(dst, in)
	switch {
	case err != nil:
		return dst, err
	case !utf8.Valid(dst[start:]):
		return dst, errUTF8
	case len(dst) == start:
		return dst[:before], nil
	}
	return prefix(dst, start), nil
}

func (s *step) appendValue(dst []byte, v any, e *encoder) ([]byte, error) {
	e.reset(dst)
	switch {
	case s.whole != nil && v == nil: // an empty message
	case s.whole != nil:
		e.message(s.whole, v)
	case s.element:
		e.element(s.field, v)
	default:
		e.field(s.field, v)
	}
	if len(e.faults) > 0 {
		f := e.faults[0]
		if len(f.path) > 0 {
			return e.buf, fmt.Errorf("%s: %w", strings.Join(f.path, "."), &f.problem)
		}
		return e.buf, &f.problem
	}
	return e.buf, nil
}

// prefix puts the length of dst[start:] in front of it.
func prefix(dst []byte, start int) []byte {
	n := len(dst) - start
	k := protowire.SizeVarint(uint64(n))
	for range k {
		dst = append(dst, 0)
	}
	copy(dst[start+k:], dst[start:start+n])
	protowire.AppendVarint(dst[start:start], uint64(n))
	return dst
}
