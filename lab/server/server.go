// Package server is what a lab's process runs: the services and routes of a spec.
package server

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/planrun/planrun/engine/clock"
	"github.com/planrun/planrun/lab"
	"github.com/planrun/planrun/lab/relay"
	"github.com/planrun/planrun/lab/route"
	"github.com/planrun/planrun/lab/service"
	"github.com/planrun/planrun/lab/service/postgres"
)

// Serve reads a spec from stdin, runs it, answers requests, and returns when stdin ends or ctx is done. It is the whole of
// the process that [lab.Start] starts; see there for what is spoken. It ignores interrupts from now on.
//
// What is wrong with the spec goes to stdout, and is returned too.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	signal.Ignore(os.Interrupt)
	lines := make(chan []byte)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		// When nobody is left who could close the lab, it closes itself.
		defer close(lines)
		in := bufio.NewReader(stdin)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			select {
			case lines <- line:
			case <-ended:
				return
			}
		}
	}()
	out := json.NewEncoder(stdout)

	var spec lab.Spec
	select {
	case line, ok := <-lines:
		if !ok {
			return errors.New("expected a description of a lab on standard input")
		}
		if err := json.Unmarshal(line, &spec); err != nil {
			err = fmt.Errorf("the description of the lab is not understood: %w", err)
			return errors.Join(err, out.Encode(lab.Ready{Error: err.Error()}))
		}
	case <-ctx.Done():
		return nil
	}
	s, err := Start(ctx, spec)
	if err != nil {
		return errors.Join(err, out.Encode(lab.Ready{Error: err.Error()}))
	}
	defer s.Close()
	if err := out.Encode(lab.Ready{Addresses: s.Addresses(), CA: s.CA()}); err != nil {
		return fmt.Errorf("say where the lab is: %w", err)
	}
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			var request string
			if json.Unmarshal(line, &request) != nil || request != lab.AskCounts {
				return fmt.Errorf("unknown request %q", strings.TrimSpace(string(line)))
			}
			if err := out.Encode(s.Counts()); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// Server runs the services and routes of a spec in this process. It is safe for concurrent use.
type Server struct {
	services  map[string]running
	addresses map[string]map[string]string
	ways      map[string]map[string]way // of route and service
	ca        []byte
	closers   []io.Closer // in the order they were opened
}

// running is a service.
type running interface {
	io.Closer
	Address() string
	Connections() int64
	Requests() int64
}

// way is a route to one service.
type way struct {
	link  *route.Link
	relay *relay.Relay // nil without one
}

// Start starts what a spec asks for, and returns when all of it can be reached.
func Start(ctx context.Context, spec lab.Spec) (*Server, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	s := &Server{
		services:  map[string]running{},
		addresses: map[string]map[string]string{},
		ways:      map[string]map[string]way{},
	}
	if err := s.start(ctx, spec); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, spec lab.Spec) error {
	c := clock.New()
	var authority *service.Authority
	// Gateways come last: their nodes listen by then.
	services := slices.Clone(spec.Services)
	slices.SortStableFunc(services, func(a, b lab.Service) int { return cmp.Compare(rank(a), rank(b)) })
	for _, described := range services {
		if described.TLS && authority == nil {
			var err error
			if authority, err = service.NewAuthority(); err != nil {
				return err
			}
			s.ca = authority.PEM()
		}
		var v running
		var err error
		switch described.Kind {
		case lab.HTTP:
			v, err = service.ListenHTTP(c, described, authority)
		case lab.GRPC:
			v, err = service.ListenGRPC(c, described, authority)
		case lab.Gateway:
			i := slices.IndexFunc(services, func(o lab.Service) bool { return o.Name == described.Node })
			v, err = service.ListenGateway(c, described, services[i], s.services[described.Node].Address(), authority)
		case lab.Postgres:
			v, err = postgres.Listen(ctx, described)
		}
		if err != nil {
			return err
		}
		s.services[described.Name] = v
		s.closers = append(s.closers, v)
	}
	for _, described := range spec.Routes {
		if err := s.lead(ctx, c, described, spec.Services); err != nil {
			return err
		}
	}
	return nil
}

// rank orders services by what they need to be there.
func rank(s lab.Service) int {
	if s.Kind == lab.Gateway {
		return 1
	}
	return 0
}

// lead opens a route to every service.
func (s *Server) lead(ctx context.Context, c *clock.Clock, r lab.Route, services []lab.Service) error {
	s.addresses[r.Name] = map[string]string{}
	s.ways[r.Name] = map[string]way{}
	line := route.NewLine(c, route.Shape{RTT: r.RTT, Jitter: r.Jitter, Bandwidth: r.Bandwidth, Window: r.Window})
	var meeting *relay.Relay
	var far *route.Link // to the relay, from near the services
	if r.Relay != nil {
		var err error
		if meeting, err = relay.Listen(); err != nil {
			return err
		}
		s.closers = append(s.closers, meeting)
		hop := route.NewLine(c, route.Shape{RTT: r.Relay.RTT, Window: r.Relay.Window})
		if far, err = hop.Listen(route.To(meeting.Address())); err != nil {
			return err
		}
		s.closers = append(s.closers, far)
	}
	for _, described := range services {
		dial := route.To(s.services[described.Name].Address())
		if r.Relay != nil {
			listener, err := relay.ListenTo(ctx, far.Address(), described.Name, dial)
			if err != nil {
				return err
			}
			s.closers = append(s.closers, listener)
			dial = relay.NewSender(meeting.Address(), described.Name).Dial
		}
		link, err := line.Listen(dial)
		if err != nil {
			return err
		}
		s.closers = append(s.closers, link)
		s.ways[r.Name][described.Name] = way{link, meeting}
		s.addresses[r.Name][described.Name] = address(described, link.Address())
	}
	return nil
}

// address is what a plan's lab.<route>.<service> stands for.
func address(s lab.Service, at string) string {
	switch {
	case s.Kind == lab.Postgres:
		return "postgres://planrun@" + at + "/lab?sslmode=disable"
	case s.Kind == lab.GRPC:
		return at
	case s.TLS:
		return "https://" + at
	}
	return "http://" + at
}

// Addresses is where to reach each service by each route; see [lab.Lab.Addresses].
func (s *Server) Addresses() map[string]map[string]string { return s.addresses }

// CA is the authority's certificate in PEM; nil without a service over TLS.
func (s *Server) CA() []byte { return s.ca }

// Counts is what the services and routes have seen so far.
func (s *Server) Counts() lab.Counts {
	c := lab.Counts{Routes: map[string]map[string]lab.RouteCounts{}, Services: map[string]lab.ServiceCounts{}}
	for name, v := range s.services {
		c.Services[name] = lab.ServiceCounts{Connections: v.Connections(), Requests: v.Requests()}
	}
	for name, ways := range s.ways {
		c.Routes[name] = map[string]lab.RouteCounts{}
		for to, w := range ways {
			n := lab.RouteCounts{Connections: w.link.Connections()}
			if w.relay != nil {
				n.Rendezvous = w.relay.Rendezvous(to)
			}
			c.Routes[name][to] = n
		}
	}
	return c
}

// Close breaks off all connections and stops everything.
func (s *Server) Close() error {
	var faults []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		if err := s.closers[i].Close(); err != nil {
			faults = append(faults, err)
		}
	}
	s.closers = nil
	return errors.Join(faults...)
}
