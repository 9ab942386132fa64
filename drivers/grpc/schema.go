package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/planrun/planrun/drivers"
)

// schema is what is known of services and messages: the files that a step names, and all that they import.
type schema struct {
	files *protoregistry.Files
	types *dynamicpb.Types
}

func newSchema(roots ...protoreflect.FileDescriptor) *schema {
	files := new(protoregistry.Files)
	for _, f := range roots {
		register(files, f)
	}
	return &schema{files, dynamicpb.NewTypes(files)}
}

// register adds a file and its imports. A file that is there already, or that clashes with one that is, is left out:
// the first one wins, as with imports.
func register(files *protoregistry.Files, f protoreflect.FileDescriptor) {
	if _, err := files.FindFileByPath(f.Path()); err == nil {
		return
	}
	imports := f.Imports()
	for i := range imports.Len() {
		register(files, imports.Get(i).FileDescriptor)
	}
	_ = files.RegisterFile(f)
}

// splitCall takes "package.Service/Method" or "package.Service.Method" apart.
func splitCall(call string) (service, method string, ok bool) {
	call = strings.TrimPrefix(call, "/")
	i := strings.LastIndexByte(call, '/')
	if i < 0 {
		i = strings.LastIndexByte(call, '.')
	}
	if i <= 0 || i == len(call)-1 {
		return "", "", false
	}
	service, method = call[:i], call[i+1:]
	return service, method, protoreflect.FullName(service).IsValid() && protoreflect.Name(method).IsValid()
}

// problem is a fault without its place.
type problem struct {
	message, hint string
}

func (p *problem) Error() string {
	if p.hint == "" {
		return p.message
	}
	return p.message + ": " + p.hint
}

// method finds a method.
func (s *schema) method(service, method string) (protoreflect.MethodDescriptor, *problem) {
	d, err := s.files.FindDescriptorByName(protoreflect.FullName(service))
	if err == nil {
		sd, ok := d.(protoreflect.ServiceDescriptor)
		if !ok {
			return nil, &problem{message: fmt.Sprintf("%s is not a service", service)}
		}
		if md := sd.Methods().ByName(protoreflect.Name(method)); md != nil {
			return md, nil
		}
		var names []string
		for i := range sd.Methods().Len() {
			names = append(names, string(sd.Methods().Get(i).Name()))
		}
		return nil, &problem{fmt.Sprintf("service %s has no method %q", service, method), oneOf(method, names)}
	}
	var names []string
	s.files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			names = append(names, string(f.Services().Get(i).FullName()))
		}
		return true
	})
	return nil, unknownService(service, names)
}

func unknownService(service string, names []string) *problem {
	p := &problem{message: fmt.Sprintf("there is no service %q", service)}
	slices.Sort(names)
	names = slices.Compact(names)
	// A package that was left out is the commonest slip.
	for _, n := range names {
		if strings.HasSuffix(n, "."+service) {
			p.hint = "did you mean " + n + "?"
			return p
		}
	}
	p.hint = oneOf(service, names)
	return p
}

// maxProtoErrors is how many faults of .proto files are told at once.
const maxProtoErrors = 10

// packageStatement finds the package of a .proto file, for the sake of its folder only: the compiler reads it properly.
var packageStatement = regexp.MustCompile(`(?m)^\s*package\s+([A-Za-z0-9_.]+)\s*;`)

