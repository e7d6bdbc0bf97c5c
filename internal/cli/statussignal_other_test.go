//go:build !linux

package cli_test

import "syscall"

// statusSignal is the signal that requests the progress of a run.
const statusSignal = syscall.SIGINFO
