//go:build !linux

package hdiutil

import (
	"context"
	"os/exec"
	"strings"
	"time"
)

// commandLines are those of all processes, as ps(1) prints them; none where it does not answer.
func commandLines(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/bin/ps", "-axww", "-o", "args=").Output()
	if err != nil {
		return nil
	}
	return strings.Split(string(out), "\n")
}
