package inprocess_test

import (
	"flag"
	"os"
)

// long asks for every crash point and every failing call, where the default takes some of them.
var long = os.Getenv("DMGBENCH_LONG") != ""

// Property tests draw fewer cases than rapid's 100: each makes images and remounts them many times. DMGBENCH_LONG restores
// them, and an explicit -rapid.checks wins, since flags are parsed later.
func init() {
	if !long {
		_ = flag.Set("rapid.checks", "12")
	}
}
