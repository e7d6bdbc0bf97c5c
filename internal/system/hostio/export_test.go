package hostio

import "testing"

// Spare says how much memory for misaligned transfers waits to be used; with forget none does afterwards.
func Spare(forget bool) int {
	n := len(spareBounce)
	for forget && len(spareBounce) > 0 {
		(<-spareBounce).Free()
	}
	return n
}

// Degraded reports whether the kernel refused a direct transfer of f.
func Degraded(f *File) bool { return f.degraded.Load() }

// HasDirect reports whether f has a descriptor of its own for direct transfers.
func HasDirect(f *File) bool { return f.direct >= 0 }

// LowerMaxTransfer makes n bytes the most of one system call until the test ends.
func LowerMaxTransfer(t testing.TB, n int) {
	before := maxTransfer
	maxTransfer = n
	t.Cleanup(func() { maxTransfer = before })
}

// SetHook changes the hook of an open file.
func SetHook(f *File, h Hook) { f.hook = h }
