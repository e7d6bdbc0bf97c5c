//go:build unix

package hdiutil

import "golang.org/x/sys/unix"

// checkWritable reports why this user may not make files in the folder.
func checkWritable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
