// Package cli is the command line: it turns arguments, environment and settings
// file into calls of the packages below, and errors into exit statuses.
//
// It is the only package that uses cobra and viper; plans are never read
// through viper. It does not measure and does not analyze: internal/bench/runner
// executes runs, internal/analysis draws conclusions, internal/report renders.
//
// The answer goes to stdout; progress, warnings, questions and errors go to
// stderr.
//
// [commandRows] lists the commands, and help/ has their help texts with their
// flags. Commands of one theme share a file.
package cli

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/selftest"
	"dmgbench/internal/linuxhdiutil/imagetool"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/result/export"
	"dmgbench/internal/result/runfolders"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/signals"
	"dmgbench/plans"
)

// app is one execution of the program. Its commands are methods; they read
// their flags with [app.text], [app.list] and the like, and print to stdout and
// stderr only through the writers here, so that tests can execute whole command
// lines in their own process.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            map[string]string
	clock          clock.Clock
	settings       *viper.Viper         // the settings file
	flags          map[string][]flagRow // of each command, by its path
	command        *cobra.Command       // the command that is executed
	json           bool                 // stderr is lines of JSON
	parsed         bool                 // the command line was valid; later errors are no usage errors of cobra
	atExit         []func() error       // called in reverse order
	runs           runfolders.Reader

	// generated is the passphrase that was made for this run, nil where the
	// user chose one; newPassphrase is true if this session made it.
	generated     []byte
	newPassphrase bool
}

// newApp is an execution with the environment env, which has the form of
// os.Environ. It reads neither the settings file nor the command line;
// [app.configure] does that once cobra has found the command.
func newApp(stdin io.Reader, stdout, stderr io.Writer, env []string) *app {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, env: map[string]string{}, clock: clock.NewReal(),
		settings: viper.New(), flags: map[string][]flagRow{}}
	for _, variable := range env {
		if name, value, ok := strings.Cut(variable, "="); ok {
			a.env[name] = value
		}
	}
	a.runs.Outdated = func(dir string) {
		a.warn(fmt.Sprintf("%s: %s does not belong to the present plan and journal: analyzed again\n"+
			"  hint: dmgbench report %s writes it again", dir, result.ResultFile, quoted(dir)))
	}
	return a
}

// Run executes the command line of this process and returns the exit status.
// The first signal cancels it, and the second one ends the process at once.
func Run() int {
	ctx, stop := signals.Context(context.Background())
	defer stop()
	return Main(ctx, os.Stdin, os.Stdout, os.Stderr, os.Args[1:], os.Environ())
}

// Main executes one command line and returns the exit status;
// docs/architecture.md lists the statuses. args are without the program's name,
// env is in the form of os.Environ. When ctx is cancelled, a run cleans up its
// images and Main returns 130.
func Main(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args, env []string) int {
	if isImageTool(args) {
		if args[0] == imageToolName {
			args = args[1:]
		}
		defer imagetool.OutlivePipes()()
		env := imagetool.System()
		env.Stdin, env.Stdout, env.Stderr = stdin, stdout, stderr
		return imagetool.Main(ctx, args, env)
	}
	a := newApp(stdin, stdout, stderr, env)
	defer a.close()
	root := a.newRootCommand()
	root.SetArgs(args)
	help := &helpWriter{w: stdout}
	root.SetOut(help)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = help.err
	}
	if err != nil && !a.parsed {
		if !is[*hintedError](err) { // an error of cobra
			err = usageError("", "%w", err)
		}
		a.json = jsonRequest.MatchString(strings.Join(args, " "))
	}
	a.printError(err)
	return exitStatus(err)
}

// helpWriter keeps the first error of what cobra prints itself, help and
// completions: cobra ignores it.
type helpWriter struct {
	w   io.Writer
	err error
}

func (h *helpWriter) Write(p []byte) (int, error) {
	n, err := h.w.Write(p)
	if h.err == nil {
		h.err = err
	}
	return n, err
}

// jsonRequest matches command lines that ask for errors as JSON. An invalid one
// may not have been parsed as far as --format: cobra stops at the first bad flag.
var jsonRequest = regexp.MustCompile(`^(run|resume)\b.* --format[= ]json\b`)

// close undoes what lasts as long as the program: mount folders, engines,
// signal handlers, and files of root that belong to the caller of sudo. Later
// entries may depend on earlier ones, so it goes backwards. An error here is a
// warning: the answer has been printed, and dmgbench clean repeats the work.
func (a *app) close() {
	for i := len(a.atExit) - 1; i >= 0; i-- {
		if err := a.atExit[i](); err != nil {
			a.warn("warning: " + printable(err.Error()))
		}
	}
	a.atExit = nil
}

// imageToolName is the command of this program that is hdiutil for Linux. The
// engine hdiutil executes it.
const imageToolName = "hdiutil"

// isImageTool reports whether a command line is for hdiutil for Linux; cobra
// cannot parse its grammar. A request for this program's own help is not.
func isImageTool(args []string) bool {
	if len(args) == 0 {
		return false
	}
	help := len(args) == 2 && slices.Contains([]string{"--help", "-h"}, args[1])
	return args[0] == imagetool.HelperVerb || args[0] == imageToolName && !help
}

