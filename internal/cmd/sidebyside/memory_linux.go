package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryPlace mounts a tmpfs of our own below the folder.
func memoryPlace(dir string) (at string, unmount func() error, err error) {
	if at, err = os.MkdirTemp(dir, "sidebyside-memory-"); err != nil {
		return "", nil, fmt.Errorf("making a mount point: %w", err)
	}
	if err := unix.Mount("sidebyside", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=75%,mode=0700"); err != nil {
		return "", nil, errors.Join(fmt.Errorf("mounting a tmpfs on %q: %w", at, err), os.Remove(at))
	}
	return at, func() error {
		if err := unix.Unmount(at, 0); err != nil {
			return fmt.Errorf("unmounting %q: %w", at, err)
		}
		return os.Remove(at)
	}, nil
}
