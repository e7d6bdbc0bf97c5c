package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// ErrBusy is returned by [Lock] while another run measures on this machine.
var ErrBusy = errors.New("another measuring run")

// lockName is the file in the state directory that a measuring run locks.
const lockName = "measuring.lock"

// StateDir is where this user's registry of attachments and the lock of measuring
// are kept: $DMGBENCH_STATE, else dmgbench in $XDG_STATE_HOME, else in the folder
// that the system has for it. It is an absolute path and need not exist.
func StateDir() (string, error) {
	if dir := os.Getenv("DMGBENCH_STATE"); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("finding state directory %q: %w", dir, err)
		}
		return abs, nil
	}
	// The base directory specification has relative paths ignored.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dmgbench"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding state directory: %w", err)
	}
	return filepath.Join(home, stateIn(runtime.GOOS)), nil
}

func stateIn(goos string) string {
	if goos == "darwin" {
		return filepath.Join("Library", "Application Support", "dmgbench")
	}
	return filepath.Join(".local", "state", "dmgbench")
}
