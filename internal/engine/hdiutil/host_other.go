//go:build !linux

package hdiutil

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
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

// parseProcesses returns the command lines in a list of processes, each line a number and a command line, without that
// of one process.
func parseProcesses(list string, without int) (lines []string) {
	for line := range strings.Lines(list) {
		number, command, ok := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(number); ok && err == nil && n != without {
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	return lines
}

func trimVolume(string) (int64, error) { return 0, errNoTrim }

// The system's own tools make what it mounts and attach images without FUSE.
func missingFor(string) string { return "" }

func missingForFUSE() string { return "" }

// servedBy is not known here.
func servedBy(_, _, _ string) string { return "" }
