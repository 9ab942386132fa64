//go:build !linux

package clock

// alarm is not needed, or not to be had, on this system.
type alarm struct{}

func process() *kicker { return nil }

func (alarm) now() int64   { return 0 }
func (alarm) setFor(int64) {}
