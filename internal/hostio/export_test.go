package hostio

// Spare says how much memory for misaligned transfers waits to be used; with forget none does afterwards.
func Spare(forget bool) int {
	n := len(spareBounce)
	for forget && len(spareBounce) > 0 {
		(<-spareBounce).Free()
	}
	return n
}
