package hdiutil

import (
	"fmt"
	"os"
)

func systemMounts() ([]Mount, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	return parseMountinfo(string(text)), nil
}
