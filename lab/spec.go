// Package lab is the lab in the box: systems under test for rehearsal, and the shaped routes that lead to them. It runs
// in a process of its own, so that it does not share the generator's runtime.
package lab

import "time"

// Spec is a lab as a plan describes it.
type Spec struct {
	Services []Service `json:"services"`
	Routes   []Route   `json:"routes"`
}

// Service is a system under test.
type Service struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // "http", "grpc", "gateway" or "postgres"

	// Of http, grpc and gateway.
	TLS      bool          `json:"tls,omitempty"`      // TLS with HTTP/1.1 and HTTP/2; otherwise HTTP/1.1 and h2c. Of grpc: HTTP/2 alone
	Delay    time.Duration `json:"delay,omitempty"`    // work of each request, at the same time as others'
	DelayMax time.Duration `json:"delayMax,omitempty"` // if greater than Delay: uniform between the two
	Serial   time.Duration `json:"serial,omitempty"`   // work of each request, one request after the other
	Slots    int           `json:"slots,omitempty"`    // requests at work at the same time, others queue; 0: no limit

	// Of gateway.
	Node    string        `json:"node,omitempty"`    // the http or grpc service that it asks, by what that one speaks
	Timeout time.Duration `json:"timeout,omitempty"` // for the node's answer; 0: none

	// Of postgres.
	Rows    int   `json:"rows,omitempty"`    // rows of table documents
	Payload int64 `json:"payload,omitempty"` // bytes of column payload
}

// Bytes that /strings and /file of a service answer with when the request does not say.
const (
	DefaultStrings = 8 << 10
	DefaultFile    = 64 << 20
)

// Route leads to every service, by a path of its own.
type Route struct {
	Name      string        `json:"name"`
	RTT       time.Duration `json:"rtt,omitempty"`
	Jitter    time.Duration `json:"jitter,omitempty"`    // uniform, added to each way; order is kept
	Bandwidth float64       `json:"bandwidth,omitempty"` // bytes a second and direction; 0: no limit
	Window    int64         `json:"window,omitempty"`    // bytes in flight a connection and direction; 0: no limit
	Relay     *Relay        `json:"relay,omitempty"`
}

// Relay is a rendezvous over WebSocket between the route and the service, as Azure Relay does it: every TCP connection
// costs one.
type Relay struct {
	RTT    time.Duration `json:"rtt,omitempty"`
	Window int64         `json:"window,omitempty"`
}
