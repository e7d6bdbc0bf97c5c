package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
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
// line of its own, or as a field of the JSON. err is nil where everything was
// printed, such as the report of a run with failed cases.
type hintedError struct {
	err  error
	hint string
	exit int
}

func (e *hintedError) Error() string {
	return cmp.Or(e.err, fmt.Errorf("exit status %d", e.exit)).Error()
}
func (e *hintedError) Unwrap() error  { return e.err }
func (e *hintedError) Advice() string { return e.hint }

// usageError is an error in the command line, the settings or a plan: exit
// status 2. The format is that of fmt.Errorf; hint may be empty.
func usageError(hint, format string, args ...any) error {
	return &hintedError{fmt.Errorf(format, args...), hint, exitUsage}
}

// withHint adds advice to an error and keeps its exit status.
func withHint(err error, hint string) error { return &hintedError{err, hint, exitStatus(err)} }

// exitWith returns the error that ends the program with a status after
// everything was printed, nil for 0.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return &hintedError{exit: code}
}

// explainInterrupt replaces the error of a cancelled context by text, which
// explains what was and was not done. Other errors are returned unchanged.
func explainInterrupt(err error, text string) error {
	if errors.Is(err, context.Canceled) {
		return &hintedError{err: errors.New(text), exit: exitInterrupted}
	}
	return err
}

// is reports whether the chain of an error contains a T.
func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// exitStatus returns the exit status of an error, 0 for nil. A hintedError can
// carry its own; all others are classified here.
func exitStatus(err error) int {
	if err == nil {
		return 0
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

// printError prints an error and its hint, unless everything was printed.
func (a *app) printError(err error) {
	if e, ok := errors.AsType[*hintedError](err); err == nil || ok && e.err == nil {
		return
	}
	text, advice := err.Error(), hint(err)
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

// isUnwritable reports whether a disk is full or may only be read.
func isUnwritable(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, fs.ErrPermission)
}

// hint returns the advice that an error carries, else the usual one for its
// cause, else "". Errors from lower packages carry advice where only they know
// the cause.
func hint(err error) string {
	if advice := engine.Advice(err); advice != "" {
		return advice
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == os.Stdout.Name() {
		return "" // the place of the answer, not of a run
	}
	for _, cause := range []struct {
		err  error
		hint string
	}{
		{fs.ErrExist, "choose another name: existing files are never replaced"},
		{syscall.ENOSPC, "make room on that disk, or choose a folder on another one; dmgbench resume continues a " +
			"started run"},
		{syscall.EDQUOT, "raise the quota, or choose a folder on another disk; dmgbench resume continues a started run"},
		{syscall.EMFILE, "raise the limit (ulimit -n 4096); dmgbench resume continues a started run"},
		{syscall.ENFILE, "end other programs, or raise the limit of the system; dmgbench resume continues a started run"},
		{syscall.EROFS, "choose a writable folder"},
		{fs.ErrPermission, "check the permissions, or choose another folder"},
		{host.ErrBusy, "wait for the other run to finish, or end it with Ctrl-C: runs at the same time " +
			"distort each other"},
	} {
		if errors.Is(err, cause.err) {
			return cause.hint
		}
	}
	return ""
}
