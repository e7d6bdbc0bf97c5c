package udif

import (
	"flag"
	"os"
)

// Property tests draw fewer cases than rapid's 100: each compresses and reads whole devices. DMGBENCH_LONG restores
// them, and an explicit -rapid.checks wins, since flags are parsed later.
func init() {
	if os.Getenv("DMGBENCH_LONG") == "" {
		_ = flag.Set("rapid.checks", "30")
	}
}
