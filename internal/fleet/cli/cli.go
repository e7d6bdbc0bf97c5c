// Package cli is the command line of dmgbench-fleet: it turns arguments into
// calls of packages broker, agent and control, and errors into exit statuses.
//
// [commandRows] lists the commands, and help/ has their help texts with their
// flags. The answer goes to stdout; warnings, errors and the log go to stderr.
// Everything that may come from another machine is printed without control
// characters.
package cli

import (
	"context"
	"embed"
	"errors"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"dmgbench/internal/fleet/broker"
	"dmgbench/internal/plan"
)

// commandRow is one command. Its help text and its flags are in help/, in a file
// named after it.
type commandRow struct {
	name, args, group string
	min, max          int // number of arguments; unlimited is any number
	run               func(a *app, ctx context.Context, args []string) error
}

const unlimited = -1

// commandRows lists all commands in the order of the help.
var commandRows = []commandRow{
	{"serve", "", "machines", 0, 0, (*app).serve},
	{"add-machine", "NAME", "machines", 1, 1, (*app).addMachine},
	{"join", "[JOINSTRING | FILE | ADDRESS | -]", "machines", 0, 1, (*app).join},
	{"revoke", "NAME", "machines", 1, 1, (*app).revokeMachine},
	{"remove-machine", "NAME", "machines", 1, 1, (*app).removeMachine},
	{"submit", "PLAN...", "jobs", 1, unlimited, (*app).submitPlans},
	{"status", "", "jobs", 0, 0, (*app).printStatus},
	{"logs", "MACHINE [JOB]", "jobs", 1, 2, (*app).printLogs},
	{"cancel", "JOB", "jobs", 1, 1, (*app).cancelJob},
	{"results", "[JOB...]", "jobs", 0, unlimited, (*app).fetchResults},
}

// Run executes the command line of this process and returns the exit status.
// The first signal cancels it, and the second one ends the process at once.
func Run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop)
	return Main(ctx, os.Stdin, os.Stdout, os.Stderr, os.Args[1:])
}

// Main executes one command line, args without the program's name, and returns
// the exit status.
func Main(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.newRootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	e, ok := errors.AsType[*statusError](err)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		return exitInterrupted
	case a.flags == nil && !ok: // an error of cobra
		e = &statusError{hint: "dmgbench-fleet --help lists the commands and their flags", exit: exitUsage}
	case !ok:
		e = &statusError{exit: exitError}
		if _, ok := errors.AsType[*plan.Problems](err); ok {
			e.exit = exitUsage
		}
	case e.err == nil:
		return e.exit
	}
	a.note("dmgbench-fleet: %v", err)
	if e.hint != "" {
		a.note("hint: %s", e.hint)
	}
	return e.exit
}

// newRootCommand builds the tree of commands.
func (a *app) newRootCommand() *cobra.Command {
	short, long, _, examples := readHelp("dmgbench-fleet")
	root := &cobra.Command{Use: "dmgbench-fleet", Short: short, Long: long, Example: examples,
		SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true, Version: "(devel)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		root.Version = b.Main.Version
	}
	root.Version += ", nats-server " + broker.Version
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.AddGroup(&cobra.Group{ID: "machines", Title: "Machines:"}, &cobra.Group{ID: "jobs", Title: "Jobs:"})
	for _, row := range commandRows {
		root.AddCommand(a.newCommand(row))
	}
	return root
}

//go:embed help
var helpFiles embed.FS

// readHelp reads help/<name>.txt: a line, a description that ends with the exit
// statuses, the section FLAGS, and the section EXAMPLES. A missing file is a
// programming error.
func readHelp(name string) (short, long, flags, examples string) {
	part := func(file string) string {
		text, err := helpFiles.ReadFile("help/" + file + ".txt")
		if err != nil {
			panic(err) // a test prints the help of every command
		}
		return strings.TrimSpace(string(text))
	}
	text := strings.NewReplacer("{CONTROL}", part("flags-control"), "{AGENT}", part("flags-agent")).Replace(part(name))
	short, long, _ = strings.Cut(text, "\n\n")
	long, examples, _ = strings.Cut(long, "\n\nEXAMPLES\n")
	long, flags, _ = strings.Cut(long, "\n\nFLAGS\n")
	return short, long, strings.ReplaceAll(flags, "\n  ", " "), examples
}

// flagLine is a line of the section FLAGS: name, type, default, and help, in
// which the word in backquotes names the value.
var flagLine = regexp.MustCompile(`(?m)^([a-z-]+) ([a-z0-9]+)(?:="(.*?)")?: (.*)$`)

// newCommand builds the command of a row, with its help and flags.
func (a *app) newCommand(row commandRow) *cobra.Command {
	short, long, flags, examples := readHelp(row.name)
	cmd := &cobra.Command{Use: strings.TrimSpace(row.name + " " + row.args), Short: short, Long: long,
		Example: examples, GroupID: row.group, Args: cobra.MinimumNArgs(row.min),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.flags = cmd.Flags()
			return row.run(a, cmd.Context(), args)
		}}
	if row.max != unlimited {
		cmd.Args = cobra.RangeArgs(row.min, row.max)
	}
	for _, m := range flagLine.FindAllStringSubmatch(flags, -1) {
		name, initial, help := m[1], m[3], m[4]
		switch m[2] {
		case "bool":
			cmd.Flags().Bool(name, false, help)
		case "int":
			n, _ := strconv.Atoi(initial) // in a file of this package
			cmd.Flags().Int(name, n, help)
		case "uint64":
			cmd.Flags().Uint64(name, 0, help)
		case "list": // may be given several times
			cmd.Flags().StringArray(name, nil, help)
		default:
			cmd.Flags().String(name, initial, help)
		}
	}
	return cmd
}
