package lab_test

import (
	"go/build"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/planrun/planrun/lab"
)

func TestCheck(t *testing.T) {
	web := lab.Service{Name: "api", Kind: lab.HTTP}
	db := lab.Service{Name: "db", Kind: lab.Postgres}
	direct := lab.Route{Name: "direct"}
	with := func(s lab.Service, change func(*lab.Service)) lab.Service { change(&s); return s }
	by := func(change func(*lab.Route)) lab.Route { r := direct; change(&r); return r }
	for want, spec := range map[string]lab.Spec{
		"": {Services: []lab.Service{
			with(web, func(s *lab.Service) { s.TLS, s.Delay, s.DelayMax, s.Serial, s.Slots = true, 1, 2, 3, 4 }), db,
		}, Routes: []lab.Route{direct, {Name: "hybrid", RTT: 1, Jitter: 1, Bandwidth: 1, Window: 1, Relay: &lab.Relay{RTT: 1, Window: 1}}}},
		"gateways": {Services: []lab.Service{
			{Name: "rpc", Kind: lab.Gateway, Node: "node", Timeout: 1, Delay: 1, Slots: 1, TLS: true},
			{Name: "node", Kind: lab.GRPC, TLS: true, Delay: 1, DelayMax: 2, Serial: 3, Slots: 4},
			{Name: "rest", Kind: lab.Gateway, Node: "api"}, web,
		}, Routes: []lab.Route{direct}},
		`and "rest" is none`:       {Services: []lab.Service{{Name: "rest", Kind: lab.Gateway, Node: "rest"}}, Routes: []lab.Route{direct}},
		`and "db" is none`:         {Services: []lab.Service{{Name: "rest", Kind: lab.Gateway, Node: "db"}, db}, Routes: []lab.Route{direct}},
		`and "" is none`:           {Services: []lab.Service{{Name: "rest", Kind: lab.Gateway}}, Routes: []lab.Route{direct}},
		"are for gateway":          {Services: []lab.Service{with(web, func(s *lab.Service) { s.Timeout = 1 })}, Routes: []lab.Route{direct}},
		"needs a service":          {Routes: []lab.Route{direct}},
		"needs a route":            {Services: []lab.Service{web}},
		"a service needs a name":   {Services: []lab.Service{{Kind: lab.HTTP}}, Routes: []lab.Route{direct}},
		"a route needs a name":     {Services: []lab.Service{web}, Routes: []lab.Route{{}}},
		`services called "api"`:    {Services: []lab.Service{web, web}, Routes: []lab.Route{direct}},
		`routes called "direct"`:   {Services: []lab.Service{web}, Routes: []lab.Route{direct, direct}},
		`unknown kind "ftp"`:       {Services: []lab.Service{{Name: "x", Kind: "ftp"}}, Routes: []lab.Route{direct}},
		"negative":                 {Services: []lab.Service{with(web, func(s *lab.Service) { s.Delay = -1 })}, Routes: []lab.Route{direct}},
		"slots need a delay":       {Services: []lab.Service{with(web, func(s *lab.Service) { s.Slots = 1 })}, Routes: []lab.Route{direct}},
		"greater than the most":    {Services: []lab.Service{with(web, func(s *lab.Service) { s.Delay, s.DelayMax = time.Second, 1 })}, Routes: []lab.Route{direct}},
		"are for postgres":         {Services: []lab.Service{with(web, func(s *lab.Service) { s.Rows = 1 })}, Routes: []lab.Route{direct}},
		"are for http":             {Services: []lab.Service{with(db, func(s *lab.Service) { s.TLS = true })}, Routes: []lab.Route{direct}},
		"more than 1 GiB":          {Services: []lab.Service{with(db, func(s *lab.Service) { s.Rows, s.Payload = 1<<20, 1<<20 })}, Routes: []lab.Route{direct}},
		"not a number":             {Services: []lab.Service{web}, Routes: []lab.Route{by(func(r *lab.Route) { r.Bandwidth = math.NaN() })}},
		"make no sense\n":          {Services: []lab.Service{web}, Routes: []lab.Route{by(func(r *lab.Route) { r.RTT = -1 }), {}}},
		"make no sense of its rel": {Services: []lab.Service{web}, Routes: []lab.Route{by(func(r *lab.Route) { r.Relay = &lab.Relay{RTT: -1} })}},
	} {
		t.Run(want, func(t *testing.T) {
			err := spec.Check()
			if want == "" || want == "gateways" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// Whoever reads plans imports this package for Spec alone, and shall not get a database with it.
func TestImportsTheStandardLibraryOnly(t *testing.T) {
	p, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range p.Imports {
		if strings.Contains(path, ".") {
			t.Errorf("imports %s", path)
		}
	}
}
