package hdiutil

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
)

// commandLines are those of all processes that can be read, this one left out.
func commandLines(context.Context) (lines []string) {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range list {
		if pid, err := strconv.Atoi(e.Name()); err != nil || pid == os.Getpid() {
			continue
		}
		if line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")); err == nil && len(line) > 0 {
			lines = append(lines, string(line))
		}
	}
	return lines
}
