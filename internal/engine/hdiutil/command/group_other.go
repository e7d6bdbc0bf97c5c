//go:build !unix

package command

import (
	"os"
	"syscall"
)

// Systems without sessions and groups: only the program itself is ended.
func newSession() *syscall.SysProcAttr { return nil }

func terminateGroup(pid int) { killGroup(pid) }

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
