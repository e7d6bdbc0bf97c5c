//go:build !linux

package hdiutil

// lacks says nothing: the system's own tools make what it mounts.
func lacks(string) string { return "" }

// servedBy says nothing: the system does not tell.
func servedBy(_, _, _ string) string { return "" }

// noFUSE says nothing: the system attaches images by itself.
func noFUSE() string { return "" }
