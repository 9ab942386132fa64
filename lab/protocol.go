package lab

// A lab and its process speak JSON, a value a line, over the process's standard input and output:
//
//	to it    Spec
//	from it  Ready
//	to it    "counts"
//	from it  Counts
//	...
//
// It ends when its input does, so it never outlives whoever started it.

// Ready is the answer to a Spec.
type Ready struct {
	Error     string                       `json:"error,omitempty"`     // why there is no lab
	Addresses map[string]map[string]string `json:"addresses,omitempty"` // of route and service
	CA        []byte                       `json:"ca,omitempty"`        // PEM; empty without a service over TLS
}

// AskCounts is the request for Counts.
const AskCounts = "counts"

// Counts is what a lab has seen since it started.
type Counts struct {
	Routes   map[string]map[string]RouteCounts `json:"routes"` // of route and service
	Services map[string]ServiceCounts          `json:"services"`
}

// RouteCounts is what came by a route to a service.
type RouteCounts struct {
	Connections int64 `json:"connections"`
	Rendezvous  int64 `json:"rendezvous"` // 0 without a relay
}

// ServiceCounts is what a service has seen, by all routes.
type ServiceCounts struct {
	Connections int64 `json:"connections"`
	Requests    int64 `json:"requests"` // of postgres: statements executed
}
