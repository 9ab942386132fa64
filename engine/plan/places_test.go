package plan

import (
	"strings"
	"testing"
)

// Each scalar holds the word MARK. Its place in the file is found by looking for it there.
func TestPlaces(t *testing.T) {
	for name, text := range map[string]string{
		"plain":                         "k: some MARK here\n",
		"plain, after a tab":            "k:\tsome MARK here\n",
		"plain over lines":              "k: some\n  text\n\n\n   and MARK here\n",
		"plain over lines, wide":        "k: 日本\n  語 é MARK x\n",
		"plain in a list":               "- - a\n  - some MARK here\n",
		"plain in brackets":             "k: [a, some MARK, b]\n",
		"plain in brackets over lines":  "k: [a,\n  some\n   MARK, b]\n",
		"plain in braces":               "k: {a: b, c: some MARK}\n",
		"plain with comment":            "k: some MARK # no\n",
		"single":                        "k: 'it''s a MARK'\n",
		"single over lines":             "k: 'it''s  \n\n   some\n  MARK'\n",
		"single, wide":                  "k: '日本 MARK'\n",
		"double":                        `k: "a \"b\" \\ \n \t MARK"` + "\n",
		"double with code points":       `k: "\x41\u00e9\u65e5\U0001F600 MARK"` + "\n",
		"double with surrogates":        `k: "\ud83d\ude00 MARK"` + "\n",
		"double over lines":             "k: \"some  \n\n\n   text\n  MARK\"\n",
		"double with escaped break":     "k: \"some \\\n    text \\\n  MARK\"\n",
		"double with trailing tab":      "k: \"a\tMARK\"\n",
		"literal":                       "k: |\n  first\n    more MARK\n",
		"literal, empty lines":          "k: |\n\n  first\n\n\n  then MARK\n",
		"literal, kept":                 "k: |+\n  first\n  then MARK\n\n\n",
		"literal, stripped":             "k: |-  # comment\n  first\n  then MARK\n",
		"literal, indented by header":   "k: |2\n    first\n  then MARK\n",
		"literal in a mapping, header":  "a:\n  k: |1\n     first\n   then MARK\n",
		"literal in a list":             "- |\n  first\n  then MARK\n",
		"literal in a list of mappings": "- k: |\n    first\n    then MARK\n",
		"literal, header in a list":     "a:\n  - k: |2\n        first\n      then MARK\n",
		"literal, wide":                 "k: |\n  日本 é MARK\n",
		"folded":                        "k: >\n  first\n  then\n  and MARK\n",
		"folded, paragraphs":            "k: >-\n  first\n  then\n\n\n  and MARK\n",
		"folded, more indented":         "k: >\n  first\n    code\n    more\n\n  and MARK\n",
		"folded, beginning with empty":  "k: >\n\n  first\n  MARK\n",
		"CRLF":                          "a: 1\r\nk: |\r\n  first\r\n  some MARK\r\n",
		"BOM":                           "\ufeffk: some MARK\n",
		"behind a literal":              "a: |\n  x\n\n\nk: some MARK\n",
		"behind a quoted text":          "a: \"x\n\n  y\"\nk: some MARK\n",
		"no line break at the end":      "k: |\n  some MARK",
		"anchored":                      "k: &x some MARK\n",
	} {
		t.Run(name, func(t *testing.T) {
			s, root := readTree("x", []byte(text))
			if root == nil {
				t.Fatal(s.findings)
			}
			var marked *node
			var walk func(n *node)
			walk = func(n *node) {
				if n.shape == scalar && strings.Contains(n.text, "MARK") {
					marked = n
				}
				for _, p := range n.pairs {
					walk(p.value)
				}
				for _, i := range n.items {
					walk(i)
				}
			}
			walk(root)
			if marked == nil {
				t.Fatal("the mark is in no scalar")
			}
			before, _, _ := strings.Cut(marked.text, "MARK")
			places := s.places(marked)
			if places == nil {
				t.Fatalf("%q can't be followed", marked.text)
			}
			got := places[len([]rune(before))]
			if !strings.HasPrefix(s.from(got.line, got.col), "MARK") {
				t.Errorf("placed at %d:%d, which has %q", got.line, got.col, s.from(got.line, got.col))
			}
		})
	}
}
