//go:build unix

package proc

import "syscall"

// session gives the command a session and process group of its own, away from
// our terminal: its interrupt key is for us, and a prompt has nowhere to appear.
func session() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// terminate and kill end the whole group. A group that is gone is no error.
func terminate(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }

func kill(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
