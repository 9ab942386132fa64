package main

import (
	"fmt"
	"strings"

	"github.com/planrun/planrun/engine/verdict"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

var commandNames = []string{"run", "validate", "explain", "init", "import", "report", "compare", "save", "check", "lab", "schema", "version", "completion"}

var flagNames = []string{"--help", "--quiet", "--set", "--only", "--output", "--results", "--seed", "--against", "--no-lab"}

// The scripts complete commands, flags, and files; planrun itself is not called.
const (
	bashScript = `_planrun() {
	local cur=${COMP_WORDS[COMP_CWORD]}
	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "%[2]s" -- "$cur"))
	elif [[ $COMP_CWORD -eq 1 ]]; then
		COMPREPLY=($(compgen -W "%[1]s" -- "$cur") $(compgen -f -- "$cur"))
	else
		COMPREPLY=($(compgen -f -- "$cur"))
	fi
}
complete -o filenames -F _planrun planrun
`
	zshScript = `#compdef planrun
_planrun() {
	if [[ $words[CURRENT] == -* ]]; then
		compadd -- %[2]s
	elif (( CURRENT == 2 )); then
		compadd -- %[1]s
		_files
	else
		_files
	fi
}
compdef _planrun planrun
`
	fishScript = `for c in %[1]s
	complete -c planrun -n __fish_use_subcommand -a $c
end
for f in %[2]s
	complete -c planrun -l (string replace -- -- '' $f)
end
`
)

func (c *completionCommand) run(p *program) (int, error) {
	script := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Shell]
	_, err := fmt.Fprintf(p.stdout, script, strings.Join(commandNames, " "), strings.Join(flagNames, " "))
	return verdict.ExitPassed, err
}
