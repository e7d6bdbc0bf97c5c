// Package cli is the command line: it turns arguments, environment and settings
// file into calls of the packages below, and errors into exit statuses.
//
// It is the only package that uses cobra and viper; plans are never read
// through viper. It does not measure and does not analyze: internal/runner
// executes runs, internal/analysis draws conclusions, internal/report renders.
//
// The answer goes to stdout; progress, warnings, questions and errors go to
// stderr.
//
// commands.go lists the commands, and help/ has their help texts with their
// flags. Each command has a file of its name.
package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	"dmgbench/internal/clock"
	"dmgbench/internal/imagetool"
	"dmgbench/internal/runfolders"

	"github.com/spf13/cobra"
	"github.com/spf13/viper"
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
	valueSources   map[string]string    // where the values of flags that were not typed come from, by flag
	command        *cobra.Command       // the command that is executed
	json           bool                 // stderr is lines of JSON
	parsed         bool                 // the command line was valid; later errors are no usage errors of cobra
	atExit         []func() error       // called in reverse order
	chowned        []string             // paths that get the owner of the user who called sudo
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
	a.runs.Outdated = a.warnOutdated
	return a
}

// Main executes one command line and returns the exit status;
// docs/architecture.md lists the statuses. args are without the program's name,
// env is in the form of os.Environ. When ctx is cancelled, a run cleans up its
// images and Main returns 130.
func Main(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args, env []string) int {
	if isImageTool(args) {
		return runImageTool(ctx, stdin, stdout, stderr, args)
	}
	a := newApp(stdin, stdout, stderr, env)
	defer a.close()
	root := a.newRootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.parsed {
		err = commandLineError(root, args, err)
		a.json = requestsJSON(cmd, args)
	}
	a.printError(err)
	return exitStatus(err)
}

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

// runImageTool executes one command line of hdiutil for Linux.
func runImageTool(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	if args[0] == imageToolName {
		args = args[1:]
	}
	defer imagetool.OutlivePipes()()
	env := imagetool.System()
	env.Stdin, env.Stdout, env.Stderr = stdin, stdout, stderr
	return imagetool.Main(ctx, args, env)
}

// helpImageTool is the command "hdiutil" as cobra sees it: [Main] executes all
// other command lines that start with it. It prints the help of this program's
// own command.
func (a *app) helpImageTool(context.Context, []string) error { return a.command.Help() }
