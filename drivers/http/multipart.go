package http

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/http/wire"
)

// maxFiles is how large the files of one step may be together: they are kept in memory, so that reading them is no part
// of what is measured.
const maxFiles = 64 << 20

var multipartField = drivers.Field{
	Key: "multipart", Kind: drivers.Groups, Title: "Multipart body", Payload: true, Examples: []string{"{title: Holidays, photo: {file: beach.jpg, type: image/jpeg}}"},
	Doc: "Fields and files to be sent as `multipart/form-data`, by name and in this order. A text alone is a field's value.",
	Fields: []drivers.Field{
		{Key: "value", Kind: drivers.Text, Main: true, Title: "Value", Payload: true, Doc: "The content of the part.", Examples: []string{"${iteration}"}},
		{Key: "file", Kind: drivers.File, Title: "File", Payload: true, Examples: []string{"beach.jpg"},
			Doc: "A file whose content is the part, instead of `value`. It is read once, before the load; all files of a step may have 64 MiB together."},
		{Key: "filename", Kind: drivers.Text, Title: "File name", Doc: "The name that is sent for the file. Without it, it is that of `file`; a `value` has none.", Examples: []string{"photo-${iteration}.jpg"}},
		{Key: "type", Kind: drivers.Text, Title: "Type", Doc: "The part's `Content-Type`. Without it, it is `application/octet-stream` for a file, and not named for a value.", Examples: []string{"image/jpeg"}},
	},
}

// formData makes a body of parts (RFC 7578), as browsers do (WHATWG HTML, multipart/form-data encoding).
func formData(op *drivers.Op) (wire.Text, string, drivers.FieldErrors) {
	var errs drivers.FieldErrors
	for _, e := range op.Entries("headers") {
		if strings.EqualFold(e.Key, "Content-Type") {
			errs = append(errs, op.Errorf("headers", "the driver sets %s of a multipart body, because it names the boundary", e.Key).At(e.Key))
		}
	}
	entries, group := op.Entries("multipart"), op.Group("multipart")
	if len(entries) == 0 {
		return wire.Text{}, "", append(errs, op.Errorf("multipart", "a multipart body has at least one part").WithHint("write name: value"))
	}
	left := int64(maxFiles)
	parts := make([]wire.Text, 0, len(entries))
	sum := sha256.New()
	for _, e := range entries {
		head, content, err := formPart(e.Key, group.Group(e.Key), &left)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		io.WriteString(sum, head.Skeleton())
		io.WriteString(sum, content.Skeleton())
		head.Join(content)
		parts = append(parts, head)
	}
	// The boundary follows from what is known before the load, so that every run sends the same bytes. What is put in
	// at the moment of the call can't hold it but by a chance of one in 2^128.
	boundary := "planrun-" + hex.EncodeToString(sum.Sum(nil)[:16])
	var all wire.Text
	for _, p := range parts {
		all.Join(wire.Fixed("--" + boundary + "\r\n"))
		all.Join(p)
		all.Join(wire.Fixed("\r\n"))
	}
	all.Join(wire.Fixed("--" + boundary + "--\r\n"))
	return all, "multipart/form-data; boundary=" + boundary, errs
}

// formPart makes the head and the content of one part. left is how much files may still have.
func formPart(name string, v drivers.Values, left *int64) (head, content wire.Text, _ *drivers.FieldError) {
	fail := func(err *drivers.FieldError) (wire.Text, wire.Text, *drivers.FieldError) {
		return wire.Text{}, wire.Text{}, err
	}
	switch {
	case v.Has("value") && v.Has("file"):
		return fail(v.Errorf("file", "only one of value and file can be given"))
	case !v.Has("value") && !v.Has("file"):
		return fail(v.Errorf("value", "a part has a value or a file"))
	}
	typ, err := v.Fixed("type")
	if e, ok := errors.AsType[*drivers.FieldError](err); ok {
		return fail(e)
	}
	filename := v.Template("filename")
	if path := v.Choice("file", ""); path != "" {
		data, err := readFile(path, *left)
		if err != nil {
			return fail(v.Errorf("file", "%v", err))
		}
		*left -= int64(len(data))
		content = wire.Fixed(string(data))
		if filename == nil {
			filename = drivers.Constant(filepath.Base(path))
		}
		if typ == "" {
			typ = "application/octet-stream"
		}
	} else {
		content = wire.Plain(v.Template("value"))
	}
	if !wire.IsHeaderValue(typ) {
		return fail(v.Errorf("type", "the type holds a line break or another control character"))
	}

	head = wire.Fixed(`Content-Disposition: form-data; name="`)
	head.Join(wire.Quoted(drivers.Constant(name)))
	if filename != nil {
		head.Join(wire.Fixed(`"; filename="`))
		head.Join(wire.Quoted(filename))
	}
	head.Join(wire.Fixed("\"\r\n"))
	if typ != "" {
		head.Join(wire.Fixed("Content-Type: " + typ + "\r\n"))
	}
	head.Join(wire.Fixed("\r\n"))
	return head, content, nil
}

// readFile reads a file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	reason := func(err error) error {
		if e, ok := errors.AsType[*os.PathError](err); ok {
			err = e.Err
		}
		return fmt.Errorf("the file can't be read: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, reason(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("the files of a step may have %d MiB together, and these have more", maxFiles>>20)
	}
	return data, nil
}
