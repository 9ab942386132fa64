package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryKindOfReport has a sink for each kind, and the manual has a line for each.
func TestEveryKindOfReport(t *testing.T) {
	for _, kind := range outputKinds {
		if newSink(kind, "") == nil {
			t.Errorf("-o %s=PATH is taken, and nothing writes it", kind)
		}
	}
	for _, kind := range sinkKinds() {
		if !slices.Contains(outputKinds, kind) {
			t.Errorf("a plan may ask for %s, and the command line may not", kind)
		}
	}
	page, err := os.ReadFile("../../docs/reports.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(page), "\n## ")
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		told = append(told, m[1])
	}
	slices.Sort(told)
	if !slices.Equal(told, outputKinds) {
		t.Errorf("the manual tells of %s; there are %s", told, outputKinds)
	}
}

func TestParseOutputs(t *testing.T) {
	for _, bad := range []string{"", "html", "html=", "=x", "pdf=x", "HTML=x"} {
		if _, err := parseOutputs([]string{bad}); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("-o %s: %v", bad, err)
		}
	}
	list, err := parseOutputs([]string{"html=a=b.html", "junit=x.xml"})
	if err != nil || len(list) != 2 || list[0] != (output{"html", "a=b.html"}) {
		t.Errorf("%v %v", list, err)
	}
}
