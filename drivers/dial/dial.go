// Package dial opens connections for the drivers, so that name resolution, connecting and the TLS handshake are
// timed apart and fail with the same kinds everywhere.
//
// How addresses are chosen. A name is resolved when a connection is first needed, and again by a connection that is
// opened more than 30 seconds later; in between its addresses are kept and a dial has no DNS time. Addresses of a
// family are used in turn, so that connections spread over all of them; the families keep the order that the
// resolver gave them (RFC 6724). When an address fails, the next is tried within the same deadline, and the one that
// failed comes last until the name is resolved again: "localhost" falls back from ::1 to 127.0.0.1 once, not at
// every dial. A Tally says how often each address was used, and failed.
package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/planrun/planrun/drivers"
)

// Lifetime is how long the addresses of a name are used before it is resolved again.
const Lifetime = 30 * time.Second

// Dialer opens connections to one place. The exported fields are set before its first use; it is then safe for
// concurrent use.
type Dialer struct {
	// Host is a name or an IP address, without brackets. Port is a number or the name of a service.
	Host, Port string
	// Unix, if not empty, is the path of a socket to be used instead of Host and Port.
	Unix string
	// Lookup resolves a name. nil stands for the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Tally, if not nil, counts the connections by their addresses.
	Tally *Tally

	mu       sync.Mutex
	resolved time.Time // zero: never
	addrs    []netip.Addr
	failed   map[netip.Addr]bool
	turn     int
	lookup   chan struct{} // closed when the lookup under way has ended; nil if there is none
}

// To makes a Dialer for an address of the form host:port.
func To(addr string) (*Dialer, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	return &Dialer{Host: host, Port: port}, nil
}

// String is the place, for people.
func (d *Dialer) String() string {
	if d.Unix != "" {
		return d.Unix
	}
	return net.JoinHostPort(d.Host, d.Port)
}

// Dial opens a connection before ctx is done, and adds what it took to t.DNS and t.Connect. A part that the dial did
// not have is left as it is. The error is an *drivers.Error.
func (d *Dialer) Dial(ctx context.Context, t *drivers.Timing) (net.Conn, error) {
	if d.Unix != "" {
		start := time.Now()
		conn, err := new(net.Dialer).DialContext(ctx, "unix", d.Unix)
		Add(&t.Connect, time.Since(start))
		d.Tally.note(ctx, d.Unix, err)
		if err != nil {
			return nil, Fail(ctx, "connecting", err)
		}
		return conn, nil
	}
	var conn net.Conn
	err := d.Each(ctx, t, func(ctx context.Context, addr netip.AddrPort) (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", addr.String())
		return err
	})
	return conn, err
}

// Each resolves the name and calls connect for one address after the other until it succeeds or ctx is done. It adds
// what both took to t.DNS and t.Connect. The error is an *drivers.Error.
func (d *Dialer) Each(ctx context.Context, t *drivers.Timing, connect func(context.Context, netip.AddrPort) error) error {
	port, err := d.port(ctx)
	if err != nil {
		return drivers.Fail(drivers.DNS, err)
	}
	start := time.Now()
	addrs, looked, err := d.addresses(ctx)
	if looked {
		Add(&t.DNS, time.Since(start))
	}
	if err != nil {
		kind := Classify(err)
		if kind != drivers.Timeout && kind != drivers.Aborted && kind != drivers.Local {
			kind = drivers.DNS
		}
		return drivers.Fail(kind, fmt.Errorf("resolving %s: %w", d.Host, plain(err)))
	}

	start = time.Now()
	err = d.inTurn(ctx, addrs, port, connect)
	Add(&t.Connect, time.Since(start))
	if err != nil {
		return Fail(ctx, "connecting", err)
	}
	return nil
}

func (d *Dialer) port(ctx context.Context) (uint16, error) {
	if n, err := strconv.ParseUint(d.Port, 10, 16); err == nil {
		return uint16(n), nil
	}
	n, err := net.DefaultResolver.LookupPort(ctx, "tcp", d.Port)
	return uint16(n), err
}

// inTurn tries the addresses in turn. Each gets its share of the time that is left, though not less than two
// seconds of it, so that one that does not answer leaves time for the others.
func (d *Dialer) inTurn(ctx context.Context, addrs []netip.Addr, port uint16, connect func(context.Context, netip.AddrPort) error) error {
	var first error
	for i, addr := range addrs {
		try, cancel := ctx, func() {}
		if deadline, ok := ctx.Deadline(); ok && i < len(addrs)-1 {
			left := time.Until(deadline)
			try, cancel = context.WithTimeout(ctx, max(left/time.Duration(len(addrs)-i), min(left, 2*time.Second)))
		}
		at := netip.AddrPortFrom(addr, port)
		err := connect(try, at)
		cancel()
		d.Tally.note(ctx, at.String(), err)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
		if Classify(err) != drivers.Local {
			d.blame(addr)
		}
	}
	return first
}

// addresses returns where to connect, best first, and whether it had to look them up or wait for a lookup.
func (d *Dialer) addresses(ctx context.Context) (addrs []netip.Addr, looked bool, err error) {
	if addr, err := netip.ParseAddr(d.Host); err == nil {
		return []netip.Addr{addr}, false, nil
	}
	for {
		d.mu.Lock()
		if !d.resolved.IsZero() && time.Since(d.resolved) < Lifetime {
			addrs = d.order()
			d.mu.Unlock()
			return addrs, looked, nil
		}
		looked = true
		if pending := d.lookup; pending != nil {
			// Another dial is resolving the name: one question is enough.
			d.mu.Unlock()
			select {
			case <-pending:
				continue
			case <-ctx.Done():
				return nil, true, ctx.Err()
			}
		}
		d.lookup = make(chan struct{})
		d.mu.Unlock()

		found, err := d.resolve(ctx)

		d.mu.Lock()
		close(d.lookup)
		d.lookup = nil
		if err == nil {
			d.resolved, d.addrs, d.failed = time.Now(), found, nil
		}
		d.mu.Unlock()
		if err != nil {
			return nil, true, err
		}
	}
}

func (d *Dialer) resolve(ctx context.Context) ([]netip.Addr, error) {
	lookup := d.Lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	found, err := lookup(ctx, d.Host)
	if err != nil {
		return nil, err
	}
	for i, a := range found {
		found[i] = a.Unmap()
	}
	if len(found) == 0 {
		return nil, errors.New("the name has no addresses")
	}
	return found, nil
}

// order returns the addresses for one dial. d.mu is held.
func (d *Dialer) order() []netip.Addr {
	var first, second []netip.Addr // the families, in the resolver's order
	for _, a := range d.addrs {
		if a.Is4() == d.addrs[0].Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	rotate(first, d.turn)
	rotate(second, d.turn)
	d.turn++
	all := append(first, second...)
	slices.SortStableFunc(all, func(a, b netip.Addr) int {
		switch fa, fb := d.failed[a], d.failed[b]; {
		case fa == fb:
			return 0
		case fb:
			return -1
		}
		return 1
	})
	return all
}

func rotate(s []netip.Addr, n int) {
	if len(s) < 2 {
		return
	}
	n %= len(s)
	slices.Reverse(s[:n])
	slices.Reverse(s[n:])
	slices.Reverse(s)
}

func (d *Dialer) blame(addr netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = map[netip.Addr]bool{}
	}
	d.failed[addr] = true
}

// Add adds d to a part of a timing split, which becomes one that the call had.
func Add(part *time.Duration, d time.Duration) { *part = max(*part, 0) + d }
