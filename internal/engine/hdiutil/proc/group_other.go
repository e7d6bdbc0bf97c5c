//go:build !unix

package proc

import (
	"os"
	"syscall"
)

// Without sessions and groups, the process alone is ended.
func session() *syscall.SysProcAttr { return nil }

func terminate(pid int) { kill(pid) }

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
