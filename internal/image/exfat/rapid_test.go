package exfat

import (
	"flag"
	"os"
)

// long asks for more states of each crash, where the default takes some of them.
var long = os.Getenv("DMGBENCH_LONG") != ""

// Property tests draw fewer cases than rapid's 100: each uses whole volumes. DMGBENCH_LONG restores them, and an
// explicit -rapid.checks wins, since flags are parsed later.
func init() {
	if !long {
		_ = flag.Set("rapid.checks", "35")
	}
}

// lossesPerCut is how many states of a lost write cache a test of crashes looks at for each cut.
func lossesPerCut() int {
	if long {
		return 6
	}
	return 2
}
