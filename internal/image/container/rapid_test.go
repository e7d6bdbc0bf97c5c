package container

import (
	"flag"
	"os"
)

// Property tests draw fewer cases than rapid's 100: each makes, flushes and reopens containers on a real disk. DMGBENCH_LONG restores
// them, and an explicit -rapid.checks wins, since flags are parsed later.
func init() {
	if os.Getenv("DMGBENCH_LONG") == "" {
		_ = flag.Set("rapid.checks", "5")
	}
}
