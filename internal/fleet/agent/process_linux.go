package agent

import "syscall"

// childAttributes put a child into a process group of its own, so that Ctrl-C
// interrupts it once, by the agent, and have it interrupted when the agent is
// killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
}
