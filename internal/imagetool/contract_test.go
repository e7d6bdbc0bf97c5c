package imagetool

import (
	"os"
	"testing"

	"dmgbench/internal/clock"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/enginetest"
	"dmgbench/internal/engine/hdiutil"

	"github.com/stretchr/testify/require"
)

// asTool is the argument with which this program is the work-alike.
const asTool = "as-hdiutil"

// TestContract holds the engine that drives this package to the contract of all engines. Btrfs is
// left out: it keeps nothing in its first 64 KiB, so that what the contract harms there harms nothing.
func TestContract(t *testing.T) {
	if os.Getenv("DMGBENCH_LONG") == "" {
		t.Skip("long: set DMGBENCH_LONG=1 (make test-long)")
	}
	if why := canAttach(); why != "" {
		t.Skip("images can be attached by root with loop devices and /dev/fuse: " + why)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for _, format := range []string{"UDSB", "UDRW"} {
		for _, fs := range []string{"ext4", "exFAT", "XFS"} {
			t.Run(format+" "+fs, func(t *testing.T) {
				size := int64(64 << 20)
				if fs == "XFS" { // what its program wants
					size = 320 << 20
				}
				run := t.TempDir()
				t.Setenv("DMGBENCH_RUNTIME_DIR", run)
				t.Cleanup(func() { release(run) })
				open := func() engine.Engine {
					e, err := hdiutil.New(t.Context(), hdiutil.WorkAlike(clock.NewReal(), self, asTool))
					require.NoError(t, err)
					t.Cleanup(func() { _ = e.Close() })
					return e
				}
				enginetest.Run(t, open, t.TempDir(), enginetest.Options{
					Spec: engine.Spec{Format: format, Size: size, Filesystems: []string{fs}}, Remounts: 3, Convert: []string{"UDRW", "UDSB", "UDTO"},
				})
			})
		}
	}
}
