//go:build unix

package hdiutil

import "golang.org/x/sys/unix"

// writable says why this user may not make files in the folder.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
