package drivertest

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/planrun/planrun/drivers"
)

var testFields = []drivers.Field{
	{Key: "text", Kind: drivers.Text}, {Key: "flag", Kind: drivers.Bool}, {Key: "count", Kind: drivers.Int}, {Key: "wait", Kind: drivers.Duration},
	{Key: "pick", Kind: drivers.Choice, Choices: []string{"a", "b"}}, {Key: "texts", Kind: drivers.Texts}, {Key: "tree", Kind: drivers.Tree},
	{Key: "args", Kind: drivers.Args}, {Key: "files", Kind: drivers.FileList},
	{Key: "group", Kind: drivers.Group, Fields: []drivers.Field{{Key: "inner", Kind: drivers.Text}}},
}

func TestDecode(t *testing.T) {
	decoded, err := decode(testFields, Fields{
		"text": Mix{"a", Func(func(in *drivers.Input) any { return in.Iteration })}, "flag": true, "count": 3, "wait": time.Second, "pick": "b",
		"texts": Fields{"z": 1, "a": "x"}, "tree": Fields{"list": []any{1, nil}}, "args": []any{1, "x"}, "files": "f", "group": Fields{"inner": "i"},
	})
	if err != nil {
		t.Fatal(err)
	}
	v := drivers.NewValues(decoded)
	if got, err := v.Template("text").AppendText(nil, &drivers.Input{Iteration: 7}); string(got) != "a7" || err != nil {
		t.Errorf("text is %q, %v", got, err)
	}
	if !v.Bool("flag", false) || v.Int("count", 0) != 3 || v.Duration("wait", 0) != time.Second || v.Choice("pick", "") != "b" {
		t.Errorf("simple fields are wrong: %+v", decoded)
	}
	if e := v.Entries("texts"); len(e) != 2 || e[0].Key != "a" || e[1].Key != "z" {
		t.Errorf("texts are %v", e)
	}
	tree, _ := v.Get("tree")
	if !tree.IsMap || len(tree.Map[0].Value.List) != 2 {
		t.Errorf("tree is %+v", tree)
	}
	if args, _ := v.Get("args"); args.IsMap || len(args.List) != 2 {
		t.Errorf("args are %+v", args)
	}
	if files, _ := v.Get("files"); len(files.List) != 1 || files.List[0].String != "f" {
		t.Errorf("files are %+v", files)
	}
	if s, err := v.Group("group").Fixed("inner"); s != "i" || err != nil {
		t.Errorf("inner is %q, %v", s, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, f := range []Fields{{"nothing": 1}, {"flag": "yes"}, {"count": "3"}, {"pick": "c"}, {"texts": "x"}, {"group": Fields{"outer": 1}}, {"files": 1}} {
		if _, err := decode(testFields, f); err == nil {
			t.Errorf("%v is taken", f)
		}
	}
}

func TestResultFaults(t *testing.T) {
	good := Result{Service: time.Second}
	good.Outcome.Reset()
	good.TTFB, good.Transfer, good.Protocol, good.Answer = 1, 1, "X", noAnswer{}
	if f := good.faults(); len(f) > 0 {
		t.Errorf("a good result has faults: %v", f)
	}
	for name, spoil := range map[string]func(*Result){
		"parts exceed the whole": func(r *Result) { r.Transfer = 2 * time.Second },
		"negative part":          func(r *Result) { r.Wait = -5 },
		"bytes were not counted": func(r *Result) { r.BytesIn = 1 },
		"no answer":              func(r *Result) { r.Answer = nil },
		"no protocol":            func(r *Result) { r.Protocol = "" },
		"no ttfb":                func(r *Result) { r.TTFB = drivers.None },
		"error without a kind":   func(r *Result) { r.Err = errors.New("x") },
		"failed, yet a success":  func(r *Result) { r.Err, r.Success = drivers.Fail(drivers.Reset, errors.New("x")), true },
		"refused, yet it was open": func(r *Result) {
			r.Err, r.Opened, r.TTFB = drivers.Fail(drivers.Refused, errors.New("x")), true, drivers.None
		},
	} {
		r := good
		spoil(&r)
		if len(r.faults()) == 0 {
			t.Errorf("%s: no fault is found", name)
		}
	}
}

type noAnswer struct{}

func (noAnswer) Number(string) (float64, bool) { return 0, false }
func (noAnswer) Value(string) (any, error)     { return nil, nil }

// The relay does what it is told.
func TestRelay(t *testing.T) {
	echo := NewPeer(t, func(c net.Conn) { io.Copy(c, c) })
	r := NewRelay(t, echo.Addr())
	dial := func() net.Conn {
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	say := func(c net.Conn, s string, wait time.Duration) (string, error) {
		if _, err := io.WriteString(c, s); err != nil {
			return "", err
		}
		c.SetReadDeadline(time.Now().Add(wait))
		b := make([]byte, len(s))
		n, err := io.ReadFull(c, b)
		return string(b[:n]), err
	}
	c := dial()
	if got, err := say(c, "hello", long); got != "hello" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	r.FreezeAfter(2)
	if got, err := say(c, "world", 100*time.Millisecond); got != "wo" || err == nil {
		t.Errorf("frozen after 2 bytes: got %q, %v", got, err)
	}
	r.Thaw()
	if got, err := say(c, "", long); err != nil {
		t.Errorf("thawed: %q, %v", got, err)
	}
	b := make([]byte, 3)
	c.SetReadDeadline(time.Now().Add(long))
	if _, err := io.ReadFull(c, b); string(b) != "rld" || err != nil {
		t.Errorf("thawed: got %q, %v", b, err)
	}
	r.CutAfter(1)
	if got, err := say(c, "again", long); got != "a" || err == nil {
		t.Errorf("cut after 1 byte: got %q, %v", got, err)
	}
	r.Thaw()
	eventually(t, "the cut connection is gone", func() bool { return r.Open() == 0 })
	c = dial()
	say(c, "x", long)
	r.Sever()
	c.SetReadDeadline(time.Now().Add(long))
	if _, err := c.Read(b); err != io.EOF {
		t.Errorf("severed: %v", err)
	}
	if r.Opened() != 2 {
		t.Errorf("%d connections were opened", r.Opened())
	}
	c.Close()
	eventually(t, "the severed connection is gone", func() bool { return r.Open() == 0 })
	if _, err := net.Dial("tcp", RefusedAddr(t)); err == nil {
		t.Error("nobody should listen there")
	}
}
