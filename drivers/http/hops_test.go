package http

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

// Every redirect that was followed is named: to expectations, and in what is said of a failure.
func TestHopsAreNamed(t *testing.T) {
	for version, p := range both {
		t.Run(version, func(t *testing.T) {
			s := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/a":
					http.Redirect(w, r, "/b", http.StatusFound)
				case "/b":
					http.Redirect(w, r, "/c", http.StatusTemporaryRedirect)
				case "/lost":
					http.Redirect(w, r, "http://"+drivertest.RefusedAddr(t)+"/", http.StatusFound)
				default:
					http.Error(w, "gone", http.StatusGone)
				}
			})
			call := func(path string) drivertest.Result {
				return do(t, drivertest.Fields{"get": "http://" + s.addr() + path, "version": version, "redirects": 3}, "hops")
			}
			r := call("/a")
			hops, err := r.Answer.Value("hops")
			want := []any{
				map[string]any{"status": int64(302), "location": "/b"},
				map[string]any{"status": int64(307), "location": "/c"},
			}
			if err != nil || !reflect.DeepEqual(hops, want) {
				t.Errorf("hops are %v (%v), want %v", hops, err, want)
			}
			if text := r.Answer.(*answer).String(); text != "status was 410 after 302 to /b, 307 to /c: gone" {
				t.Errorf("the answer is told as %q", text)
			}
			r = call("/c")
			if hops, _ := r.Answer.Value("hops"); !reflect.DeepEqual(hops, []any{}) {
				t.Errorf("without a redirect hops are %v", hops)
			}
			r = call("/lost")
			if drivers.KindOf(r.Err) != drivers.Refused || !strings.HasPrefix(r.Err.Error(), "after 302 to http://127.0.0.1:") {
				t.Errorf("got %v (%v)", drivers.KindOf(r.Err), r.Err)
			}
		})
	}
}

// Where redirects led is among the addresses that connections went to.
func TestAddressesOfRedirects(t *testing.T) {
	for version, p := range both {
		t.Run(version, func(t *testing.T) {
			end := serve(t, p, nil)
			middle := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://"+end.addr()+"/", http.StatusFound)
			})
			start := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://"+middle.addr()+"/", http.StatusFound)
			})
			b := drivertest.NewBench(t, New(), drivertest.Fields{"get": "http://" + start.addr(), "version": version, "redirects": 3}, drivers.Pool{Users: 1})
			session := b.Open()
			for range 3 {
				b.Must(session)
			}
			var want []drivers.Address
			for _, s := range []*server{start, middle, end} {
				want = append(want, drivers.Address{Addr: s.addr(), Opened: 1})
			}
			drivertest.WentTo(t, b.Client, drivers.MergeAddresses(want)...)
		})
	}
}
