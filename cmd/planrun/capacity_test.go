package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planrun/planrun/engine/quantity"
	"github.com/planrun/planrun/engine/result"
	"github.com/planrun/planrun/sinks/digest"
)

// A search finds what a real service holds, and shows where it ends. 12 slots of 110 ms each work off 12 / 0.110 s = 109/s. The
// holds are short: in two seconds, a rate that is 3 % too high makes the last quarter's latency 1.2 times that of the
// second, which is still let through, and one that is 6 % too high 1.4 times. So what is found may lie a little above 109/s.
//
// On a machine that is too busy to send in time a search says that it can't tell; it may do so twice.
func TestCapacityOfARealService(t *testing.T) {
	const limit = 12 / 0.110
	wrong, undecided := "", 0
	for range 3 {
		p := newPlanrun(t, "--quiet", "plan.yaml", "--results", "search.msgpack")
		p.write(t, "plan.yaml", `
targets: {target: {api: "${lab.near.api}"}}
scenarios:
  calls:
    http: GET ${target.api}/strings?bytes=64
    timeout: 5s
    phases:
      - capacity: {from: 60/s, to: 240/s, hold: 2s, while: within(1s) >= 99%, precision: 8%}
lab:
  services:
    api:
      http: {delay: 110ms, slots: 12}
  routes:
    near: {}
`)
		code := p.run(t)
		run, err := result.Open(filepath.Join(p.dir, "search.msgpack"))
		if err != nil {
			t.Fatalf("exit %d: %v\n%s", code, err, p.stderr.String())
		}
		c := run.Cells[0]
		found := c.Rounds[0].Capacity
		if code == 3 && found != nil && found.Outcome == result.Inconclusive {
			undecided++
			t.Logf("inconclusive: %s", found.Reason)
			continue
		}
		if code != 0 || found == nil || found.Outcome != result.Passed {
			wrong = fmt.Sprintf("exit %d, found %+v\n%s\n%s", code, found, p.stdout.String(), p.stderr.String())
			t.Log(wrong)
			continue
		}
		if math.Abs(found.Held-limit) > 0.1*limit {
			wrong = fmt.Sprintf("%.1f/s was held, want %.1f/s within 10 %%\n%s", found.Held, limit, p.stdout.String())
			t.Log(wrong)
			continue
		}
		// The step above, by its rate and its reason: in the results, and where people read them.
		if found.Failed <= found.Held || found.Failed > 1.08*found.Held || found.Above < 0 || found.Reason == "" {
			t.Fatalf("the step above is not told: %+v", found)
		}
		above, confirmed := c.Trials[found.Above], c.Trials[found.Confirmed]
		if above.Rate != found.Failed || above.End.Outcome != result.Failed || confirmed.Rate != found.Held || confirmed.End.Outcome != result.Passed {
			t.Errorf("the answer rests on %+v and %+v", above, confirmed)
		}
		text := strings.Join(strings.Fields(p.stdout.String()), " ") // lines are wrapped
		contains(t, text, digest.ScaleOf(quantity.Rate, found.Failed).With(found.Failed)+" fails: "+found.Reason)
		return
	}
	if undecided == 3 {
		t.Fatal("three searches were inconclusive: this machine is too busy to send in time")
	}
	t.Fatalf("of three searches none found it, and %d were inconclusive; the last wrong one: %s", undecided, wrong)
}
