//go:build !linux

package hdiutil

// unmountable says nothing: the system's own tools make what it mounts.
func unmountable(string) string { return "" }
