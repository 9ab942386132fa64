// Command planrun runs performance plans: YAML files that live next to the code and gate its release.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/planrun/planrun/engine/verdict"
)

func main() {
	os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Main runs one command line and returns the exit code. The result goes to stdout, progress and messages to stderr.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{stdin: stdin, stdout: stdout, stderr: stderr}
	var cli commandLine
	exit := -1
	parser, err := kong.New(&cli,
		kong.Name("planrun"),
		kong.Description("Runs performance plans and gates releases by them."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"outputs": strings.Join(outputKinds, ", "), "version": versionLine()},
	)
	if err != nil {
		panic(err) // the command line's own description is wrong
	}
	for _, c := range commandsOf(parser.Model) {
		if !strings.Contains(c.path, " ") {
			p.commands = append(p.commands, c.path)
		}
	}
	if len(args) == 0 {
		// A pipeline whose list of plans came out empty must not pass.
		p.message("expected a plan or a command; planrun --help shows them")
		return verdict.ExitUsage
	}
	kctx, err := parser.Parse(args)
	if exit >= 0 {
		return exit // --help
	}
	if err != nil {
		p.message("%s", explainUsage(err))
		return verdict.ExitUsage
	}
	p.quiet = cli.Quiet
	code, err := p.dispatch(kctx, &cli)
	if exit >= 0 {
		return exit // help
	}
	if err != nil {
		p.message("%s", err)
		if code == verdict.ExitPassed {
			code = verdict.ExitInconclusive
		}
	}
	return code
}

// commandLine is every command and flag. Its tags are the help.
type commandLine struct {
	Quiet       bool             `short:"q" help:"No progress, only the result and errors."`
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	Run        runCommand        `cmd:"" default:"withargs" help:"Run plans and judge them (the default)."`
	Validate   validateCommand   `cmd:"" help:"Check plans and print every finding, without sending anything."`
	Explain    explainCommand    `cmd:"" help:"Say what a plan would run: cells, counts, times, defaults in force."`
	Init       initCommand       `cmd:"" help:"Write a small plan that runs as it is."`
	Import     importCommand     `cmd:"" help:"Make a plan of something else."`
	Report     reportCommand     `cmd:"" help:"Render a results file again."`
	Compare    compareCommand    `cmd:"" help:"Say by how much two runs of a plan differ, and how sure that is."`
	Save       saveCommand       `cmd:"" help:"Keep a small file of a run's results, for later runs to be held against."`
	Check      checkCommand      `cmd:"" help:"Judge a results file again, by its own plan or another."`
	Lab        labCommand        `cmd:"" help:"Run a plan's lab alone, or measure what its routes inject."`
	Schema     schemaCommand     `cmd:"" help:"Print the JSON schema of plans, for editors."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
	Completion completionCommand `cmd:"" help:"Print a completion script for a shell."`
	Help       helpCommand       `cmd:"" help:"Print this help, or that of a command."`
}

type helpCommand struct {
	Command []string `arg:"" optional:"" help:"A command."`
}

func (c *helpCommand) run(p *program, parser *kong.Kong) (int, error) {
	if len(c.Command) > 0 && !slices.Contains(p.commands, c.Command[0]) {
		return verdict.ExitUsage, fmt.Errorf("help: there is no command %q; planrun --help shows them", c.Command[0])
	}
	// Printing it ends the parse as it ends a program.
	_, err := parser.Parse(append(slices.Clone(c.Command), "--help"))
	return verdict.ExitUsage, err
}

// program is what every command needs of the world.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	quiet          bool
	pipeline       *pipeline              // nil outside of one
	above          atomic.Pointer[bars]   // what messages must stand above; nil without
	results        atomic.Pointer[string] // the results file that is being written; nil without
	commands       []string               // names of the commands
}

// message writes to the person at the terminal, or in the log. Each line says whose it is, unless it is indented, as one
// that goes on with the line before.
func (p *program) message(format string, args ...any) {
	var b strings.Builder
	for line := range strings.Lines(fmt.Sprintf(format, args...) + "\n") {
		if strings.TrimLeft(line, " \t\n") == line {
			b.WriteString("planrun: ")
		}
		b.WriteString(line)
	}
	text := b.String()
	if b := p.above.Load(); b != nil {
		if _, err := io.WriteString(b, text); err == nil {
			return
		}
	}
	io.WriteString(p.stderr, text)
}

func (p *program) dispatch(kctx *kong.Context, cli *commandLine) (int, error) {
	// The command path is made of names and of arguments in angle brackets.
	var words []string
	for _, w := range strings.Fields(kctx.Command()) {
		if !strings.HasPrefix(w, "<") {
			words = append(words, w)
		}
	}
	switch strings.Join(words, " ") {
	case "run":
		return cli.Run.run(p)
	case "validate":
		return cli.Validate.run(p)
	case "explain":
		return cli.Explain.run(p)
	case "init":
		return cli.Init.run(p)
	case "import curl":
		return cli.Import.Curl.run(p)
	case "report":
		return cli.Report.run(p)
	case "compare":
		return cli.Compare.run(p)
	case "save":
		return cli.Save.run(p)
	case "check":
		return cli.Check.run(p)
	case "lab start":
		return cli.Lab.Start.run(p)
	case "lab calibrate":
		return cli.Lab.Calibrate.run(p)
	case "lab serve":
		return cli.Lab.Serve.run(p)
	case "schema":
		return cli.Schema.run(p)
	case "version":
		return cli.Version.run(p)
	case "completion":
		return cli.Completion.run(p, kctx.Model)
	case "help":
		return cli.Help.run(p, kctx.Kong)
	}
	return verdict.ExitUsage, fmt.Errorf("unknown command %q", kctx.Command())
}

// explainUsage says what is wrong with a command line.
func explainUsage(err error) string {
	text := err.Error()
	flag, rest, _ := strings.Cut(text, ": ")
	if strings.HasSuffix(rest, ` but got "EOL" (<EOL>)`) || strings.HasPrefix(rest, "missing value") {
		text = flag + ": the value is missing"
	}
	if strings.HasSuffix(text, "?") {
		return text + " planrun --help shows the commands and flags"
	}
	return text + "; planrun --help shows the commands and flags"
}

// leave says that the program leaves at once, and what it leaves behind.
func (p *program) leave() {
	if b := p.above.Swap(nil); b != nil {
		b.wipe()
	}
	text := "interrupted again: left at once, without waiting for what is in flight"
	if path := p.results.Load(); path != nil {
		text += "; what was measured until now is in " + *path + ", which planrun check and planrun report read"
	}
	p.message("%s", text)
}

// echo is how long after a signal another one counts as the same: programs such as timeout send it to the process and
// then to its whole group.
const echo = 300 * time.Millisecond

// interrupts turns signals into the two ways of stopping: the first says what follows and closes stop, the second leaves at
// once.
func (p *program) interrupts(says string) (ctx context.Context, stop chan struct{}, release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stop = make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		first := time.Now()
		p.message("interrupted: %s", says)
		close(stop)
		for {
			select {
			case <-signals:
				if time.Since(first) < echo {
					continue
				}
				p.leave()
				os.Exit(verdict.ExitInterrupted)
			case <-done:
				return
			}
		}
	}()
	return ctx, stop, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
