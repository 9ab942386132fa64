//go:build !http3

package http

import (
	"testing"

	"github.com/planrun/planrun/drivers/drivertest"
)

// What can't be spoken is said before the load, with what to do about it.
func TestWithoutHTTP3(t *testing.T) {
	_, err := New().Prepare(drivertest.NewOp(t, New(), drivertest.Fields{"get": "https://a.test/", "version": "3"}))
	const want = "version: this program was built without HTTP/3: build it with go build -tags http3"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