// protoFiles compiles the .proto files of a step.
func protoFiles(op *drivers.Op) (*schema, drivers.FieldErrors) {
	var errs drivers.FieldErrors
	var folders []string
	paths, _ := op.Get("import_paths")
	for i, p := range paths.List {
		if info, err := os.Stat(p.String); err != nil || !info.IsDir() {
			errs = append(errs, op.Errorf("import_paths", "%s is not a folder", p.String).At(strconv.Itoa(i)))
			continue
		}
		folders = append(folders, filepath.Clean(p.String))
	}
	list, _ := op.Get("proto")
	named := len(folders)
	var names []string
	index := map[string]int{}
	for i, p := range list.List {
		data, err := os.ReadFile(p.String)
		if err != nil {
			errs = append(errs, op.Errorf("proto", "%s can't be read: %v", p.String, errors.Unwrap(err)).At(strconv.Itoa(i)))
			continue
		}
		name, folder := within(p.String, folders[:named])
		if folder == "" {
			folder = home(p.String, data)
			name, _ = within(p.String, []string{folder})
			if !slices.Contains(folders, folder) {
				folders = append(folders, folder)
			}
		}
		if _, ok := index[name]; !ok {
			index[name] = i
			names = append(names, name)
		}
	}
	if len(errs) > 0 || len(names) == 0 {
		return nil, errs
	}

	fault := func(name, text string) {
		if len(errs) < maxProtoErrors {
			errs = append(errs, op.Errorf("proto", "%s", text).At(strconv.Itoa(index[name])))
		}
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			ImportPaths: folders,
			Accessor: func(path string) (io.ReadCloser, error) {
				f, err := os.Open(path)
				if errors.Is(err, os.ErrNotExist) {
					name, _ := within(path, folders)
					return nil, fmt.Errorf("there is no %s in %s: name the folder that it is relative to in import_paths", name, strings.Join(folders, ", "))
				}
				return f, err
			},
		}),
		Reporter: reporter.NewReporter(func(err reporter.ErrorWithPos) error {
			fault(err.GetPosition().Filename, err.Error())
			return nil
		}, nil),
	}
	files, err := compiler.Compile(context.Background(), names...)
	if len(errs) > 0 {
		return nil, errs
	}
	if err != nil {
		fault(names[0], err.Error())
		return nil, errs
	}
	roots := make([]protoreflect.FileDescriptor, len(files))
	for i, f := range files {
		roots[i] = f
	}
	return newSchema(roots...), nil
}

// within returns the name of a file relative to the first of the folders that holds it.
func within(path string, folders []string) (name, folder string) {
	for _, f := range folders {
		if rel, err := filepath.Rel(f, path); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return filepath.ToSlash(rel), f
		}
	}
	return "", ""
}

// home is the folder that imports of a file are relative to: a file of package a.b in folder x/a/b belongs to x. Otherwise
// it is the file's own folder.
func home(path string, data []byte) string {
	dir := filepath.Dir(path)
	if m := packageStatement.FindSubmatch(data); m != nil {
		suffix := string(filepath.Separator) + filepath.Join(strings.Split(string(m[1]), ".")...)
		if root, ok := strings.CutSuffix(dir, suffix); ok && root != "" {
			return root
		}
	}
	return dir
}

// descriptorSet reads a file of descriptors.
func descriptorSet(op *drivers.Op) (*schema, drivers.FieldErrors) {
	path := op.Choice("descriptor_set", "")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, drivers.FieldErrors{op.Errorf("descriptor_set", "%s can't be read: %v", path, errors.Unwrap(err))}
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(data, &set); err != nil || len(set.File) == 0 {
		return nil, drivers.FieldErrors{op.Errorf("descriptor_set", "%s holds no descriptors", path).WithHint("make it with protoc --include_imports --descriptor_set_out=%s", filepath.Base(path))}
	}
	// Sets that were made without the imports of Google's own are common; those are known here.
	have := map[string]bool{}
	for _, f := range set.File {
		have[f.GetName()] = true
	}
	for i := 0; i < len(set.File); i++ { // the list grows
		for _, dep := range set.File[i].Dependency {
			if known, err := protoregistry.GlobalFiles.FindFileByPath(dep); err == nil && !have[dep] && strings.HasPrefix(dep, "google/protobuf/") {
				have[dep] = true
				set.File = append(set.File, protodesc.ToFileDescriptorProto(known))
			}
		}
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, drivers.FieldErrors{op.Errorf("descriptor_set", "%s is not complete: %s", path, plainProto(err)).WithHint("make it with --include_imports")}
	}
	return &schema{files, dynamicpb.NewTypes(files)}, nil
}

// plainProto leaves out what the protobuf library begins its errors with. The space may be a non-breaking one.
func plainProto(err error) string {
	s := err.Error()
	if rest, ok := strings.CutPrefix(s, "proto:"); ok {
		s = strings.TrimLeft(rest, " \u00a0")
	}
	return s
}
