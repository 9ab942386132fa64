package dial

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/planrun/planrun/drivers"
	"github.com/planrun/planrun/drivers/drivertest"
)

func TestClassify(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, c := range []struct {
		err  error
		want drivers.Failure
	}{
		{nil, drivers.OK},
		{refused, drivers.Refused},
		{fmt.Errorf("wrapped: %w", refused), drivers.Refused},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}, drivers.Local},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}, drivers.Local},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.ENFILE)}, drivers.Local},
		{os.NewSyscallError("write", syscall.ENOBUFS), drivers.Local},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, drivers.Reset},
		{&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}, drivers.Reset},
		{io.EOF, drivers.Reset},
		{io.ErrUnexpectedEOF, drivers.Reset},
		{net.ErrClosed, drivers.Reset},
		{os.ErrDeadlineExceeded, drivers.Timeout},
		{context.DeadlineExceeded, drivers.Timeout},
		{context.Canceled, drivers.Aborted},
		{os.NewSyscallError("connect", syscall.ETIMEDOUT), drivers.Timeout},
		{&net.DNSError{Err: "no such host", Name: "nowhere.invalid", IsNotFound: true}, drivers.DNS},
		{x509.UnknownAuthorityError{}, drivers.TLS},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, drivers.TLS},
		{drivers.Fail(drivers.Status, errors.New("x")), drivers.Status},
		{errors.New("anything"), drivers.Protocol},
	} {
		if got := Classify(c.err); got != c.want {
			t.Errorf("%v is %v, want %v", c.err, got, c.want)
		}
	}
}

func TestLocalHints(t *testing.T) {
	for errno, hint := range map[syscall.Errno]string{syscall.EMFILE: "ulimit -n", syscall.EADDRNOTAVAIL: "ephemeral ports"} {
		err := Fail(t.Context(), "connecting", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errno)})
		if drivers.KindOf(err) != drivers.Local || !strings.Contains(err.Error(), hint) {
			t.Errorf("%v: %v (%v), want a hint at %q", errno, err, drivers.KindOf(err), hint)
		}
	}
}

// listen listens on an address of the loopback network, at a port if one is given.
func listen(t *testing.T, network, addr string) (net.Listener, *atomic.Int64) {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Skipf("this system can't listen on %s: %v", addr, err)
	}
	accepted := new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l, accepted
}

