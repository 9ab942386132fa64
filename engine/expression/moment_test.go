package expression

import (
	"testing"

	"github.com/planrun/planrun/drivers"
)

// What is captured may be drawn, so that the steps behind it share it. The same iteration draws the same for every target.
func TestCaptureOfWhatIsDrawn(t *testing.T) {
	var asked []string
	for _, src := range []string{"json.items[random(0, len(json.items) - 1)].id", "random(1, 1000)", "uuid()"} {
		v, errs := ParseCapture(src, answerNames, testScope(&asked))
		if len(errs) > 0 {
			t.Fatalf("%s: %s", src, errs[0].Message)
		}
		values := map[any]bool{}
		for k := range int64(50) {
			var first any
			for range 2 {
				var in drivers.Input
				in.Begin(k, uint64(k)*77)
				got, err := v.Eval(&answer{200, body}, &in)
				if err != nil {
					t.Fatalf("%s: %v", src, err)
				}
				if first != nil && got != first {
					t.Errorf("%s: iteration %d draws %v and %v", src, k, first, got)
				}
				first = got
			}
			values[first] = true
		}
		if len(values) < 2 {
			t.Errorf("%s is always the same", src)
		}
	}
	if _, errs := ParseCapture("iteration + 1", answerNames, testScope(&asked)); len(errs) == 0 {
		t.Error("a capture that neither looks at the answer nor draws is accepted")
	}
	if _, errs := ParseExpectation("status == random(200, 201)", answerNames, testScope(&asked)); len(errs) == 0 {
		t.Error("an expectation that draws is accepted")
	}
}
