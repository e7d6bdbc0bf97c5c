// Package cli is the command line of dmgbench-fleet: it turns arguments into
// calls of packages broker, agent and control, and errors into exit statuses.
//
// [commandRows] lists the commands, and help/ has their help texts with their
// flags. The answer goes to stdout; errors and the log go to stderr. Everything
// that may come from another machine is printed without control characters.
package cli

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/broker"
	"dmgbench/internal/fleet/control"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/manpage"
	"dmgbench/internal/system/safetext"
	"dmgbench/internal/system/signals"
	"dmgbench/internal/system/version"
)

// Exit statuses, those of dmgbench.
const (
	exitError       = 1
	exitUsage       = 2
	exitSome        = 3 // no machine fits, or a job has not succeeded
	exitInterrupted = 130
)

// statusError is an error with its exit status.
type statusError struct {
	error
	exit int
}

// usageError is an error in the command line. The format is that of fmt.Errorf.
func usageError(format string, args ...any) error {
	return &statusError{fmt.Errorf(format, args...), exitUsage}
}

// app is one execution of the program. Its commands are methods.
type app struct {
	stdout, stderr io.Writer
	command        *cobra.Command // the executed one
	fleet          *control.Fleet // of commands that connect
	unprinted      error          // why an answer could not be printed
}

// commandRow is one command. Its help text and its flags are in help/, in a file
// named after it. A new command needs a row, a help text and a method of [app].
type commandRow struct {
	name, args string
	checkArgs  cobra.PositionalArgs
	connects   bool // before it runs
	run        func(a *app, ctx context.Context, args []string) error
}

var commandRows = []commandRow{
	{"serve", "", cobra.NoArgs, false, (*app).serve},
	{"add-machine", "NAME", cobra.ExactArgs(1), true, (*app).addMachine},
	{"join", "[JOINSTRING | FILE | ADDRESS | -]", cobra.MaximumNArgs(1), false, (*app).join},
	{"revoke", "NAME", cobra.ExactArgs(1), true, (*app).revokeMachine},
	{"remove-machine", "NAME", cobra.ExactArgs(1), true, (*app).removeMachine},
	{"purge", "NAME", cobra.ExactArgs(1), true, (*app).purgeMachine},
	{"submit", "PLAN...", cobra.MinimumNArgs(1), true, (*app).submitPlans},
	{"status", "", cobra.NoArgs, true, (*app).printStatus},
	{"logs", "MACHINE [JOB]", cobra.RangeArgs(1, 2), true, (*app).printLogs},
	{"cancel", "JOB", cobra.ExactArgs(1), true, (*app).cancelJob},
	{"results", "[JOB...]", cobra.ArbitraryArgs, true, (*app).fetchResults},
	{"man", "DIR", cobra.ExactArgs(1), false, (*app).writeManPages},
}

// Run executes the command line of this process and returns the exit status.
// The first signal cancels it, and the second one ends the process at once.
func Run() int {
	ctx, stop := signals.Context(context.Background())
	defer stop()
	return Main(ctx, os.Stdout, os.Stderr, os.Args[1:])
}

// Main executes one command line, args without the program's name, and returns
// the exit status.
func Main(ctx context.Context, stdout, stderr io.Writer, args []string) int {
	a := &app{stdout: stdout, stderr: stderr}
	root := a.newCommand(commandRow{name: "dmgbench-fleet"})
	root.RunE, root.SilenceErrors, root.SilenceUsage = nil, true, true
	root.PersistentFlags().AddFlagSet(root.Flags()) // for all commands
	root.Version = version.Describe("dmgbench-fleet") + "\nnats-server " + broker.Version
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(args)
	for _, row := range commandRows {
		root.AddCommand(a.newCommand(row))
	}
	err := cmp.Or(root.ExecuteContext(ctx), a.unprinted)
	exit := exitError
	_, isPlan := errors.AsType[*plan.Problems](err)
	_, isOption := errors.AsType[*plan.OverrideError](err)
	e, ok := errors.AsType[*statusError](err)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		return exitInterrupted
	case ok:
		exit = e.exit
	case a.command == nil, isPlan, isOption: // without a command it is an error of cobra
		exit = exitUsage
	}
	a.note("dmgbench-fleet: %v", err)
	return exit
}

//go:embed help
var helpFiles embed.FS

