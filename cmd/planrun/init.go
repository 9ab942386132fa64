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
		return verdict.ExitInconclusive, err
	}
	fmt.Fprintf(p.stdout, "wrote %s\nrun it with: planrun %s\n", c.File, c.File)
	return verdict.ExitPassed, nil
}

// writeNew writes a file that does not exist yet.
func writeNew(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already", file)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
