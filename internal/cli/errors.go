package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// Exit statuses.
const (
	exitError       = 1
	exitUsage       = 2
	exitCases       = 3
	exitNotFit      = 4
	exitInterrupted = 130
)

// usageError is a command line or a plan that cannot be executed: exit 2.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// hintedError is an error whose cause has no hint of its own.
type hintedError struct {
	err  error
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

// statusError ends the program with a status when everything has been said.
type statusError struct{ code int }

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// calledOff is an interrupt before there was anything to clean up or to resume.
type calledOff struct{ text string }

func (e *calledOff) Error() string { return e.text }
func (e *calledOff) Unwrap() error { return context.Canceled }

// unlessInterrupted says what an interrupt means where err says no more than that there was one.
func unlessInterrupted(err error, text string) error {
	if _, told := errors.AsType[*statusError](err); !told && errors.Is(err, context.Canceled) {
		return &calledOff{text}
	}
	return err
}

// status is nil for 0.
func status(code int) error {
	if code == 0 {
		return nil
	}
	return &statusError{code}
}

// exitStatus is the one place where errors become statuses.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	if s, ok := errors.AsType[*statusError](err); ok {
		return s.code
	}
	if notFit(err) {
		return exitNotFit
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	if badUsage(err) {
		return exitUsage
	}
	return exitError
}

func badUsage(err error) bool {
	_, usage := errors.AsType[*usageError](err)
	_, problems := errors.AsType[*plan.Problems](err)
	_, override := errors.AsType[*plan.OverrideError](err)
	_, selector := errors.AsType[*plan.SelectorError](err)
	return usage || problems || override || selector
}

// tell prints an error and its hint; of a plan's problems, all of them.
func (a *app) tell(err error) {
	if err == nil {
		return
	}
	if _, ok := errors.AsType[*statusError](err); ok {
		return
	}
	if a.json {
		a.tellJSON(notice{Kind: "error", Text: err.Error(), Hint: a.hint(err), Exit: exitStatus(err)})
		return
	}
	if ps, ok := errors.AsType[*plan.Problems](err); ok {
		fmt.Fprintln(a.err, printable(ps.Error()))
		return
	}
	fmt.Fprintf(a.err, "dmgbench: %s\n", printable(err.Error()))
	if h := a.hint(err); h != "" {
		fmt.Fprintf(a.err, "hint: %s\n", printable(h))
	}
}

// notice is a line on stderr under --format json that is no progress.
type notice struct {
	Kind string `json:"kind"` // error | warning
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
	Exit int    `json:"exit,omitempty"`
}

func (a *app) tellJSON(n notice) {
	if b, err := json.Marshal(n); err == nil {
		fmt.Fprintf(a.err, "%s\n", b)
	}
}

// warn prints what a plan is warned of.
func (a *app) warn(text string) {
	if a.json {
		a.tellJSON(notice{Kind: "warning", Text: text})
		return
	}
	fmt.Fprintln(a.err, printable(text))
}

// hint is what the error carries to help against it, and where a wrong value was said that nobody typed.
func (a *app) hint(err error) string {
	h := hint(err)
	if !badUsage(err) {
		return h
	}
	from := a.whence(err.Error())
	if h != "" && from != "" {
		h += "; "
	}
	return h + from
}

// hint is what the error carries to help against it.
func hint(err error) string {
	if e, ok := errors.AsType[*usageError](err); ok && e.hint != "" {
		return e.hint
	}
	if e, ok := errors.AsType[*hintedError](err); ok {
		return e.hint
	}
	if e, ok := errors.AsType[*result.Error](err); ok && e.Hint != "" {
		return e.Hint
	}
	if e, ok := errors.AsType[*engine.UnsupportedError](err); ok && e.Hint != "" {
		return e.Hint
	}
	if e, ok := errors.AsType[*hdiutil.ToolError](err); ok && e.Hint != "" {
		return e.Hint
	}
	if errors.Is(err, syscall.ENOSPC) {
		return "make room on that disk, or choose a folder on another one; a run that had begun goes on with dmgbench resume"
	}
	if errors.Is(err, syscall.EROFS) {
		return "choose a folder that can be written"
	}
	if errors.Is(err, fs.ErrPermission) {
		return "check who may write there, or choose another folder"
	}
	return hostHint(err)
}

var errPlanChanged = errors.New("it is not the plan that the journal names")
