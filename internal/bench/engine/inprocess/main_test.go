package inprocess_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain keeps the property tests short: each case here makes images and remounts them many times.
func TestMain(m *testing.M) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if !set && os.Getenv("DMGBENCH_LONG") == "" {
		_ = flag.Set("rapid.checks", "12")
	}
	os.Exit(m.Run())
}
