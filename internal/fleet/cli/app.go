package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/broker"
	"dmgbench/internal/fleet/control"
	"dmgbench/internal/report"
	"dmgbench/internal/system/host"
)

// Exit statuses, those of dmgbench.
const (
	exitError       = 1
	exitUsage       = 2
	exitSome        = 3 // no machine fits, or a job has not succeeded
	exitInterrupted = 130
)

// statusError is an error with advice for the user, which may be empty, and its
// exit status. err is nil where everything was printed.
type statusError struct {
	err  error
	hint string
	exit int
}

func (e *statusError) Error() string {
	return cmp.Or(e.err, fmt.Errorf("exit status %d", e.exit)).Error()
}
func (e *statusError) Unwrap() error { return e.err }

// usageError is an error in the command line or in a plan. The format is that of
// fmt.Errorf; hint may be empty.
func usageError(hint, format string, args ...any) error {
	return &statusError{fmt.Errorf(format, args...), hint, exitUsage}
}

// app is one execution of the program. Its commands are methods.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	flags          *pflag.FlagSet // of the executed command
}

// text is the value of a flag of any type in the form that the user types.
func (a *app) text(name string) string { return a.flags.Lookup(name).Value.String() }

// isSet reports whether a flag without a value was given.
func (a *app) isSet(name string) bool { return a.text(name) == "true" }

// list is the value of a flag that takes several values.
func (a *app) list(name string) []string {
	return a.flags.Lookup(name).Value.(pflag.SliceValue).GetSlice()
}

// number is the value of a flag that takes an integer.
func (a *app) number(name string) int {
	n, _ := strconv.Atoi(a.text(name)) // pflag has checked its type
	return n
}

// print prints a line of the answer.
func (a *app) print(format string, args ...any) error {
	_, err := fmt.Fprintln(a.stdout, report.Clean(fmt.Sprintf(format, args...)))
	return err
}

// note prints text about what the program does on stderr. Line ends stay; other
// control and format characters, which may come from another machine, do not.
func (a *app) note(format string, args ...any) {
	text := strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, fmt.Sprintf(format, args...))
	fmt.Fprintln(a.stderr, strings.TrimRight(text, "\n"))
}

// requestTime is the longest time that the server may take to answer.
const requestTime = 30 * time.Second

// stateFolder is the folder that --folder names, by default a folder of this
// name in the state folder of dmgbench.
func (a *app) stateFolder(name string) (string, error) {
	if dir := a.text("folder"); dir != "" {
		return filepath.Abs(dir)
	}
	state, err := host.StateDir(os.Getenv)
	if err != nil {
		return "", &statusError{err, "give a folder: --folder DIR", exitUsage}
	}
	return filepath.Join(state, name), nil
}

// openFleet connects as the user that may do everything. The caller closes it.
func (a *app) openFleet() (*control.Fleet, error) {
	if url := a.text("nats"); url != "" {
		return control.Open(fleet.Link{URLs: []string{url}, User: fleet.Control, Credentials: a.text("creds")})
	}
	folder, err := a.stateFolder(serverFolder)
	if err != nil {
		return nil, err
	}
	link, err := broker.ReadControl(folder)
	if err == nil {
		var f *control.Fleet
		if f, err = control.Open(link); err == nil {
			return f, nil
		}
	}
	return nil, &statusError{err, "dmgbench-fleet serve has to run on this machine, with the same --folder", exitError}
}

// serverFolder is the default folder of the server, in the state folder.
const serverFolder = "fleet"

// dmgbenchProgram is the path of dmgbench: beside this program, else on PATH.
func dmgbenchProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "dmgbench")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if path, err = exec.LookPath("dmgbench"); err != nil {
		return "", &statusError{fmt.Errorf("finding dmgbench: %w", err), "install it beside dmgbench-fleet", exitError}
	}
	return filepath.Abs(path)
}

// quote is a word as a POSIX shell takes it.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
