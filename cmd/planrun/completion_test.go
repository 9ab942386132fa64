package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCompletionInBash completes command lines as bash does.
func TestCompletionInBash(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	script := filepath.Join(t.TempDir(), "planrun.bash")
	var out, errs bytes.Buffer
	if code := Main([]string{"completion", "bash"}, nil, &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	if err := os.WriteFile(script, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		line      string // the last word is completed
		has, lack []string
	}{
		{"planrun ", []string{"run", "validate", "compare", "help"}, []string{"start"}},
		{"planrun --", []string{"--env", "--vars", "--prometheus", "--no-ci", "--version"}, []string{"--format"}},
		{"planrun run a.yaml --", []string{"--env", "--results", "--quiet"}, []string{"--format"}},
		{"planrun validate --f", []string{"--format"}, []string{"--no-ci"}},
		{"planrun -q compare a b --", []string{"--any-environment", "--assert", "--help"}, []string{"--prometheus"}},
		{"planrun lab ", []string{"start", "calibrate"}, []string{"run", "serve"}},
		{"planrun import ", []string{"curl"}, []string{"run"}},
		{"planrun completion ", []string{"bash", "zsh", "fish"}, nil},
	} {
		words := strings.Split(test.line, " ")
		cmd := exec.Command(shell, append([]string{"--norc", "-c", `. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _planrun; printf '%s\n' "${COMPREPLY[@]}"`, script}, words...)...)
		cmd.Dir = t.TempDir()
		got, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", test.line, err, got)
		}
		list := strings.Fields(string(got))
		for _, word := range test.has {
			if !slices.Contains(list, word) {
				t.Errorf("%q is not completed by %s, but by %s", test.line, word, list)
			}
		}
		for _, word := range test.lack {
			if slices.Contains(list, word) {
				t.Errorf("%q is completed by %s", test.line, word)
			}
		}
	}
}

// TestCompletionKnowsEveryFlag holds the scripts of all shells against the help.
func TestCompletionKnowsEveryFlag(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var out bytes.Buffer
		if code := Main([]string{"completion", shell}, nil, &out, &out); code != 0 {
			t.Fatal(out.String())
		}
		for _, flag := range []string{"env", "vars", "prometheus", "no-ci", "any-environment", "format", "seed"} {
			if want := map[bool]string{true: "-l " + flag, false: "--" + flag}[shell == "fish"]; !strings.Contains(out.String(), want) {
				t.Errorf("%s does not know %s", shell, want)
			}
		}
	}
}
