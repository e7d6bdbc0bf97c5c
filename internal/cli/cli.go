// Package cli is the command line: it turns arguments, environment and settings file into calls of the packages
// below, and errors into exit statuses.
//
// It is the only package that uses cobra and viper; plans are never read through viper. It does not measure and
// does not analyze: internal/runner executes runs, internal/analysis draws conclusions, internal/report renders.
//
// The answer goes to stdout; progress, warnings, questions and errors go to stderr.
//
// commands.go lists the commands, flags.go their flags and help/ their help texts. Each command has a file of its
// name.
package cli

import (
	"context"
	"io"
	"strings"

	"dmgbench/internal/clock"
	"dmgbench/internal/runfolders"

	"github.com/spf13/cobra"
	"github.com/spf13/viper"
)

// app is one execution of the program.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            map[string]string
	clock          clock.Clock
	settings       *viper.Viper      // the settings file
	valueSources   map[string]string // where the values of flags that were not typed come from, by flag
	command        *cobra.Command    // the command that is executed
	json           bool              // stderr is lines of JSON
	parsed         bool              // the command line was valid; later errors are no usage errors of cobra
	atExit         []func() error    // called in reverse order
	chowned        []string          // paths that get the owner of the user who called sudo
	runs           runfolders.Reader

	// generated is the passphrase that was made for this run, nil where the user chose one; newPassphrase says that
	// this session made it.
	generated     []byte
	newPassphrase bool
}

// newApp is an execution with environment env, in the form of os.Environ.
func newApp(stdin io.Reader, stdout, stderr io.Writer, env []string) *app {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, env: map[string]string{}, clock: clock.NewReal(),
		settings: viper.New()}
	for _, variable := range env {
		if name, value, ok := strings.Cut(variable, "="); ok {
			a.env[name] = value
		}
	}
	a.runs.Outdated = a.warnOutdated
	return a
}

// Main executes one command line and returns the exit status; docs/architecture.md lists the statuses. args are
// without the program's name, env is in the form of os.Environ.
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

// close undoes what lasts as long as the program: mount folders, engines, signal handlers.
func (a *app) close() {
	for i := len(a.atExit) - 1; i >= 0; i-- {
		if err := a.atExit[i](); err != nil {
			a.warn("warning: " + printable(err.Error()))
		}
	}
	a.atExit = nil
}
