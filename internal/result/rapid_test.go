package result

import (
	"flag"
	"os"
)

// long asks for every bit of a damaged journal.
var long = os.Getenv("DMGBENCH_LONG") != ""

// Property tests draw fewer cases than rapid's 100: each encodes and decodes whole results. DMGBENCH_LONG restores them, and an explicit
// -rapid.checks wins, since flags are parsed later.
func init() {
	if !long {
		_ = flag.Set("rapid.checks", "30")
	}
}
