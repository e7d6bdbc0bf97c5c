package cli

import (
	"errors"

	"dmgbench/internal/host"
	"dmgbench/internal/result"
	"dmgbench/internal/runner"
)

// notFit says whether an error means that the host cannot measure now.
func notFit(err error) bool {
	_, space := errors.AsType[*runner.NotFitError](err)
	return space || runner.Stopped(err) || errors.Is(err, result.ErrBusy) || errors.Is(err, host.ErrBusy)
}

// hostHint is the hint of an error about the host.
func hostHint(err error) string {
	if e, ok := errors.AsType[*runner.NotFitError](err); ok {
		return e.Hint
	}
	if errors.Is(err, host.ErrBusy) {
		return "wait until it has ended, or end it with Ctrl-C: two runs at once measure each other"
	}
	return ""
}
