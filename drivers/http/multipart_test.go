package http

import (
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// listParts answers with what a multipart body holds, one line a part.
func listParts(w http.ResponseWriter, r *http.Request) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || r.ContentLength < 0 {
		http.Error(w, fmt.Sprint(kind, err, r.ContentLength), http.StatusBadRequest)
		return
	}
	m := multipart.NewReader(r.Body, params["boundary"])
	for {
		p, err := m.NextRawPart()
		if err == io.EOF {
			return
		}
		if err != nil {
			fmt.Fprintln(w, err)
			return
		}
		data, err := io.ReadAll(p)
		fmt.Fprintf(w, "%q %q %q %q %v\n", p.FormName(), p.FileName(), p.Header.Get("Content-Type"), data, err)
	}
}

func TestMultipart(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "beach.jpg")
	if err := os.WriteFile(file, []byte("\xff\xd8\r\n--planrun-\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	iteration := drivertest.Func(func(in *drivers.Input) any { return in.Iteration })
	for _, p := range []protocols{plain1, plain2} {
		s := serve(t, p, listParts)
		for _, c := range []struct {
			name  string
			parts drivertest.Fields
			want  string
		}{
			{"values", drivertest.Fields{"a": "x", "b": drivertest.Fields{"value": "{}", "type": "application/json"}, "c": ""},
				`"a" "" "" "x" <nil>` + "\n" + `"b" "" "application/json" "{}" <nil>` + "\n" + `"c" "" "" "" <nil>` + "\n"},
			{"file", drivertest.Fields{"a": drivertest.Fields{"file": file}, "b": drivertest.Fields{"file": file, "filename": "me.jpg", "type": "image/jpeg"}},
				`"a" "beach.jpg" "application/octet-stream" "\xff\xd8\r\n--planrun-\x00" <nil>` + "\n" + `"b" "me.jpg" "image/jpeg" "\xff\xd8\r\n--planrun-\x00" <nil>` + "\n"},
			{"at the moment of the call", drivertest.Fields{"a": drivertest.Mix{"no ", iteration}, "b": drivertest.Fields{"file": file, "filename": drivertest.Mix{`"`, iteration, "\r\n.jpg"}}},
				`"a" "" "" "no 7" <nil>` + "\n" + `"b" "%227%0D%0A.jpg" "application/octet-stream" "\xff\xd8\r\n--planrun-\x00" <nil>` + "\n"},
			{"hostile name", drivertest.Fields{"a\"\r\nX: y": "x"}, `"a%22%0D%0AX: y" "" "" "x" <nil>` + "\n"},
		} {
			t.Run(string(p)+" "+c.name, func(t *testing.T) {
				fields := drivertest.Fields{"post": s.URL, "multipart": c.parts}
				if p == plain2 {
					fields["version"] = "2"
				}
				b := drivertest.NewBench(t, New(), fields, drivers.Pool{Users: 1}, "body")
				session := b.Open()
				for range 2 {
					in := drivers.Input{Iteration: 7, Deadline: time.Now().Add(time.Minute)}
					var out drivers.Outcome
					out.Reset()
					if err := session.Do(t.Context(), b.Call, &in, &out); err != nil {
						t.Fatal(err)
					}
					if got, err := out.Answer.Value("body"); got != c.want || err != nil {
						t.Errorf("got:\n%v%v\nwant:\n%s", got, err, c.want)
					}
				}
			})
		}
	}
}

// Every run sends the same bytes, and another content has another boundary.
func TestBoundary(t *testing.T) {
	sent := func(parts drivertest.Fields) string {
		c := drivertest.Prepare(t, New(), drivertest.Fields{"post": "http://a.test/", "multipart": parts}).(*call)
		return c.Body.Type
	}
	a := sent(drivertest.Fields{"x": "1"})
	if b := sent(drivertest.Fields{"x": "1"}); a != b {
		t.Errorf("%s, then %s", a, b)
	}
	if b := sent(drivertest.Fields{"x": "2"}); a == b {
		t.Errorf("%s for both", a)
	}
}

func TestMultipartFaults(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxFiles/2+1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fields drivertest.Fields
		want   string
	}{
		{drivertest.Fields{"multipart": drivertest.Fields{}}, "multipart: a multipart body has at least one part: write name: value"},
		{drivertest.Fields{"multipart": drivertest.Fields{"a": drivertest.Fields{"type": "x"}}}, "multipart.a.value: a part has a value or a file"},
		{drivertest.Fields{"multipart": drivertest.Fields{"a": drivertest.Fields{"file": large, "value": ""}}}, "multipart.a.file: only one of value and file can be given"},
		{drivertest.Fields{"multipart": drivertest.Fields{"a": drivertest.Fields{"file": large}, "b": drivertest.Fields{"file": large}}}, "multipart.b.file: the files of a step may have 64 MiB together, and these have more"},
		{drivertest.Fields{"multipart": drivertest.Fields{"a": drivertest.Fields{"file": filepath.Join(dir, "none")}}}, "multipart.a.file: the file can't be read: "},
		{drivertest.Fields{"multipart": drivertest.Fields{"a": drivertest.Fields{"file": dir}}}, "multipart.a.file: the file can't be read: "},
		{drivertest.Fields{"multipart": drivertest.Fields{"a": drivertest.Fields{"value": "", "type": "a\nb"}}}, "multipart.a.type: the type holds a line break or another control character"},
		{drivertest.Fields{"multipart": drivertest.Fields{"a": drivertest.Fields{"value": "", "type": drivertest.Func(func(*drivers.Input) any { return "" })}}}, "multipart.a.type: type must be known before the load: it can't depend on the iteration or the user"},
		{drivertest.Fields{"multipart": drivertest.Fields{"a": "x"}, "headers": drivertest.Fields{"content-type": "multipart/form-data"}}, "headers.content-type: the driver sets content-type of a multipart body, because it names the boundary"},
		{drivertest.Fields{"multipart": drivertest.Fields{"a": "x"}, "json": "x"}, "multipart: only one of json and multipart can be given"},
	} {
		c.fields["post"] = "http://a.test/"
		_, err := New().Prepare(drivertest.NewOp(t, New(), c.fields))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v:\n got %v\nwant %s", c.fields, err, c.want)
		}
	}
}
