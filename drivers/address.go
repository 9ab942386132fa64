package drivers

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Addressed is a Client that tells which remote addresses it connected to, as those of all drivers here are.
type Addressed interface {
	// Addresses lists them in any order, each once. It may be called at any time until Close, from any goroutine.
	Addresses() []Address
}

// Address is a remote address as it was dialled: a name with several of them, or other ones after a while, shows in how
// often each was.
type Address struct {
	Addr   string // host:port, the host being what its name was resolved to, or the path of a Unix socket
	Opened int64  // connections made to it
	Failed int64  // attempts to connect to it that failed; another address may have taken the call
}

// MergeAddresses adds lists up, and has the most used addresses first.
func MergeAddresses(lists ...[]Address) []Address {
	sum := map[string]Address{}
	for _, list := range lists {
		for _, a := range list {
			s := sum[a.Addr]
			sum[a.Addr] = Address{a.Addr, s.Opened + a.Opened, s.Failed + a.Failed}
		}
	}
	return slices.SortedFunc(maps.Values(sum), func(a, b Address) int {
		return cmp.Or(cmp.Compare(b.Opened+b.Failed, a.Opened+a.Failed), strings.Compare(a.Addr, b.Addr))
	})
}
