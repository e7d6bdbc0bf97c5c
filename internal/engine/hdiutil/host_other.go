//go:build !linux

package hdiutil

import (
	"context"
	"os"
	"os/exec"
	"time"
)

// commandLines are those of all other processes, as ps(1) prints them; none if it does not answer.
func commandLines(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/bin/ps", "-axww", "-o", "pid=,args=").Output()
	if err != nil {
		return nil
	}
	return parseProcesses(string(out), os.Getpid())
}

func trimVolume(string) (int64, error) { return 0, errNoTrim }

// The system's own tools make what it mounts and attach images without FUSE.
func missingFor(string) string { return "" }

func missingForFUSE() string { return "" }

// servedBy is not known here.
func servedBy(_, _, _ string) string { return "" }
