//go:build unix

package command

import "syscall"

// newSession gives a program a session and process group of its own, without our terminal: the interrupt key is for
// us alone, and the program cannot prompt.
func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// terminateGroup and killGroup signal the whole group. A group that has ended is not an error.
func terminateGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
