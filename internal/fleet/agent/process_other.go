//go:build !linux

package agent

import "syscall"

// childAttributes put a child into a process group of its own, so that Ctrl-C
// interrupts it once, by the agent. When the agent is killed, the end of its
// stdin interrupts it.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
