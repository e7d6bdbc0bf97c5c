//go:build !linux

package hdiutil

import (
	"context"
	"os"
	"os/exec"
	"time"
)

// commandLines are those of all processes but this one, as ps(1) prints them; none where it does not answer.
func commandLines(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/bin/ps", "-axww", "-o", "pid=,args=").Output()
	if err != nil {
		return nil
	}
	return linesBut(os.Getpid(), string(out))
}
