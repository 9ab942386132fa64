package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// brought is how a plan of testdata/brought is tried. Its first lines say it, behind "# ":
//
//	exit N         it is run, and ends with this code; without one it is only looked at
//	args A B       further arguments of the run
//	says TEXT      the run, or for exit 2 the check, says this
//	explains TEXT  explain says this
//	hides TEXT     nothing that the run prints or writes has this
type brought struct {
	exit                  int
	args                  []string
	says, explains, hides []string
}

func readBrought(t *testing.T, file string) (b brought) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b.exit = -1
	for line := range strings.Lines(string(text)) {
		comment, ok := strings.CutPrefix(line, "# ")
		if !ok {
			break
		}
		switch key, value, _ := strings.Cut(strings.TrimSpace(comment), " "); key {
		case "exit":
			b.exit = atoi(t, value)
		case "args":
			b.args = strings.Fields(value)
		case "says":
			b.says = append(b.says, value)
		case "explains":
			b.explains = append(b.explains, value)
		case "hides":
			b.hides = append(b.hides, value)
		}
	}
	return b
}

// TestPlansAsBrought tries plans of the kinds that people have in other tools, each written as planrun would have it.
func TestPlansAsBrought(t *testing.T) {
	files, err := filepath.Glob("testdata/brought/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d plans, %v", len(files), err)
	}
	for _, file := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			b := readBrought(t, path)
			var out, messages bytes.Buffer
			look := func(command string) int {
				out.Reset()
				messages.Reset()
				return Main([]string{command, path}, strings.NewReader(""), &out, &messages)
			}
			if b.exit == 2 {
				if code := look("validate"); code != 2 {
					t.Errorf("validate: exit %d\n%s", code, messages.String())
				}
				contains(t, messages.String(), b.says...)
				return
			}
			if code := look("validate"); code != 0 {
				t.Fatalf("validate: exit %d\n%s", code, messages.String())
			}
			if code := look("explain"); code != 0 {
				t.Fatalf("explain: exit %d\n%s", code, messages.String())
			}
			contains(t, out.String(), b.explains...)
			if b.exit < 0 {
				return
			}
			p := newPlanrun(t, append([]string{"--quiet", "--no-ci", path}, b.args...)...)
			p.Env = append(p.Environ(), "API_TOKEN=a-token-of-nobody")
			if code := p.runCalmly(t); code != b.exit {
				t.Errorf("exit %d, want %d\n%s%s", code, b.exit, p.stdout.String(), p.stderr.String())
			}
			contains(t, p.stdout.String()+p.stderr.String(), b.says...)
			for _, hidden := range b.hides {
				p.lacks(t, hidden)
			}
		})
	}
}

// lacks wants a text in nothing that the run printed or wrote.
func (p *planrun) lacks(t *testing.T, text string) {
	t.Helper()
	files := 0
	if strings.Contains(p.stdout.String()+p.stderr.String(), text) {
		t.Errorf("%s is printed", text)
	}
	err := filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		written, err := os.ReadFile(path)
		if err == nil && bytes.Contains(written, []byte(text)) {
			t.Errorf("%s is written to %s", text, path)
		}
		files++
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files were looked at, %v", files, err)
	}
}
