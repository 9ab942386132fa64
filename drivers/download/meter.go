package download

import (
	"fmt"
	"sync"
	"time"
)

const (
	// stallTime is how long nothing has to arrive to be counted as a stall.
	stallTime = time.Second
	// startTime is how much of a transfer at most does not count for its steady speed.
	startTime = time.Second
	// maxPoints is how many points of the start of a transfer are kept.
	maxPoints = 512
)

// meter watches how a body arrives, from one connection or several.
type meter struct {
	mu          sync.Mutex
	start, last time.Time // of the first head, and the last byte
	total       int64
	stalls      int64
	// points are how much had come by when, within startTime. Of many arrivals every stride-th is kept.
	points   []point
	arrivals int
	stride   int
}

type point struct {
	at    time.Duration // since start
	bytes int64
}

func (m *meter) reset() {
	m.start, m.last, m.total, m.stalls = time.Time{}, time.Time{}, 0, 0
	m.points, m.arrivals, m.stride = m.points[:0], 0, 1
}

// begin says that the head of an answer has come.
func (m *meter) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.start.IsZero() {
		m.start = time.Now()
		m.last = m.start
	}
}

// add says that n bytes have come.
func (m *meter) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Sub(m.last) >= stallTime {
		m.stalls++
	}
	m.last = now
	m.total += int64(n)
	at := now.Sub(m.start)
	if at > startTime {
		return
	}
	if m.arrivals++; m.arrivals%m.stride != 0 {
		return
	}
	if len(m.points) == maxPoints {
		for i := range maxPoints / 2 {
			m.points[i] = m.points[2*i+1]
		}
		m.points = m.points[:maxPoints/2]
		m.stride *= 2
		if m.arrivals%m.stride != 0 {
			return
		}
	}
	m.points = append(m.points, point{at, m.total})
}

// broken says that nothing more comes, though more should, and returns how many stalls there were.
func (m *meter) broken() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.start.IsZero() && time.Since(m.last) >= stallTime {
		m.stalls++
		m.last = time.Now()
	}
	return m.stalls
}

// steady returns bytes in a second after the start of the transfer:
//
//	steady = (B − b(s)) / (T − s)   where s = min(startTime, T/10)
//
// T is from the first head to the last byte, B all bytes and b(s) those that had come by s. It is false for a
// transfer that has no two arrivals after s.
func (m *meter) steady() (float64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	whole := m.last.Sub(m.start)
	cut := min(startTime, whole/10)
	from := point{at: -1}
	for _, p := range m.points {
		from = p
		if p.at >= cut {
			break
		}
	}
	if from.at < 0 || from.at >= whole || from.bytes >= m.total {
		return 0, false
	}
	return float64(m.total-from.bytes) / (whole - from.at).Seconds(), true
}

func stalled(n int64) string {
	if n == 1 {
		return "the transfer stalled once"
	}
	return fmt.Sprintf("the transfer stalled %d times", n)
}
