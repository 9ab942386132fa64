//go:build !linux

package drivertest

import "testing"

// BlackHoleAddr is an address of 127.0.0.1 where connecting neither succeeds nor fails. ok is false where the system
// offers no such thing: only Linux drops attempts at a full backlog reliably.
func BlackHoleAddr(testing.TB) (addr string, ok bool) { return "", false }
