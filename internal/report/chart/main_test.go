package chart

import (
	"os"
	"runtime/debug"
	"testing"
)

// The interpreter makes much garbage: it is collected a quarter as often.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
