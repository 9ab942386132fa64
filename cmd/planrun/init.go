package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/planrun/planrun/engine/verdict"
)

//go:embed init.yaml
var firstPlan []byte

type initCommand struct {
	File string `arg:"" optional:"" default:"plan.yaml" help:"The file to write (plan.yaml)."`
}

// run writes a small plan that runs as it is, against the lab.
func (c *initCommand) run(p *program) (int, error) {
	if err := writeNew(c.File, firstPlan); err != nil {
		return exitOfWriting(err), err
	}
	fmt.Fprintf(p.stdout, "wrote %s\nrun it with: planrun %s\n", c.File, c.File)
	return verdict.ExitPassed, nil
}

// errExists says that a file is there already.
var errExists = errors.New("exists already")

// exitOfWriting is the exit code of a file that was not written: the command line is wrong if it was there.
func exitOfWriting(err error) int {
	if errors.Is(err, errExists) {
		return verdict.ExitUsage
	}
	return verdict.ExitInconclusive
}

// writeNew writes a file that does not exist yet. It is errExists if it does.
func writeNew(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s %w", file, errExists)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
