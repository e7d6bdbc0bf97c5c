package container

import (
	"flag"
	"os"
	"testing"
)

// TestMain lowers rapid's default number of checks: each makes, flushes and
// reopens containers on a real disk. DMGBENCH_LONG restores it, and an
// explicit -rapid.checks wins.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given && os.Getenv("DMGBENCH_LONG") == "" {
		if err := flag.Set("rapid.checks", "12"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
