package clock

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// An alarm of its own, whose time is given by the test, shows what the kicker sets it for.
func testKicker(t *testing.T) (*kicker, func() int64) {
	t.Helper()
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	t.Cleanup(func() { file.Close() })
	a := alarm{file, fd}
	return newKicker(a), func() int64 {
		var spec unix.ItimerSpec
		if err := unix.TimerfdGettime(fd, &spec); err != nil {
			t.Fatal(err)
		}
		return spec.Value.Nano() + a.now() // Gettime tells what is left
	}
}

func TestKickerSetsTheAlarmForTheEarliest(t *testing.T) {
	k, rings := testKicker(t)
	const second = 1_000_000_000
	now := k.alarm.now()
	at := func(s int64) int64 { return now + s*second }
	a, b, c := &Waiter{place: nowhere}, &Waiter{place: nowhere}, &Waiter{place: nowhere}

	steps := []struct {
		name string
		do   func()
		want int64
	}{
		{"the first", func() { k.enter(a, now, at(1000)) }, 1000},
		{"a later one", func() { k.enter(b, now, at(2000)) }, 1000},
		{"an earlier one", func() { k.enter(c, now, at(500)) }, 500},
		{"the earliest gives up", func() { k.leave(c, now) }, 1000},
		{"one in the middle", func() { k.enter(c, now, at(1500)) }, 1000},
		{"the first is woken", func() { k.leave(a, at(1000)) }, 1500},
		{"it waits again", func() { k.enter(a, at(1000), at(1700)) }, 1500},
		{"the middle one is woken late", func() { k.leave(c, at(1600)) }, 1700},
		{"one whose moment has passed is about to run", func() { k.leave(b, at(1800)) }, 1700},
	}
	for _, step := range steps {
		step.do()
		if k.set != at(step.want) {
			t.Errorf("%s: set for %d s, want %d s", step.name, (k.set-now)/second, step.want)
		}
		if got := rings(); got < at(step.want)-second || got > at(step.want)+second {
			t.Errorf("%s: rings at %d s, want %d s", step.name, (got-now)/second, step.want)
		}
	}
}

func TestKickerSpacesAlarms(t *testing.T) {
	k, _ := testKicker(t)
	const start = 1_000_000_000_000
	a, b, c := &Waiter{place: nowhere}, &Waiter{place: nowhere}, &Waiter{place: nowhere}

	k.enter(a, start, start+1_000_000)
	k.enter(b, start, start+1_050_000)
	k.enter(c, start, start+1_190_000)
	if k.set != start+1_000_000 {
		t.Errorf("the first alarm is set for %d, want %d", k.set-start, 1_000_000)
	}
	k.leave(a, start+1_040_000)
	if want := int64(start + 1_000_000 + spacing); k.set != want {
		t.Errorf("the next alarm is set for %d, want %d: one serves both that are due until then", k.set-start, want-start)
	}
	// An alarm that was replaced before it went off does not keep others away.
	k.leave(b, start+1_050_000)
	k.leave(c, start+1_050_000)
	k.enter(a, start+2_000_000, start+9_000_000)
	k.enter(b, start+2_000_000, start+2_300_000)
	if k.set != start+2_300_000 {
		t.Errorf("the alarm is set for %d, want %d", k.set-start, 2_300_000)
	}

	// Nor does one that a clock in a synctest bubble set for a time far ahead of the real one.
	k.leave(a, start+1e15)
	k.leave(b, start+1e15)
	k.enter(a, start+1e15, start+2e15)
	k.leave(a, start+3e15)
	k.enter(a, start+3_000_000, start+3_100_000)
	if k.set != start+3_100_000 {
		t.Errorf("the alarm is set for %d, want %d", k.set-start, 3_100_000)
	}
}
