package service

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestShop(t *testing.T) {
	h := &HTTP{}
	routes := h.routes()
	for _, test := range []struct {
		method, path, body, token string
		code                      int
		want                      string
	}{
		{"POST", "/login", `{"user": "ann", "password": "nna"}`, "", 200, `"token":"` + token("ann") + `"`},
		{"POST", "/login", `{"user": "ann", "password": "x"}`, "", 401, "error"},
		{"POST", "/login", `user=ann`, "", 400, "must be JSON"},
		{"GET", "/items", "", "", 200, `"page":1,"pages":10`},
		{"GET", "/items?page=10", "", "", 200, `"id":200`},
		{"GET", "/items?page=11", "", "", 400, "between 1 and 10"},
		{"POST", "/basket", `{"item": 17}`, token("ann"), 200, `"amount":1,"cents":1799`},
		{"POST", "/basket", `{"item": 17, "amount": 2}`, token("ann"), 200, `"cents":3598`},
		{"POST", "/basket", `{"item": 17}`, "", 401, "token"},
		{"POST", "/basket", `{"item": 17}`, "ann.0000000000000000", 401, "token"},
		{"POST", "/basket", `{"item": 0}`, token("ann"), 422, "no such item"},
	} {
		r := httptest.NewRequest(test.method, test.path, strings.NewReader(test.body))
		if test.token != "" {
			r.Header.Set("Authorization", "Bearer "+test.token)
		}
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, r)
		if w.Code != test.code || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s %s %s: %d %s", test.method, test.path, test.body, w.Code, w.Body)
		}
		if w.Code != http.StatusOK && w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %q", test.method, test.path, w.Header().Get("Content-Type"))
		}
	}
}
