//go:build !unix

package imagetool

import "io/fs"

// isOwn cannot be told here, so that nothing is removed.
func isOwn(fs.FileInfo) bool { return false }

// hardLinked cannot be told here.
func hardLinked(fs.FileInfo) bool { return false }
