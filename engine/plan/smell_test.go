package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An assertion that has the same smell at several addresses is warned of once.
func TestSmells(t *testing.T) {
	const text = `targets:
  a: {url: "https://a.test"}
  b: {url: "https://b.test"}
scenarios:
  s:
    http: GET /
    phases:
      - sequential: {count: 20}
    assert:
      - a.p95 < 1s and b.p95 < 2s
      - p95 < 1s and p99 < 2s
      - change(p50).high < 10%
`
	p, found := Parse("x.yaml", []byte(text), Options{Drivers: fakes()})
	if p == nil {
		t.Fatal(found)
	}
	want := `x.yaml:10:9: warning: phase sequential has 20 iterations, and an upper bound for p95 needs 59
x.yaml:11:9: warning: phase sequential has 20 iterations, and an upper bound for p95 needs 59
x.yaml:11:22: warning: phase sequential has 20 iterations, and an upper bound for p99 needs 299
x.yaml:12:9: warning: phase sequential has 1 round, and a difference has an interval from 6 rounds up: .high is no data
`
	if d := cmp.Diff(want, p.Smells().String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
