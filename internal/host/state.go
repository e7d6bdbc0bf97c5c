package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
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
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("finding state directory %q: %w", dir, err)
		}
		return abs, nil
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
	name := filepath.Join(stateDir, lockName)
	// It is never written to, and so neither is what a link leads to.
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock: %w", err)
	}
	if err := flock(f); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return nil, fmt.Errorf("locking %q: %w", name, err)
	}
	return sync.OnceFunc(func() { _ = f.Close() }), nil
}

func flock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
