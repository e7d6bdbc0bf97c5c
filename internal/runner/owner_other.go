//go:build !unix

package runner

import "io/fs"

// owner is not known on this system.
func owner(fs.FileInfo) (int, bool) { return 0, false }

// inode is not known on this system.
func inode(fs.FileInfo) uint64 { return 0 }
