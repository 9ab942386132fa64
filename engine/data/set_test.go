package data

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// table reads all rows.
func table(t testing.TB, s *Set) (rows [][]any) {
	t.Helper()
	for i := range s.Len() {
		var r []any
		for c := range s.Columns() {
			v, err := s.Value(i, c)
			if err != nil {
				t.Fatal(err)
			}
			r = append(r, v)
		}
		rows = append(rows, r)
	}
	return rows
}

func TestCSV(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		format  Format
		columns []string
		rows    [][]any
	}{
		"verbatim":    {"a,b\n001,0x1F\n1e5,TRUE\n,12345678901234567890\n", Format{}, []string{"a", "b"}, [][]any{{"001", "0x1F"}, {"1e5", "TRUE"}, {"", "12345678901234567890"}}},
		"windows":     {"\ufeffa,b\r\n1,2\r\n\r\n3,4", Format{}, []string{"a", "b"}, [][]any{{"1", "2"}, {"3", "4"}}},
		"quotes":      {"\"a\",\"b c\"\n\"x, y\",\"say \"\"hi\"\"\"\no'neill,\"two\nlines\"\n", Format{}, []string{"a", "b c"}, [][]any{{"x, y", `say "hi"`}, {"o'neill", "two\nlines"}}},
		"json in csv": {"a\n\"{\"\"k\"\": [1, 2]}\"\n", Format{}, []string{"a"}, [][]any{{`{"k": [1, 2]}`}}},
		"other marks": {"a;b\n'x;y';it''s\n'it''s';2\n", Format{Separator: ';', Quote: '\''}, []string{"a", "b"}, [][]any{{"x;y", "it''s"}, {"it's", "2"}}},
		"tabs":        {"a\tb\n1\t\n", Format{Separator: '\t'}, []string{"a", "b"}, [][]any{{"1", ""}}},
		"types":       {"i,n,b,t\n7,1.5,true,7\n-7,2,false,x\n", Format{Types: map[string]Type{"i": Int, "n": Number, "b": Bool}}, []string{"i", "n", "b", "t"}, [][]any{{int64(7), 1.5, true, "7"}, {int64(-7), 2.0, false, "x"}}},
		"spaces stay": {"a, b\n 1 , 2\n", Format{}, []string{"a", "b"}, [][]any{{" 1 ", " 2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := OpenCSV(write(t, test.text), test.format)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got := s.Columns(); !reflect.DeepEqual(got, test.columns) {
				t.Errorf("columns %q", got)
			}
			if got := table(t, s); !reflect.DeepEqual(got, test.rows) {
				t.Errorf("rows %q, want %q", got, test.rows)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	csv := func(f Format) func(string) (*Set, error) {
		return func(p string) (*Set, error) { return OpenCSV(p, f) }
	}
	json := func(p string) (*Set, error) { return OpenJSON(p, nil) }
	lines := func(p string) (*Set, error) { return OpenJSONLines(p, map[string]Type{"n": Int}) }
	for _, test := range []struct {
		open       func(string) (*Set, error)
		text, want string
	}{
		{csv(Format{}), "", "the file is empty: its first line names the columns"},
		{csv(Format{}), "a,b\n", "the file has no rows"},
		{csv(Format{}), "a,a\n1,2\n", "line 1: two columns are called a"},
		{csv(Format{}), "a,\n1,2\n", "line 1: a column has no name"},
		{csv(Format{}), "a,b\n1,2\n\n1\n", "line 4: has 1 values, and there are 2 columns"},
		{csv(Format{}), "a,b\n1,\"2\n3\n", "line 2: a quote is not closed"},
		{csv(Format{}), "a,b\n1,\"2\"x\"\"\n", "line 2: 'x' follows a closing quote; a quote within quotes is written twice"},
		{csv(Format{Types: map[string]Type{"a": Int}}), "a\n1\n1.5\n", `line 3: a: "1.5" is not a whole number`},
		{csv(Format{Types: map[string]Type{"a": Bool}}), "a\nTRUE\n", `line 2: a: "TRUE" is neither true nor false`},
		{csv(Format{Types: map[string]Type{"a": Number}}), "a\n1e5\n", `line 2: a: "1e5" is not a number in plain digits`},
		{csv(Format{}), "\xff\xfea\x00", "the file is UTF-16: save it as UTF-8"},
		{json, "", "the file is empty"},
		{json, "{}", "line 1: expected a list of objects"},
		{json, "[]", "the file has no rows"},
		{json, "[\n{\"a\": 1},\n2\n]", "line 3: expected an object"},
		{json, "[\n{\"a\": 1},\n{\n]", "line 3: this is not JSON"},
		{json, "[\n{\"a\": 1}\n", "line 3: the list is not closed"},
		{lines, "{\"n\": 1}\n{\"n\": 1} 2\n", "line 2: one object a line is expected, and something follows it"},
		{lines, "{\"n\": 1}\n\n{\"n\": 1.5}\n", `line 3: n: "1.5" is not a whole number`},
		{lines, "nope\n", "line 1: this is not JSON"},
	} {
		_, err := test.open(write(t, test.text))
		if err == nil || err.Error() != test.want {
			t.Errorf("%q: %v, want %s", test.text, err, test.want)
		}
	}
	if _, err := OpenCSV(t.TempDir(), Format{}); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Error(err)
	}
}

func TestJSON(t *testing.T) {
	list := "\ufeff[{\"b\": \"001\", \"a\": 7},\n {\"a\": 12345678901234567890, \"c\": [1.5, {\"x\": null}]}]"
	want := [][]any{{int64(7), "001", nil}, {"12345678901234567890", nil, []any{1.5, map[string]any{"x": nil}}}}
	s, err := OpenJSON(write(t, list), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := table(t, s); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(s.Columns(), []string{"a", "b", "c"}) {
		t.Errorf("%v: %v, want %v", s.Columns(), got, want)
	}
	s, err = OpenJSONLines(write(t, "{\"a\": 1}\n\n{\"b\": \"x\"}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := table(t, s); !reflect.DeepEqual(got, [][]any{{int64(1), nil}, {nil, "x"}}) {
		t.Errorf("%v", got)
	}
	if m, err := s.Row(1); err != nil || m["b"] != "x" {
		t.Error(m, err)
	}
}

// A file of 64 MB takes little more than the index of its rows.
func TestLargeFileIsNotKeptInMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	const rows = 64_000
	filler := strings.Repeat("x", 1000)
	fmt.Fprintln(w, "id,text")
	for i := range rows {
		fmt.Fprintf(w, "%d,\"%s\"\n", i, filler)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, err := OpenCSV(path, Format{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 8<<20 {
		t.Errorf("%d MB are kept", kept>>20)
	}
	for _, i := range []int64{0, 1, rows - 1, 12345} {
		if v, err := s.Value(i, 0); err != nil || v != fmt.Sprint(i) {
			t.Errorf("row %d has id %v, %v", i, v, err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { s.Value(7, 0); s.Value(7, 1) }); n > 0 {
		t.Errorf("%v allocations to read a row again", n)
	}
}

func TestOrders(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 7, 64, 1000} {
		c := NewChoice(Shuffled, n, "users")
		for cycle := range int64(3) {
			seen := map[int64]bool{}
			for k := range n {
				row, ok := c.Row(cycle*n+k, 0, 42)
				if !ok || row < 0 || row >= n || seen[row] {
					t.Fatalf("%d rows: row %d in cycle %d comes twice, or is none", n, row, cycle)
				}
				seen[row] = true
			}
		}
	}
	order := func(c Choice, round uint64) (rows []int64) {
		for k := range int64(50) {
			r, _ := c.Row(k, 0, round)
			rows = append(rows, r)
		}
		return rows
	}
	a := order(NewChoice(Shuffled, 50, "users"), 1)
	if reflect.DeepEqual(a, order(NewChoice(Shuffled, 50, "users"), 2)) || reflect.DeepEqual(a, order(NewChoice(Shuffled, 50, "items"), 1)) {
		t.Error("the shuffle is the same for another round or another set")
	}
	if !reflect.DeepEqual(a, order(NewChoice(Shuffled, 50, "users"), 1)) {
		t.Error("the shuffle differs from time to time")
	}
	once := NewChoice(Once, 3, "x")
	if _, ok := once.Row(3, 0, 0); ok {
		t.Error("a fourth row of three")
	}
	hits := make([]int, 10)
	random := NewChoice(Random, 10, "x")
	for k := range uint64(10_000) {
		row, _ := random.Row(0, mix(k), 0)
		hits[row]++
	}
	for row, n := range hits {
		if n < 800 || n > 1200 {
			t.Errorf("row %d was drawn %d times of 10000", row, n)
		}
	}
}

func FuzzCSV(f *testing.F) {
	f.Add("a,b\n1,\"2\"\n")
	f.Add("\ufeffa\r\n\"x\"\"y\"\r\n")
	f.Add("a\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "rows")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Skip()
		}
		if s, err := OpenCSV(path, Format{}); err == nil {
			table(t, s)
		}
		if s, err := OpenJSON(path, nil); err == nil {
			table(t, s)
		}
		if s, err := OpenJSONLines(path, nil); err == nil {
			table(t, s)
		}
	})
}
