// Package clitest has what the tests of several programs and layers share: the
// plan of a short run, and a command for scripts. Only tests import it.
package clitest

import (
	_ "embed" // for Life
	"errors"
	"os/exec"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// Life is a plan with the shape of the built-in plan quick, made small: UDRW
// and UDSB with exFAT, two rounds with a baseline, every kind of step that
// works everywhere. It settles once, for 20 ms.
//
//go:embed life.toml
var Life string

// Exits is the command "exits STATUS COMMAND [ARG…]" of a script: the command
// has to end with exactly this status; "! exec" accepts any.
func Exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG…]")
	}
	// Check fails the script where the command could not be started, as it has
	// no status; an error of type ExitError is a status, which is compared
	// with the expected one below.
	wanted, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != wanted {
		ts.Fatalf("exit status %d, want %d", got, wanted)
	}
}
