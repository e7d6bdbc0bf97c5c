// Package clitest has what the tests of several programs and layers share: the
// plan of a short run, and a command for scripts. Only tests import it.
package clitest

import (
	"errors"
	"os/exec"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// Life is a plan with the shape of the built-in plan quick, made small: UDRW
// and UDSB with exFAT, two rounds with a baseline, every kind of step that
// works everywhere. It settles once, for 20 ms.
const Life = `
schema = 1
title = "A short life"
[image]
size = "12 MB"
band_size = "1 MiB"
filesystem_preference = ["exFAT"]
[io]
files = "few"
[matrix]
format = ["UDRW", "UDSB"]
[files.few]
sizes = ["64 kB", "300001 B", "64001 B"]
sets = 2
[[protocol]]
steps = [
  { do = "create" },
  { do = "measure", phase = "created" },
  { do = "attach" },
  { do = "mkdir", dir = "test" },
  { do = "detach" },
  { do = "attach", phase = "new" },
  { do = "write", phase = "new" },
  { do = "settle", phase = "new", at_least = "20 ms" },
  { do = "remount", phase = "written" },
  { do = "read", phase = "new" },
  { do = "verify", phase = "new" },
  { do = "delete", phase = "half", every_other = true },
  { do = "trim", phase = "half" },
  { do = "verify", phase = "half" },
  { do = "delete", phase = "all", all = true },
  { do = "detach", phase = "used" },
  { do = "measure", phase = "used" },
]
[[protocol]]
when = { format = "UDSB" }
steps = [ { do = "compact", phase = "used" } ]
[run]
rounds = 2
baseline = true
canary = false
`

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
