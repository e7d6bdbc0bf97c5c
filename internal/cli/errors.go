package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/system/host"
)

// Exit statuses, as docs/architecture.md explains them.
const (
	exitError       = 1
	exitUsage       = 2
	exitCases       = 3 // failed or discarded cases, or all images skipped
	exitNotFit      = 4 // the host, or a place
	exitRegression  = 5 // of compare
	exitUndecided   = 6 // of compare --strict
	exitInterrupted = 130
)

// hintedError is an error with advice for the user and, where it is not 0, an
// exit status that overrides the one of its cause. The advice is printed on a
// line of its own, or as a field of the JSON.
type hintedError struct {
	err  error
	hint string
	exit int
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

// usageError is an error in the command line, the settings or a plan: exit
// status 2. The format is that of fmt.Errorf; hint may be empty.
func usageError(hint, format string, args ...any) error {
	return &hintedError{fmt.Errorf(format, args...), hint, exitUsage}
}

// withHint adds advice to an error and keeps its exit status.
func withHint(err error, hint string) error {
	e := &hintedError{err: err, hint: hint}
	if cause, ok := errors.AsType[*hintedError](err); ok {
		e.exit = cause.exit
	}
	return e
}

// statusError ends the program with a status after everything was printed, such
// as that of a run with failed cases.
type statusError struct{ code int }

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// exitWith returns the error that ends the program with a status, nil for 0.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return &statusError{code}
}

// explainInterrupt replaces the error of a cancelled context by text, which
// explains what was and was not done. Other errors, and a statusError (the run
// has printed its outcome), are returned unchanged.
func explainInterrupt(err error, text string) error {
	if !is[*statusError](err) && errors.Is(err, context.Canceled) {
		return &hintedError{err: errors.New(text), exit: exitInterrupted}
	}
	return err
}

// is reports whether the chain of an error contains a T.
func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// exitStatus returns the exit status of an error, 0 for nil. A statusError and a
// hintedError can carry their own; all others are classified here.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.code
	}
	// Before the causes below: a usage error may wrap any of them.
	if e, ok := errors.AsType[*hintedError](err); ok && e.exit != 0 {
		return e.exit
	}
	switch {
	// The host or a place cannot be measured on now: the same command may
	// succeed later, or dmgbench resume can continue the run.
	case is[*runner.NotFitError](err), runner.Stopped(err),
		errors.Is(err, result.ErrBusy), errors.Is(err, host.ErrBusy):
		return exitNotFit
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	// A plan, or flags that do not fit the plan.
	case is[*plan.Problems](err), is[*plan.OverrideError](err):
		return exitUsage
	}
	return exitError
}

// notice is a line of JSON on stderr that is not about the progress of a run.
// Its keys are part of the interface for programs.
type notice struct {
	Kind string `json:"kind"` // error | warning | message
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
	Exit int    `json:"exit,omitempty"`
}

// printError prints an error and its hint; a statusError has no text.
func (a *app) printError(err error) {
	if err == nil || is[*statusError](err) {
		return
	}
	text, advice := err.Error(), a.hintWithSource(err)
	if a.json {
		printJSON(a.stderr, notice{Kind: "error", Text: text, Hint: advice, Exit: exitStatus(err)})
		return
	}
	if !is[*plan.Problems](err) { // whose lines have their places and hints
		text = "dmgbench: " + text
		if advice != "" {
			text += "\nhint: " + advice
		}
	}
	fmt.Fprintln(a.stderr, printable(text))
}

// warn prints a warning about a plan, a run folder or the program's own files.
// Warnings about a measurement go through [progress.Warning].
func (a *app) warn(text string) {
	if a.json {
		printJSON(a.stderr, notice{Kind: "warning", Text: text})
		return
	}
	fmt.Fprintln(a.stderr, printable(text))
}

// printJSON prints a value on one line.
func printJSON(w io.Writer, v any) { _ = json.NewEncoder(w).Encode(v) }

// hintWithSource returns the advice for an error. A usage error that names a flag
// whose value comes from the environment or the settings file gets that source,
// too: an error about --format puzzles users who never typed that flag.
func (a *app) hintWithSource(err error) string {
	advice := []string{hint(err)}
	for _, m := range flagPattern.FindAllStringSubmatch(err.Error(), -1) {
		if source := a.valueSources[m[1]]; source != "" && exitStatus(err) == exitUsage {
			advice = append(advice, m[0]+" comes from "+source)
		}
	}
	return strings.Join(unique(advice), "; ")
}

