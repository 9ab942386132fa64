package ci

import (
	"bytes"
	"io"
	"sync"
)

// Guard passes text on, line by line, in such a way that nothing in it is a command to a pipeline: what servers answer is
// printed too, and must not set variables. It is safe for concurrent use.
type Guard struct {
	mu   sync.Mutex
	w    io.Writer
	line []byte // that has not ended
}

// NewGuard makes a Guard before w.
func NewGuard(w io.Writer) *Guard { return &Guard{w: w} }

// apart stands inside what would be a command (ZERO WIDTH SPACE).
const apart = "\u200b"

// Write holds back a line that has not ended.
func (g *Guard) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.line = append(g.line, b...)
	// A lone carriage return begins a line for some readers.
	end := bytes.LastIndexAny(g.line, "\n\r")
	if end < 0 {
		return len(b), nil
	}
	whole := g.line[:end+1]
	if _, err := g.w.Write(harmless(whole)); err != nil {
		return 0, err
	}
	g.line = append(g.line[:0], g.line[end+1:]...)
	return len(b), nil
}

// Flush passes on what was held back.
func (g *Guard) Flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := g.w.Write(harmless(g.line))
	g.line = g.line[:0]
	return err
}

// harmless breaks the beginnings of commands: "::" where a line begins, and "##[" and "##vso[" anywhere, in upper or lower
// case.
func harmless(text []byte) []byte {
	if !bytes.Contains(text, []byte("::")) && !bytes.Contains(text, []byte("##")) {
		return text
	}
	var out []byte
	start := true // only blanks since the line began
	for i := 0; i < len(text); i++ {
		c := text[i]
		rest := text[i:]
		switch {
		case start && bytes.HasPrefix(rest, []byte("::")), bytes.HasPrefix(rest, []byte("##[")),
			len(rest) >= 6 && bytes.EqualFold(rest[:6], []byte("##vso[")):
			out = append(out, c)
			out = append(out, apart...)
		default:
			out = append(out, c)
		}
		switch c {
		case '\n', '\r':
			start = true
		case ' ', '\t':
		default:
			start = false
		}
	}
	return out
}