// commandRow is one command. Its help text and its flags are in help/, in a
// file named after it. A new command needs a row here, a text there and a
// method of [app].
type commandRow struct {
	path     string // "history prune"
	args     string // synopsis of its arguments
	group    string // section of the help, for commands without a parent
	min, max int    // number of arguments; unlimited is any number
	run      func(a *app, ctx context.Context, args []string) error
}

// unlimited is the max of commands that take any number of arguments.
const unlimited = -1

// commandRows lists all commands in the order of the help; parents come before
// their subcommands.
var commandRows = []commandRow{
	{"run", "PLAN...", "measure", 1, unlimited, (*app).runPlans},
	{"resume", "RUN", "measure", 1, 1, (*app).resumeRun},
	{"plans", "", "measure", 0, 0, (*app).listPlans},
	{"plans list", "", "", 0, 0, (*app).listPlans},
	{"plans show", "PLAN", "", 1, 1, (*app).showPlan},
	{"plans copy", "NAME [FILE]", "", 1, 2, (*app).copyPlan},
	{"plans new", "FILE", "", 1, 1, (*app).newPlan},
	{"check", "PLAN...", "measure", 1, unlimited, (*app).checkPlans},
	{"watch", "[RUN...]", "measure", 0, unlimited, (*app).watchRun},
	{"report", "RUN...", "report", 0, unlimited, (*app).reportRuns},
	{"compare", "RUN...", "report", 1, unlimited, (*app).compareRuns},
	{"export", "RUN...", "report", 1, unlimited, (*app).exportRuns},
	{"history", "[DIR]", "report", 0, 1, (*app).listHistory},
	{"history baseline", "RUN", "", 1, 1, (*app).markBaseline},
	{"history prune", "--keep N [DIR]", "", 0, 1, (*app).pruneHistory},
	{"schema", "{plan|result|comparison}", "report", 1, 1, (*app).printSchema},
	{"doctor", "", "maintain", 0, 0, (*app).runDoctor},
	{"selftest", "", "maintain", 0, 0, (*app).runSelftest},
	{"clean", "", "maintain", 0, 0, (*app).clean},
	// Main executes all command lines of hdiutil but the request for its help.
	{"hdiutil", "VERB", "maintain", 0, unlimited, (*app).printHelp},
	{"man", "DIR", "maintain", 1, 1, (*app).writeManPages},
	{"version", "", "maintain", 0, 0, (*app).printVersion},
}

//go:embed help
var helpFiles embed.FS

// defaultPause is long enough that a resumed session after it counts as a
// session of its own, too.
const defaultPause = "10 min"

// colorFlag declares the flag of all commands that print reports.
const colorFlag = "color text=\"auto\" [auto|always|never]: `when` to print colours: " +
	"auto (on a terminal, without NO_COLOR), always or never"

// helpText is the help of one command, from help/<name>.txt: a line, a
// description that ends with the exit statuses, the section FLAGS with lines
// that declare a [flagRow], and the section EXAMPLES.
type helpText struct {
	short, long, examples string
	flags                 []flagRow
}

// helpValues are the lists in help texts that other packages define.
var helpValues = strings.NewReplacer("{PAUSE}", defaultPause, "{COLOR}", colorFlag,
	"{STUDIES}", strings.Join(selftest.IDs(), ", "), "{IDS}", strings.Join(selftest.IDs(), "|"),
	"{FACTS}", wrap("", strings.Join(analysis.CompareFacts, ", "), 0, 76),
	"{BY}", strings.Join(analysis.CompareFacts, "|"), "{OPS}", strings.Join(analysis.CompareOps(), "|"),
	"{ESTIMATORS}", strings.Join(analysis.Estimators(), "|"),
	"{FORMATS}", strings.Join(export.Formats, "|"), "{TABLES}", strings.Join(export.Tables, "|"))

// readHelp reads the help of a command by its path, "" for the program. In the
// name of the file blanks are hyphens. A missing file is a programming error.
func readHelp(path string) (h helpText) {
	name := cmp.Or(strings.ReplaceAll(path, " ", "-"), "dmgbench")
	text, err := helpFiles.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic(err) // a test prints the help of every command
	}
	var rest, flags string
	h.short, rest, _ = strings.Cut(strings.TrimSpace(helpValues.Replace(string(text))), "\n\n")
	rest, h.examples, _ = strings.Cut(rest, "\n\nEXAMPLES\n")
	h.long, flags, _ = strings.Cut(rest, "\n\nFLAGS\n")
	for line := range strings.SplitSeq(strings.ReplaceAll(flags, "\n  ", " "), "\n") {
		if line == "" {
			continue
		}
		m := flagLine.FindStringSubmatch(line)
		row := flagRow{name: m[1], kind: m[2], initial: m[3], help: m[7], oneOf: m[4] != "", positive: m[6] != ""}
		if values := m[4] + m[5]; values != "" {
			row.values = strings.Split(values, "|")
		}
		h.flags = append(h.flags, row)
	}
	return h
}