// flagPattern finds the flags that an error message names.
var flagPattern = regexp.MustCompile(`--([a-z][a-z-]*)`)

// hint returns the advice that an error carries, else the usual one for its
// cause, else "". Errors from lower packages carry advice where only they know
// the cause.
func hint(err error) string {
	if advice := cmp.Or(
		hintOf(err, func(e *hintedError) string { return e.hint }),
		hintOf(err, func(e *result.Error) string { return e.Hint }),
		hintOf(err, func(e *engine.UnsupportedError) string { return e.Hint }),
		hintOf(err, func(e *hdiutil.ToolError) string { return e.Hint }),
		hintOf(err, func(e *runner.NotFitError) string { return e.Hint }),
	); advice != "" {
		return advice
	}
	for _, cause := range []struct {
		err  error
		hint string
	}{
		{fs.ErrExist, "choose another name: existing files are never replaced"},
		{syscall.ENOSPC, "make room on that disk, or choose a folder on another one; dmgbench resume continues a " +
			"started run"},
		{syscall.EROFS, "choose a writable folder"},
		{fs.ErrPermission, "check the permissions, or choose another folder"},
		{host.ErrBusy, "wait for the other run to finish, or end it with Ctrl-C: runs at the same time distort each other"},
	} {
		if errors.Is(err, cause.err) {
			return cause.hint
		}
	}
	return ""
}

// hintOf returns the advice of the first T in the chain of an error, or "".
func hintOf[T error](err error, advice func(T) string) string {
	if e, ok := errors.AsType[T](err); ok {
		return advice(e)
	}
	return ""
}

// commandLineError turns an error of cobra from before any command ran into one of
// this program with a hint. Unknown commands get the most similar name as their
// hint.
func commandLineError(root *cobra.Command, args []string, err error) error {
	if err == nil || is[*hintedError](err) {
		return err
	}
	if len(args) == 0 || !strings.HasPrefix(err.Error(), "unknown command") {
		return usageError("", "%w", err)
	}
	return usageError(cmp.Or(suggestCommand(root, args[0]), "dmgbench --help lists the commands"),
		"unknown command %q", args[0])
}

// requestsJSON reports whether an invalid command line asks for errors as JSON:
// cobra stops at the first bad flag, so --format may not have been parsed yet.
func requestsJSON(cmd *cobra.Command, args []string) bool {
	if cmd.Name() != "run" && cmd.Name() != "resume" {
		return false
	}
	i := slices.Index(args, "--format")
	return slices.Contains(args, "--format=json") || i >= 0 && i+1 < len(args) && args[i+1] == "json"
}

// suggestCommand returns "did you mean …?" for the subcommand of cmd whose name is
// most like word, or "" if none is close.
func suggestCommand(cmd *cobra.Command, word string) string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	near := plan.Nearest(word, names)
	return report.TextIf(near != "", "did you mean "+cmd.CommandPath()+" "+near+"?")
}

// rejectUnknownArgs makes cobra's own commands reject unknown arguments instead of
// printing their help with status 0: "help" an unknown command, and "completion"
// an unknown shell.
func rejectUnknownArgs(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args)
				return commandLineError(root, args, err)
			}
		case "completion":
			for _, c := range append(c.Commands(), c) {
				c.Args, c.Example = commandRow{}.checkArgs, "  source <(dmgbench completion bash)" // no arguments
			}
			// Without a function of its own cobra would not check the arguments.
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
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

// valueError replaces the error of strconv by one that names the type of value that
// a flag takes; it returns err for other types.
func valueError(f *pflag.Flag, value string, err error) error {
	types := map[string]string{"int": "a whole number", "uint64": "a whole number", "float64": "a number",
		"bool": "true or false"}
	if name := types[f.Value.Type()]; name != "" {
		return fmt.Errorf("%q is not %s", value, name)
	}
	return err
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
	case cmd.HasAvailableSubCommands():
		hint = cmp.Or(suggestCommand(cmd, args[row.max]), cmd.CommandPath()+" --help lists its commands")
	}
	return usageError(hint, "reading the arguments of %s: %q is one too many", name, args[row.max])
}
