package codec

import (
	"flag"
	"os"
)

// long asks for whole chunks, and for more of the damage, where the default takes less.
var long = os.Getenv("DMGBENCH_LONG") != ""

// Property tests draw fewer cases than rapid's 100: each encodes and decodes. DMGBENCH_LONG restores them, and an
// explicit -rapid.checks wins, since flags are parsed later.
func init() {
	if !long {
		_ = flag.Set("rapid.checks", "40")
	}
}

// times is how often a test repeats something: n times, a quarter of them by default.
func times(n int) int {
	if long {
		return n
	}
	return n / 4
}
