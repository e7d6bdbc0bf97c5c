package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"dmgbench/internal/system/hostio"
)

// ErrBusy is returned by [Lock] while another run measures on this machine.
var ErrBusy = errors.New("another measuring run")

// ErrNoHome is returned by [StateDir] where the user's own folder is not known.
var ErrNoHome = errors.New("HOME is not set to an absolute path")

// lockName is the file in the state directory that a measuring run locks.
const lockName = "measuring.lock"

// StateDir is where this user's registry of runs and the lock of measuring are
// kept: $DMGBENCH_STATE, else dmgbench in $XDG_STATE_HOME, else in the folder
// that the system has for it. It is an absolute path and need not exist. getenv
// is [os.Getenv] or a replacement.
func StateDir(getenv func(string) string) (string, error) {
	if dir := getenv("DMGBENCH_STATE"); dir != "" {
		return filepath.Abs(dir)
	}
	// The base directory specification has relative paths ignored.
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dmgbench"), nil
	}
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", fmt.Errorf("finding state directory: %w", ErrNoHome)
	}
	return filepath.Join(home, stateIn(runtime.GOOS)), nil
}

func stateIn(goos string) string {
	if goos == "darwin" {
		return filepath.Join("Library", "Application Support", "dmgbench")
	}
	return filepath.Join(".local", "state", "dmgbench")
}

// Lock takes the lock of measuring in the state directory, which it makes where
// missing. Two runs at once would measure each other, so a second one gets
// [ErrBusy]. The lock goes with the process, however that ends.
func Lock(stateDir string) (release func(), err error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("making state directory: %w", err)
	}
	dir, err := hostio.OpenDir(stateDir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.Open(lockName, hostio.OpenOptions{Write: true, Create: true, Perm: 0o600})
	if err != nil {
		return nil, err
	}
	if err := f.TryLock(); err != nil {
		_ = f.Close()
		if errors.Is(err, hostio.ErrLocked) {
			err = ErrBusy
		}
		return nil, fmt.Errorf("locking %q: %w", filepath.Join(stateDir, lockName), err)
	}
	return func() { _ = f.Close() }, nil
}