func dialer(t *testing.T, host, addr string, found ...string) (*Dialer, *atomic.Int64) {
	t.Helper()
	_, port := drivertest.Split(t, addr)
	lookups := new(atomic.Int64)
	return &Dialer{Host: host, Port: port, Lookup: func(context.Context, string) ([]netip.Addr, error) {
		lookups.Add(1)
		var addrs []netip.Addr
		for _, a := range found {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		return addrs, nil
	}}, lookups
}

func TestLiteralHasNoDNSTime(t *testing.T) {
	l, _ := listen(t, "tcp", "127.0.0.1:0")
	d, err := To(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	timing := drivers.Timing{DNS: drivers.None, Connect: drivers.None}
	c, err := d.Dial(t.Context(), &timing)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if timing.DNS != drivers.None || timing.Connect < 0 {
		t.Errorf("timing is %+v", timing)
	}
}

func TestFallsBackToTheOtherFamily(t *testing.T) {
	l, accepted := listen(t, "tcp", "127.0.0.1:0")
	d, lookups := dialer(t, "localhost", l.Addr().String(), "::1", "127.0.0.1")
	const dials = 50
	var resolved int
	for range dials {
		timing := drivers.Timing{DNS: drivers.None}
		c, err := d.Dial(t.Context(), &timing)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if timing.DNS >= 0 {
			resolved++
		}
	}
	for end := time.Now().Add(10 * time.Second); accepted.Load() < dials && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := accepted.Load(); n != dials {
		t.Errorf("%d connections were accepted, want %d", n, dials)
	}
	if lookups.Load() != 1 || resolved != 1 {
		t.Errorf("the name was resolved %d times, %d dials have a DNS time; want 1 and 1", lookups.Load(), resolved)
	}
}

func TestSystemsLocalhost(t *testing.T) {
	l, _ := listen(t, "tcp", "127.0.0.1:0")
	_, port := drivertest.Split(t, l.Addr().String())
	d := &Dialer{Host: "localhost", Port: port}
	for range 20 {
		var timing drivers.Timing
		c, err := d.Dial(t.Context(), &timing)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

func TestSpreadsOverAddresses(t *testing.T) {
	one, first := listen(t, "tcp", "127.0.0.1:0")
	_, port := drivertest.Split(t, one.Addr().String())
	_, second := listen(t, "tcp", "127.0.0.2:"+port)
	d, _ := dialer(t, "spread.test", one.Addr().String(), "127.0.0.1", "127.0.0.2")
	for range 20 {
		var timing drivers.Timing
		c, err := d.Dial(t.Context(), &timing)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	for end := time.Now().Add(10 * time.Second); first.Load()+second.Load() < 20 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if first.Load() != 10 || second.Load() != 10 {
		t.Errorf("%d and %d connections, want 10 and 10", first.Load(), second.Load())
	}
}

// A tally says where connections went while the name changes: two addresses, then one of them and one that refuses. What was
// ended on this side is nobody's failure.
func TestTally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		found := []string{"10.0.0.1", "10.0.0.2"}
		tally := new(Tally)
		d := &Dialer{Host: "name.test", Port: "80", Tally: tally, Lookup: func(context.Context, string) (addrs []netip.Addr, _ error) {
			for _, a := range found {
				addrs = append(addrs, netip.MustParseAddr(a))
			}
			return addrs, nil
		}}
		connect := func(_ context.Context, addr netip.AddrPort) error {
			if addr.String() == "10.0.0.3:80" {
				return syscall.ECONNREFUSED
			}
			return nil
		}
		dial := func(ctx context.Context, connect func(context.Context, netip.AddrPort) error) error {
			return d.Each(ctx, new(drivers.Timing), connect)
		}
		for range 10 {
			if err := dial(t.Context(), connect); err != nil {
				t.Fatal(err)
			}
		}
		found = []string{"10.0.0.3", "10.0.0.2"}
		time.Sleep(Lifetime)
		for range 10 {
			if err := dial(t.Context(), connect); err != nil {
				t.Fatal(err)
			}
		}
		for _, local := range []error{syscall.EADDRNOTAVAIL, syscall.EMFILE} {
			if err := dial(t.Context(), func(context.Context, netip.AddrPort) error { return local }); err == nil {
				t.Error("there is no error")
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := dial(ctx, func(context.Context, netip.AddrPort) error { cancel(); return context.Canceled }); drivers.KindOf(err) != drivers.Aborted {
			t.Errorf("got %v", err)
		}
		want := []drivers.Address{{Addr: "10.0.0.2:80", Opened: 15}, {Addr: "10.0.0.1:80", Opened: 5}, {Addr: "10.0.0.3:80", Failed: 1}}
		if got := drivers.MergeAddresses(tally.Addresses()); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// An address that does not answer leaves time for the next.
func TestSilentAddress(t *testing.T) {
	hole, ok := drivertest.BlackHoleAddr(t)
	if !ok {
		t.Skip("this system has no black hole")
	}
	_, port := drivertest.Split(t, hole)
	listen(t, "tcp", "127.0.0.2:"+port)
	d, _ := dialer(t, "half.test", hole, "127.0.0.1", "127.0.0.2")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	for i := range 2 {
		var timing drivers.Timing
		c, err := d.Dial(ctx, &timing)
		if err != nil {
			t.Fatalf("dial %d: %v", i, err)
		}
		c.Close()
	}
}

// Names are resolved again after a while, by one dial for all.
func TestResolvesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lookups atomic.Int64
		d := &Dialer{Host: "name.test", Port: "80", Lookup: func(context.Context, string) ([]netip.Addr, error) {
			time.Sleep(10 * time.Millisecond)
			n := byte(lookups.Add(1))
			return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, n})}, nil
		}}
		ask := func() (first string, waited int) {
			var wg sync.WaitGroup
			var looked atomic.Int64
			for range 5 {
				wg.Go(func() {
					addrs, l, err := d.addresses(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if l {
						looked.Add(1)
					}
					if addrs[0].String() != fmt.Sprintf("127.0.0.%d", lookups.Load()) {
						t.Errorf("got %v after %d lookups", addrs, lookups.Load())
					}
				})
			}
			wg.Wait()
			return "", int(looked.Load())
		}
		if _, waited := ask(); lookups.Load() != 1 || waited != 5 {
			t.Errorf("%d lookups, %d dials waited for one; want 1 and 5", lookups.Load(), waited)
		}
		time.Sleep(Lifetime - time.Second)
		if _, waited := ask(); lookups.Load() != 1 || waited != 0 {
			t.Errorf("%d lookups, %d dials waited for one; want 1 and 0", lookups.Load(), waited)
		}
		time.Sleep(2 * time.Second)
		if ask(); lookups.Load() != 2 {
			t.Errorf("%d lookups, want 2", lookups.Load())
		}
	})
}

func TestUnknownName(t *testing.T) {
	d := &Dialer{Host: "nowhere.invalid", Port: "80", Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}}
	timing := drivers.Timing{DNS: drivers.None, Connect: drivers.None}
	_, err := d.Dial(t.Context(), &timing)
	if drivers.KindOf(err) != drivers.DNS || !strings.Contains(err.Error(), "nowhere.invalid") {
		t.Errorf("got %v (%v)", err, drivers.KindOf(err))
	}
	if timing.DNS < 0 || timing.Connect >= 0 {
		t.Errorf("timing is %+v", timing)
	}
}

func TestSlowName(t *testing.T) {
	d := &Dialer{Host: "slow.test", Port: "80", Lookup: func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.Dial(ctx, new(drivers.Timing)); drivers.KindOf(err) != drivers.Timeout || !strings.Contains(err.Error(), "slow.test") {
		t.Errorf("got %v (%v)", err, drivers.KindOf(err))
	}
}

func TestOrder(t *testing.T) {
	d := &Dialer{}
	for _, a := range []string{"::1", "127.0.0.1", "127.0.0.2", "127.0.0.3"} {
		d.addrs = append(d.addrs, netip.MustParseAddr(a))
	}
	var firsts []string
	for range 4 {
		firsts = append(firsts, fmt.Sprint(d.order()))
	}
	want := []string{
		"[::1 127.0.0.1 127.0.0.2 127.0.0.3]", "[::1 127.0.0.2 127.0.0.3 127.0.0.1]",
		"[::1 127.0.0.3 127.0.0.1 127.0.0.2]", "[::1 127.0.0.1 127.0.0.2 127.0.0.3]",
	}
	if !slices.Equal(firsts, want) {
		t.Errorf("got %v, want %v", firsts, want)
	}
	d.blame(netip.MustParseAddr("::1"))
	if got := fmt.Sprint(d.order()); got != "[127.0.0.2 127.0.0.3 127.0.0.1 ::1]" {
		t.Errorf("after a failure: %v", got)
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listen(t, "unix", path)
	timing := drivers.Timing{DNS: drivers.None, Connect: drivers.None}
	c, err := (&Dialer{Unix: path}).Dial(t.Context(), &timing)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if timing.DNS >= 0 || timing.Connect < 0 {
		t.Errorf("timing is %+v", timing)
	}
	if _, err := (&Dialer{Unix: path + "x"}).Dial(t.Context(), &timing); drivers.KindOf(err) != drivers.Refused {
		t.Errorf("a missing socket: %v (%v)", err, drivers.KindOf(err))
	}
}

func TestIdle(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pair := func() (client, server net.Conn) {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if server, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close(); server.Close() })
		return client, server
	}
	becomes := func(i *Idle, what string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !i.Readable(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("a connection does not become readable after %s", what)
			}
		}
	}
	client, server := pair()
	idle := NewIdle(client)
	if idle.Readable() {
		t.Error("a silent connection is readable")
	}
	if n := testing.AllocsPerRun(100, func() { idle.Readable() }); n != 0 {
		t.Errorf("asking allocates %v times", n)
	}
	server.Write([]byte("x"))
	becomes(idle, "data")
	if b := make([]byte, 1); true {
		if _, err := client.Read(b); err != nil || b[0] != 'x' {
			t.Errorf("asking took the data: %q, %v", b, err)
		}
	}
	if idle.Readable() {
		t.Error("an emptied connection is readable")
	}
	server.Close()
	becomes(idle, "a close")

	client, server = pair()
	idle = NewIdle(client)
	server.(*net.TCPConn).SetLinger(0)
	server.Close()
	becomes(idle, "a reset")

	client, _ = pair()
	idle = NewIdle(client)
	client.Close()
	becomes(idle, "closing it ourselves")
}
