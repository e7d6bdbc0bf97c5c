package cli

import (
	"errors"

	"dmgbench/internal/result"
)

// notFit says whether an error means that the host cannot measure now.
func notFit(err error) bool { return errors.Is(err, result.ErrBusy) }
