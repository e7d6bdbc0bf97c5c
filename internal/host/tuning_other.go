//go:build !linux

package host

// Tune knows of no such settings here: macOS has neither governors nor huge pages to switch.
func Tune() Tuning { return Tuning{} }
