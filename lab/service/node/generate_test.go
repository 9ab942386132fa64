package node

import (
	"flag"
	"io"
	"io/fs"
	"os"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

var update = flag.Bool("update", false, "generate node.pb.go from node.proto")

// node.pb.go is what protoc and protoc-gen-go make of node.proto. It is generated here, with -update, so that nobody needs
// protoc.
func TestGeneratedCodeIsFresh(t *testing.T) {
	const generated = "node.pb.go"
	source := &protocompile.SourceResolver{Accessor: func(path string) (io.ReadCloser, error) {
		if path != file {
			return nil, fs.ErrNotExist
		}
		return os.Open("node.proto")
	}}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(source),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{file},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(files[0])},
	})
	if err != nil {
		t.Fatal(err)
	}
	internal_gengo.GenerateFile(plugin, plugin.FilesByPath[file])
	response := plugin.Response()
	if response.Error != nil {
		t.Fatal(*response.Error)
	}
	want := response.File[0].GetContent()
	if *update {
		if err := os.WriteFile(generated, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(generated)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("go test ./lab/service/node -update makes it anew (-want +got):\n%s", diff)
	}
}
