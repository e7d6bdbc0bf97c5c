// Package cli is the command line: it turns arguments, environment and the
// settings file into calls of the packages below, and errors into exit statuses.
//
// It is the only package that knows cobra and viper. It neither measures nor
// judges: a run is internal/runner's, a conclusion internal/analysis's, a page
// internal/report's. Plans never pass through viper.
//
// stdout carries the answer and nothing else; progress, warnings and errors go to stderr.
package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"dmgbench/internal/clock"

	"github.com/spf13/cobra"
	"github.com/spf13/viper"
)

// app is what the commands of one invocation share.
type app struct {
	in        io.Reader
	out, err  io.Writer
	env       map[string]string
	settings  *viper.Viper
	untyped   map[string]string // flags with values that nobody typed, and where those come from
	clock     clock.Clock
	began     bool           // arguments were understood: from here on an error is no bad usage
	json      bool           // what is said on stderr is lines of JSON
	verbose   bool           // the report is printed in full
	atEnd     []func() error // in reverse order
	given     []string       // what belongs to the caller of sudo in the end
	forRun    []byte         // the passphrase that was made for this run, nil when the user gave one
	newSecret bool           // it was made by this session

	outdated struct { // run folders that were told of
		sync.Mutex
		told map[string]bool
	}
}

// Main executes one command line and gives the exit status: 0 all done, 1 error,
// 2 bad usage or plan, 3 failed or discarded cases, 4 host not fit, 5
// regression, 130 interrupted. args are without the program's name, env is as of os.Environ.
func Main(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args, env []string) int {
	if imageTool(args) {
		return runImageTool(ctx, stdin, stdout, stderr, args)
	}
	a := &app{in: stdin, out: stdout, err: stderr, env: environment(env), settings: viper.New(), clock: clock.NewReal()}
	defer a.close()
	root := a.newRootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.began {
		err = notUnderstood(root, args, err)
		a.json = saysJSON(cmd, args)
	}
	a.tell(err)
	return exitStatus(err)
}

// newRootCommand builds the tree anew for every call, so that nothing is shared.
func (a *app) newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "dmgbench",
		Short: "execute published disk image benchmarks, and measure what they claim",
		Long: `dmgbench executes plans: published disk image benchmarks, written down so that
anyone can repeat them. It makes images, puts files on them, times that, and
sets what it measured beside what was published.

To begin: dmgbench run quick measures a native folder, an image and a sparse
bundle within three minutes; dmgbench plans lists what else there is.

Settings: a flag wins over the environment (DMGBENCH_<COMMAND>_<FLAG>, such as
DMGBENCH_RUN_ENGINE), which wins over the settings file: a table for each
command, such as [run], in dmgbench/config.toml of the user's configuration
folder ($XDG_CONFIG_HOME, else ~/.config; on macOS ~/Library/Application
Support), or in the file that DMGBENCH_CONFIG names. NO_COLOR takes the colours
out of what is printed on a terminal.

` + strings.Replace(exitText, "  130", "  5    compare found a regression\n  6    compare --strict: undecided\n  130", 1),
		Example:       "  dmgbench run quick\n  dmgbench run gold-standard --sets 1 --on /mnt/fast\n  dmgbench report runs/quick-20260101T120000Z",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	spoken(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.configure(cmd); err != nil {
			return err
		}
		a.began = true
		return nil
	}
	root.AddGroup(&cobra.Group{ID: "measure", Title: "Measure:"},
		&cobra.Group{ID: "report", Title: "Report:"}, &cobra.Group{ID: "maintain", Title: "Maintain:"})
	root.AddCommand(a.commands()...)
	root.SetHelpCommandGroupID("maintain")
	root.SetCompletionCommandGroupID("maintain")
	root.InitDefaultCompletionCmd("completion")
	root.InitDefaultHelpCmd()
	refuseUnknown(root)
	return root
}

// commands are all commands in the order of the help.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.newRunCommand(a.runPlans), a.newResumeCommand(a.runResume), a.newPlansCommand(), a.newCheckCommand(),
		a.newReportCommand(a.runReport), a.newCompareCommand(a.runCompare), a.newExportCommand(a.runExport), a.newHistoryCommand(),
		a.newSchemaCommand(), a.newDoctorCommand(), a.newSelftestCommand(), a.newCleanCommand(), a.newImageToolCommand(), a.newManCommand(),
		a.newVersionCommand(),
	}
}

const exitText = `EXIT STATUS
  0    all done; skipped cases included, unless every image is
  1    error
  2    bad usage or a bad plan
  3    finished with failed or discarded cases, or every image skipped
  4    the host is not fit to measure on, or a place was full or gone in
       mid-run; dmgbench resume goes on
  130  interrupted or paused; dmgbench resume goes on`

// exitPrinted is of the commands that only print.
const exitPrinted = `EXIT STATUS
  0  printed
  1  error
  2  bad usage`

// oneOf makes a flag complete to the values it accepts.
func oneOf(cmd *cobra.Command, flag string, values []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("completing a flag that is not there: " + err.Error())
	}
}

// want says that a flag's value is none of those that are accepted.
func want(flag, value string, accepted []string) error {
	return &usageError{err: fmt.Errorf("reading --%s: %q is not one of %s", flag, value, strings.Join(accepted, ", "))}
}

func environment(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, e := range env {
		if k, v, ok := strings.Cut(e, "="); ok {
			m[k] = v
		}
	}
	return m
}
