package main

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"planrun": main})
}

// TestScripts runs the command lines of testdata/script as a user would: each in a folder of its own, against the lab.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"calmly": calmly},
	})
}

// calmly is exec for runs that measure: it tries up to twice again what was inconclusive, as runCalmly does.
func calmly(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: calmly program args...")
	}
	for again := 0; ; again++ {
		err := ts.Exec(args[0], args[1:]...)
		if err == nil {
			return
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 || again == 2 {
			ts.Fatalf("%v: %v", args, err)
		}
		if i := slices.Index(args, "--results"); i >= 0 {
			ts.Check(os.Remove(ts.MkAbs(args[i+1])))
		}
	}
}
