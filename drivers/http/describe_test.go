package http

import (
	"fmt"
	"testing"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// A call says what it requests, and nothing that may be a secret.
func TestCallsDescribeThemselves(t *testing.T) {
	dynamic := drivertest.Func(func(*drivers.Input) any { return "hunter2" })
	for _, c := range []struct {
		fields drivertest.Fields
		want   string
	}{
		{drivertest.Fields{"get": "http://me:hunter2@a.test/strings?bytes=8192"}, "GET /strings?bytes=8192"},
		{drivertest.Fields{"url": "http://a.test"}, "GET /"},
		{drivertest.Fields{"post": "http://a.test/pay", "json": drivertest.Fields{"pin": "hunter2"}, "bearer": "hunter2",
			"headers": drivertest.Fields{"X-Key": "hunter2"}}, "POST /pay"},
		{drivertest.Fields{"url": "purge http://a.test/x#y"}, "PURGE /x"},
		{drivertest.Fields{"get": drivertest.Mix{"http://a.test/users/", dynamic, "/cart"}, "query": drivertest.Fields{"a": "b c", "q": dynamic}},
			"GET /users/${...}/cart?a=b%20c&q=${...}"},
	} {
		if got := fmt.Sprint(drivertest.Prepare(t, New(), c.fields)); got != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.fields, got, c.want)
		}
	}
}
