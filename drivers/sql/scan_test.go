package sql

import (
	"strings"
	"testing"

	"github.com/planrun/planrun/drivers"
)

func named3() bindings {
	c := drivers.Constant("x")
	return bindings{given: true, names: []string{"a", "b", "id"}, templates: []drivers.Template{c, c, c}}
}

func TestNamesAreRewritten(t *testing.T) {
	all := "pmst" // PostgreSQL, MySQL, SQL Server, SQLite
	for _, c := range []struct {
		on, in, want string
	}{
		{all, "SELECT :a, :b, :a", "SELECT #a, #b, #a"},
		{all, "SELECT (:a),:b;", "SELECT (#a),#b;"},
		{all, "SELECT ':a', 'it''s :a', :b", "SELECT ':a', 'it''s :a', #b"},
		{all, `SELECT ":a", "x"":a", :b`, `SELECT ":a", "x"":a", #b`},
		{all, "SELECT :a -- not :b\n, :b", "SELECT #a -- not :b\n, #b"},
		{all, "SELECT :a /* not :b */, :b", "SELECT #a /* not :b */, #b"},
		{"ps", "SELECT :a /* x /* :b */ :b */, :b", "SELECT #a /* x /* :b */ :b */, #b"},
		{"mt", "SELECT :a /* x /* :b */, :b", "SELECT #a /* x /* :b */, #b"},
		{"p", "SELECT :a::text, '1'::int, x::a", "SELECT #a::text, '1'::int, x::a"},
		{"p", "SELECT $$ :a $$, $t$ :a $$ :b $t$, :b", "SELECT $$ :a $$, $t$ :a $$ :b $t$, #b"},
		{"p", `SELECT E'\':a', 'x\', :a`, `SELECT E'\':a', 'x\', #a`},
		{"p", "SELECT arr[1: 2], x ? 'k', :a", "SELECT arr[1: 2], x ? 'k', #a"},
		{"p", "SELECT t$1, t1$a$, :a", "SELECT t$1, t1$a$, #a"},
		{"p", `SELECT U&'\0041:a', N':a', :a`, `SELECT U&'\0041:a', N':a', #a`},
		{"m", `SELECT '\':a', "\":a", :a`, `SELECT '\':a', "\":a", #a`},
		{"m", "SELECT `:a`, :a # not :b\n", "SELECT `:a`, #a # not :b\n"},
		{"m", "SELECT 5--:a", "SELECT 5--#a"},
		{"m", "SET @x := :a", "SET @x := #a"},
		{"s", "SELECT [:a], [x]]:a], :a, @p, @pid, @@x", "SELECT [:a], [x]]:a], #a, @p, @pid, @@x"},
		{"t", "SELECT [:a], `:a`, :a", "SELECT [:a], `:a`, #a"},
		{all, "SELECT 'open :a", "SELECT 'open :a"},
		{all, "SELECT :a /* open :b", "SELECT #a /* open :b"},
		{all, "SELECT :a + ünïcode, 12:5, x : y, :", "SELECT #a + ünïcode, 12:5, x : y, :"},
	} {
		for d, letter := range all {
			if !strings.ContainsRune(c.on, letter) {
				continue
			}
			b := named3()
			b.dialect = dialect(d)
			got, flaws := b.compile(c.in)
			for _, f := range flaws {
				if !strings.Contains(f.message, "the query has no :") { // not every text uses all names
					t.Errorf("%v: %s: %s", b.dialect, c.in, f.message)
				}
			}
			if want := own(b.dialect, c.want); got.text != want {
				t.Errorf("%v: %s\n got %s\nwant %s", b.dialect, c.in, got.text, want)
			}
		}
	}
}

// own puts a dialect's placeholders for #a and #b.
func own(d dialect, s string) string {
	var out strings.Builder
	numbers := map[string]string{}
	for i := 0; i < len(s); i++ {
		if s[i] != '#' || i+1 == len(s) || s[i+1] != 'a' && s[i+1] != 'b' {
			out.WriteByte(s[i])
			continue
		}
		i++
		name := s[i : i+1]
		if numbers[name] == "" {
			numbers[name] = string(rune('1' + len(numbers)))
		}
		out.WriteString(map[dialect]string{postgres: "$" + numbers[name], mysql: "?", sqlserver: "@p" + numbers[name], sqlite: "?"}[d])
	}
	return out.String()
}

func TestTransactionsAreRecognized(t *testing.T) {
	for _, c := range []struct {
		dialect             dialect
		text                string
		opens, ends, manual bool
	}{
		{dialect: mysql, text: "SELECT 'begin' -- begin"},
		{dialect: mysql, text: "BEGIN", opens: true},
		{dialect: sqlite, text: "  begin transaction", opens: true},
		{dialect: mysql, text: "/* x */ START TRANSACTION READ ONLY", opens: true},
		{dialect: mysql, text: "COMMIT", ends: true},
		{dialect: mysql, text: "ROLLBACK", ends: true},
		{dialect: mysql, text: "COMMIT AND CHAIN"},
		{dialect: mysql, text: "SELECT 1; BEGIN; SELECT 2", opens: true},
		{dialect: mysql, text: "CREATE PROCEDURE p() BEGIN SELECT 1; END"},
		{dialect: mysql, text: "SET autocommit=0", manual: true},
		{dialect: mysql, text: "SELECT start FROM work"},
		{dialect: sqlite, text: "SAVEPOINT a", opens: true},
		{dialect: sqlite, text: "END", ends: true},
		{dialect: sqlserver, text: "BEGIN TRAN", opens: true},
		{dialect: sqlserver, text: "begin distributed transaction", opens: true},
		{dialect: sqlserver, text: "IF 1 = 1 BEGIN SELECT 1 END"},
		{dialect: sqlserver, text: "SET IMPLICIT_TRANSACTIONS ON", manual: true},
		{dialect: sqlserver, text: "COMMIT TRANSACTION", ends: true},
	} {
		got, _ := (&bindings{dialect: c.dialect}).compile(c.text)
		if got.opens != c.opens || got.ends != c.ends || got.manual != c.manual {
			t.Errorf("%v: %s: opens %v, ends %v, manual %v", c.dialect, c.text, got.opens, got.ends, got.manual)
		}
	}
}

// Whatever the text, its tokens are the text, and a text without names is left as it is.
func FuzzScan(f *testing.F) {
	for _, s := range []string{"SELECT :a", "$$:a$$", "'\\'", "/* /* */", "$t$ $t", "@p1 ?1 $1 [x]] `", "E'\\", ":", "--", "#"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for d := range sqlite + 1 {
			var all strings.Builder
			hasName := false
			s := scanner{dialect: d, rest: text}
			for tok, ok := s.next(); ok; tok, ok = s.next() {
				if tok.text == "" {
					t.Fatal("an empty token")
				}
				all.WriteString(tok.text)
				hasName = hasName || tok.kind == named
			}
			if all.String() != text {
				t.Fatalf("the tokens of %q are %q", text, all.String())
			}
			b := named3()
			b.dialect = d
			if st, _ := b.compile(text); !hasName && st.text != text {
				t.Fatalf("%q became %q", text, st.text)
			}
		}
	})
}