// readHelp reads help/<name>.txt: a line, a description that ends with the exit
// statuses, the section FLAGS, and the section EXAMPLES. A test prints the help of
// every command.
func readHelp(name string) (short, long, flags, examples string) {
	text, _ := helpFiles.ReadFile("help/" + name + ".txt")
	short, long, _ = strings.Cut(strings.TrimSpace(string(text)), "\n\n")
	long, examples, _ = strings.Cut(long, "\n\nEXAMPLES\n")
	long, flags, _ = strings.Cut(long, "\n\nFLAGS\n")
	return short, long, strings.ReplaceAll(flags, "\n  ", " "), examples
}

// flagLine is a line of the section FLAGS: name, type, default, and help, in
// which the word in backquotes names the value.
var flagLine = regexp.MustCompile(`(?m)^([a-z-]+) ([a-z]+)(?:="(.*?)")?: (.*)$`)

// newCommand builds the command of a row, with its help and flags.
func (a *app) newCommand(row commandRow) *cobra.Command {
	short, long, flags, examples := readHelp(row.name)
	cmd := &cobra.Command{Use: strings.TrimSpace(row.name + " " + row.args), Short: short, Long: long,
		Example: examples, Args: row.checkArgs, Hidden: row.name == "man"}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.command = cmd
		if row.connects {
			if err := a.connect(); err != nil {
				return err
			}
			defer a.fleet.NATS.Close()
		}
		return row.run(a, cmd.Context(), args)
	}
	for _, m := range flagLine.FindAllStringSubmatch(flags, -1) {
		name, initial, help := m[1], m[3], m[4]
		switch m[2] {
		case "bool":
			cmd.Flags().Bool(name, false, help)
		case "number":
			cmd.Flags().Uint64(name, 0, help)
		case "list": // may be given several times
			cmd.Flags().StringArray(name, nil, help)
		default:
			cmd.Flags().String(name, initial, help)
		}
	}
	return cmd
}

// writeManPages is the command "man".
func (a *app) writeManPages(_ context.Context, args []string) error {
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return fmt.Errorf("making folder %q: %w", args[0], err)
	}
	return manpage.Write(args[0], a.command.Root())
}

// connect connects as the user that may do everything: with the key in the folder
// of the server, which therefore is on this machine, or to the server of --nats.
func (a *app) connect() error {
	link := fleet.Link{URLs: []string{a.text("nats")}, User: fleet.Control, Credentials: a.text("creds")}
	folder, err := a.stateFolder("fleet")
	if a.text("nats") == "" && err == nil {
		link, err = broker.ReadControl(folder)
	}
	if err != nil {
		return err
	}
	nc, js, err := fleet.Connect(link, false, nil)
	if err != nil {
		return fmt.Errorf("%w (is the server running?)", err)
	}
	a.fleet = &control.Fleet{NATS: nc, JetStream: js}
	return nil
}

// text is the value of a flag of any type in the form that the user types.
func (a *app) text(name string) string { return a.command.Flags().Lookup(name).Value.String() }

// isSet reports whether a flag without a value is given.
func (a *app) isSet(name string) bool { return a.text(name) == "true" }

// list is the value of a flag that takes several values.
func (a *app) list(name string) []string {
	return a.command.Flags().Lookup(name).Value.(pflag.SliceValue).GetSlice()
}

// number is the value of a flag that takes a number.
func (a *app) number(name string) uint64 {
	n, _ := a.command.Flags().GetUint64(name) // pflag has checked its type
	return n
}

// print prints a line of the answer. Main returns the first error.
func (a *app) print(format string, args ...any) {
	_, err := fmt.Fprintln(a.stdout, safetext.Clean(report.Clean(fmt.Sprintf(format, args...))))
	a.unprinted = cmp.Or(a.unprinted, err)
}

// Write prints lines of the server, which may contain names that clients gave
// themselves.
func (a *app) Write(p []byte) (int, error) {
	a.note("%s", p)
	return len(p), nil
}

// note prints text about what the program does on stderr. Line ends stay, and
// blanks, with which errors of a plan point to a column.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.stderr, strings.TrimRight(safetext.Clean(fmt.Sprintf(format, args...)), "\n"))
}

// stateFolder is the folder that --folder names, by default the one of this name
// in the state folder of dmgbench.
func (a *app) stateFolder(name string) (string, error) {
	if dir := a.text("folder"); dir != "" {
		return filepath.Abs(dir)
	}
	state, err := host.StateDir(os.Getenv)
	return filepath.Join(state, name), err
}
