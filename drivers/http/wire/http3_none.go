//go:build !http3

package wire

import (
	"context"
	"errors"

	"github.com/planrun/planrun/drivers"
)

// builtHTTP3 says whether this build speaks HTTP/3. Without it, Parse refuses what would need the rest of this file.
const builtHTTP3 = false

var errNoHTTP3 = drivers.Fail(drivers.Protocol, errors.New("this build does not speak HTTP/3"))

type datagrams struct{}

func newDatagrams(*Client, int) *datagrams { return nil }

func (*datagrams) close() {}

func (*datagrams) probe(context.Context, *drivers.Timing) error { return errNoHTTP3 }

func (*Session) http3(context.Context, *Client, *Request, *drivers.Input, *drivers.Outcome, Sink) error {
	return errNoHTTP3
}

func quicFailure(string, error) (error, bool) { return nil, false }
