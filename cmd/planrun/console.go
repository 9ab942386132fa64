package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/mattn/go-runewidth"
)

// console draws lines at the bottom of a terminal again and again, with messages above them that stay. What stands between
// two drawings, such as the ^C that a terminal echoes, is written over. It erases line by line and never the rest of the
// screen at once: terminals that keep what is erased so would fill their scrollback with old drawings.
type console struct {
	out  io.Writer
	size func() (columns, rows int)

	mu    sync.Mutex
	above bytes.Buffer // messages to come, in lines that fit
	rows  bytes.Buffer // the next drawing
	drawn int          // lines of the last one
	over  bool
}

// Escape sequences (ECMA-48): erase to the end of the line (EL), and cursor up (CUU).
const (
	eraseLine = "\x1b[K"
	cursorUp  = "\x1b[%dA"
)

// Write takes in a message that ends in a line break. It is shown with the next drawing.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return 0, io.ErrClosedPipe
	}
	columns, _ := c.size()
	for line := range strings.Lines(string(p)) {
		c.above.WriteString(wrapped(strings.TrimSuffix(line, "\n"), columns))
	}
	return len(p), nil
}

// ReadFrom takes in a line of the next drawing.
func (c *console) ReadFrom(r io.Reader) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rows.ReadFrom(r)
}

// IsTerminal lets the bars be drawn.
func (c *console) IsTerminal() bool { return true }

// GetTermSize is the room there is. The last row stays free for the cursor: lines that scrolled away can't be drawn again.
func (c *console) GetTermSize() (width, height int, err error) {
	width, height = c.size()
	return width, max(height-1, 1), nil
}

// Flush draws what was taken in.
func (c *console) Flush(int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.rows.Reset()
	if c.over {
		return nil
	}
	return c.draw()
}

// end takes the drawing away and shows what was still to be said. Nothing is drawn any more.
func (c *console) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil
	}
	c.over = true
	c.rows.Reset()
	return c.draw()
}

func (c *console) draw() error {
	var b strings.Builder
	b.WriteString("\r" + eraseLine)
	if c.drawn > 0 {
		fmt.Fprintf(&b, cursorUp, c.drawn)
	}
	lines := bytes.Count(c.rows.Bytes(), []byte("\n"))
	for _, text := range []string{c.above.String(), c.rows.String()} {
		b.WriteString(strings.ReplaceAll(text, "\n", eraseLine+"\n"))
	}
	// What is left of the last drawing, which messages may have written over.
	if left := c.drawn - lines - bytes.Count(c.above.Bytes(), []byte("\n")); left > 0 {
		b.WriteString(strings.Repeat(eraseLine+"\n", left))
		fmt.Fprintf(&b, cursorUp, left)
	}
	c.drawn = lines
	c.above.Reset()
	_, err := io.WriteString(c.out, b.String())
	return err
}

// wrapped breaks a line at spaces, so that none is wider than the terminal, and ends each with a line break.
func wrapped(line string, columns int) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(line, " ") {
		w := runewidth.StringWidth(word)
		switch {
		case i == 0:
		case used > 0 && used+1+w > columns:
			b.WriteByte('\n')
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		for columns > 1 && used+w > columns {
			part := runewidth.Truncate(word, columns-used, "")
			if part == "" {
				break
			}
			b.WriteString(part + "\n")
			word, used = word[len(part):], 0
			w = runewidth.StringWidth(word)
		}
		b.WriteString(word)
		used += w
	}
	b.WriteByte('\n')
	return b.String()
}
