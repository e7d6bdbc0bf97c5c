package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"dmgbench/internal/engine"
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

// statusError ends the program with a status when everything has been said.
type statusError struct{ code int }

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

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
func tell(w io.Writer, err error) {
	if err == nil {
		return
	}
	if _, ok := errors.AsType[*statusError](err); ok {
		return
	}
	if ps, ok := errors.AsType[*plan.Problems](err); ok {
		fmt.Fprintln(w, ps.Error())
		return
	}
	fmt.Fprintf(w, "dmgbench: %s\n", printable(err.Error()))
	if h := hint(err); h != "" {
		fmt.Fprintf(w, "hint: %s\n", printable(h))
	}
}

// hint is what the error carries to help against it.
func hint(err error) string {
	if e, ok := errors.AsType[*usageError](err); ok && e.hint != "" {
		return e.hint
	}
	if e, ok := errors.AsType[*result.Error](err); ok && e.Hint != "" {
		return e.Hint
	}
	if e, ok := errors.AsType[*engine.UnsupportedError](err); ok && e.Hint != "" {
		return e.Hint
	}
	return ""
}

var errPlanChanged = errors.New("it is not the plan that the journal names")