// newRootCommand builds the tree of commands. It is built for every execution,
// so that two executions in one process, as in tests, share no flags.
func (a *app) newRootCommand() *cobra.Command {
	root := a.newCommand(commandRow{run: (*app).printHelp})
	root.Use, root.DisableFlagsInUseLine = "dmgbench", true
	root.SilenceErrors, root.SilenceUsage, root.DisableSuggestions = true, true, true // they are printed as hints
	root.SetIn(a.stdin)
	root.SetErr(a.stderr)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.configure(cmd) }
	root.AddGroup(&cobra.Group{ID: "measure", Title: "Measure:"},
		&cobra.Group{ID: "report", Title: "Report:"}, &cobra.Group{ID: "maintain", Title: "Maintain:"})
	built := map[string]*cobra.Command{"": root}
	for _, row := range commandRows {
		parent, _ := cutLast(row.path)
		built[row.path] = a.newCommand(row)
		built[parent].AddCommand(built[row.path])
	}
	root.SetHelpCommandGroupID("maintain")
	root.SetCompletionCommandGroupID("maintain")
	root.InitDefaultCompletionCmd("completion")
	root.InitDefaultHelpCmd()
	// For an unknown argument these two would print their help with status 0.
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				cmd, rest, _ := root.Find(args)
				return commandRow{}.checkArgs(cmd, rest)
			}
		case "completion":
			c.Args, c.RunE = commandRow{}.checkArgs, func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	return root
}

// newCommand builds the command of a row, with its help, flags and completions.
// Its arguments are checked before its settings are read, and its settings
// before it is executed.
func (a *app) newCommand(row commandRow) *cobra.Command {
	_, name := cutLast(row.path)
	help := readHelp(row.path)
	cmd := &cobra.Command{
		Short: help.short, Long: help.long, Example: help.examples,
		Use: strings.TrimSpace(name + " " + row.args), GroupID: row.group, Args: row.checkArgs,
		// cobra cannot parse the grammar of hdiutil, see isImageTool.
		DisableFlagParsing: row.path == imageToolName, Hidden: row.path == "man",
		RunE: func(cmd *cobra.Command, args []string) error { return row.run(a, cmd.Context(), args) },
	}
	switch {
	case row.path == "schema":
		cmd.ValidArgs = slices.Sorted(maps.Keys(schemas))
	case strings.HasPrefix(row.args, "PLAN"), strings.HasPrefix(row.args, "NAME"): // a plan may also be a file
		cmd.ValidArgsFunction = cobra.FixedCompletions(plans.Names(), cobra.ShellCompDirectiveDefault)
	}
	a.flags[row.path] = help.flags
	for _, flag := range help.flags {
		flag.add(cmd)
	}
	return cmd
}

// printHelp prints the help of a command that only has subcommands.
func (a *app) printHelp(context.Context, []string) error { return a.command.Help() }

// cutLast splits the path of a command at the last blank.
func cutLast(path string) (parent, name string) {
	i := strings.LastIndex(path, " ")
	return path[:max(i, 0)], path[i+1:]
}

// checkArgs checks the number of arguments of a command. It is used instead of
// the checks of cobra: their messages name neither argument nor example.
func (row commandRow) checkArgs(cmd *cobra.Command, args []string) error {
	example, _, _ := strings.Cut(cmd.Example, "\n")
	hint, name := "for example: "+strings.TrimSpace(example), commandPath(cmd)
	switch {
	case len(args) < row.min:
		missing, _, _ := strings.Cut(row.args, " ")
		return usageError(hint, "reading the arguments of %s: %s is missing", name, strings.TrimSuffix(missing, "..."))
	case row.max == unlimited || len(args) <= row.max:
		return nil
	case row.max == 0 && cmd.HasAvailableSubCommands():
		hint = cmp.Or(suggestCommand(cmd, args[row.max]), cmd.CommandPath()+" --help lists the commands")
		return usageError(hint, "unknown command %q", args[row.max])
	}
	return usageError(hint, "reading the arguments of %s: %q is one too many", name, args[row.max])
}

// suggestCommand is "did you mean …?" for the subcommand of cmd whose name is
// most like word, "" if none is close.
func suggestCommand(cmd *cobra.Command, word string) string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	near := plan.Nearest(word, names)
	return report.TextIf(near != "", "did you mean "+cmd.CommandPath()+" "+near+"?")
}

// flagError rewords errors of pflag and adds the name that was probably meant: of
// a flag, else of a subcommand (--version suggests "dmgbench version").
func flagError(cmd *cobra.Command, err error) error {
	hint := fmt.Sprintf("%s --help lists the flags", cmd.CommandPath())
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		near := plan.Nearest(e.GetSpecifiedName(), names)
		hint = cmp.Or(report.TextIf(near != "", "did you mean --"+near+"?"),
			suggestCommand(cmd, e.GetSpecifiedName()), hint)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usageError(hint, "reading --%s: %w", e.GetFlag().Name, valueError(e.GetFlag(), e.GetValue(), err))
	}
	return usageError(hint, "%s", err)
}
