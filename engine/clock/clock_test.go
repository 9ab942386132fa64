package clock

import (
	"testing"
	"time"
)

func TestUntilIsNeverEarly(t *testing.T) {
	for name, c := range map[string]*Clock{"new": New(), "plain": Plain()} {
		t.Run(name, func(t *testing.T) {
			w := c.NewWaiter()
			for range 100 {
				due := c.Now() + 300*time.Microsecond
				if !w.Until(due, nil) {
					t.Fatal("not waited for")
				}
				if now := c.Now(); now < due {
					t.Fatalf("returned at %v, due at %v", now, due)
				}
			}
		})
	}
}
