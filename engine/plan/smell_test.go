package plan_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planrun/planrun/engine/plan"
)

// A fixture is a plan, a line "-- want --", and what is worth knowing about it.
func TestSmells(t *testing.T) {
	files, err := filepath.Glob("testdata/smells/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			all, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			const separator = "-- want --\n"
			text, want, _ := strings.Cut(string(all), separator)
			p, found := plan.Parse(file, []byte(text), plan.Options{Drivers: shipped(), Offline: true})
			if p == nil {
				t.Fatal(found)
			}
			got := p.Smells().String()
			if flag.Lookup("update").Value.String() == "true" {
				if err := os.WriteFile(file, []byte(text+separator+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
