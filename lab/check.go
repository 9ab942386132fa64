package lab

import (
	"errors"
	"fmt"
	"math"
)

// Kinds of services.
const (
	HTTP     = "http"
	GRPC     = "grpc"
	Gateway  = "gateway"
	Postgres = "postgres"
)

// Check returns what of a spec a lab cannot do, or nil.
func (s Spec) Check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if len(s.Services) == 0 {
		fault("a lab needs a service")
	}
	if len(s.Routes) == 0 {
		fault("a lab needs a route")
	}
	names := map[string]bool{}
	for _, v := range s.Services {
		if v.Name == "" {
			fault("a service needs a name")
		}
		if names[v.Name] {
			fault("there are two services called %q", v.Name)
		}
		names[v.Name] = true
		switch v.Kind {
		case HTTP, GRPC, Gateway:
			if v.Rows != 0 || v.Payload != 0 {
				fault("service %s: rows and payload are for postgres, this is %s", v.Name, v.Kind)
			}
			if v.Slots > 0 && v.Delay == 0 && v.DelayMax == 0 {
				fault("service %s: slots need a delay, for a request that takes no time needs no slot", v.Name)
			}
		case Postgres:
			if v.TLS || v.Delay != 0 || v.DelayMax != 0 || v.Serial != 0 || v.Slots != 0 {
				fault("service %s: tls, delay, serial and slots are for http, grpc and gateway, this is postgres", v.Name)
			}
		default:
			fault("service %s: unknown kind %q, expected http, grpc, gateway or postgres", v.Name, v.Kind)
		}
		if node := s.service(v.Node); v.Kind == Gateway && (node == nil || node.Kind != HTTP && node.Kind != GRPC) {
			fault("service %s: a gateway asks a node of kind http or grpc, and %q is none", v.Name, v.Node)
		}
		if v.Kind != Gateway && (v.Node != "" || v.Timeout != 0) {
			fault("service %s: node and timeout are for gateway, this is %s", v.Name, v.Kind)
		}
		if v.Delay < 0 || v.DelayMax < 0 || v.Serial < 0 || v.Slots < 0 || v.Rows < 0 || v.Payload < 0 || v.Timeout < 0 {
			fault("service %s: negative numbers make no sense", v.Name)
		}
		if v.DelayMax > 0 && v.DelayMax < v.Delay {
			fault("service %s: the least delay %v is greater than the most, %v", v.Name, v.Delay, v.DelayMax)
		}
		if v.Kind == Postgres && v.Payload > 0 && float64(v.Rows)*float64(v.Payload) > mostData {
			fault("service %s: %d rows of %d bytes are more than 1 GiB", v.Name, v.Rows, v.Payload)
		}
	}
	clear(names)
	for _, r := range s.Routes {
		if r.Name == "" {
			fault("a route needs a name")
		}
		if names[r.Name] {
			fault("there are two routes called %q", r.Name)
		}
		names[r.Name] = true
		if r.RTT < 0 || r.Jitter < 0 || r.Bandwidth < 0 || r.Window < 0 {
			fault("route %s: negative numbers make no sense", r.Name)
		}
		if math.IsNaN(r.Bandwidth) || math.IsInf(r.Bandwidth, 0) {
			fault("route %s: the bandwidth is not a number", r.Name)
		}
		if r.Relay != nil && (r.Relay.RTT < 0 || r.Relay.Window < 0) {
			fault("route %s: negative numbers make no sense of its relay", r.Name)
		}
	}
	return errors.Join(faults...)
}

// service is the service of a name, nil if there is none.
func (s Spec) service(name string) *Service {
	for i := range s.Services {
		if s.Services[i].Name == name {
			return &s.Services[i]
		}
	}
	return nil
}

// mostData is how many bytes a database may hold.
const mostData = 1 << 30
