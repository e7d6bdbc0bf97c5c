package chart

import (
	"flag"
	"os"
)

// A property draws a whole report: fewer than rapid's 100. DMGBENCH_LONG restores them, and an explicit -rapid.checks wins,
// since flags are parsed later.
func init() {
	if os.Getenv("DMGBENCH_LONG") == "" {
		_ = flag.Set("rapid.checks", "12")
	}
}
