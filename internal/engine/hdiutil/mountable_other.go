//go:build !linux

package hdiutil

// lacks says nothing: the system's own tools make what it mounts.
func lacks(string) string { return "" }

// noFUSE says nothing: the system attaches images by itself.
func noFUSE() string { return "" }
