package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/planrun/planrun/engine/verdict"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// completed is a command as completion scripts know it.
type completed struct {
	path  string // "lab start"; "" is before any command
	flags []*kong.Flag
	words []string // what may follow: commands, or the values of an argument
}

// commandsOf lists the commands of a command line and their flags.
func commandsOf(model *kong.Application) []completed {
	var list []completed
	var walk func(path string, n *kong.Node)
	walk = func(path string, n *kong.Node) {
		c := completed{path: path}
		for _, group := range n.AllFlags(true) {
			c.flags = append(c.flags, group...)
		}
		if n.DefaultCmd != nil {
			for _, f := range n.DefaultCmd.Flags {
				if !f.Hidden {
					c.flags = append(c.flags, f)
				}
			}
		}
		for _, arg := range n.Positional {
			if arg.Enum != "" {
				c.words = append(c.words, arg.EnumSlice()...)
			}
		}
		at := len(list)
		list = append(list, c)
		for _, child := range n.Children {
			if child.Hidden || child.Type != kong.CommandNode {
				continue
			}
			list[at].words = append(list[at].words, child.Name)
			walk(strings.TrimSpace(path+" "+child.Name), child)
		}
	}
	walk("", model.Node)
	return list
}

// flagWords are the flags as they are typed.
func (c completed) flagWords() string {
	var words []string
	for _, f := range c.flags {
		words = append(words, "--"+f.Name)
		if f.Short != 0 {
			words = append(words, "-"+string(f.Short))
		}
	}
	return strings.Join(words, " ")
}

// paths are the commands as patterns of a shell's case.
func paths(list []completed) string {
	var out []string
	for _, c := range list {
		if c.path != "" {
			out = append(out, `"`+c.path+`"`)
		}
	}
	return strings.Join(out, "|")
}

func (c *completionCommand) run(p *program, model *kong.Application) (int, error) {
	list := commandsOf(model)
	var b strings.Builder
	switch c.Shell {
	case "bash":
		bash(&b, list)
	case "zsh":
		zsh(&b, list)
	case "fish":
		fish(&b, list)
	}
	_, err := io.WriteString(p.stdout, b.String())
	return verdict.ExitPassed, err
}

// The scripts know everything themselves; planrun itself is not called. Each finds the command that was typed so far, and
// then offers its flags, what may follow it, and files.

func cases(w io.Writer, list []completed, follow string) {
	for _, c := range list {
		fmt.Fprintf(w, "\t%q) flags=%q %s=%q ;;\n", c.path, c.flagWords(), follow, strings.Join(c.words, " "))
	}
}

func bash(w io.Writer, list []completed) {
	fmt.Fprintf(w, `_planrun() {
	local cur=${COMP_WORDS[COMP_CWORD]} path= flags= words= word
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case "${path:+$path }$word" in
		%s) path="${path:+$path }$word" ;;
		esac
	done
	case "$path" in
`, paths(list))
	cases(w, list, "words")
	fmt.Fprint(w, `	esac
	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$flags" -- "$cur"))
	else
		COMPREPLY=($(compgen -W "$words" -- "$cur") $(compgen -f -- "$cur"))
	fi
}
complete -o filenames -F _planrun planrun
`)
}

func zsh(w io.Writer, list []completed) {
	fmt.Fprintf(w, `#compdef planrun
_planrun() {
	local at= flags= follow= word
	for word in "${(@)words[2,CURRENT-1]}"; do
		case "${at:+$at }$word" in
		%s) at="${at:+$at }$word" ;;
		esac
	done
	case "$at" in
`, paths(list))
	cases(w, list, "follow")
	fmt.Fprint(w, `	esac
	if [[ $words[CURRENT] == -* ]]; then
		compadd -- ${=flags}
	else
		compadd -- ${=follow}
		_files
	fi
}
compdef _planrun planrun
`)
}

func fish(w io.Writer, list []completed) {
	fmt.Fprint(w, `function __planrun_at
	set -l at ""
	for word in (commandline -opc)[2..-1]
		switch (string trim "$at $word")
`)
	fmt.Fprintf(w, "\t\tcase %s\n", strings.ReplaceAll(paths(list), "|", " "))
	fmt.Fprint(w, `			set at (string trim "$at $word")
		end
	end
	test "$at" = "$argv[1]"
end
`)
	for _, c := range list {
		when := fmt.Sprintf("-n '__planrun_at %q'", c.path)
		for _, f := range c.flags {
			fmt.Fprintf(w, "complete -c planrun %s -l %s", when, f.Name)
			if f.Short != 0 {
				fmt.Fprintf(w, " -s %c", f.Short)
			}
			if !f.IsBool() {
				fmt.Fprint(w, " -r")
			}
			fmt.Fprintf(w, " -d '%s'\n", strings.ReplaceAll(f.Help, "'", `\'`))
		}
		for _, word := range c.words {
			fmt.Fprintf(w, "complete -c planrun %s -a %s\n", when, word)
		}
	}
}
